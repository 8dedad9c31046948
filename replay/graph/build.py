"""Store -> task graph: read the columns, find waits, number the tasks, run the rules, freeze."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ingest.errors import UsageError
from ingest.store import Store
from ingest.vocab import EdgeKind, Evidence, RuntimeKind, Severity
from replay.graph.arrays import Boundaries, Collectives, Edges, Group, Int64, RankInfo, TaskGraph, Tasks
from replay.graph.blocking import find_blocking_calls
from replay.graph.columns import launched_frac, start_and_duration, task_columns
from replay.graph.csr import EdgeList, by_destination, concatenate, topological_order
from replay.graph.events import find_event_pairs
from replay.graph.facts import FileFacts, GraphFacts
from replay.graph.host_tasks import anchor_rows, build_host_tasks
from replay.graph.layout import Parts, find_meetings, number_tasks
from replay.graph.nesting import outermost, segments
from replay.graph.recorded import SQL, Recorded, load
from replay.graph.residuals import residuals
from replay.graph.rules.base import Found
from replay.graph.rules.collective import collective
from replay.graph.rules.from_time import from_time
from replay.graph.rules.hand_over import hand_over
from replay.graph.rules.host_sync import host_sync
from replay.graph.rules.launch import launch
from replay.graph.rules.program_order import program_order
from replay.graph.rules.stream_order import link_order, stream_order
from replay.graph.rules.event_wait import event_wait
from replay.graph.silence import find_stretches
from replay.graph.steps import Windows, choose_windows, find_boundaries
from replay.graph.streams import Streams, index_streams

RULES: tuple[tuple[str, Callable[[Parts], Found]], ...] = (
    ("program_order", program_order),
    ("hand_over", hand_over),
    ("launch", launch),
    ("stream_order", stream_order),
    ("link_order", link_order),
    ("event_wait", event_wait),
    ("host_sync", host_sync),
    ("collective", collective),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A task graph and what is known beside it."""

    graph: TaskGraph
    facts: GraphFacts


def build(
    store: Store, *, ranks: tuple[int, ...] | None = None, steps: range | None = None
) -> Built:
    """Build the graph of the chosen ranks and steps (all by default).

    Raises:
        UsageError: a chosen rank has no file, or no chosen step is complete on all ranks.
    """
    files = _chosen_files(store, ranks)
    recorded = load(
        store,
        tuple(int(file["trace_id"]) for file in files),
        tuple(int(file["rank"]) for file in files),
    )
    windows = choose_windows(recorded, steps)
    known = _known_collectives(store, recorded)
    parts = _parts(recorded, known)
    found = {name: rule(parts) for name, rule in RULES}
    edge_list = _forward_only(concatenate([rule.edges for rule in found.values()]), parts)
    tasks, lanes = task_columns(parts, windows)
    residual_ns = _released(parts, tasks, edge_list)[2]
    found["from_time"] = from_time(parts, residual_ns)
    edge_list = concatenate([edge_list, found["from_time"].edges])
    edges, release_ns, residual_ns = _released(parts, tasks, edge_list)
    groups, group_of = _groups(store, known)
    graph = TaskGraph(
        tasks=replace(tasks, release_ns=release_ns, residual_ns=residual_ns),
        edges=edges,
        order=topological_order(edges),
        collectives=_collectives(recorded, known, group_of, parts),
        boundaries=_boundaries(parts, windows),
        steps=windows.steps,
        steps_recorded=windows.recorded,
        lanes=lanes,
        groups=groups,
        ranks=_rank_infos(files),
        world_size=_world_size(files),
        names=recorded.names,
    )
    return Built(graph=graph, facts=_facts(store, files, parts, found, edge_list, known))


def _released(parts: Parts, tasks: Tasks, edge_list: EdgeList) -> tuple[Edges, Int64, Int64]:
    """CSR of the edges; a task without any is released at its recorded start; the residuals."""
    edges = by_destination(edge_list, parts.layout.n_tasks)
    orphan = np.diff(edges.start) == 0
    release_ns = np.where(orphan, parts.ts_ns, tasks.release_ns)
    return edges, release_ns, residuals(edges, parts.ts_ns, parts.dur_ns, release_ns)


def _chosen_files(store: Store, ranks: tuple[int, ...] | None) -> list[dict[str, object]]:
    columns = store.arrays_from_file(SQL / "trace.sql", {})
    names = list(columns)
    files = [
        dict(zip(names, row, strict=True))
        for row in zip(*(columns[name].tolist() for name in names), strict=True)
    ]
    if ranks is None:
        return files
    present = {file["rank"] for file in files}
    missing = sorted(set(ranks) - present)
    if missing:
        raise UsageError(
            f"no file holds rank {', '.join(map(str, missing))}",
            hint=f"ranks in these files: {', '.join(map(str, sorted(present)))}",
        )
    return [file for file in files if file["rank"] in ranks]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """Per dense collective number, what the store knows of it."""

    kind: Int64
    size_bytes: Int64
    expected: Int64
    seen: Int64
    """Members in the chosen files."""
    transfer_ns: Int64
    on_host: Int64
    group_key: list[str]
    matched: Int64


