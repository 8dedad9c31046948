"""What a version of a run says of its tasks."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ingest.vocab import HOST_KINDS, EdgeKind, KernelClass, LaneKind, Phase, TaskKind
from replay.engine.schedule import Schedule
from replay.graph.arrays import NONE, Bool, Int64, Lane, TaskGraph
from replay.results.critical_path import collective_label, critical_path, modules
from replay.results.idle import device_idle
from replay.results.slack import slack
from replay.results.timeline.events import Texts, text_of
from replay.results.timeline.rows import TimelineRows
from replay.results.walks import UNBOUNDED

SHORT_NAME = 80
"""Characters of a name that is told inside the arguments of another slice."""

NO_CAUSE = "gap without a known cause"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A run as one schedule has it."""

    label: str
    """`recorded`, `predicted`, `replayed`: one word."""
    graph: TaskGraph
    schedule: Schedule
    is_recorded: bool
    """The schedule is the recording itself."""


class Told:
    """What a version says of its tasks."""

    def __init__(self, version: Version, recorded: TaskGraph) -> None:
        """Look at a version once.

        Args:
            version: whose tasks are told of.
            recorded: the graph as it was read.
        """
        graph = version.graph
        self.version = version
        self._recorded = recorded
        self.recorded_task = _recorded_tasks(graph, recorded)
        """Per task, the recorded one that it is, or is a copy of; -1 for those added."""
        self._modules = modules(graph)
        self._slack_ns = slack(graph, version.schedule).run_ns
        self.path = critical_path(graph, version.schedule)
        self.idle = device_idle(graph, version.schedule)
        self.critical: Bool = np.zeros(graph.n_tasks, bool)
        self.critical[self.path.task] = True

    def name(self, task: int) -> str:
        """Of a task, as far as it has one."""
        graph = self.version.graph
        number = int(graph.tasks.name[task])
        kind = TaskKind(int(graph.tasks.kind[task]))
        return graph.names[number] if number >= 0 else kind.name.lower()

    def place(self, task: int) -> str:
        """Rank and lane of a task."""
        tasks = self.version.graph.tasks
        if tasks.lane[task] < 0:
            return "all members"
        lane = self.version.graph.lanes[int(tasks.lane[task])]
        return f"rank {lane.rank} {lane_name(lane)}"

    def texts(self, tasks: Int64) -> list[str]:
        """JSON of what is known of each task; empty for -1."""
        return [text_of(self.of(task)) if task >= 0 else "" for task in tasks.tolist()]

    def of(self, task: int) -> dict[str, object]:
        """What is known of a task: what it is, what decided its start, what changed."""
        graph, tasks = self.version.graph, self.version.graph.tasks
        named = (("op", tasks.op[task]), ("module", self._modules[task]))
        told: dict[str, object] = {"task": task}
        told |= {key: graph.names[number] for key, number in named if number >= 0}
        if tasks.phase[task]:
            told["phase"] = Phase(int(tasks.phase[task])).name.lower()
        if tasks.kind[task] not in HOST_KINDS:
            told["class"] = KernelClass(int(tasks.kernel_class[task])).name.lower()
        if tasks.collective[task] >= 0:
            told |= self._collective(int(tasks.collective[task]))
        told |= self._times(task)
        return told

    def _collective(self, number: int) -> dict[str, object]:
        graph = self.version.graph
        calls = graph.collectives
        label = collective_label(graph, int(calls.kind[number]), int(calls.group[number]))
        size = int(calls.size_bytes[number])
        return {"collective": label} | ({"bytes": size} if size >= 0 else {})

    def _times(self, task: int) -> dict[str, object]:
        graph, schedule = self.version.graph, self.version.schedule
        told: dict[str, object] = {}
        if self._slack_ns[task] != UNBOUNDED:
            told["slack_ns"] = int(self._slack_ns[task])
        if self.critical[task]:
            told["critical"] = True
        edge = int(schedule.blocked_by[task])
        if edge >= 0:
            source = int(graph.edges.src[edge])
            told["started_by"] = {
                "edge": EdgeKind(int(graph.edges.kind[edge])).name.lower(),
                "name": self.name(source)[:SHORT_NAME],
                "at": self.place(source),
                "task": source,
            }
        if self.version.is_recorded:
            return told
        was = int(self.recorded_task[task])
        if was < 0:
            return told | {"added": True}
        if graph.origin is not None:
            told["copy_of"] = was
        before = self._recorded.tasks
        dur_ns = int(schedule.end_ns[task] - schedule.start_ns[task])
        return told | {
            "start_change_ns": int(schedule.start_ns[task] - before.ts_ns[was]),
            "dur_change_ns": dur_ns - int(before.dur_ns[was]),
        }


