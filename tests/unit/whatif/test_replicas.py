"""More or fewer replicas: schedules known by hand, members, sizes, waits and round trips."""

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingest.errors import ScenarioError, UsageError
from ingest.vocab import CollectiveKind, Phase, TaskKind
from replay.engine.run import replay
from replay.graph.arrays import TaskGraph
from replay.results.metrics import step_times
from tests.builders import GraphBuilder, baseline_of
from whatif.models import order_statistics
from whatif.models.bound import Bound
from whatif.models.collectives import model
from whatif.parallelism import Axis, layout_of
from whatif.recorded import Recorded
from whatif.scenario import Scenario
from whatif.stacking import Changed, Stacking
from whatif.study import Study, study
from whatif.topology import spread
from whatif.transforms.base import Applied, Context
from whatif.transforms.fold import roles_kept, without_ranks
from whatif.transforms.growth import Growth
from whatif.transforms.machine import known
from whatif.transforms.replicas import Replicas
from whatif.transforms.retime import calls_of
from whatif.transforms.scale import Scale
from whatif.transforms.slowest import own_steps, slowest_of_fewer, spread_ns
from whatif.transforms.stragglers import NoStragglers

MB = 1_000_000
WORK_NS, REDUCE_NS = 1_000_000, 400_000


def data_parallel(
    works_ns: list[int],
    *,
    kind: CollectiveKind = CollectiveKind.ALL_REDUCE,
    phase: Phase = Phase.BACKWARD,
    size_bytes: int = 8 * MB,
    world: int | None = None,
    steps: int = 1,
) -> TaskGraph:
    """Per step each rank works on its device, then all meet; the host waits for nothing."""
    ranks = tuple(range(len(works_ns)))
    group = tuple(range(world or len(ranks)))
    build = GraphBuilder(ranks=ranks, world_size=len(group))
    for step in range(steps):
        callers, done = {}, {}
        for rank, work_ns in enumerate(works_ns):
            launch = build.call(rank, "launch", 10_000, step=step)
            done[rank] = build.kernel(rank, "gemm", work_ns, caller=launch, step=step)
            callers[rank] = build.call(rank, "launch", 10_000, step=step)
        transfers = build.collective(
            REDUCE_NS,
            callers=callers,
            after=done,
            kind=kind,
            size_bytes=size_bytes,
            group=group,
            expected=len(group),
            step=step,
        )
        for rank, transfer in zip(ranks, transfers, strict=True):
            adam = build.kernel(rank, "adam", 10_000, phase=Phase.OPTIMIZER, step=step)
            build.edge(transfer, adam)
    graph = build.build()
    of_calls = np.where(graph.tasks.collective >= 0, phase, graph.tasks.phase).astype(np.int8)
    same = replace(graph.collectives, group=np.zeros(len(graph.collectives.kind), np.int32))
    return replace(
        graph,
        tasks=replace(graph.tasks, phase=of_calls),
        collectives=same,
        groups=graph.groups[:1],
    )


def apply(graph: TaskGraph, replicas: int, **context: object) -> Applied:
    return Replicas(replicas=replicas).apply(graph, Context(**context))


def step_ns(graph: TaskGraph) -> int:
    return int(step_times(graph, replay(graph)).mean_ns)


def ask(graph: TaskGraph, *replicas: int) -> Study:
    changes = tuple(Replicas(replicas=count) for count in replicas)
    return study(graph, baseline_of(graph), Scenario(transforms=changes))


def transfers_ns(graph: TaskGraph) -> set[int]:
    return set(graph.tasks.dur_ns[graph.tasks.kind == TaskKind.TRANSFER].tolist())


def test_one_replica_has_no_collective() -> None:
    graph = data_parallel([WORK_NS, WORK_NS])
    answer = ask(graph, 1)
    assert answer.replayed_ns == 10_000 + WORK_NS + REDUCE_NS + 10_000
    assert answer.step_ns == 10_000 + WORK_NS + 10_000
    assert transfers_ns(answer.graph) == {0}
    assert answer.samples_factor == 0.5
    assert answer.graph.world_size == 1


