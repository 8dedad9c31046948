"""Section `what_ifs`: every what-if with its range, what it takes for granted, and the bounds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ingest.units import format_ms
from whatif.levers import HOST_LINK, LEAST_SAVING, NODE_LINK, Lever
from whatif.postmortem.conclusion import leading, moved_by, told
from whatif.postmortem.contract import Finding, Missing, Section
from whatif.postmortem.findings.saving import is_bound, not_in_range
from whatif.postmortem.material import Material
from whatif.postmortem.untold import TRANSFERS, judged_levers
from whatif.postmortem.wording import joined, predicted, times
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
    NODE_LINK: "communication",
    HOST_LINK: "communication",
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
FINDING = "finding"
KNOB = "generic knob"
BOUND = "bound"
UNTOLD = f"not known: {TRANSFERS}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _WhatIf:
    """A row of the table of all what-ifs."""

    name: str
    kind: str
    """A finding's action, a knob that is turned in every run, or a bound."""
    moved: MovedFacts
    lever: LeverFacts | None
    """None where only a finding asked it."""
    lacks: str
    """What its ranges do not hold."""


def section(material: Material) -> Section:
    """The scenario that was asked for first, then all levers by their saving."""
    blocks: list[Block] = [*_asked(material)]
    rows = _what_ifs(material)
    if rows:
        blocks += [_ranges(material, rows), _table(rows)]
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
    first = leading(material.found)
    if first is not None and first.saving_ns is None:
        first = None
    acted = "" if first is None else f"Biggest finding to act on: {told(material, first)}. "
    knobs = [_ranked(lever) for lever in judged_levers(material)]
    knobs = [moved for moved in knobs if not is_bound(_lever(material, moved))]
    if not knobs and not acted:
        return (
            f"{asked}No lever: nothing, made twice as fast, saves {LEAST_SAVING:.1%} of the step."
        )
    if not knobs or (first is not None and _is_same(first, knobs[0])):
        return f"{asked}{acted}".rstrip()
    best = predicted(step_ns, knobs[0])
    lacks = "; ".join(_lacking(material, knobs[0]))
    if lacks:
        best += f" (not in the ranges: {lacks})"
    return (
        f"{asked}{acted}Of the generic knobs most would come from "
        f"{_words(material, knobs[0])}: {best}."
    )


def _lacking(material: Material, moved: MovedFacts) -> Iterator[str]:
    """What the ranges of a lever do not hold."""
    known = _lever(material, moved)
    yield from not_in_range(material, () if known is None else known.known_errors)


def _is_same(found: Finding, moved: MovedFacts) -> bool:
    return found.flag in (moved.flag, to_type(moved.flag))


def _what_ifs(material: Material) -> list[_WhatIf]:
    """Levers, and what findings asked beside them, the biggest saving first, the untold last."""
    acted = [one for one in material.found if one.saving_ns is not None]
    levers = [_of_lever(material, lever) for lever in material.levers.levers]
    others = [
        _of_finding(material, one)
        for one in acted
        if not any(_is_same(one, row.moved) for row in levers)
    ]
    return sorted([*levers, *others], key=lambda row: (row.kind == UNTOLD, -row.moved.saving_ns))


def _of_lever(material: Material, lever: LeverFacts) -> _WhatIf:
    moved = _ranked(lever)
    known = _lever(material, moved)
    is_acted = any(one.saving_ns is not None and _is_same(one, moved) for one in material.found)
    kind = BOUND if is_bound(known) else FINDING if is_acted else KNOB
    if lever not in judged_levers(material):
        kind = UNTOLD
    return _WhatIf(
        name=lever.what,
        kind=kind,
        moved=moved,
        lever=lever,
        lacks="; ".join(_lacking(material, moved)),
    )


def _of_finding(material: Material, found: Finding) -> _WhatIf:
    return _WhatIf(
        name=found.what_if or found.flag,
        kind=BOUND if found.is_bound else FINDING,
        moved=moved_by(found, material.levers.step_ns),
        lever=None,
        lacks=found.not_in_range,
    )


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


def _ranges(material: Material, rows: Sequence[_WhatIf]) -> Ranges:
    shown, step_ns = rows[:BARS], material.levers.step_ns
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
        about="What findings ask, and each lever made twice as fast, or the change itself where "
        "it has no degrees: "
        + ", ".join(f"{row.name} {format_ms(row.moved.step_ns)}" for row in shown)
        + f"; the replayed step is {format_ms(step_ns)}. A range is that of the answer, as "
        "`replay TRACE FLAG` gives it.",
        unit=Unit.NS,
        baseline=float(step_ns),
        baseline_name="replayed step",
        bars=(
            *asked,
            *(
                RangeBar(
                    name=row.name,
                    value=float(row.moved.step_ns),
                    low=float(row.moved.low_ns),
                    high=float(row.moved.high_ns),
                )
                for row in shown
            ),
        ),
    )


def _table(rows: Sequence[_WhatIf]) -> DataTable:
    return DataTable(
        key=f"{KEY}.levers",
        title="All what-ifs, the biggest saving first",
        about="Findings are what can be acted on; knobs are turned in every run: predicted step "
        "when one is 10 % faster, twice as fast, and without limit. Each is replayed alone, so "
        "savings do not add up.",
        columns=(
            Column(name="what-if", unit=Unit.TEXT),
            Column(name="kind", unit=Unit.TEXT),
            Column(name="10 %", unit=Unit.NS),
            Column(name="2x", unit=Unit.NS, about="or the change itself"),
            Column(name="2x, low", unit=Unit.NS, about="low end of the prediction"),
            Column(name="2x, high", unit=Unit.NS, about="high end of the prediction"),
            Column(name="at most", unit=Unit.NS, about="without limit: the upper bound"),
            Column(name="saves", unit=Unit.NS, about="at 2x", has_bar=True),
            Column(name="saves, low", unit=Unit.NS, about="each answer against its own base"),
            Column(name="saves, high", unit=Unit.NS, about="each answer against its own base"),
            Column(name="saves, share", unit=Unit.FRAC, about="of the step, at 2x"),
            Column(name="not in the ranges", unit=Unit.TEXT),
            Column(name="what to type", unit=Unit.CODE),
        ),
        rows=tuple(map(_row, rows)),
    )


def _row(row: _WhatIf) -> tuple[Cell, ...]:
    lever, moved = row.lever, row.moved
    return (
        row.name,
        row.kind,
        None if lever is None or lever.tenth is None else lever.tenth.step_ns,
        moved.step_ns,
        moved.low_ns,
        moved.high_ns,
        None if lever is None else lever.limit.step_ns,
        moved.saving_ns,
        moved.saving_low_ns,
        moved.saving_high_ns,
        moved.saving_frac,
        row.lacks or None,
        to_type(moved.flag) if lever is not None else row.moved.flag or None,
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
    return (
        name,
        moved.step_ns,
        moved.low_ns,
        moved.high_ns,
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
    for lever in judged_levers(material):
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
