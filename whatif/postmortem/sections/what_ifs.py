"""Section `what_ifs`: every lever with its range, what it takes for granted, and the bounds."""

from collections.abc import Iterator, Sequence

from ingest.units import format_ms
from whatif.levers import LEAST_SAVING, Lever
from whatif.postmortem.contract import Missing, Section
from whatif.postmortem.material import Material
from whatif.postmortem.wording import joined, predicted, range_ns, savings_of, times
from whatif.report.blocks import (
    Block,
    Cell,
    Column,
    DataTable,
    RangeBar,
    Ranges,
    Unit,
    Words,
    details,
)
from whatif.report.columns import to_type
from whatif.report.levers import LeverFacts, MovedFacts, moved_facts

KEY = "what_ifs"
TITLE = "What-ifs"
BARS = 12
TOGETHER = 3
"""So many of the biggest levers are replayed together."""
KINDS = {
    "network": "communication",
    "NVLink or xGMI": "communication",
    "network between nodes": "communication",
    "overlap with compute": "communication",
    "host": "host",
    "launch calls": "host",
    "CUDA graphs": "host",
    "waits of the host": "host",
    "stragglers": "stragglers",
    "copies": "copies",
}
"""Levers that work on the same time: one of each kind goes into the sum. The rest is compute."""
FREE_NETWORK = "network"


def section(material: Material) -> Section:
    """The scenario that was asked for first, then all levers by their saving."""
    blocks: list[Block] = [*_asked(material)]
    if material.levers.levers:
        blocks += [_ranges(material), _table(material)]
    blocks += details(_bounds(material), *_assumptions(material), *_no_effect(material))
    return Section(
        key=KEY,
        title=TITLE,
        summary=_summary(material),
        blocks=tuple(blocks),
        missing=tuple(_missing(material)),
    )


def _summary(material: Material) -> str:
    step_ns = material.levers.step_ns
    study = material.findings.study
    asked = ""
    if study is not None:
        asked = (
            f"Asked: {joined(study.labels, 'then')}: predicted {format_ms(study.step_ns)}, "
            f"{format_ms(study.low_ns)} to {format_ms(study.high_ns)}. "
        )
    if not material.levers.levers:
        return (
            f"{asked}No lever: nothing, made twice as fast, saves {LEAST_SAVING:.1%} of the step."
        )
    first = material.levers.levers[0]
    best = _ranked(first)
    told = predicted(step_ns, savings_of(best))
    return f"{asked}Most would come from {_words(material, best)}: {told}."


def _ranked(lever: LeverFacts) -> MovedFacts:
    return lever.twice or lever.limit


def _words(material: Material, moved: MovedFacts) -> str:
    lever = _lever(material, moved)
    return moved.flag if lever is None else lever.why


def _lever(material: Material, moved: MovedFacts) -> Lever | None:
    return None if material.replays is None else material.replays.known(moved.flag)


def _asked(material: Material) -> Iterator[Block]:
    """The scenario of the command line, with its parts before and after."""
    study = material.findings.study
    if study is None:
        return
    speed = "nothing is left" if study.speedup is None else f"speedup {times(study.speedup)}"
    before, after = material.findings.breakdown, study.predicted
    yield Words(
        paragraphs=(
            f"What was asked: {joined(study.labels, 'then')}. Predicted {format_ms(study.step_ns)} "
            f"({format_ms(study.low_ns)} to {format_ms(study.high_ns)}) instead of "
            f"{format_ms(study.replayed_ns)}: {speed}.",
            *(f"No effect: {reason}." for reason in study.no_effect),
            *(f"Known error: {error}." for error in study.known_errors),
            *(f"Assumes: {text}." for text in study.assumptions),
        )
    )
    rows = (
        ("compute", before.compute_ns, after.compute_ns),
        ("exposed communication", before.exposed_comm_ns, after.exposed_comm_ns),
        ("exposed copies", before.exposed_memcpy_ns, after.exposed_memcpy_ns),
        ("idle", before.idle_ns, after.idle_ns),
        ("step", before.total_ns, after.total_ns),
    )
    yield DataTable(
        key=f"{KEY}.asked",
        title="Where the step goes before and after",
        columns=(
            Column(name="part", unit=Unit.TEXT),
            Column(name="replayed", unit=Unit.NS),
            Column(name="predicted", unit=Unit.NS),
            Column(name="change", unit=Unit.NS),
        ),
        rows=tuple((name, one, other, other - one) for name, one, other in rows),
    )


