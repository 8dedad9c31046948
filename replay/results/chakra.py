"""The predicted run as Chakra execution traces: what ASTRA-sim reads, one file per rank.

Field numbers are those of `et_def.proto` of MLCommons Chakra (schema 0.0.4), attribute names those
that ASTRA-sim asks for. The wire format is written here: it is a few lines, and no package carries
Chakra's classes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from ingest.vocab import HOST_KINDS, CollectiveKind, LaneKind, TaskKind
from replay.engine.schedule import Schedule
from replay.graph.arrays import NONE, Bool, Int64, TaskGraph
from replay.results.critical_path import critical_path

SCHEMA = "0.0.4"
COMP_NODE, COMM_COLL_NODE = 4, 7
COMM_TYPE: Mapping[int, int] = {
    CollectiveKind.ALL_REDUCE: 0,
    CollectiveKind.REDUCE: 1,
    CollectiveKind.ALL_GATHER: 2,
    CollectiveKind.GATHER: 3,
    CollectiveKind.SCATTER: 4,
    CollectiveKind.BROADCAST: 5,
    CollectiveKind.ALL_TO_ALL: 6,
    CollectiveKind.REDUCE_SCATTER: 7,
    CollectiveKind.BARRIER: 9,
}
"""CollectiveCommType; sends and receives are not here: which member sends is not in the graph."""
_VARINT, _BYTES = 0, 2
_INT64, _BOOL, _STRING = 9, 27, 29
"""Fields of AttributeProto."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionTraces:
    """Graph of a run without lags, waits for other ranks and clocks: simulators add their own."""

    ranks: tuple[int, ...]
    """In the order of the files: ASTRA-sim counts NPUs from 0."""
    groups: Mapping[str, tuple[int, ...]]
    """Members of communicators by name, as NPUs."""
    nodes: int
    timed: int
    """Members of collectives that stand as nodes with a duration: one member, unknown size, or
    sends and receives."""
    lost_ns: int
    """Lags, and gaps without a known cause, on the critical path of the mean step: the format has
    no place for them."""


