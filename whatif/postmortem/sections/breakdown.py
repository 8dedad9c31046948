"""Section `breakdown`: where each rank's device time goes, then compute by phase and by class."""

from collections.abc import Iterator, Sequence

import numpy as np

from ingest.units import format_ms
from ingest.vocab import COMPUTE_CLASSES, KernelClass, LaneKind, Phase, TaskKind
from replay.graph.arrays import Bool, Float64, Int64
from replay.results.exclusive import exclusive_ns
from replay.results.metrics import Breakdown, rank_breakdowns
from whatif.postmortem.contract import Missing, Section
from whatif.postmortem.material import Material
from whatif.postmortem.untold import TRANSFERS, is_untold
from whatif.postmortem.wording import joined, percents
from whatif.report.blocks import Block, Column, DataTable, Part, StackedBars, Unit, details

KEY = "breakdown"
TITLE = "Where GPU time goes"
RANKS = 32
"""Bars drawn; of more ranks those that compute most and least."""
PARTS = (
    ("compute", "compute"),
    ("exposed transfers", "comm"),
    ("exposed waiting for others", "wait"),
    ("exposed copies", "memcpy"),
    ("idle", "idle"),
)
HOST_PARTS = (
    ("CPU work", "host"),
    ("transfers of collectives", "comm"),
    ("waiting for other ranks", "wait"),
    ("copies", "memcpy"),
    ("other waiting", "idle"),
)
"""Names and roles of the five parts, which add up to the step."""


def section(material: Material) -> Section:
    """Bars that add up to the step, on every rank and in the mean."""
    has_device = material.findings.facts.has_device
    parts = rank_breakdowns(material.findings.graph, material.findings.baseline.schedule)
    blocks: list[Block] = [_bars(material, parts), *details(_table(material, parts))]
    missing: list[Missing] = []
    if has_device:
        blocks += details(*_compute(material, parts))
        missing += _unknown_phases(material)
    else:
        missing.append(
            Missing(
                what="device time by phase and kernel class: there are no GPU rows",
                how="activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
            )
        )
    return Section(
        key=KEY,
        title=TITLE if has_device else "Where CPU time goes",
        summary=_summary(material),
        blocks=tuple(blocks),
        missing=tuple(missing),
    )


def five(parts: Breakdown) -> tuple[int, ...]:
    """The parts of a step in the order of `PARTS`, ns; they add up to it exactly."""
    return (
        parts.compute_ns,
        parts.exposed_comm_ns - parts.exposed_wait_ns,
        parts.exposed_wait_ns,
        parts.exposed_memcpy_ns,
        parts.idle_ns,
    )


def _names(material: Material) -> tuple[tuple[str, str], ...]:
    names = PARTS if material.findings.facts.has_device else HOST_PARTS
    if not is_untold(material):
        return names
    return tuple((TRANSFERS, role) if role == "comm" else (name, role) for name, role in names)


def _summary(material: Material) -> str:
    values = five(material.findings.breakdown)
    told = [
        f"{share} {name}"
        for share, (name, _) in zip(percents(values), _names(material), strict=True)
        if share
    ]
    return f"Of {format_ms(sum(values))}, mean over ranks: {joined(told) or 'nothing recorded'}."


