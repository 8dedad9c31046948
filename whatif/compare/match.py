"""What is the same in two runs: by name, shape and place first, by less where that fails."""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from whatif.compare.leaves import Idle, Key, Leaf, Part

_NUMBERS = re.compile(r"\d+")
_VENDOR = re.compile(r"(?:cuda|hip|cu)(?=[A-Z])")


class How(StrEnum):
    """By what a piece of work was found again in the other run."""

    SAME = "name, shape and place"
    RESHAPED = "name and place, other shapes"
    RENUMBERED = "name but for its numbers"
    MOVED = "name, other place"
    RENAMED = "operator and place, other kernel"
    SAME_CLASS = "class of kernel alone"
    NEW = "only in B"
    GONE = "only in A"


EXACT = (How.SAME, How.RESHAPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Leaves of both runs that are the same work."""

    part: Part
    how: How
    a: tuple[Leaf, ...]
    b: tuple[Leaf, ...]


Rule = Callable[[Key], Hashable]
"""Keys with equal values are the same work; None takes no part."""


def _without_numbers(name: str) -> str:
    return _NUMBERS.sub("#", name)


def _call(key: Key) -> Hashable:
    """A runtime call without its vendor; all that launch are one."""
    if not _VENDOR.match(key.name):
        return None
    name = _VENDOR.sub("", key.name)
    return (key.cause, "Launch" if "Launch" in name else name)


def _of_operator(key: Key) -> Hashable:
    return (key.op, key.phase) if key.op else None


def _places(_key: Key) -> Hashable:
    """Stands among the rules for what no key tells: `_at_the_same_places`."""
    return None


_KERNELS: tuple[tuple[How, Rule], ...] = (
    (How.SAME, lambda key: key),
    (How.RESHAPED, lambda key: (key.cause, key.name, key.op, key.phase)),
    (How.MOVED, lambda key: (key.cause, key.name)),
    (How.RENAMED, _places),
    (How.RENAMED, lambda key: (key.cause, _of_operator(key)) if key.op else None),
    (How.RENUMBERED, lambda key: (key.cause, _without_numbers(key.name))),
    (How.RENAMED, _of_operator),
)
_COLLECTIVES: tuple[tuple[How, Rule], ...] = (
    (How.SAME, lambda key: key),
    (How.SAME, lambda key: (key.cause, key.group, key.size_bytes, key.phase)),
    (How.RESHAPED, lambda key: (key.cause, key.group, key.phase)),
    (How.MOVED, lambda key: (key.cause, key.size_bytes)),
    (How.RENAMED, lambda key: key.cause),
)
_HOST = (Idle.HOST, Idle.INPUT, Idle.SILENT)
_OF_IDLE: tuple[tuple[How, Rule], ...] = (
    (How.SAME, lambda key: key),
    (How.SAME, lambda key: (key.cause, key.name, key.op)),
    (How.RENUMBERED, lambda key: (key.cause, _without_numbers(key.name))),
    (How.RENAMED, _call),
    # Causes without a row are one each; host work of other operators is other work.
    (How.MOVED, lambda key: None if key.cause in _HOST else key.cause),
)
RULES = {
    Part.COMPUTE: _KERNELS,
    Part.TRANSFER: _COLLECTIVES,
    Part.WAIT: _COLLECTIVES,
    Part.MEMCPY: _KERNELS,
    Part.IDLE: _OF_IDLE,
}
_BY_CLASS: tuple[How, Rule] = (How.SAME_CLASS, lambda key: (key.cause, key.phase))
"""For kernels that no operator is known of, between other GPUs or libraries."""


def match(a: Iterable[Leaf], b: Iterable[Leaf], *, by_class: bool) -> tuple[Match, ...]:
    """Every leaf of both runs in one match, or alone as new or gone.

    Args:
        a: leaves of the first run.
        b: leaves of the second run.
        by_class: kernels that nothing else joins are joined by their class, since their names are
            not to be compared: the runs are of different GPUs.
    """
    of_a, of_b = _by_part(a), _by_part(b)
    return tuple(
        found
        for part in Part
        for found in _matched(part, of_a[part], of_b[part], by_class=by_class)
    )


def _by_part(leaves: Iterable[Leaf]) -> dict[Part, list[Leaf]]:
    found: dict[Part, list[Leaf]] = defaultdict(list)
    for leaf in leaves:
        found[leaf.key.part].append(leaf)
    return found


def _matched(
    part: Part, a: Sequence[Leaf], b: Sequence[Leaf], *, by_class: bool
) -> Iterator[Match]:
    aligned = _aligned(a, b)
    for how, rule in (*RULES[part], *((_BY_CLASS,) if by_class and part is Part.COMPUTE else ())):
        together = _at_the_same_places(a, b, aligned) if rule is _places else _equal(a, b, rule)
        for in_a, in_b in together:
            yield Match(part=part, how=how, a=in_a, b=in_b)
        a = _left(a, [in_a for in_a, _ in together])
        b = _left(b, [in_b for _, in_b in together])
    for leaf in a:
        yield Match(part=part, how=How.GONE, a=(leaf,), b=())
    for leaf in b:
        yield Match(part=part, how=How.NEW, a=(), b=(leaf,))


_Leaves = tuple[Leaf, ...]
_Together = list[tuple[_Leaves, _Leaves]]


def _left(leaves: Sequence[Leaf], taken: Iterable[_Leaves]) -> list[Leaf]:
    gone = {leaf.key for some in taken for leaf in some}
    return [leaf for leaf in leaves if leaf.key not in gone]


def _equal(a: Sequence[Leaf], b: Sequence[Leaf], rule: Rule) -> _Together:
    """Leaves of both that a rule holds to be the same."""
    in_a, in_b = _grouped(a, rule), _grouped(b, rule)
    return [(tuple(in_a[key]), tuple(in_b[key])) for key in in_a if key is not None and key in in_b]


_Operator = tuple[str, str]


def _aligned(a: Sequence[Leaf], b: Sequence[Leaf]) -> set[_Operator]:
    """Operators (and phases) that launch equally many kernels in both runs."""

    def launched(leaves: Sequence[Leaf]) -> dict[_Operator, int]:
        found: dict[_Operator, int] = defaultdict(int)
        for leaf in leaves:
            found[leaf.key.op, leaf.key.phase] += len(leaf.places)
        return found

    of_a, of_b = launched(a), launched(b)
    return {key for key, count in of_a.items() if key[0] and count and of_b.get(key) == count}


def _at_the_same_places(a: Sequence[Leaf], b: Sequence[Leaf], aligned: set[_Operator]) -> _Together:
    """Kernels of other names that stand at the same places among those of their operator.

    Leaves that share a place belong together, and with all that these share one with.
    """
    leaves = [*((leaf, True) for leaf in a), *((leaf, False) for leaf in b)]
    leaves = [one for one in leaves if (one[0].key.op, one[0].key.phase) in aligned]
    root = list(range(len(leaves)))

    def top(number: int) -> int:
        while root[number] != number:
            number = root[number]
        return number

    at: dict[tuple[str, str, int], int] = {}
    for number, (leaf, _) in enumerate(leaves):
        for place in leaf.places:
            other = at.setdefault((leaf.key.op, leaf.key.phase, place), number)
            root[top(number)] = top(other)
    sets: dict[int, tuple[list[Leaf], list[Leaf]]] = defaultdict(lambda: ([], []))
    for number, (leaf, is_a) in enumerate(leaves):
        sets[top(number)][0 if is_a else 1].append(leaf)
    return [(tuple(in_a), tuple(in_b)) for in_a, in_b in sets.values() if in_a and in_b]


def _grouped(leaves: Iterable[Leaf], rule: Rule) -> dict[Hashable, list[Leaf]]:
    found: dict[Hashable, list[Leaf]] = defaultdict(list)
    for leaf in leaves:
        found[rule(leaf.key)].append(leaf)
    return found
