"""Recorded and predicted run as one Chrome trace, or as one trace per rank like the recording."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from ingest.store import Store
from ingest.vocab import LaneKind
from replay.export.files import whole_folder, write_pieces
from replay.graph.arrays import TaskGraph
from replay.graph.facts import FileFacts, GraphFacts
from replay.results.idle import SHORT
from replay.results.metrics import step_times
from replay.results.timeline.arrows import Places, arrows
from replay.results.timeline.device import device_slices, idle_slices
from replay.results.timeline.events import (
    Process,
    Slices,
    Track,
    document,
    flow_events,
    process_events,
    track_events,
    tracks_of,
)
from replay.results.timeline.host import (
    added_host_slices,
    copied_host_slices,
    host_slices,
    threads,
)
from replay.results.timeline.rows import FileOfRank, TimelineRows
from replay.results.timeline.run import path_slices, step_slices
from replay.results.timeline.told import Lanes, Told, Version, lane_name

_LAYERS = 1_000
"""Numbers of tracks that are kept free for slices that cross others."""
_RUN = 1
"""Process of what belongs to no rank."""
_HOST_ORDER = {"main": 0, "autograd": 1}
_STREAMS, _LINKS, _IDLE = 2_000, 4_000, 1_000
_UNMOVED = "rows of threads without tasks, which a prediction does not move"
_INSIDE = "rows of threads inside tasks that another layout puts together anew"
_SHORT = "idle gaps too short to have a cause looked for, ns in all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What timelines are drawn from."""

    rows: TimelineRows
    graph: TaskGraph
    """As read: recorded times."""
    versions: tuple[Version, ...]
    files: tuple[FileFacts, ...]
    cut: bool
    """Only the steps that count, not the whole recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """By how much the times of one file differ from what it says, ns."""

    rank: int
    clock_offset_ns: int
    """Taken off all its times, to bring it to the common clock."""
    device_clock_offset_ns: int
    """Added to its device rows, which the profiler stamps by another clock than the host's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timelines:
    """What was written."""

    files: tuple[Path, ...]
    size_bytes: int
    slices: int
    flows: int
    left_out: dict[str, int]
    """What the recording holds and the files do not, and how much of it."""
    clocks: tuple[Clock, ...]
    """How times were moved, by file."""


def read_recording(
    store: Store,
    recorded: TaskGraph,
    facts: GraphFacts,
    versions: Sequence[Version],
    *,
    cut: bool,
) -> Recording:
    """Read what timelines need of an open store.

    Args:
        store: open for as long as timelines are written.
        recorded: the graph as it was read.
        facts: of the same.
        versions: the schedules to draw.
        cut: only the steps that count.
    """
    names = max((version.graph.names for version in versions), key=len)
    trace_ids = tuple(file.trace_id for file in facts.files)
    return Recording(
        rows=TimelineRows(store, trace_ids, names),
        graph=recorded,
        versions=tuple(versions),
        files=facts.files,
        cut=cut,
    )


def _clocks(recording: Recording) -> tuple[Clock, ...]:
    return tuple(
        Clock(
            rank=file.rank,
            clock_offset_ns=file.clock_offset_ns,
            device_clock_offset_ns=file.device_clock_offset_ns,
        )
        for file in recording.files
    )


