"""Facts about the strict replay judged step by step and rank by rank."""

from dataclasses import replace

import numpy as np

from replay.graph.arrays import TaskGraph
from replay.results.fidelity import Baseline, baseline
from replay.results.judgement import by_rank, by_step
from tests.builders import GraphBuilder, facts_of


def _late(*late_ns: int) -> TaskGraph:
    """Steps of 1 ms on each of the ranks, whose kernel begins so much later for no reason.

    One value per (rank, step), steps first; the others of `late_ns` are ranks.
    """
    made = GraphBuilder(ranks=(0, 4))
    for place, late in enumerate(late_ns):
        rank, step = (0, 4)[place // 2], place % 2
        call = made.call(rank, "launch", 1_000, step=step)
        made.kernel(rank, "k", 999_000 - late, caller=call, residual_ns=late, step=step)
    return made.build()


def _judged(graph: TaskGraph) -> Baseline:
    return baseline(graph, facts_of(graph))


def test_each_rank_is_judged_by_its_own_device_tasks() -> None:
    graph = _late(0, 0, 10_000, 30_000)
    ranks = list(by_rank(graph, _judged(graph)))
    assert [rank.number for rank in ranks] == [0, 4]
    assert [rank.start.tasks for rank in ranks] == [2, 2]
    assert ranks[0].start.median_ns == ranks[0].start.p90_ns == 0
    assert ranks[0].strict_error_frac == 0
    assert ranks[1].start.median_ns == 25_000, "10 us late, then 40 us late"
    assert ranks[1].strict_ns < ranks[1].measured_ns == ranks[1].replayed_ns


def test_steps_add_up_to_the_run() -> None:
    graph = _late(0, 0, 10_000, 30_000)
    base = _judged(graph)
    steps = list(by_step(graph, base))
    assert [step.number for step in steps] == list(graph.steps)
    assert sum(step.measured_ns for step in steps) == int(np.ptp(base.measured.boundary_ns))
    assert sum(step.strict_ns for step in steps) == int(np.ptp(base.strict.boundary_ns))
    assert [step.start.tasks for step in steps] == [2, 2]


def test_step_that_took_no_time_has_no_error() -> None:
    graph = _late(0, 0, 0, 0)
    (first, *_) = by_step(graph, _judged(graph))
    assert replace(first, measured_ns=0).strict_error_frac is None
