"""What the shapes of operators tell of the FLOPs of a step, and what lacks: for `replay check`."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ingest.units import format_ms
from ingest.vocab import LaneKind, TaskKind
from replay.graph.arrays import TaskGraph
from replay.graph.thresholds import MATRIX_COVERED_FRAC
from replay.results.flops import RecordedFlops
from whatif.report.findings import Findings
from whatif.report.rates import accelerators, flops_text, peak_of, type_shares

NS_PER_S = 1e9


def flops_lines(findings: Findings) -> Iterator[str]:
    """FLOPs of a mean step by element type, how much of the matrix work they cover, what lacks."""
    found = findings.flops
    if not found.per_step:
        with_shapes = any(file.has_shapes for file in findings.facts.files)
        yield (
            "not known: no matrix product, convolution or attention whose shapes tell them"
            if with_shapes
            else "not known: shapes were not recorded (record_shapes=True)"
        )
        return
    yield f"{flops_text(found.per_step)} per step over all ranks: {type_shares(found)}"
    if not findings.facts.has_device:
        return
    yield _covered(found, len(findings.graph.steps))
    machine = accelerators(findings.graph, has_device=True)
    if found.covered_frac < MATRIX_COVERED_FRAC:
        yield f"no MFU from them: that is less than {MATRIX_COVERED_FRAC:.0%}"
    elif peak_of(machine) is None:
        yield "no MFU from them: the catalog has no matrix peak of this device"


def _covered(found: RecordedFlops, steps: int) -> str:
    spent = format_ms(found.matrix_ns // steps)
    line = (
        f"known for {found.covered_frac:.1%} of {spent} per step over all ranks of gemm, "
        "convolution and attention kernels"
    )
    if not found.counted_ns:
        return line
    return f"{line}: {flops_text(found.per_step * steps / found.counted_ns * NS_PER_S)}/s there"


def flops_after(recorded: RecordedFlops, before: TaskGraph, after: TaskGraph) -> RecordedFlops:
    """FLOPs of a scenario's graph: as recorded, by the ratio of those of all kernels.

    Args:
        recorded: of the run.
        before: its graph.
        after: that of the scenario.
    """
    known = _kernel_flops(before)
    if not known or not recorded.per_step:
        return recorded
    ratio = _kernel_flops(after) / known
    devices = _devices(after) / max(_devices(before), 1)
    return replace(
        recorded,
        per_step=recorded.per_step * ratio,
        devices=round(recorded.devices * devices),
    )


def _kernel_flops(graph: TaskGraph) -> float:
    row = graph.work.rows_of(graph.tasks.slice_id)
    kernel = (graph.tasks.kind == TaskKind.KERNEL) & (row >= 0)
    return float(np.nansum(graph.work.flops[row[kernel]]))


def _devices(graph: TaskGraph) -> int:
    return len({(lane.rank, lane.device) for lane in graph.lanes if lane.kind == LaneKind.STREAM})
