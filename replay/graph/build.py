"""Store -> task graph: read the columns, find waits, number the tasks, run the rules, freeze."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ingest.errors import TraceError
from ingest.store import Store
from ingest.vocab import EdgeKind, Evidence, RuntimeKind, Severity
from replay.graph.arrays import Edges, Int64, TaskGraph, Tasks
from replay.graph.blocking import find_blocking_calls
from replay.graph.columns import launched_frac, start_and_duration, task_columns
from replay.graph.csr import EdgeList, by_destination, concatenate, task_label, topological_order
from replay.graph.events import find_event_pairs
from replay.graph.facts import FileFacts, GraphFacts
from replay.graph.files import chosen_files, rank_infos, world_size
from replay.graph.gradients import find_gradients
from replay.graph.graph_gaps import graph_gaps
from replay.graph.host_overlap import host_slowdowns
from replay.graph.host_tasks import Waits, anchor_rows, build_host_tasks
from replay.graph.known import Known, collective_columns, find_groups, known_collectives
from replay.graph.layout import Parts, find_meetings, number_tasks
from replay.graph.lessons import Lessons, whole_recording
from replay.graph.nesting import segments
from replay.graph.queues import find_full_queues
from replay.graph.recorded import SQL, Recorded, load
from replay.graph.residuals import residuals
from replay.graph.rules.base import Found
from replay.graph.rules.collective import collective
from replay.graph.rules.event_wait import event_wait
from replay.graph.rules.from_time import from_time
from replay.graph.rules.hand_over import hand_over
from replay.graph.rules.host_sync import host_sync
from replay.graph.rules.launch import launch
from replay.graph.rules.program_order import program_order
from replay.graph.rules.queue_full import queue_full
from replay.graph.rules.sm_full import sm_full
from replay.graph.rules.stream_order import link_order, stream_order
from replay.graph.scans import outermost
from replay.graph.silence import find_stretches
from replay.graph.steps import Windows, choose_windows, find_boundaries
from replay.graph.streams import index_streams
from replay.graph.unseen import held_by_unseen_work

RULES: tuple[tuple[str, Callable[[Parts], Found]], ...] = (
    ("program_order", program_order),
    ("hand_over", hand_over),
    ("launch", launch),
    ("stream_order", stream_order),
    ("link_order", link_order),
    ("event_wait", event_wait),
    ("host_sync", host_sync),
    ("queue_full", queue_full),
    ("collective", collective),
)
LAST_RESORTS: tuple[tuple[str, Callable[[Parts, Int64], Found]], ...] = (
    ("from_time", from_time),
    ("sm_full", sm_full),
)
"""Rules that look at what those above, and those before them, leave unexplained."""
GRAPH_GAPS, UNSEEN_WORK = "graph_gaps", "unseen_work"
"""What is seen of work without rows: inside CUDA graphs, and from before the recording."""
SEPARABLE = frozenset({name for name, _ in (*RULES, *LAST_RESORTS)} | {GRAPH_GAPS, UNSEEN_WORK})
"""What an experiment can leave out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What an experiment takes away from the graph, to show what it is worth."""

    without: frozenset[str] = frozenset()
    """Names of `SEPARABLE`."""
    taught_steps: int | None = None
    """Typical lags are learned on so many first steps; None: on the whole recording."""

    def __post_init__(self) -> None:
        unknown = self.without - SEPARABLE
        assert not unknown, f"no such rules: {unknown}"


NO_TRIAL = Trial()


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A task graph and what is known beside it."""

    graph: TaskGraph
    facts: GraphFacts


def build(
    store: Store,
    *,
    ranks: tuple[int, ...] | None = None,
    steps: range | None = None,
    trial: Trial = NO_TRIAL,
) -> Built:
    """Build the graph of the chosen ranks and steps (all by default).

    Raises:
        UsageError: a chosen rank has no file, or no chosen step is complete on all ranks.
        TraceError: there is no row with a time.
    """
    files = chosen_files(store, ranks)
    recorded = load(
        store, tuple(file.trace_id for file in files), tuple(file.rank for file in files)
    )
    if not len(recorded.host) and not len(recorded.device):
        raise TraceError(
            "nothing to replay: no operator, call, annotation or kernel with a time",
            hint='replay sql TRACE "FROM import_stat" says what the files hold instead',
        )
    windows = choose_windows(recorded, steps)
    known = known_collectives(store, recorded)
    parts = _parts(recorded, known, _lessons(windows, trial))
    if GRAPH_GAPS in trial.without:
        parts = replace(parts, graph_gaps_ns=np.zeros_like(parts.graph_gaps_ns))
    found = {name: rule(parts) for name, rule in RULES if name not in trial.without}
    edge_list = concatenate([rule.edges for rule in found.values()])
    tasks, lanes = task_columns(parts, windows)
    for name, last_resort in LAST_RESORTS:
        if name not in trial.without:
            residual_ns = _released(parts, tasks, edge_list)[2]
            found[name] = last_resort(parts, residual_ns)
            edge_list = concatenate([edge_list, found[name].edges])
    edges, release_ns, residual_ns = _released(parts, tasks, edge_list)
    held = held_by_unseen_work(parts, residual_ns)
    held = held if UNSEEN_WORK not in trial.without else held[:0]
    release_ns[held], residual_ns[held] = parts.ts_ns[held], 0
    groups, group_of = find_groups(store, known)
    graph = TaskGraph(
        tasks=replace(tasks, release_ns=release_ns, residual_ns=residual_ns),
        edges=edges,
        order=topological_order(edges, task_label(tasks, recorded.names)),
        collectives=collective_columns(recorded, known, group_of, parts),
        boundaries=find_boundaries(parts, windows),
        steps=windows.steps,
        steps_recorded=windows.recorded,
        lanes=lanes,
        groups=groups,
        ranks=rank_infos(files, host_slowdowns(store, parts)),
        world_size=world_size(files),
        names=recorded.names,
        gradients=find_gradients(store, recorded, parts.host_tasks),
    )
    facts = _facts(store, files, parts, found, edge_list, known)
    return Built(
        graph=graph, facts=replace(facts, streams_held=len(held), steps_left_out=windows.left_out)
    )