def test_the_same_number_says_so_and_changes_nothing() -> None:
    graph = data_parallel([WORK_NS, WORK_NS])
    found = apply(graph, 2)
    assert found.graph is graph
    assert found.no_effect == "the run has 2 replicas already"


def test_equal_replicas_only_change_the_transfer() -> None:
    graph = data_parallel([WORK_NS, WORK_NS])
    found = apply(graph, 4).graph
    (reduce_ns,) = transfers_ns(found)
    assert reduce_ns > REDUCE_NS
    assert step_ns(found) - step_ns(graph) == reduce_ns - REDUCE_NS
    assert set(found.collectives.members_expected.tolist()) == {4}
    assert found.groups[0].ranks == (0, 1, 2, 3)


def test_one_of_unequal_replicas_is_as_fast_as_their_mean() -> None:
    graph = data_parallel([WORK_NS, 3 * WORK_NS])
    answer = ask(graph, 1)
    assert answer.step_ns == pytest.approx(10_000 + 2 * WORK_NS + 10_000, abs=10)
    assert answer.low_ns <= 10_000 + WORK_NS + 10_000
    assert answer.high_ns >= 10_000 + 3 * WORK_NS + 10_000
    assert sum(rank is None for rank in answer.rank_ns) == 1


def test_the_slowest_of_more_is_slower_by_the_spread() -> None:
    works_ns = [WORK_NS, 2 * WORK_NS, 3 * WORK_NS, 4 * WORK_NS]
    later_ns = order_statistics.later_by(4, 64, Bound.NOMINAL) * np.std(works_ns, ddof=1)
    graph = data_parallel(works_ns, size_bytes=4)
    base = Recorded(gpus_per_node=64)
    found = apply(graph, 64, recorded=base)
    (reduce_ns,) = transfers_ns(found.graph)
    grown_ns = step_ns(found.graph) - step_ns(graph) - (reduce_ns - REDUCE_NS)
    assert grown_ns == pytest.approx(later_ns, rel=0.001)
    assert found.context.replica_spread_ns == pytest.approx(np.std(works_ns, ddof=1), rel=0.01)


def test_waits_for_ranks_without_a_file_grow_with_the_replicas() -> None:
    build = GraphBuilder(world_size=8)
    for _ in range(2):
        caller = build.call(0, "launch", 10_000, phase=Phase.BACKWARD)
        build.collective(
            400_000, callers={0: caller}, group=tuple(range(8)), outside_ns=300_000,
            size_bytes=8 * MB,
        )  # fmt: skip
    graph = build.build()
    phases = np.where(graph.tasks.collective >= 0, Phase.BACKWARD, graph.tasks.phase)
    graph = replace(graph, tasks=replace(graph.tasks, phase=phases.astype(np.int8)))
    waits_ns = [
        apply(graph, count).graph.tasks.dur_ns[graph.tasks.kind == TaskKind.ARRIVE][0]
        for count in (2, 4, 16)
    ]
    assert waits_ns[0] < waits_ns[1] < 300_000 < waits_ns[2]
    expected = order_statistics.wait_ratio(8, 4, Bound.NOMINAL) * 300_000
    assert waits_ns[1] == pytest.approx(expected, abs=1)


def test_a_network_between_nodes_that_nobody_told_is_the_usual_one_of_the_accelerator() -> None:
    graph = data_parallel([WORK_NS] * 8)
    inside = apply(graph, 8 * 4, recorded=Recorded(gpus_per_node=32))
    across = apply(graph, 8 * 4)
    assert max(transfers_ns(across.graph)) > max(transfers_ns(inside.graph))
    assert any("usual" in told for told in across.assumptions)
    assert any("reach over 4 nodes" in told for told in across.assumptions)
    told = apply(graph, 8 * 4, recorded=Recorded(net="25Gbps"))
    assert max(transfers_ns(told.graph)) > max(transfers_ns(across.graph))


