"""Layouts that no other beats in step, GPUs and memory at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol, TypeVar

from whatif.plan.search import Scored

Degrees = tuple[int, ...]


class Weighed(Protocol):
    """What layouts are compared by; the less of each the better."""

    @property
    def step_ns(self) -> float:
        """Of a step."""
        ...

    @property
    def gpus(self) -> int:
        """Of the job."""
        ...

    @property
    def memory_bytes(self) -> float:
        """Of the fullest rank."""
        ...


T = TypeVar("T", bound=Weighed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A layout of the front."""

    scored: Scored
    step_ns: float
    """By its replay, else by the closed form times what replays of layouts like it were over
    theirs."""
    is_replayed: bool

    @property
    def gpus(self) -> int:
        """Of the job."""
        return self.scored.gpus

    @property
    def memory_bytes(self) -> float:
        """Of the fullest rank, as tensors."""
        return self.scored.memory_bytes


def kind_of(one: Scored) -> Degrees:
    """The degrees that make layouts alike."""
    degrees = one.shape.degrees
    return degrees.tp, degrees.cp, degrees.pp, degrees.dp, degrees.ep


def front_of(ranked: Sequence[Scored], replayed: Sequence[tuple[Scored, float]]) -> list[Point]:
    """The front of all layouts, the shortest step first.

    What was replayed is beaten by what was replayed only: the closed form is no judge of it.

    Args:
        ranked: all that fit.
        replayed: some of them with their steps, ns.
    """
    sure = [Point(scored=one, step_ns=step, is_replayed=True) for one, step in replayed]
    known = {id(one) for one, _ in replayed}
    over = _over(replayed)
    usual = median([each for found in over.values() for each in found] or [1.0])
    others = [
        Point(
            scored=one,
            step_ns=one.step_ns * median(over.get(kind_of(one), [usual])),
            is_replayed=False,
        )
        for one in ranked
        if id(one) not in known
    ]
    unbeaten = [one for one in pareto([*sure, *others]) if not one.is_replayed]
    return sorted([*pareto(sure), *unbeaten], key=lambda one: one.step_ns)


def _over(replayed: Sequence[tuple[Scored, float]]) -> Mapping[Degrees, list[float]]:
    """Replays over closed forms, by degrees."""
    found: dict[Degrees, list[float]] = {}
    for one, step_ns in replayed:
        found.setdefault(kind_of(one), []).append(step_ns / max(one.step_ns, 1.0))
    return found


def pareto(layouts: Sequence[T]) -> list[T]:
    """Layouts that no other beats in step, GPUs and memory at once; the shortest step first."""
    front: list[T] = []
    for one in sorted(layouts, key=lambda each: (each.step_ns, each.gpus, each.memory_bytes)):
        if not any(
            other.gpus <= one.gpus and other.memory_bytes <= one.memory_bytes for other in front
        ):
            front.append(one)
    return front
