"""What-ifs applied one on top of the other."""

from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np

from ingest.errors import ScenarioError
from replay.graph.arrays import TaskGraph
from whatif.models.bound import Bound
from whatif.scenario import Scenario
from whatif.transforms.base import Context
from whatif.transforms.registry import RELAYOUTS, Transform
from whatif.transforms.replicas import Replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A graph after a stack of what-ifs."""

    graph: TaskGraph
    context: Context
    """What is known of the machine after the last of them."""
    labels: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    known_errors: tuple[str, ...] = ()
    no_effect: tuple[str, ...] = ()

    def by(self, transform: Transform, *, relayout_follows: bool = False) -> "Changed":
        """With one more what-if on top.

        Args:
            transform: what-if.
            relayout_follows: it is about the layout, and so is the next: that one makes the graph
                for both.

        Raises:
            ScenarioError: it does not fit the run, or makes times that no schedule holds.
        """
        context = replace(self.context, relayout_follows=relayout_follows)
        with np.errstate(invalid="ignore"):  # a time that runs over is refused just below
            applied = transform.apply(self.graph, context)
        _refuse_absurd_times(applied.graph, transform)
        more = replace(
            self,
            graph=applied.graph,
            context=applied.context,
            labels=(*self.labels, applied.label),
            assumptions=_with(self.assumptions, applied.assumptions),
            known_errors=_with(self.known_errors, applied.known_errors),
        )
        if applied.no_effect is not None:
            reason = f"{transform.flag}: {applied.no_effect}"
            more = replace(more, no_effect=(*self.no_effect, reason))
        return more


LONGEST_NS = float(1 << 61)
"""All durations of a run together, so that no chain of them runs over 64 bits."""


def _refuse_absurd_times(graph: TaskGraph, transform: Transform) -> None:
    dur_ns = graph.tasks.dur_ns
    if dur_ns.min(initial=0) < 0 or dur_ns.sum(dtype=np.float64) > LONGEST_NS:
        raise ScenarioError(
            f"`{transform.flag}` makes the run longer than decades",
            hint="a value nearer to what was recorded",
        )


def _with(told: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    """All of them, each once."""
    return tuple(dict.fromkeys((*told, *more)))


def _relayout_follows(scenario: Scenario, number: int) -> bool:
    """The what-if of that number, from 1, and the next are about the layout.

    A number of replicas is where another of the what-ifs in a row with it is, so that their order
    does not matter.
    """
    stack = scenario.transforms
    if not 0 < number < len(stack) or not all(map(_fits_a_layout, stack[number - 1 : number + 1])):
        return False
    before = takewhile(_fits_a_layout, reversed(stack[:number]))
    after = takewhile(_fits_a_layout, stack[number:])
    return any(isinstance(one, RELAYOUTS) for one in (*before, *after))


def _fits_a_layout(transform: Transform) -> bool:
    return isinstance(transform, RELAYOUTS) or _only_counts_replicas(transform)


def _only_counts_replicas(transform: Transform) -> bool:
    """It does not say besides which communicators join them."""
    return isinstance(transform, Replicas) and transform.groups is None


class Stacking:
    """Applies scenarios to one graph.

    What-ifs that a scenario begins with as the one before it did are not made again: in a grid that
    is all of a stack but its last.
    """

    def __init__(self, graph: TaskGraph, bound: Bound = Bound.NOMINAL) -> None:
        self._graph, self._bound = graph, bound
        self._last = Scenario()
        self._layers: list[Changed] = []

    def made(self, scenario: Scenario) -> Changed:
        """The graph after the whole stack.

        Raises:
            ScenarioError: the scenario does not fit the run.
        """
        alike = takewhile(
            lambda pair: pair[0] == pair[1],
            zip(scenario.transforms, self._last.transforms, strict=False),
        )
        is_same_machine = scenario.base == self._last.base
        n_alike = len(list(alike)) if is_same_machine else 0
        while n_alike and any(
            _relayout_follows(scenario, number) != _relayout_follows(self._last, number)
            for number in range(1, n_alike + 1)
        ):
            n_alike -= 1
        layers = self._layers[: n_alike + 1] if is_same_machine else []
        self._last, self._layers = Scenario(), []
        if not layers:
            context = Context(bound=self._bound, recorded=scenario.base)
            layers = [Changed(graph=self._graph, context=context)]
        for number, transform in enumerate(scenario.transforms[len(layers) - 1 :], len(layers)):
            follows = _relayout_follows(scenario, number)
            layers.append(layers[-1].by(transform, relayout_follows=follows))
        self._last, self._layers = scenario, layers
        return layers[-1]
