"""The tasks of collectives that are put in; they wait for nothing yet."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ingest.vocab import KernelClass, LaneKind, TaskKind
from replay.graph.arrays import NONE, Collectives, Int64, Lane, TaskGraph
from whatif.description.labels import Place
from whatif.tape.inserting.rows import Insertions, Rows, Waits
from whatif.tape.segments import Tape
from whatif.tape.splice import spliced


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A tape with the new tasks, which wait for nothing yet; ids are those of now."""

    tape: Tape
    new_id: Int64
    arrive: Int64
    """Per row."""
    transfer: Int64
    own_wait: Int64
    """Per row that holds up a thread: the wait; -1."""
    shared_wait: Int64
    """Per wait of `Waits`."""
    meet: Int64
    """Per new collective."""
    lane: Int64
    """Per row: lane of its arrival and transfer."""


def with_tasks(tape: Tape, additions: Sequence[Insertions], rows: Rows, waits: Waits) -> Made:
    """Put the tasks in: two per row, a wait where a thread waits, a meeting per collective.

    They take their ids behind the task that they follow: arrival, transfer and wait of a row
    together, rows behind one task in their order, waits of many after them; meetings at the end.
    """
    graph, lane = _with_lanes(tape.graph, additions, rows)
    graph, name = _with_names(graph, additions)
    kinds = _Kinds.of(rows, waits)
    columns = _columns(graph, rows, kinds, lane, name[rows.addition])
    graph = _with_calls(graph, additions, rows)
    is_meet = kinds.kind == TaskKind.MEET
    behind = np.where(is_meet, graph.n_tasks - 1, kinds.like)
    order = np.lexsort((np.arange(len(behind)), kinds.place, behind))
    done = spliced(
        replace(tape, graph=graph),
        after=behind[order],
        like=kinds.like[order],
        columns={key: np.asarray(column)[order] for key, column in columns.items()},
    )
    added = np.empty(len(behind), np.int64)
    added[order] = done.added
    arrive, transfer, own, shared, meet = np.split(added, kinds.parts)
    own_wait = np.full(len(rows), NONE, np.int64)
    own_wait[kinds.holds] = own
    return Made(
        tape=_labelled(done.tape, added[: 2 * len(rows)]),
        new_id=done.new_id,
        arrive=arrive,
        transfer=transfer,
        own_wait=own_wait,
        shared_wait=shared,
        meet=meet,
        lane=lane,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kinds:
    """The tasks to be put in: all arrivals, all transfers, own waits, shared waits, meetings."""

    kind: Int64
    like: Int64
    """Task whose step, labels and segment each has."""
    place: Int64
    """Order among those behind one task."""
    holds: Int64
    """Rows that hold up a thread."""
    parts: list[int]
    """Where each sort begins, but the first."""

    @classmethod
    def of(cls, rows: Rows, waits: Waits) -> "_Kinds":
        """As many as the rows and waits need."""
        holds = np.flatnonzero(rows.on_host & ~rows.beside)
        _, first_row = np.unique(rows.call, return_index=True)
        n, late = len(rows), 3 * len(rows)
        row = 3 * np.arange(n)
        counts = [n, n, len(holds), len(waits.behind), len(first_row)]
        place = [row, row + 1, row[holds] + 2, *(np.full(count, late) for count in counts[3:])]
        like = [rows.after, rows.after, rows.after[holds], waits.behind, rows.after[first_row]]
        wait = TaskKind.HOST_WAIT
        kinds = np.repeat([TaskKind.ARRIVE, TaskKind.TRANSFER, wait, wait, TaskKind.MEET], counts)
        return cls(
            kind=kinds.astype(np.int64),
            like=np.concatenate(like),
            place=np.concatenate(place),
            holds=holds,
            parts=np.cumsum(counts)[:-1].tolist(),
        )


def _columns(
    graph: TaskGraph, rows: Rows, kinds: _Kinds, lane: Int64, name: Int64
) -> dict[str, Int64]:
    """Columns of the new tasks in which they differ from what they are like."""
    tasks, n = graph.tasks, len(rows)
    n_rest, n_meets = len(kinds.kind) - 2 * n, int((kinds.kind == TaskKind.MEET).sum())
    is_meet, is_wait = kinds.kind == TaskKind.MEET, kinds.kind == TaskKind.HOST_WAIT
    nothing = np.full(n_rest, NONE, np.int64)
    _, first_row = np.unique(rows.call, return_index=True)
    first_call = len(graph.collectives.kind)
    caller = np.where(rows.on_host, rows.after, tasks.caller[rows.after])
    call = np.concatenate([rows.call, rows.call, nothing]) + first_call
    call[len(call) - n_meets :] = first_call + np.arange(n_meets)
    names = np.concatenate([name, name, nothing])
    names[len(names) - n_meets :] = name[first_row]
    lanes = np.concatenate([lane, lane, tasks.lane[kinds.like[2 * n :]]])
    none = np.zeros(len(kinds.kind), np.int64)
    dur_ns = none.copy()
    dur_ns[n : 2 * n] = rows.transfer_ns
    return {
        "kind": kinds.kind,
        "rank": np.where(is_meet, NONE, tasks.rank[kinds.like]),
        "lane": np.where(is_meet, NONE, lanes),
        "name": names,
        "op": none + NONE,
        "kernel_class": np.where(is_wait, KernelClass.OTHER, KernelClass.COLLECTIVE),
        "ts_ns": tasks.ts_ns[kinds.like] + tasks.dur_ns[kinds.like],
        "dur_ns": dur_ns,
        "caller": np.concatenate([caller, caller, nothing]),
        "collective": np.where(is_wait, NONE, call),
    }


def _labelled(tape: Tape, members: Int64) -> Tape:
    place = tape.labels.place.copy()
    place[members] = Place.COMMUNICATION
    return replace(tape, labels=replace(tape.labels, place=place))


def _with_lanes(
    graph: TaskGraph, additions: Sequence[Insertions], rows: Rows
) -> tuple[TaskGraph, Int64]:
    """Lanes for what runs beside, and links for what runs on hosts; per row its lane."""
    lanes = list(graph.lanes)
    number: dict[tuple[int, str], int] = {}
    lane = graph.tasks.lane[rows.after].astype(np.int64)
    apart = np.flatnonzero(rows.beside | rows.on_host)
    role = np.array([each.stream for each in additions])[rows.addition[apart]]
    role = np.where(rows.on_host[apart], "link of what was put in", role)
    like = lane[apart]
    rank = graph.tasks.rank[rows.after[apart]]
    for of_rank, of_role in sorted(set(zip(rank.tolist(), role.tolist(), strict=True))):
        mine = (rank == of_rank) & (role == of_role)
        first = lanes[int(like[mine][0])]
        on_host = first.kind == LaneKind.THREAD
        number[of_rank, of_role] = len(lanes)
        lanes.append(
            Lane(
                kind=LaneKind.LINK if on_host else LaneKind.STREAM,
                rank=of_rank,
                device=first.device,
                stream=NONE,
                role=of_role,
                steps=False,
            )
        )
        lane[apart[mine]] = number[of_rank, of_role]
    return replace(graph, lanes=tuple(lanes)), lane


def _with_names(graph: TaskGraph, additions: Sequence[Insertions]) -> tuple[TaskGraph, Int64]:
    """The names of the new tasks; per addition its number."""
    names = list(dict.fromkeys([*graph.names, *(each.name for each in additions)]))
    if names[: len(graph.names)] != list(graph.names):
        names = [*graph.names, *(each.name for each in additions)]
    index = {text: number for number, text in enumerate(names)}
    number = np.array([index[each.name] for each in additions], np.int64)
    return replace(graph, names=tuple(names)), number


def _with_calls(graph: TaskGraph, additions: Sequence[Insertions], rows: Rows) -> TaskGraph:
    """Columns of the new collectives and their groups; members of a group are all there."""
    calls = graph.collectives
    _, first = np.unique(rows.call, return_index=True)
    addition = rows.addition[first]
    size = np.array([each.group.size for each in additions], np.int64)[addition]
    transfer_ns = rows.transfer_ns[first]
    new: dict[str, Any] = {
        "kind": np.array([each.kind for each in additions])[addition],
        "group": len(graph.groups) + addition,
        "size_bytes": rows.size_bytes[first],
        "members_seen": size,
        "members_expected": size,
        "transfer_ns": transfer_ns,
        "outside_wait_low_ns": transfer_ns,
        "outside_wait_high_ns": transfer_ns,
        "on_host": rows.on_host[first],
        "item_bytes": np.full(len(first), NONE),
        "latency_ns": np.zeros(len(first), np.int64),
    }
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(calls, name), column.astype(getattr(calls, name).dtype)])
        for name, column in new.items()
    }
    return replace(
        graph,
        collectives=Collectives(**columns),
        groups=(*graph.groups, *(each.group for each in additions)),
    )