def test_calls_that_leave_their_node_keep_what_it_cost_and_add_the_network() -> None:
    graph = data_parallel([WORK_NS] * 8)
    base = Context(recorded=Recorded(net="400Gbps"))
    found = Replicas(replicas=16).apply(graph, base)
    numbers = np.zeros(1, np.int64)
    now = known(graph, base)
    here, there = (calls_of(one, now.places, numbers) for one in (graph, found.graph))
    assert (here.nodes[0], there.nodes[0], there.largest_node[0]) == (1, 2, 8)
    model_ns = [float(model.model_ns(calls, now.links)[0]) for calls in (here, there)]
    assert 3 * model_ns[0] < REDUCE_NS, "or a ratio would say the same"
    (new_ns,) = transfers_ns(found.graph)
    assert new_ns == pytest.approx(REDUCE_NS + model_ns[1] - model_ns[0], abs=2)


def test_fewer_replicas_come_together_in_fewer_nodes() -> None:
    graph = data_parallel([WORK_NS] * 8)
    base = Recorded(gpus_per_node=4, net="400Gbps")
    found = apply(graph, 4, recorded=base)
    over = spread(found.graph, found.context.places)
    assert (over.domains.tolist(), over.largest.tolist()) == ([1], [4])
    assert max(transfers_ns(found.graph)) < REDUCE_NS


def test_a_node_of_unknown_kind_needs_its_network_told() -> None:
    graph = data_parallel([WORK_NS] * 8)
    unknown = replace(graph, ranks=tuple(replace(info, gpu="Someone's") for info in graph.ranks))
    with pytest.raises(ScenarioError, match="network between them is not known") as error:
        apply(unknown, 16)
    assert "--base-net" in str(error.value.hint)


def sharded(works_ns: list[int]) -> TaskGraph:
    """Gradients scattered in backward; parameters gathered by the optimizer."""
    graph = data_parallel(works_ns, kind=CollectiveKind.REDUCE_SCATTER, steps=2)
    kinds = np.array([CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_GATHER], np.int8)
    gathers = graph.tasks.collective == 1
    phases = np.where(gathers, Phase.OPTIMIZER, graph.tasks.phase).astype(np.int8)
    return replace(
        graph,
        tasks=replace(graph.tasks, phase=phases),
        collectives=replace(graph.collectives, kind=kinds),
    )


def test_shards_follow_and_their_bytes_stay() -> None:
    graph = sharded([WORK_NS] * 4)
    assert layout_of(graph).degree(Axis.SHARDED) == 4
    found = apply(graph, 8).graph
    assert found.collectives.size_bytes.tolist() == graph.collectives.size_bytes.tolist()
    optimizer = (graph.tasks.phase == Phase.OPTIMIZER) & (graph.tasks.kind == TaskKind.KERNEL)
    # 2.3 us are those of an empty kernel; the rest is half of 7.7 us.
    assert set(found.tasks.dur_ns[optimizer].tolist()) == {2_300 + 3_850}


def test_gathered_activations_grow_with_the_members() -> None:
    reduced = data_parallel([WORK_NS] * 4, steps=2)
    kinds = np.array([CollectiveKind.ALL_REDUCE, CollectiveKind.ALL_GATHER], np.int8)
    graph = replace(reduced, collectives=replace(reduced.collectives, kind=kinds))
    found = apply(graph, 8).graph
    assert found.collectives.size_bytes.tolist() == [8 * MB, 16 * MB]


def hybrid() -> TaskGraph:
    """Rank 0 of 12: shards over 4 neighbours, gradients over 3 such groups."""
    build = GraphBuilder(world_size=12)
    calls = (
        (CollectiveKind.ALL_GATHER, Phase.FORWARD, (0, 1, 2, 3)),
        (CollectiveKind.REDUCE_SCATTER, Phase.BACKWARD, (0, 1, 2, 3)),
        (CollectiveKind.ALL_REDUCE, Phase.BACKWARD, (0, 4, 8)),
    )
    for kind, _, group in calls:
        caller = build.call(0, "launch", 10_000)
        build.collective(REDUCE_NS, callers={0: caller}, kind=kind, size_bytes=8 * MB, group=group)
    graph = build.build()
    phases = np.array([*(phase for _, phase, _ in calls), Phase.UNKNOWN], np.int8)
    return replace(graph, tasks=replace(graph.tasks, phase=phases[graph.tasks.collective]))


