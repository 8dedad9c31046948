"""Labels of all tasks from those of the strokes of their rank."""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import Phase, TaskKind
from replay.graph.arrays import NONE, Bool, Int8, Int32, Int64, TaskGraph
from whatif.description.labels import Labels
from whatif.description.parts import Parts
from whatif.description.strokes import Strokes
from whatif.models.places import Part, Pass, Place


@dataclass(slots=True, kw_only=True)
class _Table:
    """Columns by task, being filled."""

    part: Int8
    direction: Int8
    layer: Int32
    micro_batch: Int32
    place: Int8

    def copy(self, to: Int64, source: Int64) -> None:
        """Tasks take over the labels of others, but for the place."""
        self.part[to] = self.part[source]
        self.direction[to] = self.direction[source]
        self.layer[to] = self.layer[source]
        self.micro_batch[to] = self.micro_batch[source]


def spread(graph: TaskGraph, ranks: list[tuple[Strokes, Parts, Int8]]) -> Labels:
    """All tasks of the graph: strokes as they are, host work by what it launches next."""
    n = graph.n_tasks
    table = _Table(
        part=np.zeros(n, np.int8),
        direction=np.zeros(n, np.int8),
        layer=np.full(n, -1, np.int32),
        micro_batch=np.full(n, -1, np.int32),
        place=np.zeros(n, np.int8),
    )
    for strokes, parts, place in ranks:
        _take(strokes, parts, place, table)
    for strokes, _, _ in ranks:
        _host(graph, strokes, table)
    _calls(graph, table)
    return Labels(
        part=table.part,
        direction=table.direction,
        layer=table.layer,
        micro_batch=table.micro_batch,
        place=table.place,
    )


def _take(strokes: Strokes, parts: Parts, place: Int8, table: _Table) -> None:
    inside = np.isin(parts.part, (Part.EMBEDDING, Part.LAYER, Part.HEAD))
    task = strokes.task
    table.part[task] = parts.part
    table.direction[task] = np.where(inside, parts.direction, Pass.NONE)
    table.layer[task] = np.where(parts.part == Part.LAYER, parts.layer, -1)
    table.micro_batch[task] = np.where(inside, parts.micro_batch, -1)
    table.place[task] = place


def _host(graph: TaskGraph, strokes: Strokes, table: _Table) -> None:
    """Host work belongs to the stroke that it leads to, on the host itself to the one before."""
    tasks = graph.tasks
    if not len(strokes):
        return
    mine = (tasks.rank == strokes.rank) & (tasks.kind <= TaskKind.HOST_WAIT) & (tasks.step >= 0)
    mine &= ~tasks.fixed
    mine[strokes.task] = False
    host = np.flatnonzero(mine)
    last = len(strokes) - 1
    if strokes.on_device:
        at = np.searchsorted(strokes.issue_ns, tasks.ts_ns[host], side="left")
        ahead = np.minimum(at, last)
        right = (at <= last) & (strokes.step[ahead] == tasks.step[host])
        table.copy(host[right], strokes.task[ahead[right]])
        _trailing(graph, strokes, host[~right], at[~right] - 1, table)
        return
    at = np.searchsorted(strokes.issue_ns, tasks.ts_ns[host], side="right") - 1
    ahead = np.minimum(at + 1, last)
    syncs = table.part[strokes.task[ahead]] == Part.SYNC
    syncs &= (strokes.step[ahead] == tasks.step[host]) & (tasks.kind[host] == TaskKind.HOST_WAIT)
    source = np.where(syncs, ahead, at)
    right = (source >= 0) & (strokes.step[source] == tasks.step[host])
    table.copy(host[right], strokes.task[source[right]])
    table.part[host[~right]] = Part.ENTRY


def _trailing(
    graph: TaskGraph, strokes: Strokes, host: Int64, before: Int64, table: _Table
) -> None:
    """Behind the last launch of a step: what the host still does there."""
    del graph
    known = before >= 0
    table.part[host] = Part.EXIT
    optimizes = known & (strokes.phase[np.maximum(before, 0)] == Phase.OPTIMIZER)
    table.part[host[optimizes]] = Part.EXIT


def _calls(graph: TaskGraph, table: _Table) -> None:
    """Arrivals go with their transfers, transfers on the host with who issues them."""
    tasks = graph.tasks
    on_link = (tasks.kind == TaskKind.TRANSFER) & (table.part == Part.OTHER)
    on_link &= (tasks.caller != NONE) & (tasks.step >= 0) & ~tasks.fixed
    transfer = np.flatnonzero(on_link)
    table.copy(transfer, tasks.caller[transfer].astype(np.int64))
    moves = (tasks.kind == TaskKind.TRANSFER) & (table.part != Part.OTHER)
    table.place[moves] = Place.COMMUNICATION
    arrive = np.flatnonzero(tasks.kind == TaskKind.ARRIVE)
    source = _transfer_of(graph, arrive)
    right = source >= 0
    table.copy(arrive[right], source[right])
    table.place[arrive[right]] = table.place[source[right]]
    meet = np.flatnonzero(tasks.kind == TaskKind.MEET)
    transfers = np.flatnonzero(tasks.kind == TaskKind.TRANSFER)[::-1]
    first = np.full(len(graph.collectives.kind), NONE, np.int64)
    first[tasks.collective[transfers]] = transfers
    source = first[tasks.collective[meet]]
    right = source >= 0
    table.copy(meet[right], source[right])
    table.place[meet[right]] = Place.COMMUNICATION


def _transfer_of(graph: TaskGraph, arrive: Int64) -> Int64:
    """Transfer of the same member: the same recorded row."""
    tasks = graph.tasks
    transfer = np.flatnonzero(tasks.kind == TaskKind.TRANSFER)
    key = tasks.slice_id[transfer]
    order = np.argsort(key, kind="stable")
    if not len(order):
        return np.full(len(arrive), NONE, np.int64)
    at = np.minimum(np.searchsorted(key[order], tasks.slice_id[arrive]), len(order) - 1)
    found = transfer[order[at]]
    same: Bool = (tasks.slice_id[found] == tasks.slice_id[arrive]) & (tasks.slice_id[arrive] >= 0)
    same |= (tasks.collective[found] == tasks.collective[arrive]) & (
        tasks.rank[found] == tasks.rank[arrive]
    )
    return np.where(same, found, NONE)