class _Drawn:
    """Processes and tracks of all versions, with where each task is drawn."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._tids = count(1, _LAYERS)
        self.left_out: dict[str, int] = dict(recording.rows.left_out)
        self.told = tuple(Told(one, recording.graph) for one in recording.versions)
        self.lanes = tuple(Lanes(one) for one in recording.versions)
        self.windows_ns = tuple(
            _window_ns(one) if recording.cut else None for one in recording.versions
        )
        self.places = tuple(_nowhere(one.graph.n_tasks) for one in recording.versions)
        self.processes: list[Process] = []
        self.tracks: list[tuple[int, Track]] = []
        """Number of the version, and the track."""

    def add_run(self) -> None:
        """Steps and critical path of every version, one above the other."""
        self.processes.append(Process(pid=_RUN, name="run", sort_index=0))
        for number, told in enumerate(self.told):
            label = told.version.label
            self._add(number, _RUN, f"steps {label}", number, step_slices(told.version))
            place = len(self.told) + number
            self._add(number, _RUN, f"critical path {label}", place, path_slices(told))

    def add_ranks(self) -> None:
        """Every rank once for each version, side by side."""
        pids = count(_RUN + 1)
        recorded = [info.rank for info in self._recording.graph.ranks]
        ranks = [{info.rank for info in told.version.graph.ranks} for told in self.told]
        for rank in (*recorded, *sorted(set().union(*ranks) - set(recorded))):
            for number, told in enumerate(self.told):
                if rank not in ranks[number] and rank not in recorded:
                    continue
                if rank not in ranks[number]:
                    name = f"ranks that the {told.version.label} run has no place for"
                    self.left_out[name] = self.left_out.get(name, 0) + 1
                    continue
                pid = next(pids)
                name = f"rank {rank} {told.version.label}"
                self.processes.append(Process(pid=pid, name=name, sort_index=pid))
                self._add_host(number, pid, rank, with_waits=True)
                self._add_device(number, pid, rank, with_parts=True)
                for device, idle in idle_slices(told, rank).items():
                    self._add(number, pid, f"GPU {device} idle", _IDLE + device, idle)
            self._count_short(rank)

    def add_rank_alone(self, number: int, rank: int) -> None:
        """One rank of one version, with nothing that a profiler would not write."""
        self._add_host(number, rank, rank, with_waits=False)
        self._add_device(number, rank, rank, with_parts=False)

    def _count_short(self, rank: int) -> None:
        idle = self.told[0].idle
        short = int(idle.dur_ns[(idle.cause == SHORT) & (idle.rank == rank)].sum())
        if short:
            self.left_out[_SHORT] = self.left_out.get(_SHORT, 0) + short

    def _add_host(self, number: int, pid: int, rank: int, *, with_waits: bool) -> None:
        told, recorded = self.told[number], self._recording.graph
        rows = self._recording.rows
        if told.version.graph.origin is not None:
            self._add_copied_host(number, pid, rank, with_waits=with_waits)
            return
        for place, thread in enumerate(threads(rows, self.lanes[0], rank, recorded)):
            found = host_slices(thread, rows, told, recorded, with_waits=with_waits)
            if found is None:
                self.left_out[_UNMOVED] = self.left_out.get(_UNMOVED, 0) + len(thread.rows)
                continue
            name = thread.lane.role if thread.lane else f"thread without tasks {place}"
            order = _HOST_ORDER.get(name, 2 + place)
            self._add(number, pid, name, order, found)
        if told.version.is_recorded:
            return
        for lane, ids in self.lanes[number].of_rank(rank):
            if lane.kind == LaneKind.THREAD:
                added = added_host_slices(ids, told)
                self._add(number, pid, f"{lane.role}: added", _IDLE - 1, added)

    def _add_copied_host(self, number: int, pid: int, rank: int, *, with_waits: bool) -> None:
        """Threads of a rank of a run that was put together anew."""
        told = self.told[number]
        for place, (lane, ids) in enumerate(self.lanes[number].of_rank(rank)):
            if lane.kind == LaneKind.THREAD:
                found = copied_host_slices(
                    lane, ids, self._recording.rows, told, with_waits=with_waits
                )
                order = _HOST_ORDER.get(lane.role, 2 + place)
                self._add(number, pid, lane.role, order, found)
        n_rows = len(self._recording.rows.host_of_rank(rank))
        self.left_out[_INSIDE] = self.left_out.get(_INSIDE, 0) + n_rows

    def _add_device(self, number: int, pid: int, rank: int, *, with_parts: bool) -> None:
        told, rows = self.told[number], self._recording.rows
        for place, (lane, ids) in enumerate(self.lanes[number].of_rank(rank)):
            if lane.kind == LaneKind.THREAD:
                continue
            found = device_slices(lane, ids, rows, told, with_parts=with_parts)
            first = _LINKS if lane.kind == LaneKind.LINK else _STREAMS
            self._add(number, pid, lane_name(lane), first + place, found)

    def _add(self, number: int, pid: int, name: str, order: int, found: Slices) -> None:
        kept = found.within(self.windows_ns[number])
        if not len(kept):
            return
        first = Track(pid=pid, tid=next(self._tids), name=name, sort_index=order, slices=kept)
        for track in tracks_of(kept, first):
            self.tracks.append((number, track))
            shown = track.slices.task >= 0
            tasks, places = track.slices.task[shown], self.places[number]
            places.pid[tasks], places.tid[tasks] = track.pid, track.tid
            places.ts_ns[tasks] = track.slices.start_ns[shown]

    def origins_ns(self) -> tuple[int, ...]:
        """Per version, the moment that becomes 0: the steps of all begin together."""
        before = [
            int(step_times(told.version.graph, told.version.schedule).boundary_ns[0])
            for told in self.told
        ]
        lead_ns = max(
            (before[number] - int(track.slices.start_ns.min()) for number, track in self.tracks),
            default=0,
        )
        return tuple(moment - lead_ns for moment in before)


def _window_ns(version: Version) -> tuple[int, int]:
    """From the first call of the steps, which may come long before their device work, to their end.

    A host that is a step ahead launches all of a step before it begins.
    """
    boundary_ns = step_times(version.graph, version.schedule).boundary_ns
    issued = version.schedule.start_ns[version.graph.tasks.step >= 0]
    first_ns = min(int(boundary_ns[0]), int(issued.min(initial=boundary_ns[0])))
    return first_ns, int(boundary_ns[-1])


def _nowhere(n_tasks: int) -> Places:
    pid, tid, ts_ns = (np.zeros(n_tasks, np.int64) for _ in range(3))
    return Places(pid=pid, tid=tid, ts_ns=ts_ns)


def write_together(recording: Recording, output: Path, head: dict[str, object]) -> Timelines:
    """All versions in one file, rank by rank.

    Args:
        recording: what to draw.
        output: `.json`, or `.json.gz` to compress it.
        head: what the file says of itself.

    Raises:
        UsageError: its folder is not there.
        OSError: it cannot be written.
    """
    drawn = _Drawn(recording)
    drawn.add_run()
    drawn.add_ranks()
    origins_ns = drawn.origins_ns()
    flows = _Flows(drawn)
    base_ns = recording.rows.files[0].origin_ns + origins_ns[0] if recording.rows.files else 0
    events = chain(
        chain.from_iterable(map(process_events, drawn.processes)),
        chain.from_iterable(
            track_events(track, origins_ns[number]) for number, track in drawn.tracks
        ),
        flows.events(origins_ns),
    )
    clocks = _clocks(recording)
    told = {
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": base_ns,
        "otherData": head | {"left_out": drawn.left_out, "clocks": list(map(asdict, clocks))},
    }
    size = write_pieces(output, document(told, events))
    return Timelines(
        files=(output,),
        size_bytes=size,
        slices=sum(len(track.slices) for _, track in drawn.tracks),
        flows=flows.count,
        left_out=drawn.left_out,
        clocks=clocks,
    )


class _Flows:
    """Arrows of all versions, counted as they are written."""

    def __init__(self, drawn: _Drawn) -> None:
        self._drawn = drawn
        self.count = 0

    def events(self, origins_ns: Sequence[int]) -> Iterator[str]:
        """Their points."""
        for number, told in enumerate(self._drawn.told):
            for flow in arrows(told, self._drawn.places[number], self.count + 1):
                self.count += 1
                yield from flow_events(flow, origins_ns[number])


def write_apart(recording: Recording, folder: Path, head: dict[str, object]) -> Timelines:
    """One file per rank in a folder per version, as the profiler would have written them.

    Args:
        recording: what to draw.
        folder: made where it is not there.
        head: what every file says of itself, beside what the recorded file said.

    Raises:
        UsageError: the folder is a file.
        OSError: a file cannot be written.
    """
    with whole_folder(folder) as part:
        made = _write_apart(recording, part, head)
    return replace(made, files=tuple(folder / path.relative_to(part) for path in made.files))


def _write_apart(recording: Recording, folder: Path, head: dict[str, object]) -> Timelines:
    clocks = _clocks(recording)
    written: list[Path] = []
    totals = {"size": 0, "slices": 0, "flows": 0}
    left_out: dict[str, int] = {}
    for number, version in enumerate(recording.versions):
        place = folder / version.label
        place.mkdir(parents=True, exist_ok=True)
        for rank, file in _files_of(recording, version):
            drawn = _Drawn(recording)
            drawn.add_rank_alone(number, rank)
            inside = left_out.get(_INSIDE, 0) + drawn.left_out.get(_INSIDE, 0)
            left_out |= drawn.left_out | ({_INSIDE: inside} if inside else {})
            origin_ns = min(
                (int(track.slices.start_ns.min()) for _, track in drawn.tracks), default=0
            )
            flows = _Flows(drawn)
            name = f"rank {rank} {version.label}"
            process = Process(pid=rank, name=name, sort_index=rank)
            told = _metadata(file, rank, version) | {
                "baseTimeNanoseconds": file.origin_ns + origin_ns,
                "trace_replay": head
                | {
                    "version": version.label,
                    "clocks": [asdict(one) for one in clocks if one.rank == file.rank],
                },
            }
            events = chain(
                process_events(process),
                chain.from_iterable(track_events(track, origin_ns) for _, track in drawn.tracks),
                flows.events([origin_ns] * len(recording.versions)),
            )
            path = place / f"rank{rank}.json.gz"
            totals["size"] += write_pieces(path, document(told, events))
            totals["slices"] += sum(len(track.slices) for _, track in drawn.tracks)
            totals["flows"] += flows.count
            written.append(path)
    return Timelines(
        files=tuple(written),
        size_bytes=totals["size"],
        slices=totals["slices"],
        flows=totals["flows"],
        left_out=left_out,
        clocks=clocks,
    )


def _files_of(recording: Recording, version: Version) -> Iterator[tuple[int, FileOfRank]]:
    """Ranks of a version, each with the file of the recorded rank that it is or is like."""
    graph, recorded = version.graph, recording.graph
    files = {file.rank: file for file in recording.rows.files}
    if graph.origin is None:
        ranks = {info.rank for info in graph.ranks}
        yield from ((rank, file) for rank, file in files.items() if rank in ranks)
        return
    copy = np.flatnonzero((graph.origin >= 0) & (graph.origin < recorded.n_tasks))
    now, was = graph.tasks.rank[copy], recorded.tasks.rank[graph.origin[copy]]
    for info in graph.ranks:
        of_rank, count_of = np.unique(was[(now == info.rank) & (was >= 0)], return_counts=True)
        if len(of_rank):
            yield info.rank, files[int(of_rank[np.argmax(count_of)])]


def _metadata(file: FileOfRank, rank: int, version: Version) -> dict[str, Any]:
    """What the recorded file said, with the number that the rank has now."""
    told = dict(file.metadata)
    job = told.get("distributedInfo")
    if version.graph.origin is not None and isinstance(job, dict):
        told["distributedInfo"] = job | {"rank": rank, "world_size": version.graph.world_size}
    return told