def test_of_hybrid_shards_only_the_number_of_groups_changes() -> None:
    found = apply(hybrid(), 24).graph
    assert [group.ranks for group in found.groups] == [
        (0, 1, 2, 3),
        (0, 1, 2, 3),
        (0, 4, 8, 12, 16, 20),
    ]
    assert found.collectives.members_expected.tolist() == [4, 4, 6]
    assert found.world_size == 24


def test_shards_that_do_not_divide_are_refused_with_a_number_that_does() -> None:
    with pytest.raises(ScenarioError, match="groups of 4 that share parameters") as error:
        apply(hybrid(), 6)
    assert "--dp 8" in str(error.value.hint)


def test_a_run_without_replicas_says_what_it_lacks() -> None:
    build = GraphBuilder()
    build.kernel(0, "gemm", 1_000)
    with pytest.raises(ScenarioError, match="how many bytes the gradients have") as error:
        apply(build.build(), 4)
    assert "--describe" in str(error.value.hint)


def test_unclear_communicators_are_named() -> None:
    graph = data_parallel([WORK_NS] * 2, kind=CollectiveKind.BROADCAST)
    with pytest.raises(ScenarioError, match=r"cannot tell .* g \(2 ranks\)") as error:
        apply(graph, 4)
    assert "N@NAME" in str(error.value.hint)
    given_name = Replicas(replicas=4, groups="g").apply(graph, Context())
    assert given_name.graph.world_size == 4
    with pytest.raises(ScenarioError, match="no communicator is named `h`"):
        Replicas(replicas=4, groups="h").apply(graph, Context())


@pytest.mark.parametrize("count", [0, -1, 10_000_000])
def test_absurd_numbers_are_refused(count: int) -> None:
    with pytest.raises(UsageError, match="replicas"):
        Replicas(replicas=count)


def test_ranks_that_are_gone_hold_nobody_up() -> None:
    graph = data_parallel([WORK_NS, 5 * WORK_NS])
    found = without_ranks(graph, frozenset({1}))
    assert step_ns(found) == 10_000 + WORK_NS + REDUCE_NS + 10_000
    assert [info.rank for info in found.ranks] == [0]
    assert found.n_tasks == graph.n_tasks


def test_it_stacks_with_other_what_ifs() -> None:
    graph = data_parallel([WORK_NS] * 2)
    changes = (Replicas(replicas=1), Scale(where="class:gemm", factor=0.5))
    answer = study(graph, baseline_of(graph), Scenario(transforms=changes))
    assert answer.step_ns == 10_000 + WORK_NS // 2 + 5_000


def test_ranks_that_are_gone_have_no_peers() -> None:
    graph = data_parallel([WORK_NS, WORK_NS, 5 * WORK_NS])
    changes = (Replicas(replicas=2), NoStragglers())
    answer = study(graph, baseline_of(graph), Scenario(transforms=changes))
    (reduce_ns,) = transfers_ns(answer.graph)
    assert answer.step_ns <= 10_000 + 3 * WORK_NS + reduce_ns + 10_000


works = st.lists(st.integers(100_000, 5_000_000), min_size=2, max_size=5)


def test_more_after_fewer_starts_from_all_that_were_recorded() -> None:
    graph = data_parallel([500_000, 600_000, 700_000, 1_500_000])
    back = ask(graph, 2, 4)
    assert (back.step_ns, back.low_ns, back.high_ns) == (back.replayed_ns,) * 3
    assert back.samples_factor == 1
    assert ask(graph, 2, 3).step_ns == ask(graph, 3).step_ns


