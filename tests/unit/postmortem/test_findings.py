"""Injected faults are found first, healthy runs yield nothing, thresholds hold."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as with_fields

from replay.graph.arrays import TaskGraph
from replay.graph.work import NO_WORK
from tests.builders import GraphBuilder
from tests.unit.postmortem.graphs import (
    MS,
    US,
    fetching,
    material_of,
    material_of_findings,
    one_rank,
    training,
)
from tests.unit.report.findings import findings_of
from whatif.postmortem.conclusion import leading, verdict
from whatif.postmortem.contract import Confidence, Finding
from whatif.postmortem.findings import memory_full
from whatif.postmortem.findings.host_bound import LEAST_IDLE_FRAC
from whatif.postmortem.findings.rules import findings
from whatif.postmortem.findings.saving import Told, finding
from whatif.postmortem.sections import breakdown
from whatif.postmortem.untold import LINKS, is_untold, judged_levers
from whatif.report.levers import MovedFacts

HEALTHY = {
    "two ranks in step": training(),
    "two ranks in one step": training(steps=1),
    "one GPU that is always busy": one_rank(kernels=4),
    "a host that waits at the end of long steps": one_rank(kernels=4, sync=True),
    "a short copy": one_rank(kernels=4, copy_ns=100 * US),
    "ranks apart by less than runs differ": training(slow={1: 1.004}),
}


def found_in(graph: TaskGraph) -> list[str]:
    return [one.key for one in findings(material_of(graph))]


@pytest.mark.parametrize("graph", HEALTHY.values(), ids=HEALTHY)
def test_a_healthy_run_yields_no_finding(graph: TaskGraph) -> None:
    assert found_in(graph) == []


FAULTS = {
    "straggler": training(slow={1: 1.5}),
    "exposed_communication": training(transfer_ns=15 * MS, hidden=False),
    "synchronising_calls": one_rank(
        steps=6, kernels=1, kernel_ns=2 * MS, host_ns=800 * US, sync=True
    ),
    "small_kernels": one_rank(kernels=200, kernel_ns=3 * US, host_ns=12 * US),
    "host_bound": one_rank(kernels=20, kernel_ns=100 * US, host_ns=300 * US),
    "exposed_copies": one_rank(kernels=1, copy_ns=5 * MS),
    "allocator_calls": one_rank(kernels=1, kernel_ns=1 * MS, call="cudaMalloc", call_ns=3 * MS),
    "long_steps": one_rank(steps=5, long_step=2),
}
"""Fault by the rule that has to come first."""


@pytest.mark.parametrize(("key", "graph"), FAULTS.items(), ids=FAULTS)
def test_an_injected_fault_is_found_first(key: str, graph: TaskGraph) -> None:
    assert found_in(graph)[:1] == [key]


def first_of(key: str) -> Finding:
    return findings(material_of(FAULTS[key]))[0]


def test_a_straggler_is_told_by_its_rank_cause_and_cost() -> None:
    found = first_of("straggler")
    assert "for rank 1: its kernels take longer" in found.insight
    assert found.saving_ns == 10 * MS
    assert found.flag == "--no-stragglers"
    assert found.what_if == "no stragglers: every rank as fast as the median rank"


def test_a_straggler_seen_once_may_be_chance() -> None:
    (found,) = findings(material_of(training(steps=1, slow={1: 1.5})))
    assert (found.key, found.confidence) == ("straggler", Confidence.LOW)
    assert found.why_confidence == "it was late 1 time: that may be chance"


def test_the_saving_is_that_of_the_replay_and_lies_in_its_range() -> None:
    for key in FAULTS:
        for found in findings(material_of(FAULTS[key])):
            if found.saving_ns is None:
                continue
            assert found.saving_low_ns is not None
            assert found.saving_high_ns is not None
            assert found.saving_low_ns <= found.saving_ns <= found.saving_high_ns


def test_a_finding_has_all_its_parts() -> None:
    for key in FAULTS:
        for found in findings(material_of(FAULTS[key])):
            assert all((found.insight, found.evidence, found.action, found.why_confidence))
            assert "told" in found.evidence


def test_exposed_copies_end_half_as_early_when_twice_as_fast() -> None:
    found = first_of("exposed_copies")
    assert found.saving_ns == 5 * MS // 2
    assert found.flag == "--scale class:memcpy=0.5"


def test_long_steps_add_what_they_are_above_the_median() -> None:
    found = first_of("long_steps")
    assert found.insight.startswith("1 step of 5 took more than 1.5x the median: they add 12.0")
    assert found.saving_ns is None


def test_a_data_loader_on_the_path_is_found_first_and_leaves_the_host_alone() -> None:
    graph = one_rank(steps=1, kernels=2, kernel_ns=1 * MS, host_ns=3 * MS)
    loading = fetching(findings_of(graph), {0: (0, 3 * MS)})
    (first, *_) = found = findings(material_of_findings(loading))
    assert [one.key for one in found] == ["data_loader", "host_bound"]
    assert first.saving_ns == 3 * MS
    assert (first.flag, first.what_if) == ("", "every batch there at once")
    # Half of the stretch that is no loader, and of the calls beside it, 10 us.
    assert found[1].saving_ns == pytest.approx(1.5 * MS, abs=10 * US)


def test_a_data_loader_beside_a_busy_device_is_no_finding() -> None:
    graph = one_rank(steps=2, kernels=3)
    loading = fetching(findings_of(graph), {0: (10 * US, 25 * US)})
    assert findings(material_of_findings(loading)) == ()


@pytest.mark.parametrize(("held", "is_told"), [(0.96, True), (0.90, False)])
def test_memory_near_its_end_is_a_risk_without_a_saving(held: float, is_told: bool) -> None:  # noqa: FBT001
    memory_bytes = 80_000_000_000
    work = replace(NO_WORK, peak_bytes=round(held * memory_bytes), memory_bytes=memory_bytes)
    found = memory_full.rule(material_of(replace(one_rank(), work=work)))
    assert (found is not None) == is_told
    assert found is None or (found.saving_ns, found.key) == (None, memory_full.KEY)


def test_findings_come_by_their_saving() -> None:
    savings = [one.saving_ns or 0 for one in findings(material_of(FAULTS["small_kernels"]))]
    assert savings == sorted(savings, reverse=True)


def test_kernels_of_a_graph_are_not_told_to_be_put_into_one() -> None:
    assert "small_kernels" not in found_in(one_launch())


def one_launch() -> TaskGraph:
    builder = GraphBuilder(ranks=(0,))
    builder.host(0, "aten::mm", 5 * MS)
    launch = builder.call(0, "cudaGraphLaunch", 50 * US)
    for _ in range(50):
        builder.kernel(0, "gemm", 3 * US, caller=launch)
    builder.host(0, "aten::mm", 5 * MS)
    return builder.build()


def test_a_bound_stands_behind_what_a_run_can_reach() -> None:
    graph = training(slow={1: 1.2}, transfer_ns=15 * MS, hidden=False)
    reachable, bound = findings(material_of(graph))
    assert (reachable.key, reachable.is_bound) == ("straggler", False)
    assert (bound.flag, bound.is_bound) == ("--perfect-overlap", True)
    assert (bound.saving_ns or 0) > (reachable.saving_ns or 0)
    assert leading((reachable, bound)) is reachable


TOLD = Told(key="x", section="host", insight="i", evidence="e", query=None, action="a")


def judged(graph: TaskGraph, low_ns: int, high_ns: int, *known_errors: str) -> Finding:
    """A finding with this range on a run of grade A."""
    material = material_of(graph)
    trust = with_fields(material.answer.trust, grade="A")
    material = replace(material, answer=with_fields(material.answer, trust=trust))
    moved = MovedFacts(
        flag="--x", step_ns=10 * MS, low_ns=9 * MS, high_ns=11 * MS, saving_ns=low_ns,
        saving_low_ns=low_ns, saving_high_ns=high_ns, saving_frac=0.1,
    )  # fmt: skip
    return finding(material, replace(TOLD, known_errors=known_errors), moved)


def test_only_a_narrow_range_above_the_spread_of_the_steps_is_sure() -> None:
    assert judged(training(), 8 * MS, 9 * MS).confidence is Confidence.HIGH
    wide = judged(training(), 7 * MS, 92 * MS)
    assert wide.confidence is Confidence.MEDIUM
    assert wide.why_confidence == "its range is wide: 7.00 ms to 92.00 ms"
    outlier = judged(one_rank(steps=3, long_step=1), 8 * MS, 9 * MS)
    assert outlier.confidence is Confidence.MEDIUM
    assert outlier.why_confidence.startswith("the mean of the recorded steps is known to ")


def test_what_a_range_does_not_hold_is_said_beside_it() -> None:
    one = judged(training(steps=1), 8 * MS, 9 * MS, "another host 0 to 9%")
    assert one.not_in_range == "one step: no spread; another host 0 to 9%"
    assert one.confidence is Confidence.MEDIUM
    assert judged(training(), 8 * MS, 9 * MS).not_in_range == ""


def lacking_ranks(transfer_ns: int) -> TaskGraph:
    """One rank of eight on an H100 node: 100 MB all-reduces of this length after short products."""
    builder = GraphBuilder(ranks=(0,))
    reduced: tuple[int, ...] = ()
    for step in range(3):
        launch = builder.call(0, "cudaLaunchKernel", 5 * US, step=step)
        gemm = builder.kernel(0, "gemm", 5 * MS, caller=launch, step=step)
        if reduced:
            builder.edge(reduced[0], gemm)
        caller = builder.call(0, "cudaLaunchKernelExC", 5 * US, step=step)
        reduced = builder.collective(
            transfer_ns, callers={0: caller}, after={0: gemm}, size_bytes=100_000_000,
            group=range(8), expected=8, step=step,
        )  # fmt: skip
    return builder.build()


def test_slow_transfers_without_their_members_are_not_told_from_waiting() -> None:
    material = material_of(lacking_ranks(20 * MS))
    (found,) = findings(material)
    assert (found.key, found.saving_ns, found.flag) == ("exposed_communication", None, "")
    assert "transfers or waiting for ranks without files" in found.insight
    assert found.action.startswith("record all ranks")
    sentence = verdict(material, (found,)).sentence
    assert "bound by transfers or waiting for ranks without files" in sentence
    assert "nvlink" not in sentence
    assert "transfers or waiting for ranks without files" in breakdown.section(material).summary
    assert not {lever.what for lever in judged_levers(material)} & LINKS


def test_transfers_near_their_roof_are_transfers_though_members_lack() -> None:
    material = material_of(lacking_ranks(700 * US))
    assert not is_untold(material)
    assert "exposed transfers" in breakdown.section(material).summary


def test_one_late_host_is_found_though_most_devices_wait_inside_collectives() -> None:
    """Sixteen ranks; the host of rank 1 is late with each product, the devices meet."""
    builder = GraphBuilder(ranks=range(16))
    for step in range(3):
        callers = {}
        for rank in range(16):
            for _ in range(10):
                builder.host(rank, "aten::mm", (400 if rank == 1 else 10) * US, step=step)
                launch = builder.call(rank, "cudaLaunchKernel", 5 * US, step=step)
                builder.kernel(rank, "gemm", 200 * US, caller=launch, stream=20, step=step)
            callers[rank] = builder.call(rank, "cudaLaunchKernelExC", 5 * US, step=step)
        done = builder.collective(100 * US, callers=callers, step=step)
        for rank in range(16):
            wait = builder.call(rank, "cudaStreamSynchronize", 5 * US, step=step)
            builder.edge(done[rank], wait)
    material = material_of(builder.build())
    bound = material.findings.run.bound
    assert bound.idle_launch_frac is not None
    assert bound.path_idle_launch_frac is not None
    assert bound.path_idle_launch_frac > LEAST_IDLE_FRAC > bound.idle_launch_frac
    assert "host_bound" in [one.key for one in findings(material)]
