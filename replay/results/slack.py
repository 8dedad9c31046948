"""How much later each task could run without a boundary moving."""

from dataclasses import dataclass

import numpy as np

from replay.engine.schedule import Schedule
from replay.graph.arrays import Int64, TaskGraph
from replay.results.metrics import step_times
from replay.results.walks import UNBOUNDED, slack_pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
    """Per task, ns; UNBOUNDED where no boundary waits for it.

    A task that starts (and so ends) later by its slack leaves the boundaries where they are, one
    nanosecond more moves one. 0 on the critical path.
    """

    run_ns: Int64
    """Until the last boundary moves."""
    step_ns: Int64
    """Until any boundary moves, that of the task's own step among them."""


def slack(graph: TaskGraph, schedule: Schedule) -> Slack:
    """Slack of all tasks on the calibrated schedule of this graph."""
    boundary_ns = step_times(graph, schedule).boundary_ns
    return Slack(
        run_ns=_until(graph, schedule, boundary_ns, last_only=True),
        step_ns=_until(graph, schedule, boundary_ns, last_only=False),
    )


def _until(graph: TaskGraph, schedule: Schedule, boundary_ns: Int64, *, last_only: bool) -> Int64:
    bounds, edges = graph.boundaries, graph.edges
    number = np.repeat(np.arange(len(bounds.start) - 1), np.diff(bounds.start))
    number %= bounds.n_steps + 1
    counts = number == bounds.n_steps if last_only else number > 0
    task = bounds.task[counts]
    slack_ns = np.full(graph.n_tasks, UNBOUNDED, np.int64)
    np.minimum.at(slack_ns, task, boundary_ns[number[counts]] - schedule.end_ns[task])
    slack_pass(
        graph.order,
        edges.start,
        edges.src,
        edges.lag_ns,
        edges.from_start,
        schedule.start_ns,
        schedule.end_ns,
        graph.tasks.residual_ns,
        slack_ns,
    )
    return slack_ns