class _Nodes:
    """Which tasks become nodes, and what each of them waits for."""

    def __init__(self, graph: TaskGraph, schedule: Schedule) -> None:
        self.graph, self.schedule = graph, schedule
        tasks = graph.tasks
        self.ranks = tuple(info.rank for info in graph.ranks)
        self.npu = {rank: number for number, rank in enumerate(self.ranks)}
        here = np.isin(tasks.rank, np.array(self.ranks, np.int64))
        self.is_node: Bool = here & (tasks.kind != TaskKind.MEET)
        self.is_node &= tasks.kind != TaskKind.ARRIVE
        self.members = _members(graph, here)
        self.groups: dict[tuple[int, ...], str] = {}
        self.duration_us = _durations_us(graph, schedule)

    def group_of(self, collective: int) -> str:
        """Name of the communicator of the members that are here."""
        npus = tuple(sorted(self.npu[rank] for rank in self.members[collective]))
        return self.groups.setdefault(npus, str(len(self.groups) + 1))

    def is_simulated(self, task: int) -> bool:
        """The simulator finds its time by itself."""
        calls, number = self.graph.collectives, int(self.graph.tasks.collective[task])
        if number < 0 or int(calls.kind[number]) not in COMM_TYPE:
            return False
        return len(self.members.get(number, ())) > 1 and int(calls.size_bytes[number]) >= 0

    def waits_for(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Nodes, each after those that it waits for."""
        graph, tasks = self.graph, self.graph.tasks
        known: dict[int, tuple[int, ...]] = {}
        for task in graph.order.tolist():
            if tasks.kind[task] == TaskKind.MEET:
                continue
            found: set[int] = set()
            for edge in range(int(graph.edges.start[task]), int(graph.edges.start[task + 1])):
                found.update(self._sources(task, edge, known))
            if tasks.kind[task] == TaskKind.TRANSFER:
                found.update(known[task - 1])  # its arrival: the two are one node
            known[task] = tuple(sorted(found))
            if self.is_node[task]:
                yield task, known[task]

    def _sources(
        self, task: int, edge: int, known: Mapping[int, tuple[int, ...]]
    ) -> tuple[int, ...]:
        """Nodes that an edge stands for: who starts with another waits for what that waits for."""
        tasks = self.graph.tasks
        source = int(self.graph.edges.src[edge])
        if tasks.kind[source] == TaskKind.MEET or tasks.rank[source] != tasks.rank[task]:
            return ()
        if self.graph.edges.from_start[edge] or tasks.kind[source] == TaskKind.ARRIVE:
            return known[source]
        return (source,)


def _members(graph: TaskGraph, here: Bool) -> dict[int, set[int]]:
    tasks = graph.tasks
    found: dict[int, set[int]] = {}
    arrivals = np.flatnonzero(here & (tasks.kind == TaskKind.ARRIVE))
    for number, rank in zip(
        tasks.collective[arrivals].tolist(), tasks.rank[arrivals].tolist(), strict=True
    ):
        found.setdefault(number, set()).add(rank)
    return found


def _durations_us(graph: TaskGraph, schedule: Schedule) -> Int64:
    """Whole microseconds; what is rounded off goes to the next task of the lane: none is lost."""
    dur_ns = schedule.end_ns - schedule.start_ns
    order = np.lexsort((schedule.start_ns, graph.tasks.lane))
    lane = graph.tasks.lane[order]
    total_ns = np.cumsum(dur_ns[order])
    begins = np.concatenate([[True], lane[1:] != lane[:-1]]) if len(lane) else np.zeros(0, bool)
    before_ns = total_ns - dur_ns[order]
    base_ns = np.maximum.accumulate(np.where(begins, before_ns, 0))
    ends_us = (total_ns - base_ns + 500) // 1000
    starts_us = (before_ns - base_ns + 500) // 1000
    result = np.zeros(len(dur_ns), np.int64)
    result[order] = ends_us - starts_us
    return result


def execution_traces(
    graph: TaskGraph, schedule: Schedule, files: Mapping[int, BinaryIO]
) -> ExecutionTraces:
    """Write the nodes of every rank.

    Args:
        graph: of the run, with a scenario's changes.
        schedule: of the same.
        files: by rank, what takes the records of its file: metadata first, then nodes, each after
            those that it waits for.
    """
    nodes = _Nodes(graph, schedule)
    timed = written = 0
    for rank in nodes.ranks:
        files[rank].write(_record(_metadata(rank)))
    for task, waits_for in nodes.waits_for():
        rank = int(graph.tasks.rank[task])
        if graph.tasks.kind[task] == TaskKind.TRANSFER and not nodes.is_simulated(task):
            timed += 1
        files[rank].write(_record(_node(nodes, task, waits_for)))
        written += 1
    return ExecutionTraces(
        ranks=nodes.ranks,
        groups={name: npus for npus, name in nodes.groups.items()},
        nodes=written,
        timed=timed,
        lost_ns=_lost_ns(graph, schedule),
    )


def _lost_ns(graph: TaskGraph, schedule: Schedule) -> int:
    path = critical_path(graph, schedule)
    return round(int(path.lag_ns.sum() + path.residual_ns.sum()) / max(len(graph.steps), 1))


def _metadata(rank: int) -> bytes:
    return _text(1, SCHEMA) + _field(2, _attribute("rank", _INT64, _varint(rank)))


def _node(nodes: _Nodes, task: int, waits_for: tuple[int, ...]) -> bytes:
    """One `Node`: its identity, what it waits for, its times, its attributes."""
    graph = nodes.graph
    number = int(graph.tasks.name[task])
    kind = TaskKind(int(graph.tasks.kind[task]))
    name = graph.names[number] if number >= 0 else kind.name.lower()
    is_simulated = kind == TaskKind.TRANSFER and nodes.is_simulated(task)
    began = task - 1 if kind == TaskKind.TRANSFER else task
    duration_us = int(nodes.duration_us[task]) + int(nodes.duration_us[began]) * (began != task)
    start_us = max(int(nodes.schedule.start_ns[began]) // 1000, 0)
    return b"".join(
        (
            _number(1, task + 1),
            _text(2, name),
            _number(3, COMM_COLL_NODE if is_simulated else COMP_NODE),
            _packed(5, [source + 1 for source in waits_for]),
            _number(6, start_us),
            _number(7, duration_us),
            _attributes(nodes, task, is_simulated=is_simulated),
        )
    )


def _attributes(nodes: _Nodes, task: int, *, is_simulated: bool) -> bytes:
    graph = nodes.graph
    tasks = graph.tasks
    on_host = tasks.kind[task] in HOST_KINDS
    dur_ns = int(nodes.schedule.end_ns[task] - nodes.schedule.start_ns[task])
    told = [
        _attribute("is_cpu_op", _BOOL, _varint(int(on_host))),
        _attribute("duration_ns", _INT64, _varint(dur_ns)),
    ]
    if tasks.lane[task] >= 0:
        lane = graph.lanes[int(tasks.lane[task])]
        word = lane.role if lane.kind != LaneKind.STREAM else f"stream {lane.stream}"
        told.append(_attribute("lane", _STRING, _bytes(word)))
    if is_simulated:
        collective = int(tasks.collective[task])
        told += [
            _attribute("comm_type", _INT64, _varint(_comm_type(graph, collective))),
            _attribute("comm_size", _INT64, _varint(_comm_bytes(nodes, collective))),
            _attribute("pg_name", _STRING, _bytes(nodes.group_of(collective))),
        ]
    elif not on_host:
        told += _work(graph, task)
    return b"".join(_field(10, one) for one in told)


def _comm_type(graph: TaskGraph, collective: int) -> int:
    return COMM_TYPE[CollectiveKind(int(graph.collectives.kind[collective]))]


def _comm_bytes(nodes: _Nodes, collective: int) -> int:
    """What each member puts in; of an all-gather the size is what comes out."""
    calls = nodes.graph.collectives
    size = int(calls.size_bytes[collective])
    if calls.kind[collective] == CollectiveKind.ALL_GATHER:
        return size // max(int(calls.members_expected[collective]), 1)
    return size


def _work(graph: TaskGraph, task: int) -> list[bytes]:
    """FLOPs and bytes of a kernel, where both are known."""
    row = int(graph.work.rows_of(graph.tasks.slice_id[task : task + 1])[0])
    if row == NONE:
        return []
    flops, moved = graph.work.flops[row], graph.work.bytes[row]
    if not (np.isfinite(flops) and np.isfinite(moved)):
        return []
    return [
        _attribute("num_ops", _INT64, _varint(int(flops))),
        _attribute("tensor_size", _INT64, _varint(int(moved))),
    ]


def _record(message: bytes) -> bytes:
    """A message after its length, as files of Chakra hold them."""
    return _varint(len(message)) + message


def _attribute(name: str, field: int, value: bytes) -> bytes:
    """An `AttributeProto`."""
    wire = _BYTES if field == _STRING else _VARINT
    return _text(1, name) + _varint(field << 3 | wire) + value


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _varint(field << 3 | _BYTES) + _bytes(value)


def _packed(field: int, values: list[int]) -> bytes:
    return _field(field, b"".join(map(_varint, values))) if values else b""


def _field(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(value)) + value


def _bytes(value: str) -> bytes:
    encoded = value.encode()
    return _varint(len(encoded)) + encoded


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    found = bytearray()
    while value > 0x7F:  # noqa: PLR2004  (seven bits)
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