def _chosen(parts: Sequence[Breakdown]) -> list[int]:
    """Places of the ranks drawn, in their order."""
    if len(parts) <= RANKS:
        return list(range(len(parts)))
    order = np.argsort([one.compute_ns for one in parts], kind="stable")
    return sorted([*order[: RANKS // 2].tolist(), *order[-RANKS // 2 :].tolist()])


def _categories(material: Material, chosen: Sequence[int]) -> tuple[str, ...]:
    ranks = material.findings.graph.ranks
    return ("mean", *(f"rank {ranks[place].rank}" for place in chosen))


def _bars(material: Material, parts: Sequence[Breakdown]) -> StackedBars:
    chosen = _chosen(parts)
    rows = [five(material.findings.breakdown), *(five(parts[place]) for place in chosen)]
    left = len(parts) - len(chosen)
    return StackedBars(
        key=f"{KEY}.ranks",
        title="A step of each rank",
        about=f"{_summary(material)} {_rule(material)}"
        + (f" {left} ranks with middling compute left out." * (left > 0)),
        unit=Unit.NS,
        categories=_categories(material, chosen),
        parts=tuple(
            Part(name=name, role=role, values=tuple(row[column] for row in rows))
            for column, (name, role) in enumerate(_names(material))
        ),
        query=material.ask.query("time_by_rank") if material.findings.facts.has_device else None,
    )


def _rule(material: Material) -> str:
    """To which part an instant counts."""
    if material.findings.facts.has_device:
        return (
            "An instant counts as compute where a compute kernel runs, else as communication, else "
            "as copies, else as idle."
        )
    return (
        "An instant counts as CPU work where a thread that carries the step works, else as "
        "communication where it waits for a collective, else as other waiting."
    )


def _table(material: Material, parts: Sequence[Breakdown]) -> DataTable:
    chosen = _chosen(parts)
    rows = [material.findings.breakdown, *(parts[place] for place in chosen)]
    return DataTable(
        key=f"{KEY}.table",
        title="The same in figures",
        columns=(
            Column(name="rank", unit=Unit.TEXT),
            *(Column(name=name, unit=Unit.NS) for name, _ in _names(material)),
            Column(name="step", unit=Unit.NS, about="the sum of these"),
            Column(name="computes", unit=Unit.FRAC, about="share of the step", has_bar=True),
        ),
        rows=tuple(
            (name, *five(one), one.total_ns, one.compute_ns / max(one.total_ns, 1))
            for name, one in zip(_categories(material, chosen), rows, strict=True)
        ),
        left_out=len(parts) - len(chosen),
        query=material.ask.query("time_by_rank") if material.findings.facts.has_device else None,
    )


def _compute(material: Material, parts: Sequence[Breakdown]) -> Iterator[Block]:
    """Compute by phase and by class of kernels: each adds up to the compute of its bar."""
    graph, base = material.findings.graph, material.findings.baseline
    kernels = _kernels(material)
    window_ns = (int(base.replayed.boundary_ns[0]), int(base.replayed.boundary_ns[-1]))
    spent_ns = exclusive_ns(graph, base.schedule, kernels, window_ns)
    chosen = _chosen(parts)
    totals_ns = [material.findings.breakdown.compute_ns, *(parts[at].compute_ns for at in chosen)]
    phases = [(phase, _phase_name(phase)) for phase in Phase]
    classes = sorted(COMPUTE_CLASSES)
    by_phase = _shared(material, spent_ns, graph.tasks.phase.astype(np.int64), chosen, totals_ns)
    by_class = _shared(
        material, spent_ns, graph.tasks.kernel_class.astype(np.int64), chosen, totals_ns
    )
    yield _stacked(
        material,
        ("phases", "Compute by phase"),
        [(name, _phase_role(phase), by_phase[:, int(phase)]) for phase, name in phases],
        chosen,
    )
    yield _stacked(
        material,
        ("classes", "Compute by class of kernels"),
        [(one.name.lower(), one.name.lower(), by_class[:, int(one)]) for one in classes],
        chosen,
    )


def _kernels(material: Material) -> Bool:
    graph = material.findings.graph
    links = np.array([lane.kind == LaneKind.LINK for lane in graph.lanes] + [False], bool)
    kernels: Bool = (graph.tasks.kind == TaskKind.KERNEL) & ~links[graph.tasks.lane]
    return kernels


def _phase_name(phase: Phase) -> str:
    return "not known" if phase is Phase.UNKNOWN else phase.name.lower()


def _phase_role(phase: Phase) -> str:
    return "other" if phase is Phase.UNKNOWN else phase.name.lower()


def _shared(
    material: Material,
    spent_ns: Int64,
    code: Int64,
    chosen: Sequence[int],
    totals_ns: Sequence[int],
) -> Int64:
    """Compute of a step by code, ns, shape (bars, codes): each row adds up to its total.

    Args:
        material: the run.
        spent_ns: per task, over all steps.
        code: per task.
        chosen: places of the ranks drawn.
        totals_ns: compute of the mean rank, then of each drawn rank.
    """
    graph = material.findings.graph
    n_codes = max(max(Phase), max(KernelClass)) + 1
    per_rank = np.zeros((len(graph.ranks), n_codes))
    for place, info in enumerate(graph.ranks):
        mine = graph.tasks.rank == info.rank
        per_rank[place] = np.bincount(code[mine], weights=spent_ns[mine], minlength=n_codes)
    rows = [per_rank.sum(axis=0), *(per_rank[place] for place in chosen)]
    return np.array(
        [_scaled(row, total_ns) for row, total_ns in zip(rows, totals_ns, strict=True)], np.int64
    ).reshape(len(rows), n_codes)


def _scaled(row: Float64, total_ns: int) -> list[int]:
    """Whole ns in the proportions of `row` that add up to `total_ns`; the largest has the rest."""
    if not row.sum():
        return [0] * len(row)
    found = [int(value) for value in row * (total_ns / row.sum())]
    found[int(row.argmax())] += total_ns - sum(found)
    return found


def _stacked(
    material: Material,
    names: tuple[str, str],
    columns: Sequence[tuple[str, str, Int64]],
    chosen: Sequence[int],
) -> StackedBars:
    """A bar for the mean and for each drawn rank; parts that nobody has are left out."""
    key, title = names
    kept = [(name, role, values) for name, role, values in columns if values.any()]
    kept.sort(key=lambda column: -int(column[2][0]))
    mean_ns = max(sum(int(values[0]) for _, _, values in kept), 1)
    told = ", ".join(f"{name} {values[0] / mean_ns:.0%}" for name, _, values in kept)
    return StackedBars(
        key=f"{KEY}.{key}",
        title=title,
        about=f"Mean over ranks: {told}. Where kernels run side by side the one that began first "
        "counts, so that the parts add up to the compute above.",
        unit=Unit.NS,
        categories=_categories(material, chosen),
        parts=tuple(
            Part(name=name, role=role, values=tuple(int(value) for value in values))
            for name, role, values in kept
        ),
        query=material.ask.query("kernel_classes"),
    )


UNKNOWN_FRAC = 0.1
"""Of the compute kernels: below it the unknown phase hardly changes the picture."""


def _unknown_phases(material: Material) -> Iterator[Missing]:
    graph, kernels = material.findings.graph, _kernels(material)
    unknown = kernels & (graph.tasks.phase == Phase.UNKNOWN)
    total_ns = int(graph.tasks.dur_ns[kernels].sum())
    if total_ns and graph.tasks.dur_ns[unknown].sum() > UNKNOWN_FRAC * total_ns:
        share = graph.tasks.dur_ns[unknown].sum() / total_ns
        yield Missing(
            what=f"the phase of {share:.0%} of the kernel time",
            how="forward and backward are known by autograd's rows and the optimizer's annotation: "
            "record training with CPU rows; inference has no phases",
        )
