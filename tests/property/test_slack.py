"""Slack means what it says: so much later changes nothing, one nanosecond more moves a boundary."""

from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from replay.engine.run import replay
from replay.engine.schedule import Schedule
from replay.graph.arrays import NEVER_RELEASED_NS, Boundaries, TaskGraph
from replay.results.critical_path import critical_path
from replay.results.metrics import step_times
from replay.results.slack import slack
from replay.results.walks import UNBOUNDED
from tests.builders import data_parallel
from tests.property.test_engine import graphs, with_times

FAR_NS = 10_000


@st.composite
def stepped(draw: st.DrawFn) -> TaskGraph:
    """A random graph of two steps; each ends with some of its tasks, the second with the last."""
    graph = draw(graphs())
    ids = st.lists(st.integers(0, graph.n_tasks - 1), min_size=1, max_size=3, unique=True)
    ends = replay(graph).end_ns
    chosen = [np.array(draw(ids), np.int32) for _ in range(2)]
    first, second = sorted(chosen, key=lambda tasks: int(ends[tasks].max()))
    bounds = Boundaries(
        n_steps=2,
        ranks=(0,),
        start=np.array([0, 0, len(first), len(first) + len(second)]),
        task=np.concatenate([first, second]),
        floor_ns=np.array([int(ends.min()) - FAR_NS, NEVER_RELEASED_NS, NEVER_RELEASED_NS]),
    )
    return replace(graph, boundaries=bounds, steps=(0, 1), steps_recorded=True)


def _later(graph: TaskGraph, task: int, by_ns: int) -> Schedule:
    residual_ns = graph.tasks.residual_ns.copy()
    residual_ns[task] += by_ns
    return replay(with_times(graph, residual_ns=residual_ns))


def _ends(graph: TaskGraph, schedule: Schedule) -> list[int]:
    """Ends of the steps."""
    boundary_ns: list[int] = step_times(graph, schedule).boundary_ns[1:].tolist()
    return boundary_ns


@given(stepped(), st.data())
@settings(max_examples=300, deadline=None)
def test_a_task_may_be_late_by_its_slack_and_no_more(graph: TaskGraph, data: st.DataObject) -> None:
    schedule = replay(graph)
    ends = _ends(graph, schedule)
    left = slack(graph, schedule)
    task = data.draw(st.integers(0, graph.n_tasks - 1))
    run_ns, step_ns = int(left.run_ns[task]), int(left.step_ns[task])
    assert 0 <= step_ns <= run_ns
    if run_ns == UNBOUNDED:
        assert _ends(graph, _later(graph, task, FAR_NS))[-1] == ends[-1]
    else:
        assert _ends(graph, _later(graph, task, run_ns))[-1] == ends[-1]
        assert _ends(graph, _later(graph, task, run_ns + 1))[-1] == ends[-1] + 1
    if step_ns != UNBOUNDED:
        assert _ends(graph, _later(graph, task, step_ns)) == ends
        assert _ends(graph, _later(graph, task, step_ns + 1)) != ends


@given(stepped())
@settings(max_examples=200, deadline=None)
def test_the_critical_path_has_no_slack(graph: TaskGraph) -> None:
    schedule = replay(graph)
    path = critical_path(graph, schedule)
    assert (slack(graph, schedule).run_ns[path.task] == 0).all()
    total_ns = path.span_ns.sum() + path.lag_ns.sum() + path.residual_ns.sum()
    assume(len(path.task))
    assert total_ns == path.length_ns


def test_the_faster_rank_of_a_collective_has_the_slack() -> None:
    """Rank 1 computes longer; rank 0 can be late by the difference, up to their meeting."""
    graph = data_parallel(slow_rank=1)
    schedule = replay(graph)
    left = slack(graph, schedule)
    is_gemm = np.array(graph.names, object)[graph.tasks.name] == "gemm_a"
    of_rank = [np.flatnonzero(is_gemm & (graph.tasks.rank == rank)) for rank in (0, 1)]
    difference_ns = schedule.end_ns[of_rank[1]].max() - schedule.end_ns[of_rank[0]].max()
    assert difference_ns > 0
    assert left.run_ns[of_rank[0]].tolist() == [difference_ns] * len(of_rank[0])
    assert left.run_ns[of_rank[1]].tolist() == [0] * len(of_rank[1])
