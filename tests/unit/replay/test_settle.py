"""Durations that follow from the schedule, and a schedule that follows from them."""

from dataclasses import dataclass, replace

import numpy as np

from replay.engine.run import replay
from replay.engine.schedule import Schedule
from replay.engine.settle import settle, settled_schedules
from replay.graph.arrays import Int64, TaskGraph
from tests.builders import GraphBuilder


@dataclass(frozen=True)
class Slowed:
    """A task takes `longer_ns` more if it starts before another ends."""

    task: int
    beside: int
    longer_ns: int
    assumption: str = ""

    def watched(self, plain: TaskGraph) -> Int64:  # noqa: ARG002  (as the protocol has it)
        return np.array([self.task, self.beside])

    def durations(self, plain: TaskGraph, schedule: Schedule) -> Int64:
        dur_ns = plain.tasks.dur_ns.copy()
        if schedule.start_ns[self.task] < schedule.end_ns[self.beside]:
            dur_ns[self.task] += self.longer_ns
        return dur_ns


def two_streams() -> TaskGraph:
    """Tasks 1 and 3 run at once on two streams; 4 follows 1."""
    build = GraphBuilder()
    call = build.call(0, "launch", 10)
    build.kernel(0, "a", 100, caller=call)
    other = build.call(0, "launch", 10)
    build.kernel(0, "b", 200, caller=other, stream=8)
    build.kernel(0, "c", 50, caller=other)
    return build.build()


def test_nothing_coupled_is_the_plain_replay() -> None:
    graph = two_streams()
    settled, schedule = settle(graph, ())
    assert settled is graph
    assert np.array_equal(schedule.end_ns, replay(graph).end_ns)


def test_a_task_takes_longer_beside_another_and_moves_what_follows() -> None:
    graph = two_streams()
    settled, schedule = settle(graph, [Slowed(1, 3, 30)])
    assert settled.tasks.dur_ns.tolist() == [10, 130, 10, 200, 50]
    assert schedule.start_ns[4] == 140
    assert np.array_equal(schedule.end_ns, replay(settled).end_ns)


def test_changes_of_two_couplings_add_up() -> None:
    settled, _ = settle(two_streams(), [Slowed(1, 3, 30), Slowed(1, 3, 5)])
    assert settled.tasks.dur_ns[1] == 135


@dataclass(frozen=True)
class Restless:
    """No duration of the task agrees with the schedule that it makes."""

    task: int
    assumption: str = ""

    def watched(self, plain: TaskGraph) -> Int64:  # noqa: ARG002  (as the protocol has it)
        return np.array([self.task])

    def durations(self, plain: TaskGraph, schedule: Schedule) -> Int64:
        dur_ns = plain.tasks.dur_ns.copy()
        is_long = schedule.end_ns[self.task] - schedule.start_ns[self.task] > 60
        dur_ns[self.task] = 20 if is_long else 100
        return dur_ns


def test_what_never_agrees_gives_the_nearest_and_the_same_again() -> None:
    first, second = (settle(two_streams(), [Restless(4)]) for _ in range(2))
    assert 20 <= first[0].tasks.dur_ns[4] <= 100
    assert np.array_equal(first[0].tasks.dur_ns, second[0].tasks.dur_ns)
    assert np.array_equal(first[1].end_ns, second[1].end_ns)


def test_durations_never_fall_below_nothing() -> None:
    settled, _ = settle(two_streams(), [Slowed(4, 3, -500)])
    assert settled.tasks.dur_ns[4] == 0


def test_many_settle_as_each_would_alone() -> None:
    graph = two_streams()
    longer = np.array([0, 0, 0, 10, 0])
    variants = [
        replace(graph, tasks=replace(graph.tasks, dur_ns=graph.tasks.dur_ns + times * longer))
        for times in range(45)
    ]
    couplings = [Slowed(4, 3, 30), Restless(1)]
    at = np.array([4, 3])
    together = [one.end_ns[at] for one in settled_schedules(variants, couplings, at)]
    alone = [settle(variant, couplings)[1].end_ns[at] for variant in variants]
    assert np.array_equal(together, alone)
    assert list(settled_schedules([], couplings, at)) == []
