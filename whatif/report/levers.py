"""`replay levers` as data (the JSON contract, `schema/levers.schema.json`) and as a table."""

from collections.abc import Iterator
from textwrap import wrap

import msgspec

from ingest.units import format_ms
from whatif.levers import LEAST_SAVING, Lever, LeverRow, LeverTable, Strength
from whatif.report.columns import aligned, to_type
from whatif.report.run_facts import RunFacts, head


class MovedFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A lever moved so far; ns per step."""

    flag: str
    step_ns: int
    low_ns: int
    high_ns: int
    saving_ns: int
    saving_low_ns: int
    """Low end of the range of the saving, answer by answer: steps that differ do not widen it."""
    saving_high_ns: int
    saving_frac: float
    """Of the step that savings count from."""


class LeverFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One lever; null where it has no degrees."""

    what: str
    tenth: MovedFacts | None
    """10 % faster."""
    twice: MovedFacts | None
    limit: MovedFacts
    """Without limit, or the change itself: the upper bound of the saving."""


class BelowNoise(msgspec.Struct, frozen=True, kw_only=True):
    """A lever that saves nothing worth telling when moved twice as far."""

    what: str
    why: str
    """Why it saves nothing; empty where it saves a little."""


class LeversAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What `replay levers TRACE --json` prints."""

    schema_version: int = 1
    run: RunFacts
    scenario: tuple[str, ...]
    """What-ifs that are made before any lever is moved."""
    step_ns: int
    """What savings count from: the replayed step, or that of the scenario."""
    noise_ns: int
    """Savings below it are not told: two runs of one job differ by as much."""
    levers: tuple[LeverFacts, ...]
    """By the saving of twice as fast (or of the change itself), the biggest first."""
    below_noise: tuple[BelowNoise, ...]


TITLES = ("lever", "10 %", "2x", "2x, range", "at most", "saves", "type")
SIDES = "<>>>>><"
INDENT = "    "


def levers_answer(run: RunFacts, table: LeverTable) -> LeversAnswer:
    """The contract's object."""
    return LeversAnswer(
        run=run,
        scenario=table.base.labels,
        step_ns=table.base.step_ns,
        noise_ns=table.noise_ns,
        levers=tuple(_lever(row, table.base.step_ns) for row in table.rows),
        below_noise=tuple(
            BelowNoise(what=what, why=why) for what, why in table.below_noise.items()
        ),
    )


def _lever(row: LeverRow, step_ns: int) -> LeverFacts:
    moved = {strength: moved_facts(lever, step_ns) for strength, lever in row.moved.items()}
    return LeverFacts(
        what=row.what,
        tenth=moved.get(Strength.TENTH),
        twice=moved.get(Strength.TWICE),
        limit=moved[Strength.LIMIT],
    )


def moved_facts(lever: Lever, step_ns: int) -> MovedFacts:
    """A lever as data; `step_ns` is what its saving counts from."""
    return MovedFacts(
        flag=lever.flag_text,
        step_ns=lever.step_ns,
        low_ns=lever.low_ns,
        high_ns=lever.high_ns,
        saving_ns=lever.saving_ns,
        saving_low_ns=lever.saving_low_ns,
        saving_high_ns=lever.saving_high_ns,
        saving_frac=lever.saving_ns / step_ns if step_ns else 0.0,
    )


def render_levers(answer: LeversAnswer, width: int) -> str:
    """For people: shares of the step, the biggest saving first, and what to type."""
    return (
        "\n".join([*_head(answer, width), "", *_table(answer, width), *_rest(answer, width)]) + "\n"
    )


def _head(answer: LeversAnswer, width: int) -> Iterator[str]:
    yield from wrap(f"run    {head(answer.run)}", width, subsequent_indent=" " * 7)
    if answer.scenario:
        yield from wrap(f"after  {', then '.join(answer.scenario)}", width)
    yield (
        f"step   {format_ms(answer.step_ns)}, "
        f"measured {format_ms(answer.run.measured_ns)}: shares are of the first"
    )


def _table(answer: LeversAnswer, width: int) -> Iterator[str]:
    if not answer.levers:
        yield (f"no lever: nothing, made twice as fast, saves {LEAST_SAVING:.1%} of this step")
        return
    cells = [_cells(lever, answer) for lever in answer.levers]
    lines = list(aligned([TITLES, *cells], SIDES))
    if max(map(len, lines)) <= width:
        yield from lines
        return
    yield from _folded(cells)


def _folded(cells: list[tuple[str, ...]]) -> Iterator[str]:
    """What to type on a line of its own."""
    rows = list(aligned([TITLES[:-1], *(row[:-1] for row in cells)], SIDES[:-1]))
    yield rows[0]
    for line, row in zip(rows[1:], cells, strict=True):
        yield line
        yield f"{INDENT}{row[-1]}"


def _cells(lever: LeverFacts, answer: LeversAnswer) -> tuple[str, ...]:
    best = lever.twice or lever.limit
    ends = (best.saving_low_ns, best.saving_high_ns)
    least, most = (_share(saving_ns / answer.step_ns) for saving_ns in ends)
    return (
        lever.what,
        _told(lever.tenth),
        _told(lever.twice),
        f"{least} to {most}",
        _told(lever.limit),
        format_ms(best.saving_ns),
        to_type(best.flag),
    )


def _told(moved: MovedFacts | None) -> str:
    if moved is None:
        return ""
    return "noise" if moved.saving_frac < LEAST_SAVING else _share(moved.saving_frac)


def _share(saving_frac: float) -> str:
    """As a change of the step: a saving has a minus."""
    return f"{-saving_frac:+.1%}"


def _rest(answer: LeversAnswer, width: int) -> Iterator[str]:
    """What is no lever, the same reason once."""
    reasons: dict[str, list[str]] = {}
    for one in answer.below_noise:
        reasons.setdefault(one.why or f"saves under {LEAST_SAVING:.1%}", []).append(one.what)
    if reasons:
        yield ""
        yield f"no lever (twice as fast saves under {LEAST_SAVING:.1%} of the step):"
    for why, names in reasons.items():
        yield from wrap(
            f"  {', '.join(names)}: {why}", width, subsequent_indent=INDENT, break_on_hyphens=False
        )
