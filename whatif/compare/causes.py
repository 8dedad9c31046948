"""Matched work -> what accounts for the difference, with counts, durations and noise."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from whatif.compare.contract import Cause, Effects, Group
from whatif.compare.leaves import CPU, Idle, Leaf, Part
from whatif.compare.match import EXACT, How, Match
from whatif.compare.noise import noise_ns

_IDLE_ROLES = {
    Idle.HOST: "host",
    Idle.INPUT: "host",
    Idle.SILENT: "host",
    Idle.RANKS: "wait",
    Idle.LAST: "wait",
}


@dataclass(frozen=True, slots=True)
class _Side:
    """One run's share of a cause."""

    spent_ns: int
    count: float
    raw_ns: float
    per_step_ns: tuple[float, ...]

    @property
    def mean_ns(self) -> float | None:
        return self.raw_ns / self.count if self.count else None


def _of(leaves: Sequence[Leaf], n_steps: int) -> _Side:
    per_step = zip(*(leaf.per_step_ns for leaf in leaves), strict=True)
    return _Side(
        spent_ns=sum(leaf.spent_ns for leaf in leaves),
        count=sum(leaf.count for leaf in leaves),
        raw_ns=sum(leaf.raw_ns for leaf in leaves),
        per_step_ns=tuple(map(sum, per_step)) if leaves else (0.0,) * n_steps,
    )


def causes(matches: Iterable[Match], n_steps: tuple[int, int]) -> tuple[Cause, ...]:
    """One row per work with a name, the largest change first.

    Args:
        matches: every leaf of both runs.
        n_steps: of the two runs.
    """
    rows: dict[tuple[str, ...], list[Match]] = defaultdict(list)
    for found in matches:
        rows[_identity(found)].append(found)
    told = [_cause(same, n_steps) for same in rows.values()]
    return tuple(sorted(told, key=lambda one: (-abs(one.change_ns), one.group, one.name, one.op)))


def _identity(found: Match) -> tuple[str, ...]:
    return (
        group_of(found),
        _name(found.a),
        _name(found.b),
        *sorted({leaf.key.op for leaf in (*found.a, *found.b)}),
    )


def _longest(leaves: Sequence[Leaf]) -> Leaf:
    return max(leaves, key=lambda leaf: (leaf.spent_ns, leaf.raw_ns, leaf.key))


def _name(leaves: Sequence[Leaf]) -> str:
    """Of the work that takes most, and how many other names there are; of collectives the size."""
    if not leaves:
        return ""
    names = {_called(leaf) for leaf in leaves}
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return _called(_longest(leaves)) + more


def _called(leaf: Leaf) -> str:
    key = leaf.key
    if key.part in (Part.TRANSFER, Part.WAIT):
        return " ".join(filter(None, [key.cause, f"({key.group})" if key.group else ""]))
    if not key.name and key.cause in (CPU, Idle.HOST):
        return "outside of operators"
    if not key.name and key.part is Part.IDLE:
        return key.cause
    return key.name or "no name recorded"


def group_of(found: Match) -> str:
    """Key of the bar of the waterfall: part and cause; of two causes the one with more time."""
    spent: dict[str, int] = defaultdict(int)
    for leaf in (*found.a, *found.b):
        spent[leaf.key.cause] += leaf.spent_ns
    cause = max(sorted(spent), key=lambda each: spent[each])
    return f"{found.part}/{cause}"


def _cause(same: Sequence[Match], n_steps: tuple[int, int]) -> Cause:
    in_a = [leaf for found in same for leaf in found.a]
    in_b = [leaf for found in same for leaf in found.b]
    a, b = _of(in_a, n_steps[0]), _of(in_b, n_steps[1])
    by = _matched_by(same)
    one = _longest(in_a or in_b)
    noise = noise_ns(a.per_step_ns, b.per_step_ns)
    return Cause(
        part=same[0].part,
        group=group_of(same[0]),
        name=_name(in_a),
        name_b=_name(in_b),
        op=one.key.op,
        phase=one.key.phase,
        phase_b=_longest(in_b or in_a).key.phase,
        a_ns=a.spent_ns,
        b_ns=b.spent_ns,
        change_ns=b.spent_ns - a.spent_ns,
        effects=_effects(a, b),
        count_a=a.count,
        count_b=b.count,
        mean_a_ns=a.mean_ns,
        mean_b_ns=b.mean_ns,
        matched_by=by,
        noise_ns=None if noise is None else round(noise),
        confidence=_confidence(by, b.spent_ns - a.spent_ns, noise, one),
    )