def _ranges(material: Material) -> Ranges:
    levers, step_ns = material.levers.levers[:BARS], material.levers.step_ns
    best = [_ranked(lever) for lever in levers]
    ends = [range_ns(moved, step_ns) for moved in best]
    study = material.findings.study
    asked = (
        []
        if study is None
        else [
            RangeBar(
                name="as asked",
                value=float(study.step_ns),
                low=float(study.low_ns),
                high=float(study.high_ns),
            )
        ]
    )
    return Ranges(
        key=f"{KEY}.ranges",
        title="Predicted step, with its range",
        about="Each lever made twice as fast, or the change itself where it has no degrees: "
        + ", ".join(
            f"{lever.what} {format_ms(moved.step_ns)}"
            for lever, moved in zip(levers, best, strict=True)
        )
        + f"; the replayed step is {format_ms(step_ns)}. A range is that of the saving, answer by "
        "answer: steps that differ from each other do not widen it.",
        unit=Unit.NS,
        baseline=float(step_ns),
        baseline_name="replayed step",
        bars=(
            *asked,
            *(
                RangeBar(
                    name=lever.what,
                    value=float(moved.step_ns),
                    low=float(low_ns),
                    high=float(high_ns),
                )
                for lever, moved, (low_ns, high_ns) in zip(levers, best, ends, strict=True)
            ),
        ),
    )


def _table(material: Material) -> DataTable:
    return DataTable(
        key=f"{KEY}.levers",
        title="All levers, the biggest saving first",
        about="Predicted step when the lever is 10 % faster, twice as fast, and without limit; "
        "each is replayed alone, so savings do not add up.",
        columns=(
            Column(name="lever", unit=Unit.TEXT),
            Column(name="10 %", unit=Unit.NS),
            Column(name="2x", unit=Unit.NS, about="or the change itself"),
            Column(name="2x, low", unit=Unit.NS, about="what the saving at most leaves"),
            Column(name="2x, high", unit=Unit.NS, about="what the saving at least leaves"),
            Column(name="at most", unit=Unit.NS, about="without limit: the upper bound"),
            Column(name="saves", unit=Unit.NS, about="at 2x", has_bar=True),
            Column(name="saves, share", unit=Unit.FRAC, about="of the step, at 2x"),
            Column(name="what to type", unit=Unit.CODE),
        ),
        rows=tuple(_row(lever, material.levers.step_ns) for lever in material.levers.levers),
    )


def _row(lever: LeverFacts, step_ns: int) -> tuple[Cell, ...]:
    best = _ranked(lever)
    low_ns, high_ns = range_ns(best, step_ns)
    return (
        lever.what,
        None if lever.tenth is None else lever.tenth.step_ns,
        best.step_ns,
        low_ns,
        high_ns,
        lever.limit.step_ns,
        best.saving_ns,
        best.saving_frac,
        to_type(best.flag),
    )


def _bounds(material: Material) -> DataTable:
    """Top levers together, and communication without any cost."""
    rows: list[tuple[Cell, ...]] = [*_free_network(material), *_together(material)]
    return DataTable(
        key=f"{KEY}.bounds",
        title="Bounds",
        about="What no purchase and no tuning goes beyond, and the biggest levers replayed "
        "together: savings overlap, so the sum of the single ones would be too much.",
        columns=(
            Column(name="what", unit=Unit.TEXT),
            Column(name="step", unit=Unit.NS),
            Column(name="low", unit=Unit.NS),
            Column(name="high", unit=Unit.NS),
            Column(name="saves", unit=Unit.NS, has_bar=True),
            Column(name="share", unit=Unit.FRAC),
            Column(name="speedup", unit=Unit.FACTOR),
            Column(name="remark", unit=Unit.TEXT),
            Column(name="what to type", unit=Unit.CODE),
        ),
        rows=tuple(rows),
    )


