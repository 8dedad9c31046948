"""Parts of a step add up to it exactly: on every rank, by phase and by class."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.vocab import KernelClass, Phase, TaskKind
from replay.graph.arrays import TaskGraph
from replay.results.exclusive import exclusive_ns
from replay.results.metrics import covered_ns, rank_breakdowns
from tests.builders import GraphBuilder, baseline_of
from tests.unit.postmortem.graphs import MS, US, material_of, one_rank, training
from whatif.postmortem.sections import breakdown
from whatif.report.blocks import DataTable, StackedBars

KERNELS = {
    Phase.FORWARD: (3 * MS, KernelClass.GEMM),
    Phase.BACKWARD: (6 * MS, KernelClass.ATTENTION),
    Phase.OPTIMIZER: (MS, KernelClass.OPTIMIZER),
}


def phased() -> TaskGraph:
    """A step of three kernels: 3 ms forward, 6 ms backward, 1 ms optimizer, one after another."""
    builder = GraphBuilder(ranks=(0,))
    for phase, (dur_ns, kind) in KERNELS.items():
        launch = builder.call(0, "cudaLaunchKernel", 5 * US)
        builder.kernel(0, "k", dur_ns, caller=launch, phase=phase, kernel_class=kind)
    return builder.build()


def charts(graph: TaskGraph) -> dict[str, StackedBars]:
    made = breakdown.section(material_of(graph))
    return {block.key: block for block in made.blocks if isinstance(block, StackedBars)}


RUNS = {
    "phases": phased(),
    "stragglers": training(slow={1: 1.7}),
    "waiting": training(transfer_ns=15 * MS, hidden=False),
    "copies": one_rank(copy_ns=3 * MS),
    "host": one_rank(kernels=5, host_ns=2 * MS, kernel_ns=MS),
}


@pytest.mark.parametrize("graph", RUNS.values(), ids=RUNS)
def test_parts_of_every_bar_add_up_to_the_step(graph: TaskGraph) -> None:
    material = material_of(graph)
    bars = charts(graph)["breakdown.ranks"]
    totals = [one.total_ns for one in rank_breakdowns(graph, material.findings.baseline.schedule)]
    wanted = [material.findings.breakdown.total_ns, *totals]
    assert [
        sum(values) for values in zip(*(part.values for part in bars.parts), strict=True)
    ] == wanted
    assert wanted[0] == material.findings.baseline.replayed.mean_ns


@pytest.mark.parametrize("graph", RUNS.values(), ids=RUNS)
def test_phases_and_classes_add_up_to_the_compute(graph: TaskGraph) -> None:
    found = charts(graph)
    (compute,) = [part for part in found["breakdown.ranks"].parts if part.name == "compute"]
    for key in ("breakdown.phases", "breakdown.classes"):
        sums = [
            sum(values) for values in zip(*(part.values for part in found[key].parts), strict=True)
        ]
        assert tuple(sums) == compute.values


def test_phases_and_classes_are_those_of_the_kernels() -> None:
    found = charts(phased())
    by_phase = {part.name: part.values[0] for part in found["breakdown.phases"].parts}
    assert by_phase == {"forward": 3 * MS, "backward": 6 * MS, "optimizer": MS}
    by_class = {part.name: part.values[0] for part in found["breakdown.classes"].parts}
    assert by_class == {"gemm": 3 * MS, "attention": 6 * MS, "optimizer": MS}


def test_the_table_has_the_figures_of_the_bars() -> None:
    made = breakdown.section(material_of(RUNS["stragglers"]))
    (table,) = [block for block in made.blocks if isinstance(block, DataTable)]
    assert [row[0] for row in table.rows] == ["mean", "rank 0", "rank 1"]
    for row in table.rows:
        assert sum(row[1:6]) == row[6]


def test_without_a_device_the_parts_are_those_of_the_host() -> None:
    builder = GraphBuilder(ranks=(0,), gpu=None)
    builder.host(0, "aten::mm", 5 * MS)
    material = material_of(builder.build())
    facts = replace(material.findings.facts, has_device=False)
    material = replace(material, findings=replace(material.findings, facts=facts))
    made = breakdown.section(material)
    assert made.title == "Where CPU time goes"
    assert "100.0% CPU work" in made.summary
    assert "no GPU rows" in made.missing[0].what


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(0, 30)),
        min_size=1,
        max_size=12,
    )
)
def test_exclusive_time_adds_up_to_the_union(rows: list[tuple[int, int, int]]) -> None:
    builder = GraphBuilder(ranks=(0,))
    for stream, release_ns, dur_ns in rows:
        builder.kernel(0, f"k{stream}", dur_ns, stream=stream, release_ns=release_ns)
    graph = builder.build()
    schedule = baseline_of(graph).schedule
    window = (5, 45)
    chosen = graph.tasks.kind == TaskKind.KERNEL
    spent_ns = exclusive_ns(graph, schedule, chosen, window)
    assert spent_ns.sum() == covered_ns(schedule.start_ns[chosen], schedule.end_ns[chosen], window)
    assert (spent_ns <= np.maximum(schedule.end_ns - schedule.start_ns, 0)).all()
