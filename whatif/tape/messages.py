"""Messages between pipeline stages: sends and receives that no recorded segment has."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ingest.vocab import CollectiveKind, KernelClass, Phase, TaskKind
from replay.graph.arrays import NEVER_RELEASED_NS, NONE, Collectives, Group, Int64
from replay.graph.hosts import computes_on_hosts
from whatif.tape.instances import Instances
from whatif.tape.lanes import NewLanes
from whatif.tape.meetings import Meetings
from whatif.tape.reel import Reel
from whatif.tape.segments import RECEIVE, SEND
from whatif.tape.spans import numbered

ENDS = 2
NAME_ON_DEVICE, NAME_ON_HOST = "ncclDevKernel_SendRecv", "gloo:send_recv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Columns with one row per end of a message, by instance."""

    instance: Int64
    kind: Int64
    peer: Int64
    size_bytes: Int64
    transfer_ns: Int64
    number: Int64
    """Message that it is an end of."""
    count: int
    """Messages."""
    on_host: bool

    @property
    def name(self) -> str:
        """What kernels and calls that carry them are named."""
        return NAME_ON_HOST if self.on_host else NAME_ON_DEVICE

    @property
    def way(self) -> Int64:
        """Which of the two streams of its rank each is on."""
        way: Int64 = (self.kind == RECEIVE).astype(np.int64)
        return way

    @property
    def receives(self) -> Int64:
        """Rows that something waits for."""
        return np.flatnonzero(self.kind != SEND)


def messages_of(reel: Reel, made: Instances) -> Messages:
    """Collect the messages of all programs."""
    instance = np.flatnonzero(made.segment < 0)
    row = made.row[instance]
    program = made.program[instance]
    columns = {name: np.zeros(len(instance), np.int64) for name in _COLUMNS}
    ends = np.searchsorted(program, np.arange(len(made.programs) + 1)).tolist()
    for one, first, behind in zip(made.programs, ends[:-1], ends[1:], strict=True):
        mine = slice(first, behind)
        if one.p2p is not None and behind > first:
            for name, column in columns.items():
                column[mine] = getattr(one.p2p, name)[row[mine]]
    assert (columns["kind"] > 0).all(), "an instance is a segment or a message"
    number_of, count = numbered([columns.pop("key")])
    on_host = computes_on_hosts(reel.tape.graph)
    return Messages(instance=instance, number=number_of, count=count, on_host=on_host, **columns)


_COLUMNS = ("kind", "peer", "key", "size_bytes", "transfer_ns")


def message_tasks(
    made: Instances, messages: Messages, lanes: NewLanes, meetings: Meetings, callers: Int64
) -> dict[str, tuple[Int64, Any]]:
    """Columns of the tasks of messages: per name the ids, and the values there."""
    first_meet, first_call = meetings.n_before(made), len(meetings)
    arrive = made.base[messages.instance]
    pair = np.concatenate([arrive, arrive + 1])
    meet = first_meet + np.arange(messages.count)
    every = np.concatenate([pair, meet])
    lane = np.tile(lanes.streams[made.program[messages.instance], messages.way], ENDS)
    call = first_call + messages.number
    step = np.zeros(messages.count, np.int64)
    step[messages.number] = made.step[messages.instance]
    kinds = np.repeat([TaskKind.ARRIVE, TaskKind.TRANSFER, TaskKind.MEET], _thrice(messages))
    nothing = np.zeros(len(arrive), np.int64)
    return {
        "kind": (every, kinds),
        "lane": (pair, lane),
        "step": (every, np.concatenate([np.tile(made.step[messages.instance], ENDS), step])),
        "caller": (every, np.concatenate([callers, callers, np.full(messages.count, NONE)])),
        "dur_ns": (
            every,
            np.concatenate([nothing, messages.transfer_ns, np.zeros(messages.count, np.int64)]),
        ),
        "collective": (
            every,
            np.concatenate([call, call, first_call + np.arange(messages.count)]),
        ),
        **{name: (every, value) for name, value in _SAME.items()},
    }


def _thrice(messages: Messages) -> list[int]:
    return [len(messages.instance), len(messages.instance), messages.count]


_SAME = {
    "op": NONE,
    "module": NONE,
    "slice_id": NONE,
    "geometry": NONE,
    "phase": Phase.UNKNOWN,
    "kernel_class": KernelClass.COLLECTIVE,
    "release_ns": NEVER_RELEASED_NS,
    "residual_ns": 0,
    "unexplained_ns": 0,
    "fixed": False,
}


def with_messages(
    made: Instances, messages: Messages, calls: Collectives, groups: tuple[Group, ...]
) -> tuple[Collectives, tuple[Group, ...]]:
    """The collectives and groups with those of messages behind them."""
    if not messages.count:
        return calls, groups
    columns, more = _calls(messages, len(groups)), _groups(made, messages)
    for field in fields(calls):
        column = getattr(calls, field.name)
        columns[field.name] = np.concatenate([column, columns[field.name].astype(column.dtype)])
    columns["group"][len(calls.kind) :] += more.of_message
    return Collectives(**columns), (*groups, *more.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Groups:
    of_message: Int64
    """Place among the groups."""
    groups: tuple[Group, ...]
    """Pairs of ranks."""


def _groups(made: Instances, messages: Messages) -> _Groups:
    rank = np.array([program.rank for program in made.programs], np.int64)
    here = rank[made.program[messages.instance]]
    low, high = np.minimum(here, messages.peer), np.maximum(here, messages.peer)
    pair, _ = numbered([low, high])
    of_message = np.zeros(messages.count, np.int64)
    of_message[messages.number] = pair
    _, first = np.unique(pair, return_index=True)
    return _Groups(
        of_message=of_message,
        groups=tuple(
            Group(
                name=f"stages of ranks {one} and {other}",
                ranks=(one, other),
                size=ENDS,
                backend="cpu:gloo" if messages.on_host else "nccl",
            )
            for one, other in zip(low[first].tolist(), high[first].tolist(), strict=True)
        ),
    )


def _calls(messages: Messages, first_group: int) -> dict[str, Any]:
    seen = np.bincount(messages.number, minlength=messages.count)
    size, transfer_ns = (np.zeros(messages.count, np.int64) for _ in range(2))
    np.maximum.at(size, messages.number, messages.size_bytes)
    np.maximum.at(transfer_ns, messages.number, messages.transfer_ns)
    return {
        "kind": np.full(messages.count, CollectiveKind.SEND_RECV),
        "group": np.full(messages.count, first_group),
        "size_bytes": size,
        "members_seen": seen,
        "members_expected": np.maximum(seen, ENDS),
        "transfer_ns": transfer_ns,
        "outside_wait_low_ns": transfer_ns,
        "outside_wait_high_ns": transfer_ns,
        "on_host": np.full(messages.count, messages.on_host),
        "item_bytes": np.full(messages.count, NONE),
        "latency_ns": np.zeros(messages.count, np.int64),
    }