def test_more_after_fewer_and_another_what_if_says_who_is_missing() -> None:
    graph = data_parallel([500_000, 600_000, 700_000, 1_500_000])
    other = Scale(where="class:gemm", factor=0.9)
    stack = (Replicas(replicas=2), other, Replicas(replicas=4))
    told = study(graph, baseline_of(graph), Scenario(transforms=stack)).assumptions
    assert any(line.startswith("2 recorded ranks that an earlier --dp took out") for line in told)


def crossing(n_replicas: int, inside: int) -> TaskGraph:
    """Ranks that share a replica are neighbours; reductions of both kinds at the same place."""
    ranks = tuple(range(n_replicas * inside))
    build = GraphBuilder(ranks=ranks, world_size=len(ranks))
    within = [tuple(ranks[first : first + inside]) for first in ranks[::inside]]
    across = [ranks[place::inside] for place in range(inside)]
    for group in (*within, *across):
        callers, done = {}, {}
        for rank in group:
            launch = build.call(rank, "launch", 10_000)
            done[rank] = build.kernel(rank, "gemm", WORK_NS, caller=launch)
            callers[rank] = build.call(rank, "launch", 10_000)
        build.collective(REDUCE_NS, callers=callers, after=done, size_bytes=8 * MB, group=group)
    graph = build.build()
    names = ["inner"] * len(within) + ["outer"] * len(across)
    groups = tuple(
        replace(group, name=name) for group, name in zip(graph.groups, names, strict=True)
    )
    return replace(graph, groups=groups)


@pytest.mark.parametrize("inside", [2, 3])
@pytest.mark.parametrize("after", [1, 2, 8])
def test_communicators_inside_a_replica_stay_though_they_look_like_those_of_replicas(
    inside: int, after: int
) -> None:
    graph = crossing(4, inside)
    changed = apply(graph, after).graph
    by_size = {group.size for group in changed.groups}
    assert by_size == {inside, after}
    assert all(len(group.ranks) == group.size for group in changed.groups)
    answer = ask(graph, after)
    assert answer_in_range(answer)
    assert any(f"communicators of {inside} ranks" in line for line in answer.assumptions)


def test_fewer_replicas_never_move_one_over_nodes() -> None:
    """Of four replicas of three ranks the third lies on two nodes of eight, the fourth on one."""
    graph = crossing(4, 3)
    changed = apply(graph, 3).graph
    for before, after in zip(graph.groups, changed.groups, strict=True):
        assert after.size == 3
        assert before.name == "outer" or after.ranks == before.ranks
    within = np.isin(graph.collectives.group, [0, 1, 2, 3])[graph.tasks.collective]
    within &= graph.tasks.kind == TaskKind.TRANSFER
    assert within.any()
    assert (changed.tasks.dur_ns[within] == graph.tasks.dur_ns[within]).all()


def test_a_communicator_of_some_replicas_is_no_larger_than_those_that_are_left() -> None:
    graph = data_parallel([500_000] * 4)
    part = replace(graph.groups[0], ranks=(0, 1), size=2)
    graph = replace(graph, groups=(*graph.groups, part))
    for after, size in ((1, 1), (2, 2), (8, 2)):
        group = apply(graph, after).graph.groups[1]
        assert group.size == len(group.ranks) == size


def test_what_was_said_to_join_replicas_does_and_what_only_looks_like_it_does_not() -> None:
    graph = crossing(4, 2)
    layout = layout_of(graph, data_groups="inner")
    assert layout.replicas == 2
    assert layout_of(graph, data_groups="outer").replicas == 4


def test_the_range_holds_that_more_replicas_over_nodes_are_no_faster() -> None:
    """Nine ranks on nodes of eight share one card; twice eight do not."""
    graph = data_parallel([1_000_000] * 9, size_bytes=64 * MB)
    nodes = Recorded(gpus_per_node=8)
    scenario = Scenario(base=nodes, transforms=(Replicas(replicas=16),))
    answer = study(graph, baseline_of(graph), scenario)
    assert answer.step_ns < answer.replayed_ns <= answer.high_ns
    assert any("the range holds that it did not" in line for line in answer.assumptions)