def _released(parts: Parts, tasks: Tasks, edge_list: EdgeList) -> tuple[Edges, Int64, Int64]:
    """CSR of the edges; a task without any is released at its recorded start; the residuals."""
    edges = by_destination(edge_list, parts.layout.n_tasks)
    orphan = np.diff(edges.start) == 0
    release_ns = np.where(orphan, parts.ts_ns, tasks.release_ns)
    return edges, release_ns, residuals(edges, parts.ts_ns, parts.dur_ns, release_ns)


def _lessons(windows: Windows, trial: Trial) -> Lessons:
    if trial.taught_steps is None:
        return whole_recording(len(windows.end_ns))
    return Lessons(end_ns=windows.end_ns[:, trial.taught_steps - 1])


def _parts(recorded: Recorded, known: Known, lessons: Lessons) -> Parts:
    host = recorded.host
    streams = index_streams(recorded.device, host)
    pieces = segments(host)
    holder = outermost(host.thread, host.ts_ns, host.end_ns, anchor_rows(recorded))
    blocking = find_blocking_calls(recorded, streams, _own_copies(recorded), lessons)
    stretches = find_stretches(recorded, pieces, streams)
    queues = find_full_queues(recorded, blocking.call)
    waits = Waits(blocking=blocking, stretches=stretches, queues=queues)
    host_tasks = build_host_tasks(recorded, pieces, holder, waits)
    layout = number_tasks(recorded, len(host_tasks))
    meetings = find_meetings(recorded, known.expected, known.kind)
    ts_ns, dur_ns = start_and_duration(recorded, host_tasks, layout, meetings)
    return Parts(
        recorded=recorded,
        lessons=lessons,
        streams=streams,
        host_tasks=host_tasks,
        blocking=blocking,
        stretches=stretches,
        queues=queues,
        events=find_event_pairs(recorded, streams),
        graph_gaps_ns=graph_gaps(recorded, lessons),
        layout=layout,
        meetings=meetings,
        ts_ns=ts_ns,
        dur_ns=dur_ns,
    )


def _own_copies(recorded: Recorded) -> Int64:
    """Per host row, the copy that the call itself waits for; -1 for none.

    Plain copies, and copies from the device to pageable host memory.
    """
    host, device, names = recorded.host, recorded.device, recorded.names
    copies = np.full(len(host), -1, np.int64)
    linked = np.flatnonzero(device.call >= 0)
    linked = linked[host.kind[device.call[linked]] == RuntimeKind.MEMCPY]
    plain = np.array([_is_plain_copy(name) for name in names], bool)
    pageable = np.array(["DtoH" in name and "Pageable" in name for name in names], bool)
    if len(linked):
        own = plain[host.name[device.call[linked]]] | pageable[device.name[linked]]
        copies[device.call[linked[own]]] = linked[own]
    return copies


def _is_plain_copy(name: str) -> bool:
    return name.startswith(("cudaMemcpy", "hipMemcpy")) and "Async" not in name


def _facts(
    store: Store,
    files: tuple[FileFacts, ...],
    parts: Parts,
    found: dict[str, Found],
    edges: EdgeList,
    known: Known,
) -> GraphFacts:
    evidences = max(Evidence) + 1
    counts = np.bincount(edges.kind.astype(np.int64) * evidences + edges.evidence)
    issues = store.arrays_from_file(SQL / "issue.sql", {})
    return GraphFacts(
        files=files,
        edges={
            (EdgeKind(both // evidences), Evidence(both % evidences)): int(counts[both])
            for both in np.flatnonzero(counts).tolist()
        },
        contradicted={name: rule.contradicted for name, rule in found.items() if rule.contradicted},
        lags={name: lag for rule in found.values() for name, lag in rule.lags.items()},
        unlinked_frac=1.0 - launched_frac(parts),
        members=int(known.seen.sum()),
        members_matched=int(known.seen[known.seen > 1].sum()),
        members_complete=int(known.seen[known.seen >= known.expected].sum()),
        issues={
            str(name): int(value)
            for name, severity, value in zip(
                issues["name"], issues["severity"], issues["value"], strict=True
            )
            if value and severity != Severity.INFO
        },
        has_device=len(parts.recorded.device) > 0,
        moved_ns=_moved_ns(store, files),
        out_of_step=tuple(store.arrays_from_file(SQL / "desync.sql", {})["told"].tolist()),
    )


def _moved_ns(store: Store, files: tuple[FileFacts, ...]) -> int:
    params = {"trace_ids": [file.trace_id for file in files]}
    return int(store.arrays_from_file(SQL / "moved.sql", params)["moved_ns"][0])
