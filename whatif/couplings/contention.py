"""Transfers that overlap on one link share it.

From the recording: when each transfer ran beside which others, hence how long it would have taken
alone. In a scenario the time alone scales as the scenario asks, and the transfers share the link as
they overlap then. Bytes share, latency does not (`replay/engine/sharing.py` has the rule).
"""

from dataclasses import dataclass

import numpy as np

from replay.engine.schedule import Schedule
from replay.graph.arrays import Float64, Int64, TaskGraph
from whatif.couplings.added import added_transfers
from whatif.couplings.copies import found_in
from whatif.transforms.links import Jobs, link_numbers, shared_links, weight_of

ROUNDING_NS = 2.0
ROUNDING_FRAC = 1e-9
"""A time that differs by less from what the scenario asks for is that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """What each transfer of the recording would have taken alone; columns with a row each."""

    task: Int64
    link: Int64
    taken_ns: Int64
    """Recorded duration."""
    latency_ns: Float64
    """Part of it that no other transfer changed."""
    alone_ns: Float64
    """What it would have been alone."""
    weight: Float64
    """Part of the time alone that its bytes are on the link."""

    @property
    def assumption(self) -> str:
        """In words."""
        return "transfers that overlap on one link share it: their bytes, not their latency"

    def watched(self, plain: TaskGraph) -> Int64:
        """All of them, and those that a scenario added."""
        return self._with_added(plain).task

    def durations(self, plain: TaskGraph, schedule: Schedule) -> Int64:
        """Durations with the transfers sharing their links as they overlap in `schedule`."""
        return self._with_added(plain)._durations(plain, schedule)

    def _with_added(self, plain: TaskGraph) -> "Contention":
        """The same for a variant: with transfers that it added, each like the one it stands for.

        Where it was put together anew, its ranks are on links of their own.
        """
        found = found_in(plain, self.task)
        task, like = added_transfers(plain, self.task)
        if not len(task) and plain.origin is None:
            return self
        rows = np.concatenate([found.row, like])
        task = np.concatenate([found.task, task])
        return Contention(
            task=task,
            link=self.link[rows] if plain.origin is None else link_numbers(plain, task),
            taken_ns=self.taken_ns[rows],
            latency_ns=self.latency_ns[rows],
            alone_ns=self.alone_ns[rows],
            weight=self.weight[rows],
        )

    def _durations(self, plain: TaskGraph, schedule: Schedule) -> Int64:
        if not len(self.task):
            return plain.tasks.dur_ns
        asked_ns = plain.tasks.dur_ns[self.task]
        alone_ns, weight = self._asked(plain)
        start_ns = schedule.start_ns[self.task].astype(np.float64)
        taken_ns = Jobs.of(self.link, start_ns).shared(alone_ns, weight) - start_ns
        same = np.abs(taken_ns - asked_ns) <= ROUNDING_NS + ROUNDING_FRAC * asked_ns
        same |= plain.tasks.fixed[self.task]
        dur_ns = plain.tasks.dur_ns.copy()
        dur_ns[self.task] = np.where(same, asked_ns, np.rint(taken_ns)).astype(np.int64)
        return dur_ns

    def _asked(self, plain: TaskGraph) -> tuple[Float64, Float64]:
        """Time alone and weight of each transfer as a scenario asks for it.

        Its bytes scale as those beside others do. What is as recorded keeps its very numbers, so
        that the unchanged run comes out to the nanosecond.
        """
        asked_ns = plain.tasks.dur_ns[self.task]
        latency_ns = np.minimum(_latency_ns(plain, self.task), asked_ns)
        bytes_ns, shared_ns = self.alone_ns - self.latency_ns, self.taken_ns - self.latency_ns
        share = np.divide(bytes_ns, shared_ns, out=np.ones_like(bytes_ns), where=shared_ns > 0)
        asked_bytes_ns = (asked_ns - latency_ns) * np.clip(share, 0.0, 1.0)
        same = (asked_ns == self.taken_ns) & (latency_ns == self.latency_ns)
        alone_ns = np.where(same, self.alone_ns, latency_ns + asked_bytes_ns)
        return alone_ns, np.where(same, self.weight, weight_of(latency_ns, asked_bytes_ns))


def contention(graph: TaskGraph, schedule: Schedule) -> Contention | None:
    """Who shares which link; None where no link has two lanes that could overlap."""
    task, link = shared_links(graph)
    if not len(task):
        return None
    taken_ns = schedule.end_ns[task] - schedule.start_ns[task]
    latency_ns = np.minimum(_latency_ns(graph, task), taken_ns)
    jobs = Jobs.of(link, schedule.start_ns[task].astype(np.float64))
    alone_ns, weight = jobs.alone(schedule.end_ns[task].astype(np.float64), latency_ns)
    return Contention(
        task=task,
        link=link,
        taken_ns=taken_ns,
        latency_ns=latency_ns,
        alone_ns=alone_ns,
        weight=weight,
    )


def _latency_ns(graph: TaskGraph, task: Int64) -> Float64:
    return graph.collectives.latency_ns[graph.tasks.collective[task]].astype(np.float64)
