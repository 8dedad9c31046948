"""The compiled replay against its oracle, and laws that any replay obeys."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.vocab import EdgeKind, TaskKind
from replay.engine.batch import replay_batch
from replay.engine.run import replay
from replay.graph.arrays import NEVER_RELEASED_NS, TaskGraph
from replay.graph.csr import task_label, topological_order
from replay.results.metrics import step_times
from tests.builders import GraphBuilder, Row, data_parallel, edge_columns
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


def changed_releases(graph: TaskGraph, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    release_ns = graph.tasks.release_ns
    return np.where(release_ns != NEVER_RELEASED_NS, change(release_ns), NEVER_RELEASED_NS)


@given(graphs(), st.integers(1, 9))
@settings(deadline=None)
def test_all_times_multiplied_multiply_the_schedule(graph: TaskGraph, factor: int) -> None:
    longer = with_times(
        graph,
        dur_ns=graph.tasks.dur_ns * factor,
        residual_ns=graph.tasks.residual_ns * factor,
        release_ns=changed_releases(graph, lambda release_ns: release_ns * factor),
    )
    longer = replace(longer, edges=replace(graph.edges, lag_ns=graph.edges.lag_ns * factor))
    assert (replay(longer).start_ns == replay(graph).start_ns * factor).all()


@given(graphs(), st.integers(-1_000_000, 1_000_000))
@settings(deadline=None)
def test_a_later_origin_moves_every_start_by_as_much(graph: TaskGraph, shift_ns: int) -> None:
    later = with_times(
        graph,
        ts_ns=graph.tasks.ts_ns + shift_ns,
        release_ns=changed_releases(graph, lambda release_ns: release_ns + shift_ns),
    )
    assert (replay(later).start_ns == replay(graph).start_ns + shift_ns).all()
    assert (replay(later).blocked_by == replay(graph).blocked_by).all()


def edge_tuples(graph: TaskGraph) -> list[tuple[int, int, int, EdgeKind, bool]]:
    edges = graph.edges
    dst = np.repeat(np.arange(graph.n_tasks), np.diff(edges.start))
    columns = (edges.src, dst, edges.lag_ns, edges.kind, edges.from_start)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def with_edges(
    graph: TaskGraph, edges: Iterable[tuple[int, int, int, EdgeKind, bool]], n_tasks: int
) -> TaskGraph:
    columns = edge_columns(edges, n_tasks)
    return replace(graph, edges=columns, order=topological_order(columns))


@given(graphs(), st.data())
@settings(deadline=None)
def test_other_numbers_of_tasks_and_another_order_of_edges_change_nothing(
    graph: TaskGraph, data: st.DataObject
) -> None:
    new_id = np.array(data.draw(st.permutations(range(graph.n_tasks))))
    moved = [(int(new_id[src]), int(new_id[dst]), *more) for src, dst, *more in edge_tuples(graph)]
    old_id = np.argsort(new_id)
    columns = ("dur_ns", "release_ns", "residual_ns")
    other = with_times(graph, **{name: getattr(graph.tasks, name)[old_id] for name in columns})
    other = with_edges(other, data.draw(st.permutations(moved)), graph.n_tasks)
    assert (replay(other).start_ns[new_id] == replay(graph).start_ns).all()


@given(st.permutations(range(4)), st.integers(0, 3))
@settings(deadline=None)
def test_ranks_by_other_numbers_have_the_same_steps(numbers: list[int], slow: int) -> None:
    graph = data_parallel(ranks=range(4), slow_rank=slow)
    other = data_parallel(ranks=numbers, slow_rank=numbers[slow])
    before, after = (step_times(run, replay(run)) for run in (graph, other))
    assert (after.boundary_ns == before.boundary_ns).all()
    assert (after.rank_boundary_ns == before.rank_boundary_ns).all()


@given(graphs(), st.data())
@settings(deadline=None)
def test_a_task_cut_in_two_ends_when_it_did(graph: TaskGraph, data: st.DataObject) -> None:
    n_tasks = graph.n_tasks
    task = data.draw(st.integers(0, n_tasks - 1))
    first_ns = data.draw(st.integers(0, int(graph.tasks.dur_ns[task])))
    edges = [
        (n_tasks if src == task and not from_start else src, dst, lag_ns, kind, from_start)
        for src, dst, lag_ns, kind, from_start in edge_tuples(graph)
    ]
    edges.append((task, n_tasks, 0, EdgeKind.PROGRAM_ORDER, False))
    rest_ns = int(graph.tasks.dur_ns[task]) - first_ns
    dur_ns = np.append(graph.tasks.dur_ns, rest_ns)
    dur_ns[task] = first_ns
    cut = with_times(
        graph,
        kind=np.append(graph.tasks.kind, graph.tasks.kind[task]),
        dur_ns=dur_ns,
        release_ns=np.append(graph.tasks.release_ns, NEVER_RELEASED_NS),
        residual_ns=np.append(graph.tasks.residual_ns, 0),
    )
    whole, parts = replay(graph), replay(with_edges(cut, edges, n_tasks + 1))
    assert (parts.start_ns[:n_tasks] == whole.start_ns).all()
    assert parts.end_ns[n_tasks] == whole.end_ns[task]


@given(graphs(), st.data(), st.integers(-50, 50), st.booleans())
@settings(deadline=None)
def test_one_more_edge_makes_nothing_earlier(
    graph: TaskGraph,
    data: st.DataObject,
    lag_ns: int,
    from_start: bool,  # noqa: FBT001  (drawn)
) -> None:
    late = data.draw(st.integers(0, graph.n_tasks - 1))
    early = data.draw(st.integers(0, late))
    if early == late:
        return
    more = (int(graph.order[early]), int(graph.order[late]), lag_ns, EdgeKind.LAUNCH, from_start)
    held = with_edges(graph, [*edge_tuples(graph), more], graph.n_tasks)
    assert (replay(held).start_ns >= replay(graph).start_ns).all()


@st.composite
def variants(draw: st.DrawFn) -> list[TaskGraph]:
    """More graphs than are visited together; most differ in durations alone."""
    graph = draw(graphs())
    n_tasks = graph.n_tasks
    column = st.lists(TIMES, min_size=n_tasks, max_size=n_tasks).map(np.array)
    found = [graph]
    for _ in range(draw(st.integers(0, 20))):
        base = draw(st.sampled_from(found))
        what = draw(st.sampled_from(["dur_ns"] * 6 + ["release_ns", "residual_ns", "lag_ns"]))
        if what == "lag_ns":
            lag_ns = base.edges.lag_ns + draw(TIMES)
            found.append(replace(base, edges=replace(base.edges, lag_ns=lag_ns)))
        else:
            found.append(with_times(base, **{what: draw(column)}))
    return draw(st.permutations(found))


@given(variants(), st.data())
@settings(deadline=None)
def test_a_batch_gives_what_each_replay_gives(
    graphs_: list[TaskGraph], data: st.DataObject
) -> None:
    ends_ns = replay_batch(graphs_)
    assert ends_ns.tolist() == [replay(graph).end_ns.tolist() for graph in graphs_]
    chosen = np.array(data.draw(st.lists(st.integers(0, graphs_[0].n_tasks - 1))), np.int64)
    assert (replay_batch(graphs_, chosen) == ends_ns[:, chosen]).all()


def test_no_graphs_have_no_ends() -> None:
    assert replay_batch([]).shape == (0, 0)


def test_a_deadlock_names_its_tasks_and_what_they_wait_for() -> None:
    builder = GraphBuilder(ranks=(0, 1))
    builder.host(0, "before", 5)
    first = builder.kernel(0, "ncclAllReduce", 10)
    second = builder.kernel(1, "ncclAllGather", 10)
    builder.host(1, "after", 5)
    graph = builder.build()
    edges = [
        (0, first, 0, EdgeKind.LAUNCH, False),
        (first, second, 0, EdgeKind.COLLECTIVE, False),
        (second, first, 0, EdgeKind.EVENT_WAIT, False),
        (second, 3, 0, EdgeKind.HOST_SYNC, False),
    ]
    with pytest.raises(AssertionError) as failure:
        topological_order(edge_columns(edges, 4), task_label(graph.tasks, graph.names))
    assert str(failure.value) == (
        "these tasks wait for each other: ncclAllReduce (kernel of rank 0, task 1) -collective-> "
        "ncclAllGather (kernel of rank 1, task 2) -event_wait-> "
        "ncclAllReduce (kernel of rank 0, task 1)"
    )


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
