"""What-ifs applied one on top of the other."""

from dataclasses import dataclass, replace
from itertools import takewhile

from replay.graph.arrays import TaskGraph
from whatif.models.bound import Bound
from whatif.scenario import Scenario
from whatif.transforms.base import Context
from whatif.transforms.registry import Transform


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A graph after a stack of what-ifs."""

    graph: TaskGraph
    context: Context
    """What is known of the machine after the last of them."""
    labels: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    no_effect: tuple[str, ...] = ()

    def by(self, transform: Transform) -> "Changed":
        """With one more what-if on top."""
        applied = transform.apply(self.graph, self.context)
        new = (text for text in applied.assumptions if text not in self.assumptions)
        more = replace(
            self,
            graph=applied.graph,
            context=applied.context,
            labels=(*self.labels, applied.label),
            assumptions=(*self.assumptions, *new),
        )
        if applied.no_effect is not None:
            reason = f"{transform.flag}: {applied.no_effect}"
            more = replace(more, no_effect=(*self.no_effect, reason))
        return more


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
        layers = self._layers[: len(list(alike)) + 1] if is_same_machine else []
        self._last, self._layers = Scenario(), []
        if not layers:
            context = Context(bound=self._bound, recorded=scenario.base)
            layers = [Changed(graph=self._graph, context=context)]
        for transform in scenario.transforms[len(layers) - 1 :]:
            layers.append(layers[-1].by(transform))
        self._last, self._layers = scenario, layers
        return layers[-1]