@settings(max_examples=8, deadline=None)
@given(works_ns=works, factor=st.integers(2, 40))
def test_there_and_back_leaves_nothing(works_ns: list[int], factor: int) -> None:
    graph = data_parallel(works_ns)
    answer = ask(graph, len(works_ns) * factor, len(works_ns))
    assert answer.step_ns == pytest.approx(answer.replayed_ns, rel=1e-3)
    assert answer.samples_factor == pytest.approx(1)


@settings(max_examples=8, deadline=None)
@given(works_ns=works, more=st.integers(1, 100))
@example(works_ns=[100_000, 100_000], more=32)
def test_more_replicas_on_one_link_never_step_faster_and_lie_in_the_range(
    works_ns: list[int], more: int
) -> None:
    """Over several nodes they may: nine ranks on nodes of eight share one network card."""
    graph = data_parallel(works_ns)
    one_node = Recorded(gpus_per_node=1_000)
    first, second = (
        study(
            graph,
            baseline_of(graph),
            Scenario(base=one_node, transforms=(Replicas(replicas=len(works_ns) + extra),)),
        )
        for extra in (more, 2 * more)
    )
    assert answer_in_range(first)
    assert answer_in_range(second)
    # With n members the switch takes 1 + 1/n of the bytes from each: less of them, the more there
    # are; the pipeline's filling follows with up to their power of 1.5. Where the library changes
    # its algorithm as well, times meet within a part in a hundred.
    fewer, many = (len(works_ns) + extra for extra in (more, 2 * more))
    by_switch = ((1 + 1 / fewer) / (1 + 1 / many)) ** 1.5
    assert first.replayed_ns - 2 <= first.step_ns <= second.step_ns * 1.01 * by_switch


@settings(max_examples=8, deadline=None)
@given(work_ns=st.integers(100_000, 5_000_000), nodes=st.integers(2, 40))
def test_more_whole_nodes_never_step_faster(work_ns: int, nodes: int) -> None:
    graph = data_parallel([work_ns] * 8)
    steps_ns = [ask(graph, 8 * count).step_ns for count in (1, nodes, 2 * nodes)]
    assert steps_ns == sorted(steps_ns)


def answer_in_range(answer: Study) -> bool:
    return answer.low_ns <= answer.step_ns <= answer.high_ns


@settings(max_examples=8, deadline=None)
@given(works_ns=works)
def test_fewer_replicas_never_step_slower(works_ns: list[int]) -> None:
    graph = data_parallel(works_ns)
    steps_ns = [ask(graph, count).step_ns for count in range(1, len(works_ns) + 1)]
    assert all(one <= other + 2_000 for one, other in pairwise(steps_ns))


@given(steps=st.lists(st.integers(0, 1_000), min_size=1, max_size=7), count=st.integers(1, 7))
def test_the_slowest_of_a_draw_is_the_mean_over_all_draws(steps: list[int], count: int) -> None:
    count = min(count, len(steps))
    column = np.array(steps, np.float64)[:, None]
    by_hand = np.mean([max(drawn) for drawn in combinations(steps, count)])
    assert slowest_of_fewer(column, count)[0] == pytest.approx(by_hand)


def test_the_slowest_of_half_of_thousands_is_a_number() -> None:
    column = np.arange(3_000.0)[:, None]
    assert slowest_of_fewer(column, 1_500)[0] == pytest.approx(2_998, abs=1)


def test_roles_are_those_of_the_expected_order() -> None:
    late_ns = np.array([70, 10, 20, 30, 40, 50, 60, 0])
    assert roles_kept(late_ns, 1, Bound.NOMINAL).tolist() == [4]
    assert sorted(late_ns[roles_kept(late_ns, 2, Bound.NOMINAL)].tolist()) == [20, 50]
    assert sorted(late_ns[roles_kept(late_ns, 2, Bound.LOW)].tolist()) == [0, 10]
    assert sorted(late_ns[roles_kept(late_ns, 2, Bound.HIGH)].tolist()) == [60, 70]
    assert len(set(roles_kept(late_ns, 7, Bound.NOMINAL).tolist())) == 7


