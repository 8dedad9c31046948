"""Graph and schedule of the unchanged run as columns for the store."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ingest.store import RESULTS_FILE, Store
from replay.engine.run import replay
from replay.engine.schedule import Schedule
from replay.graph.arrays import NONE, Int32, Int64, TaskGraph
from replay.graph.build import build
from replay.results import walks
from replay.results.critical_path import CriticalPath, critical_path, cut_at_steps, modules
from replay.results.idle import device_idle, stream_idle
from replay.results.metrics import step_times
from replay.results.slack import slack

Columns = Mapping[str, Any]
"""Columns of one table by name: numpy arrays, masked where a value is NULL."""
_REPLAY = Path(__file__).parents[1]
BASELINE = 0
"""`scenario_id` of the run as it was recorded."""


def results_version() -> str:
    """Of all code that results come from: whoever changes a rule need not think of stores.

    It takes some milliseconds, and is only asked for where a query names a table of the replay.
    """
    digest = hashlib.blake2b(digest_size=12)
    for folder in ("graph", "engine", "results"):
        for path in sorted((_REPLAY / folder).rglob("*")):
            if path.suffix in {".py", ".sql"}:
                digest.update(f"\n{path.relative_to(_REPLAY)}\n".encode() + path.read_bytes())
    digest.update(RESULTS_FILE.read_bytes())
    return digest.hexdigest()


def fill_results(store: Store, graph: TaskGraph | None = None) -> None:
    """Put what the replay of the whole run says into the store.

    Args:
        store: of the run.
        graph: of the whole run, unchanged; None builds it.

    Raises:
        TraceError: there is nothing to replay.
    """
    graph = build(store).graph if graph is None else graph
    members = store.arrays(
        "SELECT kernel_id, MIN(coll_id) AS coll_id FROM store.collective_rank"
        " GROUP BY kernel_id ORDER BY kernel_id"
    )
    coll_of_slice = (members["kernel_id"].astype(np.int64), members["coll_id"].astype(np.int64))
    store.add_results(result_tables(graph, replay(graph), coll_of_slice), results_version())


def result_tables(
    graph: TaskGraph, schedule: Schedule, coll_of_slice: tuple[Int64, Int64]
) -> dict[str, Columns]:
    """All tables of `sql/070_results.sql`.

    Args:
        graph: of the unchanged run.
        schedule: its calibrated replay.
        coll_of_slice: slices of the members of collectives, ascending, and their operations.
    """
    path = critical_path(graph, schedule)
    return {
        "lane": _lanes(graph),
        "task_group": _groups(graph),
        "task": _tasks(graph, coll_of_slice),
        "edge": _edges(graph, schedule),
        "replay_slice": _replayed(graph, schedule, path),
        "critical_path": _path(graph, schedule, path),
        "idle": _idle(graph, schedule),
    }


def _lanes(graph: TaskGraph) -> Columns:
    lanes = graph.lanes
    return {
        "lane_id": np.arange(len(lanes)),
        "kind": np.array([int(lane.kind) for lane in lanes], np.int64),
        "rank": np.array([lane.rank for lane in lanes], np.int64),
        "device": _id(np.array([lane.device for lane in lanes], np.int64)),
        "stream": _id(np.array([lane.stream for lane in lanes], np.int64)),
        "role": np.array([lane.role for lane in lanes], object),
    }


def _groups(graph: TaskGraph) -> Columns:
    return {
        "group_id": np.arange(len(graph.groups)),
        "name": np.array([group.name for group in graph.groups], object),
        "size": np.array([group.size for group in graph.groups], np.int64),
    }


def _tasks(graph: TaskGraph, coll_of_slice: tuple[Int64, Int64]) -> Columns:
    tasks, collectives = graph.tasks, graph.collectives
    member = tasks.collective >= 0
    kind, group = (np.full(graph.n_tasks, NONE, np.int64) for _ in range(2))
    kind[member] = collectives.kind[tasks.collective[member]]
    group[member] = collectives.group[tasks.collective[member]]
    return {
        "task_id": np.arange(graph.n_tasks),
        "kind": tasks.kind,
        "rank": _id(tasks.rank),
        "lane_id": _id(tasks.lane),
        "step": _step(graph, tasks.step),
        "name_id": _id(tasks.name),
        "op_name_id": _id(tasks.op),
        "module_name_id": _id(modules(graph)),
        "phase": tasks.phase,
        "class": tasks.kernel_class,
        "ts": tasks.ts_ns,
        "dur": tasks.dur_ns,
        "residual_ns": tasks.residual_ns,
        "slice_id": _id(tasks.slice_id),
        "collective_kind": _id(kind),
        "group_id": _id(group),
        "coll_id": _id(_operations(graph, coll_of_slice)),
    }


def _operations(graph: TaskGraph, coll_of_slice: tuple[Int64, Int64]) -> Int64:
    """Operation of each task of a collective, -1 for others: members know it by their slice."""
    slices, operation = coll_of_slice
    collective = graph.tasks.collective
    result = np.full(graph.n_tasks, NONE, np.int64)
    member = np.flatnonzero((collective >= 0) & (graph.tasks.slice_id >= 0))
    if not len(member) or not len(slices):
        return result
    place = np.searchsorted(slices, graph.tasks.slice_id[member])
    of_collective = np.full(len(graph.collectives.kind), NONE, np.int64)
    of_collective[collective[member]] = operation[place]
    held = collective >= 0
    result[held] = of_collective[collective[held]]
    return result


def _edges(graph: TaskGraph, schedule: Schedule) -> Columns:
    edges = graph.edges
    binding = np.zeros(len(edges.src), bool)
    binding[schedule.blocked_by[schedule.blocked_by >= 0]] = True
    return {
        "src_id": edges.src,
        "dst_id": np.repeat(np.arange(graph.n_tasks), np.diff(edges.start)),
        "kind": edges.kind,
        "lag_ns": edges.lag_ns,
        "from_start": edges.from_start,
        "evidence": edges.evidence,
        "binding": binding,
    }


def _replayed(graph: TaskGraph, schedule: Schedule, path: CriticalPath) -> Columns:
    left = slack(graph, schedule)
    critical = np.zeros(graph.n_tasks, bool)
    critical[path.task] = True
    return {
        "scenario_id": np.full(graph.n_tasks, BASELINE),
        "task_id": np.arange(graph.n_tasks),
        "ts": schedule.start_ns,
        "dur": schedule.end_ns - schedule.start_ns,
        "slack": np.ma.masked_equal(left.run_ns, walks.UNBOUNDED),
        "step_slack": np.ma.masked_equal(left.step_ns, walks.UNBOUNDED),
        "critical": critical,
    }


def _path(graph: TaskGraph, schedule: Schedule, path: CriticalPath) -> Columns:
    pieces = cut_at_steps(path, step_times(graph, schedule).boundary_ns)
    bound = pieces.edge >= 0
    edge = pieces.edge[bound]
    source, kind = (np.full(len(bound), NONE, np.int64) for _ in range(2))
    source[bound], kind[bound] = graph.edges.src[edge], graph.edges.kind[edge]
    return {
        "scenario_id": np.full(len(bound), BASELINE),
        "position": np.arange(len(bound)),
        "step": _step(graph, pieces.step),
        "task_id": pieces.task,
        "from_task_id": _id(source),
        "edge_kind": _id(kind),
        "ts": pieces.ts_ns,
        "dur": pieces.span_ns,
        "lag_dur": pieces.lag_ns,
        "residual_dur": pieces.residual_ns,
    }


def _idle(graph: TaskGraph, schedule: Schedule) -> Columns:
    streams, devices = stream_idle(graph, schedule), device_idle(graph, schedule)

    def both(name: str) -> Int64:
        return np.concatenate([getattr(idle, name) for idle in (streams, devices)])

    shares_ns = both("shares_ns")
    return {
        "rank": both("rank"),
        "device": both("device"),
        "stream": _id(both("stream")),
        "whole_device": np.repeat([False, True], [len(streams), len(devices)]),
        "step": _step(graph, both("step")),
        "ts": both("ts_ns"),
        "dur": both("dur_ns"),
        "gaps": both("gaps"),
        "cause": both("cause"),
        **{name: shares_ns[:, code] for name, code in _SHARES.items()},
        "next_task_id": _id(both("next_task")),
        "culprit_task_id": _id(both("culprit")),
    }


_SHARES = {
    "host_dur": walks.HOST_LATE,
    "sync_dur": walks.SYNC_DRAIN,
    "event_dur": walks.EVENT_WAIT,
    "comm_dur": walks.COMM_WAIT,
    "launch_dur": walks.LAUNCHING,
    "unknown_dur": walks.NO_CAUSE,
}


def _step(graph: TaskGraph, ordinal: Int64 | Int32) -> Any:  # noqa: ANN401  (masked array)
    """The number that was recorded for each ordinal; NULL for -1."""
    numbers = np.array([*graph.steps, 0], np.int64)
    return np.ma.masked_array(numbers[ordinal], ordinal < 0)


def _id(values: Any) -> Any:  # noqa: ANN401  (integers of any width)
    """NULL where there is none."""
    return np.ma.masked_equal(values, NONE)
