"""`replay solve` as data (the JSON contract, `schema/solve.schema.json`) and in words."""

from collections.abc import Callable, Iterator
from textwrap import wrap

import msgspec

from ingest.units import format_ms
from whatif.report.columns import to_type
from whatif.report.run_facts import RunFacts, head
from whatif.solve import Solution, Tried
from whatif.transforms.words import rate_in_bytes

NOTES_SHOWN = 6


class AtValue(msgspec.Struct, frozen=True, kw_only=True):
    """The run with the knob at one value."""

    value: float
    flag: str
    """The option that reproduces it."""
    step_ns: int
    low_ns: int
    high_ns: int
    speedup: float | None
    """Replayed / predicted."""


class SolveAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What `replay solve TRACE --vary ... --json` prints."""

    schema_version: int = 1
    run: RunFacts
    vary: str
    scenario: tuple[str, ...]
    """What-ifs that are made before, as understood."""
    goal_ns: int
    is_reached: bool
    needed: AtValue | None
    """The weakest value from which on all that were tried meet the goal; where the strongest does
    not, the one with the shortest step; null where none does."""
    needed_bytes_per_s: float | None
    """Rate of the link there, as vendors print it; null where it is not known, or no link."""
    at_best: float | None
    """The value that does where the low end of the range holds; null where even that does not."""
    at_worst: float | None
    """The value that does where the high end of the range holds; null where none does."""
    bound: AtValue
    """The value with the shortest step: no goal beyond it can be reached."""
    weakest: AtValue
    """The other end of the values that were tried."""
    falls_all_the_way: bool
    """The stronger the knob, the shorter the step, at all values that were tried."""
    detour: tuple[AtValue, AtValue] | None
    """Where it does not: the stronger value and its longer step come second."""
    also_meets: AtValue | None = None
    """The weakest value that meets the goal too, though some between it and `needed` do not; null
    where there is none, as always where the step falls all the way."""
    ends_the_search: bool = False
    """Even the weakest value that was tried meets the goal: still weaker ones may."""
    refused: str
    """Why some values do not fit the run; empty where all do."""
    no_effect: tuple[str, ...]
    assumptions: tuple[str, ...]


Flag = Callable[[float], str]
"""The option with a value, as it is typed."""


def solve_answer(run: RunFacts, found: Solution, vary: str, flag: Flag) -> SolveAnswer:
    """The contract's object."""

    def at(tried: Tried) -> AtValue:
        outcome = tried.outcome
        return AtValue(
            value=tried.value,
            flag=flag(tried.value),
            step_ns=outcome.step_ns,
            low_ns=outcome.low_ns,
            high_ns=outcome.high_ns,
            speedup=run.replayed_ns / outcome.step_ns if outcome.step_ns else None,
        )

    told = found.needed or found.bound
    return SolveAnswer(
        run=run,
        vary=vary,
        scenario=told.outcome.labels[:-1],
        goal_ns=found.goal_ns,
        is_reached=found.needed is not None,
        needed=None if found.needed is None else at(found.needed),
        needed_bytes_per_s=found.needed_bytes_per_s,
        at_best=found.at_best,
        at_worst=found.at_worst,
        bound=at(found.bound),
        weakest=at(found.weakest),
        falls_all_the_way=found.detour is None,
        detour=None if found.detour is None else (at(found.detour[0]), at(found.detour[1])),
        also_meets=None if found.also is None else at(found.also),
        ends_the_search=found.ends_the_search,
        refused=found.refused,
        no_effect=() if found.moves else found.bound.outcome.no_effect,
        assumptions=told.outcome.told,
    )


def render_solve(answer: SolveAnswer, width: int) -> str:
    """For people."""
    return "\n".join([*_lines(answer, width), *_notes(answer, width)]) + "\n"


def _lines(answer: SolveAnswer, width: int) -> Iterator[str]:
    run = answer.run
    yield from wrap(f"run    {head(run)}", width, subsequent_indent=" " * 7)
    if answer.scenario:
        yield from wrap(f"after  {', then '.join(answer.scenario)}", width)
    yield (
        f"goal   {format_ms(answer.goal_ns)} or less ({_goal_speed(answer)}), "
        f"replayed {format_ms(run.replayed_ns)}"
    )
    if answer.needed is None:
        speed = "-" if answer.bound.speedup is None else f"{answer.bound.speedup:.3f}x"
        yield f"needs  cannot be reached with {answer.vary}: bound {speed}"
        yield f"bound  {_told(answer.bound)}"
        if answer.at_best is not None:
            yield f"range  {answer.at_best:g} may do: the low end of its answer meets the goal"
    elif answer.needed.value == answer.weakest.value:
        yield f"needs  nothing: even {_told(answer.needed)}"
        yield f"range  the search ends at {answer.weakest.value:g}: weaker values may do as well"
    else:
        rate = answer.needed_bytes_per_s
        told = "" if rate is None else f" ({rate_in_bytes(float(f'{rate:.3g}'))})"
        yield f"needs  {_told(answer.needed, told)}"
        yield f"range  {_ends(answer)}"
        yield f"bound  {_told(answer.bound)}"


def _goal_speed(answer: SolveAnswer) -> str:
    if not answer.goal_ns:
        return "nothing is left of the step"
    speed = answer.run.replayed_ns / answer.goal_ns
    return f"{speed:.3f}x" if speed >= 0.01 else f"{speed:.2g}x"  # noqa: PLR2004


def _told(at: AtValue, rate: str = "") -> str:
    speed = "nothing is left of the step" if at.speedup is None else f"{at.speedup:.3f}x"
    return (
        f"{to_type(at.flag)}{rate}: {format_ms(at.step_ns)}, {speed}, "
        f"range {format_ms(at.low_ns)} to {format_ms(at.high_ns)}"
    )


def _ends(answer: SolveAnswer) -> str:
    best = "-" if answer.at_best is None else f"{answer.at_best:g}"
    if answer.at_worst is None:
        return f"{best} may do, and it may be out of reach: the high end never meets the goal"
    return f"{best} by the low end of each answer, {answer.at_worst:g} by the high end"


def _notes(answer: SolveAnswer, width: int) -> Iterator[str]:
    notes = list(_remarks(answer))
    if notes:
        yield ""
    for note in notes[:NOTES_SHOWN]:
        yield from wrap(f"- {note}", width, subsequent_indent="  ", break_on_hyphens=False)
    if len(notes) > NOTES_SHOWN:
        yield f"- {len(notes) - NOTES_SHOWN} more: --json has all"


def _remarks(answer: SolveAnswer) -> Iterator[str]:
    yield from (f"no effect: {reason}" for reason in answer.no_effect)
    if answer.also_meets is not None and answer.needed is not None:
        also, needed = answer.also_meets, answer.needed
        yield (
            f"{also.flag} meets the goal too ({format_ms(also.step_ns)}), but some values between "
            f"it and {needed.flag} do not: the first of the last run of values that do is told"
        )
    if answer.detour is not None:
        before, after = answer.detour
        yield (
            f"the step does not fall all the way: {format_ms(before.step_ns)} at {before.flag}, "
            f"{format_ms(after.step_ns)} at {after.flag}"
        )
    if answer.refused:
        yield f"some values do not fit this run: {answer.refused}"
    yield from answer.assumptions