def _recorded_tasks(graph: TaskGraph, recorded: TaskGraph) -> Int64:
    origin = np.arange(graph.n_tasks) if graph.origin is None else graph.origin
    return np.where(origin < recorded.n_tasks, origin, NONE)


def labels_of(told: Told, ids: Int64) -> Texts:
    """Names of tasks."""
    label = np.empty(len(ids), object)
    label[:] = [told.name(task) for task in ids.tolist()]
    return label


def only_replay(texts: list[str]) -> list[str]:
    """What is known of tasks as the arguments of slices that no recorded row stands for."""
    return [f'{{"replay":{text}}}' if text else "" for text in texts]


def row_args(
    rows: TimelineRows, told: Told, slice_id: Int64, task: Int64, lane: Lane | None
) -> list[str]:
    """Arguments of rows: as recorded, or for another schedule what still holds of them."""
    own = told.texts(task)
    if told.version.graph.origin is not None:
        return copy_args(told, task, lane)
    is_recorded = told.version.is_recorded
    written = rows.arguments(slice_id) if is_recorded else rows.ties(slice_id, lane)
    return [_merged(text, replay) for text, replay in zip(written, own, strict=True)]


def copy_args(told: Told, task: Int64, lane: Lane | None) -> list[str]:
    """Arguments of tasks of a run that was put together anew.

    Copies of one call share its row, so that calls and what they launched are tied by new numbers:
    that of the call among the tasks, from 1.
    """
    caller = told.version.graph.tasks.caller[task].astype(np.int64)
    number = np.where(caller >= 0, caller, task) + 1
    where = (
        {} if lane is None or lane.stream < 0 else {"device": lane.device, "stream": lane.stream}
    )
    ties = [text_of({"correlation": one} | where) for one in number.tolist()]
    return [_merged(tie, own) for tie, own in zip(ties, told.texts(task), strict=True)]


def _merged(written: str, replay: str) -> str:
    """Recorded arguments and those of the replay as one object."""
    if not replay:
        return written
    if not written or written == "{}":
        return f'{{"replay":{replay}}}'
    return f'{written[:-1]},"replay":{replay}}}'


def lane_name(lane: Lane) -> str:
    """As a track is called."""
    if lane.kind == LaneKind.STREAM:
        return f"GPU {lane.device} stream {lane.stream}"
    return lane.role


class Lanes:
    """Tasks of a version by lane, in the order in which they run."""

    def __init__(self, version: Version) -> None:
        tasks = version.graph.tasks
        self.lanes = version.graph.lanes
        self._order = np.lexsort((np.arange(len(tasks.lane)), tasks.ts_ns, tasks.lane))
        numbers = np.arange(len(self.lanes) + 1)
        self._first = np.searchsorted(tasks.lane[self._order], numbers)

    def of_rank(self, rank: int) -> Iterator[tuple[Lane, Int64]]:
        """Lanes of a rank that have tasks, and these."""
        for number, lane in enumerate(self.lanes):
            ids = self._order[self._first[number] : self._first[number + 1]]
            if lane.rank == rank and len(ids):
                yield lane, ids