def _matched_by(same: Sequence[Match]) -> How:
    """By what most of its time was found again."""
    weight: dict[How, int] = defaultdict(int)
    for found in same:
        weight[found.how] += sum(leaf.spent_ns for leaf in (*found.a, *found.b))
    return max(weight, key=lambda how: (weight[how], -list(How).index(how)))


def _effects(a: _Side, b: _Side) -> Effects:
    """The change, split by number, duration and exposed share: each at the mean of the others.

    What is only in one run is all number.
    """
    change = b.spent_ns - a.spent_ns
    if not a.count or not b.count or not a.raw_ns or not b.raw_ns:
        return Effects(count_ns=change, longer_ns=0, exposed_ns=0)
    each_a, each_b = a.spent_ns / a.count, b.spent_ns / b.count
    count = round((b.count - a.count) * (each_a + each_b) / 2)
    long_a, long_b = a.raw_ns / a.count, b.raw_ns / b.count
    seen_a, seen_b = a.spent_ns / a.raw_ns, b.spent_ns / b.raw_ns
    number = (a.count + b.count) / 2
    exposed = round((seen_b - seen_a) * (long_a + long_b) / 2 * number)
    return Effects(count_ns=count, longer_ns=change - count - exposed, exposed_ns=exposed)


def _confidence(by: How, change_ns: int, noise: float | None, one: Leaf) -> str:
    if one.key.cause == Idle.UNKNOWN or (noise is not None and abs(change_ns) <= noise):
        return "low"
    if noise is None or by not in (*EXACT, How.NEW, How.GONE):
        return "medium"
    return "high"


def groups(
    found: Iterable[Cause], matches: Iterable[Match], n_steps: tuple[int, int]
) -> tuple[Group, ...]:
    """The bars of the waterfall, the largest change first."""
    spent: dict[str, list[Cause]] = defaultdict(list)
    for cause in found:
        spent[cause.group].append(cause)
    leaves: dict[str, list[Match]] = defaultdict(list)
    for each in matches:
        leaves[group_of(each)].append(each)
    told = [_group(key, spent[key], leaves[key], n_steps) for key in spent]
    return tuple(sorted(told, key=lambda one: (-abs(one.change_ns), one.key)))


def _group(
    key: str, inside: Sequence[Cause], matches: Sequence[Match], n_steps: tuple[int, int]
) -> Group:
    part, _, cause = key.partition("/")
    a = _of([leaf for found in matches for leaf in found.a], n_steps[0])
    b = _of([leaf for found in matches for leaf in found.b], n_steps[1])
    noise = noise_ns(a.per_step_ns, b.per_step_ns)
    return Group(
        key=key,
        part=part,
        name=_group_name(Part(part), cause),
        role=_role(Part(part), cause),
        a_ns=sum(one.a_ns for one in inside),
        b_ns=sum(one.b_ns for one in inside),
        change_ns=sum(one.change_ns for one in inside),
        noise_ns=None if noise is None else round(noise),
        is_named=cause != Idle.UNKNOWN,
    )


def _group_name(part: Part, cause: str) -> str:
    if part is Part.COMPUTE:
        return cause if cause == CPU else f"{cause} kernels"
    if part is Part.TRANSFER:
        return f"{cause} transfers, exposed"
    if part is Part.WAIT:
        return f"waiting for members of {cause}"
    if part is Part.MEMCPY:
        return f"{cause}, exposed"
    return f"idle: {cause}"


def _role(part: Part, cause: str) -> str:
    if part is Part.COMPUTE:
        return "host" if cause == CPU else cause
    if part is Part.IDLE:
        return _IDLE_ROLES.get(Idle(cause), "idle")
    return {Part.TRANSFER: "comm", Part.WAIT: "wait", Part.MEMCPY: "memcpy"}[part]


def unnamed_ns(found: Iterable[Group]) -> int:
    """Change in the groups without a known cause."""
    return sum(one.change_ns for one in found if not one.is_named)


def found_again(matches: Iterable[Match]) -> Iterator[tuple[How, int]]:
    """How each match was made, with the time of both runs in it."""
    for each in matches:
        yield each.how, sum(leaf.spent_ns for leaf in (*each.a, *each.b))
