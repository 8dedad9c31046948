"""The compiled replay against its oracle, and laws that any replay obeys."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.vocab import EdgeKind, TaskKind
from replay.engine.run import replay
from replay.graph.arrays import NEVER_RELEASED_NS, TaskGraph
from replay.graph.csr import topological_order
from tests.builders import GraphBuilder, Row, edge_columns
from tests.oracles.replay import starts

TASKS = st.integers(1, 12)
TIMES = st.integers(0, 1_000)


@st.composite
def graphs(draw: st.DrawFn, *, signed: bool = True) -> TaskGraph:
    """Any acyclic graph; ids are shuffled, so that they are no topological order."""
    n_tasks = draw(TASKS)
    place = draw(st.permutations(range(n_tasks)))
    lags = st.integers(-50, 50) if signed else TIMES
    residuals = st.integers(-50, 50) if signed else st.just(0)
    pairs = [(early, late) for late in range(n_tasks) for early in range(late)]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=24)) if pairs else []
    edges = [
        (place[early], place[late], draw(lags), EdgeKind.EVENT_WAIT, draw(st.booleans()))
        for early, late in chosen
    ]
    has_edge = {late for _, late, *_ in edges}
    rows = []
    for task in range(n_tasks):
        held = draw(st.booleans()) or task not in has_edge
        release_ns = draw(TIMES) if held else NEVER_RELEASED_NS
        rows.append(
            Row(
                kind=TaskKind.KERNEL,
                rank=0,
                dur_ns=draw(TIMES),
                release_ns=release_ns,
                residual_ns=draw(residuals),
            )
        )
    columns = edge_columns(edges, n_tasks)
    graph = GraphBuilder(rows=rows).build()
    return replace(graph, edges=columns, order=topological_order(columns))


def with_times(graph: TaskGraph, **columns: np.ndarray) -> TaskGraph:
    return replace(graph, tasks=replace(graph.tasks, **columns))


@given(graphs(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_compiled_replay_equals_the_recursive_oracle(graph: TaskGraph, residuals: bool) -> None:  # noqa: FBT001
    schedule = replay(graph, residuals=residuals)
    assert schedule.start_ns.tolist() == starts(graph, residuals=residuals)
    assert (schedule.end_ns - schedule.start_ns == graph.tasks.dur_ns).all()


@given(graphs())
@settings(deadline=None)
def test_no_task_starts_before_its_sources_allow(graph: TaskGraph) -> None:
    schedule, edges = replay(graph), graph.edges
    dst = np.repeat(np.arange(graph.n_tasks), np.diff(edges.start))
    source_ns = np.where(edges.from_start, schedule.start_ns[edges.src], schedule.end_ns[edges.src])
    assert (schedule.start_ns[dst] - graph.tasks.residual_ns[dst] >= source_ns + edges.lag_ns).all()


@given(graphs())
@settings(deadline=None)
def test_the_binding_edge_explains_the_start_exactly(graph: TaskGraph) -> None:
    schedule, edges, tasks = replay(graph), graph.edges, graph.tasks
    for task, edge in enumerate(schedule.blocked_by.tolist()):
        ready_ns = tasks.release_ns[task]
        if edge >= 0:
            assert edges.start[task] <= edge < edges.start[task + 1]
            source = edges.src[edge]
            column = schedule.start_ns if edges.from_start[edge] else schedule.end_ns
            ready_ns = column[source] + edges.lag_ns[edge]
        assert schedule.start_ns[task] == ready_ns + tasks.residual_ns[task]


@given(graphs(), st.data(), TIMES)
@settings(deadline=None)
def test_slower_task_never_speeds_the_run(
    graph: TaskGraph, data: st.DataObject, extra_ns: int
) -> None:
    task = data.draw(st.integers(0, graph.n_tasks - 1))
    dur_ns = graph.tasks.dur_ns.copy()
    dur_ns[task] += extra_ns
    slower = replay(with_times(graph, dur_ns=dur_ns))
    assert (slower.end_ns >= replay(graph).end_ns).all()


@given(graphs(signed=False), st.integers(1, 9))
@settings(deadline=None)
def test_all_times_multiplied_multiply_the_schedule(graph: TaskGraph, factor: int) -> None:
    tasks = graph.tasks
    held = tasks.release_ns != NEVER_RELEASED_NS
    longer = with_times(
        graph,
        dur_ns=tasks.dur_ns * factor,
        release_ns=np.where(held, tasks.release_ns * factor, NEVER_RELEASED_NS),
    )
    longer = replace(longer, edges=replace(graph.edges, lag_ns=graph.edges.lag_ns * factor))
    assert (replay(longer).start_ns == replay(graph).start_ns * factor).all()


@given(graphs())
@settings(deadline=None)
def test_the_order_of_visits_does_not_matter(graph: TaskGraph) -> None:
    depth = np.zeros(graph.n_tasks, np.int64)
    for task in graph.order.tolist():
        sources = graph.edges.src[graph.edges.start[task] : graph.edges.start[task + 1]]
        depth[task] = 1 + depth[sources].max(initial=0)
    other_order = np.lexsort((-np.arange(graph.n_tasks), depth)).astype(np.int32)
    other = replay(replace(graph, order=other_order))
    same = replay(graph)
    assert (other.start_ns == same.start_ns).all()
    assert (other.blocked_by == same.blocked_by).all()