def _known_collectives(store: Store, recorded: Recorded) -> _Known:
    columns = store.arrays_from_file(SQL / "collective.sql", {})
    place = np.searchsorted(columns["coll_id"].astype(np.int64), recorded.collective_ids)
    seen = np.bincount(recorded.member.collective, minlength=len(place))

    def of(name: str) -> Int64:
        return columns[name].astype(np.int64)[place]

    return _Known(
        kind=of("kind"),
        size_bytes=of("size_bytes"),
        expected=np.maximum(of("n_expected"), seen),
        seen=seen.astype(np.int64),
        transfer_ns=of("transfer_ns"),
        on_host=of("on_host"),
        group_key=[_text(key) for key in columns["group_key"][place]],
        matched=(seen > 1).astype(np.int64),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _parts(recorded: Recorded, known: _Known) -> Parts:
    host = recorded.host
    streams = index_streams(recorded.device, host)
    pieces = segments(host)
    holder = outermost(host.thread, host.ts_ns, host.end_ns, anchor_rows(recorded))
    blocking = find_blocking_calls(recorded, streams, _own_copies(recorded))
    stretches = find_stretches(recorded, pieces, streams)
    host_tasks = build_host_tasks(recorded, pieces, holder, blocking, stretches)
    layout = number_tasks(recorded, len(host_tasks))
    meetings = find_meetings(recorded, known.expected)
    ts_ns, dur_ns = start_and_duration(recorded, host_tasks, layout, meetings)
    return Parts(
        recorded=recorded,
        streams=streams,
        host_tasks=host_tasks,
        blocking=blocking,
        stretches=stretches,
        events=find_event_pairs(recorded, streams),
        layout=layout,
        meetings=meetings,
        ts_ns=ts_ns,
        dur_ns=dur_ns,
    )


def _own_copies(recorded: Recorded) -> Int64:
    """Per host row, the copy that the call itself waits for: plain copies, and copies from the
    device to pageable host memory; -1 for all others.
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


def _forward_only(edges: EdgeList, parts: Parts) -> EdgeList:
    """Leave out edges from a task to itself; every other edge goes forward in recorded time."""
    return edges.select(edges.src != edges.dst)


def _boundaries(parts: Parts, windows: Windows) -> Boundaries:
    return find_boundaries(parts, windows)


def _groups(store: Store, known: _Known) -> tuple[tuple[Group, ...], Int64]:
    columns = store.arrays_from_file(SQL / "group.sql", {})
    groups: list[Group] = []
    number: dict[str, int] = {}
    for key, name, ranks, size, backend in zip(
        *(columns[column].tolist() for column in ("group_key", "name", "ranks", "size", "backend")),
        strict=True,
    ):
        members = tuple(int(rank) for rank in ranks.split(",")) if _text(ranks) else ()
        number[key] = len(groups)
        groups.append(
            Group(
                name=_text(name),
                ranks=members,
                size=len(members) or int(size),
                backend=_text(backend),
            )
        )
    unknown: dict[int, int] = {}
    group_of = np.empty(len(known.group_key), np.int64)
    for index, key in enumerate(known.group_key):
        if key in number:
            group_of[index] = number[key]
            continue
        size = int(known.expected[index])
        if size not in unknown:
            unknown[size] = len(groups)
            groups.append(Group(name="", ranks=(), size=size, backend=""))
        group_of[index] = unknown[size]
    return tuple(groups), group_of


def _collectives(
    recorded: Recorded, known: _Known, group_of: Int64, parts: Parts
) -> Collectives:
    member = recorded.member
    longest_ns = np.zeros(len(known.kind), np.int64)
    np.maximum.at(longest_ns, member.collective, member.end_ns - member.ts_ns)
    transfer_ns = np.zeros(len(known.kind), np.int64)
    own_ns = member.end_ns - parts.meetings.go_ns
    np.maximum.at(transfer_ns, member.collective, own_ns)
    transfer_ns = np.where(known.transfer_ns >= 0, known.transfer_ns, transfer_ns)
    partial = known.seen < known.expected
    return Collectives(
        kind=known.kind.astype(np.int8),
        group=group_of.astype(np.int32),
        size_bytes=known.size_bytes,
        members_seen=known.seen.astype(np.int32),
        members_expected=known.expected.astype(np.int32),
        transfer_ns=transfer_ns,
        outside_wait_low_ns=transfer_ns,
        outside_wait_high_ns=np.where(partial, np.maximum(longest_ns, transfer_ns), transfer_ns),
        on_host=known.on_host.astype(bool),
    )


def _rank_infos(files: list[dict[str, object]]) -> tuple[RankInfo, ...]:
    return tuple(
        RankInfo(
            rank=int(str(file["rank"])),
            gpu=_text(file["gpu"]) or None,
            devices_seen=int(str(file["n_devices"])),
            host=_text(file["host"]) or None,
        )
        for file in files
    )


def _world_size(files: list[dict[str, object]]) -> int | None:
    sizes = [int(str(file["world_size"])) for file in files]
    return max(sizes) if sizes and max(sizes) > 0 else None


def _facts(
    store: Store,
    files: list[dict[str, object]],
    parts: Parts,
    found: dict[str, Found],
    edges: EdgeList,
    known: _Known,
) -> GraphFacts:
    counts = Counter(zip(edges.kind.tolist(), edges.evidence.tolist(), strict=True))
    issues = store.arrays_from_file(SQL / "issue.sql", {})
    return GraphFacts(
        files=tuple(_file_facts(file) for file in files),
        edges={(EdgeKind(kind), Evidence(how)): n for (kind, how), n in sorted(counts.items())},
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
        moved_ns=0,
    )


def _file_facts(file: dict[str, object]) -> FileFacts:
    uncertainty_ns = int(str(file["clock_uncertainty_ns"]))
    return FileFacts(
        rank=int(str(file["rank"])),
        rank_source=_text(file["rank_source"]),
        host=_text(file["host"]) or None,
        gpu=_text(file["gpu"]) or None,
        devices_seen=int(str(file["n_devices"])),
        events=int(str(file["n_events"])),
        clock_offset_ns=int(str(file["clock_offset_ns"])),
        clock_uncertainty_ns=uncertainty_ns if uncertainty_ns >= 0 else None,
        device_clock_offset_ns=int(str(file["device_clock_offset_ns"])),
        complete=bool(file["complete"]),
    )
