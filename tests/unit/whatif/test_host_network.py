"""Collectives on the host over another network; messages that end when somebody waits for them."""

from dataclasses import replace

import numpy as np
import pytest

from ingest.units import BytesPerSecond, Nanos
from ingest.vocab import CollectiveKind, TaskKind
from replay.engine.run import replay
from replay.graph.arrays import TaskGraph
from tests.builders import GraphBuilder, baseline_of
from whatif.answers import Answers
from whatif.many import outcomes
from whatif.models import gloo
from whatif.models.bound import Bound
from whatif.recorded import Recorded
from whatif.scenario import Scenario
from whatif.study import readings_of, study
from whatif.transforms.base import Context
from whatif.transforms.host_network import HostNetwork, over_network, recorded_rate
from whatif.transforms.host_transfers import moving_ns, receivers_last, with_moving
from whatif.transforms.net import Net, NetLatency
from whatif.transforms.network import NetworkScale
from whatif.transforms.scale import Scale

US, MS = 1_000, 1_000_000
GBIT = BytesPerSecond(1e9 / 8)
SIZE = 12_000_000


def reduced(*times_ms: float) -> TaskGraph:
    """Two ranks, all-reduces of 12 MB one after the other."""
    build = GraphBuilder(ranks=(0, 1), gpu=None)
    for time_ms in times_ms:
        callers = {rank: build.host(rank, "backward", MS) for rank in (0, 1)}
        build.collective(
            round(time_ms * MS),
            callers=callers,
            on_host=True,
            size_bytes=SIZE,
            name="gloo:all_reduce",
        )
    return build.build()


def message(*, sent_ms: float, received_ms: float, ahead_ms: float = 0) -> TaskGraph:
    """Rank 0 sends to rank 1; the rows last so long; the receiver comes `ahead_ms` before."""
    build = GraphBuilder(ranks=(0, 1), gpu=None)
    callers = {0: build.host(0, "w", 5 * MS), 1: build.host(1, "w", round((5 - ahead_ms) * MS))}
    rows = build.collective(
        round(received_ms * MS),
        callers=callers,
        on_host=True,
        size_bytes=196_608,
        kind=CollectiveKind.SEND_RECV,
        name="gloo:recv",
    )
    build.rows[rows[0]] = replace(build.rows[rows[0]], name="gloo:send", dur_ns=round(sent_ms * MS))
    build.rows[rows[0] - 1] = replace(build.rows[rows[0] - 1], name="gloo:send")
    return build.build()


def transfers(graph: TaskGraph) -> np.ndarray:
    return np.flatnonzero(graph.tasks.kind == TaskKind.TRANSFER)


def times_ms(graph: TaskGraph) -> list[float]:
    return (graph.tasks.dur_ns[transfers(graph)] / MS).tolist()


def moved_ms(graph: TaskGraph, **network: object) -> list[float]:
    return times_ms(over_network(graph, HostNetwork(**network), Bound.NOMINAL).graph)


def test_the_rate_is_read_off_the_recording() -> None:
    assert recorded_rate(reduced(101.2, 101.2, 101.2)) == pytest.approx(GBIT, rel=0.01)


def test_half_the_rate_doubles_the_bytes() -> None:
    found = moved_ms(reduced(101.2), base_bytes_per_s=GBIT, factor=0.5)
    assert found == pytest.approx([202.0, 202.0])


def test_the_same_network_changes_nothing() -> None:
    graph = reduced(101.2, 133.3)
    moved = over_network(graph, HostNetwork(factor=1.0), Bound.NOMINAL)
    assert np.array_equal(moved.graph.tasks.dur_ns, graph.tasks.dur_ns)


def ends_ms(graph: TaskGraph, **network: object) -> list[float]:
    """Low, nominal and high time of the first transfer."""
    return [
        times_ms(over_network(graph, HostNetwork(**network), bound).graph)[0]
        for bound in (Bound.LOW, Bound.NOMINAL, Bound.HIGH)
    ]


def test_a_base_that_the_transfers_contradict_is_told_and_the_range_holds_both() -> None:
    graph, tenth = reduced(101.2, 101.2), BytesPerSecond(0.1 * GBIT)
    two = {"base_bytes_per_s": BytesPerSecond(2 * GBIT), "new_bytes_per_s": tenth}
    told = over_network(graph, HostNetwork(**two), Bound.NOMINAL).assumptions[0]
    assert told == (
        "the recorded transfers show 1 Gbps between hosts, --base-net says 2 Gbps: the range holds "
        "both"
    )
    low, nominal, high = ends_ms(graph, **two)
    as_read = ends_ms(graph, new_bytes_per_s=tenth)
    assert low <= as_read[1] < nominal <= high
    assert low == as_read[0]
    assert nominal == moved_ms(graph, factor=0.05, base_bytes_per_s=two["base_bytes_per_s"])[0]


@pytest.mark.parametrize(("time_ms", "gbit"), [(101.2, 1.0), (101.2, 1.5), (101.2, 0.7), (13, 40)])
def test_a_base_that_the_transfers_bear_out_is_believed(time_ms: float, gbit: float) -> None:
    """In 13 ms a core sends 12 MB, on whatever link."""
    network = HostNetwork(base_bytes_per_s=BytesPerSecond(gbit * GBIT), factor=0.5)
    moved = over_network(reduced(time_ms), network, Bound.NOMINAL)
    assert moved.assumptions == (gloo.SOURCE,)
    assert moved.doubts == ()