def test_ranks_keep_their_places_when_replicas_are_added() -> None:
    """Tensor pairs inside four replicas inside two stages: ranks 0..15 become 0..31."""
    growth = Growth(axis=Axis.DATA, before=4, after=8, stride=2, world_before=16, world_after=32)
    assert growth.moved(np.array([0, 1, 2, 7, 8, 15])).tolist() == [0, 1, 2, 7, 16, 23]
    assert growth.members(np.array([1, 3, 5, 7])).tolist() == list(range(1, 17, 2))
    assert growth.members(np.array([8, 10, 12, 14])).tolist() == list(range(16, 32, 2))


def test_order_statistics_meet_their_tables() -> None:
    """Expected largest of n standard normal values (Harter 1961); harmonic numbers."""
    for count, largest in ((2, 0.5642), (4, 1.0294), (8, 1.4236), (64, 2.3437)):
        assert order_statistics.normal_largest(count) == pytest.approx(largest, rel=0.05)
    assert order_statistics.normal_largest(1) == 0
    assert order_statistics.exponential_largest(1) == 0
    assert order_statistics.exponential_largest(3) == pytest.approx(1 / 2 + 1 / 3)
    assert order_statistics.exponential_largest(64) == pytest.approx(
        sum(1 / number for number in range(2, 65)), rel=1e-4
    )


@given(before=st.integers(2, 500), after=st.integers(2, 500))
def test_bounds_of_the_spread_hold_the_nominal_one(before: int, after: int) -> None:
    low, nominal, high = (
        order_statistics.later_by(before, after, bound)
        for bound in (Bound.LOW, Bound.NOMINAL, Bound.HIGH)
    )
    assert low <= nominal <= high
    assert (nominal > 0) == (after > before)
    ratios = [
        order_statistics.wait_ratio(before, after, bound)
        for bound in (Bound.LOW, Bound.NOMINAL, Bound.HIGH)
    ]
    assert ratios == sorted(ratios)


def test_how_long_a_transfer_took_is_no_work_of_a_replica() -> None:
    graph = data_parallel([WORK_NS, WORK_NS])
    transfers = np.flatnonzero(graph.tasks.kind == TaskKind.TRANSFER)
    dur_ns = graph.tasks.dur_ns.copy()
    dur_ns[transfers[0]] *= 3
    changed = replace(graph, tasks=replace(graph.tasks, dur_ns=dur_ns))
    own = own_steps(changed, np.ones(1, bool), {0: 0, 1: 1})
    assert own.step_ns.tolist() == [[10_000 + WORK_NS + 10_000]] * 2


def test_the_spread_of_one_replica_is_not_known() -> None:
    assert spread_ns(np.array([[1.0, 2.0]])) == 0
    assert spread_ns(np.array([[1.0, 5.0], [3.0, 5.0]])) == 1


def test_replicas_that_keep_the_samples_of_a_step_and_back_are_the_recorded_run() -> None:
    """Also of several in a row, and with one that keeps the batch of a replica between them."""
    graph = data_parallel([WORK_NS, 1_100_000])
    stacking = Stacking(graph)

    def made(*numbers: Replicas) -> Changed:
        return stacking.made(Scenario(transforms=numbers))

    strong = {number: Replicas(replicas=number, strong=True) for number in (2, 4, 8)}
    assert made(strong[4]).graph is not graph
    assert made(strong[4], strong[2]).graph is graph
    assert made(strong[8], strong[4], strong[2]).graph is graph
    assert made(strong[4], strong[2]).context.samples_factor == 1
    wide = made(strong[4], Replicas(replicas=8))
    assert wide.context.samples_factor == pytest.approx(2)
    assert made(strong[4], Replicas(replicas=8), strong[4]).context.samples_factor == pytest.approx(
        2
    )
