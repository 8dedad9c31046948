"""How far two runs can be compared, and what stands against it."""

from collections.abc import Iterator, Sequence

from whatif.compare.causes import found_again
from whatif.compare.contract import Comparability
from whatif.compare.leaves import Account
from whatif.compare.match import EXACT, How, Match
from whatif.compare.side import Side
from whatif.report.view import gpu_names

WELL_MATCHED = 0.9
"""Confidence is high where so much of the time is found again by name and place."""
POORLY_MATCHED = 0.5
POOR_GRADES = ("C", "D")


def comparability(
    a: Side, b: Side, of_a: Account, of_b: Account, matches: Sequence[Match]
) -> Comparability:
    """Of two runs, by what of their time was found again."""
    by_how: dict[How, int] = dict.fromkeys(How, 0)
    for how, spent_ns in found_again(matches):
        by_how[how] += spent_ns
    total_ns = max(sum(by_how.values()), 1)
    exact = sum(by_how[how] for how in EXACT) / total_ns
    lone = (by_how[How.NEW] + by_how[How.GONE]) / total_ns
    is_same_kind = of_a.has_device == of_b.has_device
    reasons = tuple(_reasons(a, b, exact, is_same_kind=is_same_kind))
    return Comparability(
        is_same_gpu=gpu_names(a.graph) == gpu_names(b.graph),
        is_same_ranks=_rank_numbers(a) == _rank_numbers(b),
        is_same_kind=is_same_kind,
        matched_frac=exact,
        renamed_frac=max(1 - exact - lone, 0.0),
        lone_frac=lone,
        confidence=_confidence(a, b, exact, is_same_kind=is_same_kind),
        reasons=reasons,
    )


def _rank_numbers(side: Side) -> tuple[int, ...]:
    return tuple(info.rank for info in side.graph.ranks)


def _confidence(a: Side, b: Side, exact: float, *, is_same_kind: bool) -> str:
    grades = {side.baseline.trust.grade for side in (a, b)}
    if not is_same_kind or exact < POORLY_MATCHED or "D" in grades:
        return "low"
    recorded = a.graph.steps_recorded and b.graph.steps_recorded
    if exact < WELL_MATCHED or not recorded or grades & {*POOR_GRADES}:
        return "medium"
    return "high"


def _reasons(a: Side, b: Side, exact: float, *, is_same_kind: bool) -> Iterator[str]:
    """What differs between the runs, or weakens the comparison."""
    if not is_same_kind:
        yield "one run has device rows and the other has none: their parts are not the same things"
    gpus = [gpu_names(side.graph) or "a GPU that is not named" for side in (a, b)]
    if gpus[0] != gpus[1] and is_same_kind:
        yield f"other GPUs: {gpus[0]} against {gpus[1]}"
    yield from _other_size(a, b)
    recorded = [side.graph.steps_recorded for side in (a, b)]
    if not any(recorded):
        yield "no steps recorded: each recording counts as one step, whatever it holds"
    elif not all(recorded):
        yield "only one run has recorded steps: the other counts as one, whatever it holds"
    elif min(len(side.graph.steps) for side in (a, b)) == 1:
        both = max(len(side.graph.steps) for side in (a, b)) == 1
        yield f"{'each' if both else 'one'} run has a single step: its noise is not known"
    if exact < WELL_MATCHED:
        yield f"{exact:.0%} of the time is found again by name and place, the rest by less or not"
    yield from _of_one_or_both(a, b)
    yield from _other_recording(a, b)


def _of_one_or_both(a: Side, b: Side) -> Iterator[str]:
    """Weaknesses of the recordings themselves."""
    poor = [run for run, side in (("A", a), ("B", b)) if side.baseline.trust.grade in POOR_GRADES]
    grades = "/".join(dict.fromkeys(_grade(side) for side in (a, b) if _grade(side) in POOR_GRADES))
    if poor:
        yield f"trust in the replay of {' and of '.join(poor)} is {grades}"
    lone = [run for run, side in (("A", a), ("B", b)) if _lacks_members(side)]
    if lone:
        yield (
            f"members of collectives are not in the files of {' and of '.join(lone)}: what is "
            "transfer and what waiting for them is told by the fastest of equal calls"
        )


def _grade(side: Side) -> str:
    return side.baseline.trust.grade


def _lacks_members(side: Side) -> bool:
    calls = side.graph.collectives
    return bool((calls.members_seen < calls.members_expected).any())


def _other_size(a: Side, b: Side) -> Iterator[str]:
    ranks = [len(side.graph.ranks) for side in (a, b)]
    worlds = [side.graph.world_size for side in (a, b)]
    if worlds[0] != worlds[1] and None not in worlds:
        yield f"other jobs: {worlds[0]} ranks against {worlds[1]}"
    if ranks[0] != ranks[1]:
        yield f"files of {ranks[0]} ranks against {ranks[1]}"
    elif _rank_numbers(a) != _rank_numbers(b):
        yield "files of other ranks"


def _other_recording(a: Side, b: Side) -> Iterator[str]:
    """Options of the profiler that cost time on the host."""
    files = [side.facts.files for side in (a, b)]
    for words, recorded in (
        ("input shapes", [any(file.has_shapes for file in each) for each in files]),
        ("Python stacks", [any(file.has_stacks for file in each) for each in files]),
    ):
        if recorded[0] != recorded[1]:
            with_them = "A" if recorded[0] else "B"
            yield f"only {with_them} was recorded with {words}, which cost time on its host"