def _bound_row(
    name: str, moved: MovedFacts, step_ns: int, remark: str, typed: str
) -> tuple[Cell, ...]:
    low_ns, high_ns = range_ns(moved, step_ns)
    return (
        name,
        moved.step_ns,
        low_ns,
        high_ns,
        moved.saving_ns,
        moved.saving_frac,
        step_ns / moved.step_ns if moved.step_ns else None,
        remark,
        typed,
    )


def _free_network(material: Material) -> Iterator[tuple[Cell, ...]]:
    """Infinitely fast communication; where it saves nothing, why."""
    step_ns, name = material.levers.step_ns, "infinitely fast communication"
    for lever in material.levers.levers:
        if lever.what == FREE_NETWORK:
            remark = "transfers take no time; waiting for late members stays"
            flag = to_type(lever.limit.flag)
            yield _bound_row(name, lever.limit, step_ns, remark, flag)
    for one in material.levers.below_noise:
        if one.what == FREE_NETWORK:
            remark = f"twice as fast saves nothing: {one.why or 'less than noise'}"
            yield (name, None, None, None, None, None, None, remark, None)


def _together(material: Material) -> Iterator[tuple[Cell, ...]]:
    chosen = _chosen(material)
    if len(chosen) < 2 or material.replays is None:  # noqa: PLR2004  (one alone is in the table)
        return
    levers = [material.replays.known(_ranked(lever).flag) for lever in chosen]
    changes = [change for lever in levers if lever is not None for change in lever.changes]
    names = [lever.what for lever in chosen]
    found = material.replays.saving(joined(names), changes)
    if found is None:
        return
    single_ns = sum(_ranked(lever).saving_ns for lever in chosen)
    yield _bound_row(
        f"together: {joined(names)}",
        moved_facts(found, material.levers.step_ns),
        material.levers.step_ns,
        f"one by one they save {format_ms(single_ns)} in sum",
        " ".join(to_type(change.flag) for change in changes),
    )


def _chosen(material: Material) -> Sequence[LeverFacts]:
    """The biggest levers that do not work on the same time."""
    found: dict[str, LeverFacts] = {}
    for lever in material.levers.levers:
        found.setdefault(KINDS.get(lever.what, "compute"), lever)
    return list(found.values())[:TOGETHER]


def _assumptions(material: Material) -> Iterator[DataTable]:
    """What the answers take for granted, and how wrong their models are known to be."""
    rows: dict[tuple[str, str], list[str]] = {}
    for lever in material.levers.levers:
        known = _lever(material, _ranked(lever))
        if known is None:
            continue
        for text in known.assumptions:
            rows.setdefault(("assumes", text), []).append(lever.what)
        for text in known.known_errors:
            rows.setdefault(("known error", text), []).append(lever.what)
    if not rows:
        return
    yield DataTable(
        key=f"{KEY}.assumptions",
        title="What they take for granted, and known errors of the models",
        columns=(
            Column(name="what", unit=Unit.TEXT),
            Column(name="kind", unit=Unit.TEXT),
            Column(name="levers", unit=Unit.TEXT),
        ),
        rows=tuple((text, kind, ", ".join(names)) for (kind, text), names in rows.items()),
    )


def _no_effect(material: Material) -> Iterator[DataTable]:
    if not material.levers.below_noise:
        return
    yield DataTable(
        key=f"{KEY}.no_effect",
        title="What would not help",
        about=f"Made twice as fast they save less than {LEAST_SAVING:.1%} of the step, about half "
        "of what two runs of one job differ by.",
        columns=(
            Column(name="lever", unit=Unit.TEXT),
            Column(name="why", unit=Unit.TEXT),
        ),
        rows=tuple(
            (one.what, one.why or f"saves less than {LEAST_SAVING:.1%}")
            for one in material.levers.below_noise
        ),
    )


def _missing(material: Material) -> Iterator[Missing]:
    if material.findings.unprofiled is None:
        yield Missing(
            what="how long a step takes without the profiler, which slows the host",
            how="time some steps without it and give --unprofiled-step 412ms",
        )
