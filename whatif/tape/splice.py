"""More tasks for a tape, each right behind another: ids, labels and all that refers to them follow.

Tasks keep the order of their ids on every lane, so new ones take ids behind those that they follow.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from replay.graph.arrays import NEVER_RELEASED_NS, NONE, Boundaries, Int32, Int64, TaskGraph, Tasks
from replay.graph.csr import EdgeList, by_destination, concatenate, topological_order
from whatif.description.labels import Labels
from whatif.tape.segments import Tape


@dataclass(frozen=True, slots=True, kw_only=True)
class Spliced:
    """A tape with more tasks that wait for nothing yet."""

    tape: Tape
    new_id: Int64
    """Per task of the tape before: its id now."""
    added: Int64
    """Per added task: its id."""


def spliced(tape: Tape, *, after: Int64, like: Int64, columns: Mapping[str, Any]) -> Spliced:
    """Put tasks in.

    Args:
        tape: as it is.
        after: per new task, the one behind which it takes its id; several behind one keep their
            order.
        like: per new task, the one whose columns, labels and segment it has.
        columns: of `Tasks`, those in which they differ.
    """
    n_before, n_added = tape.graph.n_tasks, len(after)
    both = np.concatenate([2 * np.arange(n_before, dtype=np.int64), 2 * after + 1])
    order = np.argsort(both, kind="stable")
    place = np.empty(n_before + n_added, np.int64)
    place[order] = np.arange(n_before + n_added)
    new_id, added = place[:n_before], place[n_before:]
    source = np.concatenate([np.arange(n_before, dtype=np.int64), like])[order]
    graph = _with_ids(tape.graph, _tasks(tape.graph, source, added, columns, new_id), new_id)
    labels = Labels(
        **{field.name: getattr(tape.labels, field.name)[source] for field in fields(Labels)}
    )
    moved = replace(tape, graph=graph, labels=labels, segment=tape.segment[source])
    return Spliced(tape=moved, new_id=new_id, added=added)


def _tasks(
    graph: TaskGraph, source: Int64, added: Int64, columns: Mapping[str, Any], new_id: Int64
) -> Tasks:
    nothing = np.zeros(len(added), np.int64)
    of_none: dict[str, Any] = {
        "residual_ns": nothing,
        "unexplained_ns": nothing,
        "release_ns": np.full(len(added), NEVER_RELEASED_NS),
        "geometry": np.full(len(added), NONE),
        "slice_id": np.full(len(added), NONE),
        "fixed": np.zeros(len(added), bool),
        **columns,
    }
    found: dict[str, Any] = {}
    for field in fields(Tasks):
        column = getattr(graph.tasks, field.name)[source]
        if field.name in of_none:
            column[added] = of_none[field.name]
        found[field.name] = column
    found["caller"] = _renumbered(found["caller"], new_id).astype(np.int32)
    return Tasks(**found)


def _renumbered(ids: Int32 | Int64, new_id: Int64) -> Int64:
    """Ids of tasks as they are now; -1 stays."""
    now: Int64 = np.where(ids >= 0, new_id[ids], NONE)
    return now


def _with_ids(graph: TaskGraph, tasks: Tasks, new_id: Int64) -> TaskGraph:
    n_tasks = len(tasks.kind)
    edges = by_destination(_moved_edges(graph, new_id), n_tasks)
    origin = np.full(n_tasks, NONE, np.int64)
    before = np.arange(graph.n_tasks, dtype=np.int64) if graph.origin is None else graph.origin
    origin[new_id] = before
    gradients = replace(graph.gradients, task=_renumbered(graph.gradients.task, new_id))
    return replace(
        graph,
        tasks=tasks,
        edges=edges,
        order=topological_order(edges),
        boundaries=replace(
            graph.boundaries, task=_renumbered(graph.boundaries.task, new_id).astype(np.int32)
        ),
        gradients=gradients,
        origin=origin,
    )


def _moved_edges(graph: TaskGraph, new_id: Int64) -> EdgeList:
    edges = graph.edges
    dst = np.repeat(np.arange(graph.n_tasks), np.diff(edges.start))
    return EdgeList(
        src=new_id[edges.src].astype(np.int32),
        dst=new_id[dst].astype(np.int32),
        lag_ns=edges.lag_ns,
        kind=edges.kind,
        evidence=edges.evidence,
        from_start=edges.from_start,
    )


def with_edges(graph: TaskGraph, old: EdgeList, added: list[EdgeList]) -> TaskGraph:
    """The graph with these edges and no others."""
    edges = by_destination(concatenate([old, *added]), graph.n_tasks)
    return replace(graph, edges=edges, order=topological_order(edges))


def edges_of(graph: TaskGraph) -> EdgeList:
    """All edges as a list."""
    return _moved_edges(graph, np.arange(graph.n_tasks, dtype=np.int64))


def with_ends(bounds: Boundaries, row: Int64, task: Int64) -> Boundaries:
    """Boundaries that also wait for more tasks.

    Args:
        bounds: as they are.
        row: per task, rank position x (steps + 1) + boundary.
        task: that ends it too.
    """
    before = np.repeat(np.arange(len(bounds.start) - 1), np.diff(bounds.start))
    rows = np.concatenate([before, row])
    tasks = np.concatenate([bounds.task.astype(np.int64), task])
    order = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[order], np.arange(len(bounds.start)))
    return replace(bounds, start=starts.astype(np.int64), task=tasks[order].astype(np.int32))


def boundary_rows(bounds: Boundaries, rank: Int32, step: Int32) -> Int64:
    """Rows of the boundaries that end steps: rank position x (steps + 1) + step + 1.

    Args:
        bounds: whose ranks may stand in any order: those of pipelines come stage by stage.
        rank: one of theirs, per row asked for.
        step: ordinal, from 0.
    """
    ranks = np.array(bounds.ranks, np.int64)
    order = np.argsort(ranks)
    place = np.searchsorted(ranks[order], rank)
    position = order[np.minimum(place, len(ranks) - 1)]
    rows: Int64 = position * (bounds.n_steps + 1) + step.astype(np.int64) + 1
    return rows


def ends_with(bounds: Boundaries, task: Int64) -> tuple[Int64, Int64]:
    """Boundaries that end with some of the tasks: their rows, and the positions in `task`."""
    row = np.repeat(np.arange(len(bounds.start) - 1), np.diff(bounds.start))
    order = np.argsort(task, kind="stable")
    at = np.minimum(np.searchsorted(task[order], bounds.task), max(len(task) - 1, 0))
    if not len(task):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    found = task[order][at] == bounds.task
    return row[found], order[at][found]