def test_a_contradiction_is_told_where_nothing_moves() -> None:
    graph = reduced(40.0)
    changed = Net(rate="x2").apply(graph, Context(recorded=Recorded(net="40Gbps")))
    assert changed.no_effect is not None
    assert any("--base-net says 40 Gbps" in told for told in changed.assumptions)


def test_the_range_of_other_transfers_holds_how_much_runs_differ() -> None:
    graph = reduced(101.2, 60.0)
    base = baseline_of(graph)
    scenarios = [
        Scenario(transforms=(Net(rate="x0.5"),)),
        Scenario(transforms=(Scale(where="class:host", factor=2.0),)),
        Scenario(transforms=(Net(rate="x0.5"), Net(rate="x2"))),
    ]
    slower, host, back = (study(graph, base, scenario) for scenario in scenarios)
    assert slower.low_ns <= slower.step_ns * 0.96 + 1
    assert slower.high_ns >= slower.step_ns * 1.04 - 1
    assert gloo.BETWEEN_RUNS in slower.assumptions
    assert gloo.BETWEEN_RUNS not in host.assumptions
    assert host.low_ns > host.step_ns * 0.99
    assert (back.low_ns, back.high_ns) == (back.step_ns, back.step_ns)
    found = outcomes(readings_of(graph), base, scenarios)
    for one, answer in zip(found, (slower, host, back), strict=True):
        assert (one.low_ns, one.high_ns) == (answer.low_ns, answer.high_ns)
        assert set(one.assumptions) == set(answer.assumptions)


def test_a_delay_is_latency_that_later_transfers_do_not_share() -> None:
    graph = reduced(101.2)
    moved = over_network(graph, HostNetwork(new_delay_ns=Nanos(MS)), Bound.NOMINAL)
    hops = 4 * SIZE / 2 / (2 << 20)
    assert moved.graph.collectives.latency_ns[0] == pytest.approx(hops * MS)
    assert times_ms(moved.graph)[0] == pytest.approx(101.2 + hops)


def test_collectives_on_devices_stay() -> None:
    build = GraphBuilder(ranks=(0, 1))
    callers = {rank: build.call(rank, "launch", US) for rank in (0, 1)}
    build.collective(400 * US, callers=callers, size_bytes=SIZE)
    graph = build.build()
    assert over_network(graph, HostNetwork(factor=2.0), Bound.NOMINAL).graph is graph


def test_the_row_of_a_send_moves_bytes_no_longer_than_its_receiver_waits() -> None:
    graph = message(sent_ms=27, received_ms=1.3)
    assert moving_ns(graph, transfers(graph)).tolist() == [1.3 * MS, 1.3 * MS]


def test_slower_bytes_first_fill_the_time_until_somebody_waits() -> None:
    slow = message(sent_ms=27, received_ms=1.3)
    answer = study(slow, baseline_of(slow), Scenario(transforms=(NetworkScale(factor=0.1),)))
    assert times_ms(answer.graph) == [27.0, 13.0]


def test_moving_parts_grow_and_shrink_without_a_jump() -> None:
    measured, moving = np.array([27, 27, 27, 27]), np.array([10, 10, 10, 10])
    assert with_moving(measured, moving, np.array([4, 10, 20, 40])).tolist() == [21, 27, 27, 40]


@pytest.mark.parametrize(("ahead_ms", "last"), [(0, True), (2, False)])
def test_who_comes_last_is_told(ahead_ms: float, last: bool) -> None:  # noqa: FBT001
    graph = message(sent_ms=1.3, received_ms=1.3, ahead_ms=ahead_ms)
    assert receivers_last(graph).tolist() == [last]


def test_the_delay_of_the_recording_is_told_to_the_couplings() -> None:
    graph = reduced(120.0)
    said = Recorded(net="1Gbps", net_latency="1ms")
    changed = NetLatency(time="3ms").apply(graph, Context(recorded=said))
    hops = 4 * SIZE / 2 / (2 << 20)
    assert changed.context.recorded_latency_ns is not None
    assert changed.context.recorded_latency_ns[0] == pytest.approx(hops * MS)
    assert changed.graph.collectives.latency_ns[0] == pytest.approx(3 * hops * MS)
    assert times_ms(changed.graph)[0] == pytest.approx(120 + 2 * hops)


def test_many_variants_are_answered_as_each_alone_whatever_their_tasks() -> None:
    graph = reduced(100.0, 60.0)
    variants = [
        over_network(graph, HostNetwork(factor=factor), Bound.NOMINAL).graph
        for factor in (0.5, 1.0, 3.0)
    ]
    variants.insert(1, reduced(10.0))
    answers = Answers.of(graph, replay(graph))
    together = [int(times.mean_ns) for times, _ in answers.told_of_all(variants)]
    assert together == [int(answers.step_times(variant).mean_ns) for variant in variants]
    assert answers.told_of_all([]) == []
