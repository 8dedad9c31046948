"""The task graph with other gradient buckets: tasks added, lengthened, or left without length.

Ids of tasks and collectives that there were stay, so that what refers to them stays right; those of
new buckets follow after them. A bucket that ends where a recorded one ends uses its tasks.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ingest.vocab import EdgeKind, Evidence, TaskKind
from replay.engine.run import replay
from replay.graph.arrays import (
    NEVER_RELEASED_NS,
    NONE,
    Bool,
    Collectives,
    Int64,
    TaskGraph,
)
from replay.graph.csr import EdgeList, by_destination, concatenate, listed_edges, topological_order
from replay.graph.rules.base import edge_list
from whatif.transforms.base import Context
from whatif.transforms.cuts import Cut
from whatif.transforms.gradients import Sequence
from whatif.transforms.ready import Ready
from whatif.transforms.retime import resized_ns
from whatif.transforms.rewire import NO_EDGES, origin_with


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Tasks of the new buckets of one sequence. Rows are buckets in order, or members by rank."""

    sequence: Sequence
    cut: Cut
    template: Int64
    """Per new bucket: the recorded one in which it ends."""
    is_new: Bool
    """Per new bucket: it ends inside a recorded one; else that one's tasks are used."""
    call: Int64
    """Per new bucket: its collective."""
    transfer: Int64
    """Shape (ranks, new buckets); the task before each is its arrival."""
    dur_ns: Int64
    """Of the transfers, the same shape."""

    @property
    def sizes(self) -> Int64:
        """Bytes of each new bucket."""
        return np.diff(self.cut.ends, prepend=0)

    @property
    def host(self) -> Int64:
        """Host task that runs when a bucket is ready, shape (ranks, buckets); -1 for none."""
        return self.cut.pieces.task[:, self.cut.last_piece]

    @property
    def ready_ns(self) -> Int64:
        """Recorded moment at which a bucket is ready, shape (ranks, buckets)."""
        return self.cut.pieces.ready_ns[:, self.cut.last_piece]

    def like(self, rank: int, bucket: int) -> int:
        """Transfer of the recorded bucket that a new one is like, on a rank by its place."""
        return int(self.sequence.transfer[rank, self.template[bucket]])

    def new_members(self) -> Iterator[tuple[int, int, int]]:
        """Place of the rank, bucket and transfer of every task that is added."""
        for bucket in np.flatnonzero(self.is_new).tolist():
            for rank in range(len(self.sequence.ranks)):
                yield rank, bucket, int(self.transfer[rank, bucket])

    @property
    def absorbed(self) -> Int64:
        """Recorded buckets of which nothing is left."""
        kept = self.template[~self.is_new]
        return np.setdiff1d(np.arange(len(self.sequence.calls)), kept)


def rebuilt(ready: Ready, context: Context, changed: list[tuple[Sequence, Cut]]) -> TaskGraph:
    """The graph with other buckets; ids of tasks and collectives that there were stay."""
    graph = ready.graph
    plans: list[Plan] = []
    n_tasks, n_calls = graph.n_tasks, len(graph.collectives.kind)
    for sequence, cut in changed:
        plan = _plan(graph, context, (sequence, cut), n_tasks, n_calls)
        n_new = int(plan.is_new.sum())
        n_calls += n_new
        n_tasks += n_new * (2 * len(sequence.ranks) + 1)
        plans.append(plan)
    grown = _with_tasks(graph, plans)
    edges = _edges(ready, plans)
    columns = by_destination(edges, grown.n_tasks)
    return _placed(replace(grown, edges=columns, order=topological_order(columns)), graph.n_tasks)


def _placed(grown: TaskGraph, n_before: int) -> TaskGraph:
    """The graph with the replayed starts of added tasks as their times: they have no other."""
    ts_ns = grown.tasks.ts_ns.copy()
    ts_ns[n_before:] = replay(grown).start_ns[n_before:]
    return replace(grown, tasks=replace(grown.tasks, ts_ns=ts_ns))


def _plan(
    graph: TaskGraph, context: Context, one: tuple[Sequence, Cut], n_tasks: int, n_calls: int
) -> Plan:
    """Which tasks stand for which bucket, those to be added among them."""
    sequence, cut = one
    template = np.searchsorted(sequence.ends, cut.ends)
    is_new = sequence.ends[template] != cut.ends
    n_ranks, n_new = len(sequence.ranks), int(is_new.sum())
    transfer = sequence.transfer[:, template].astype(np.int64)
    added = n_tasks + (2 * n_ranks + 1) * np.arange(n_new) + 2 * np.arange(n_ranks)[:, None] + 1
    transfer[:, is_new] = added
    call = sequence.calls[template].copy()
    call[is_new] = n_calls + np.arange(n_new)
    return Plan(
        sequence=sequence,
        cut=cut,
        template=template,
        is_new=is_new,
        call=call,
        transfer=transfer,
        dur_ns=_durations(graph, context, sequence, cut),
    )


def _durations(graph: TaskGraph, context: Context, sequence: Sequence, cut: Cut) -> Int64:
    """Transfers of the new buckets, ns, shape (ranks, buckets).

    Each recorded bucket that it shares bytes with says how long one of the new size takes; they
    count by the bytes shared.
    """
    begins, ends = cut.ends - np.diff(cut.ends, prepend=0), cut.ends
    old_begins = sequence.ends - sequence.sizes
    shared = np.minimum(ends[:, None], sequence.ends) - np.maximum(begins[:, None], old_begins)
    new, old = np.nonzero(shared > 0)
    weight = shared[new, old] / (ends - begins)[new]
    n_ranks = len(sequence.ranks)
    resized = resized_ns(
        graph, context, sequence.transfer[:, old].ravel(), np.tile((ends - begins)[new], n_ranks)
    )
    dur_ns = np.zeros((n_ranks, len(ends)))
    np.add.at(dur_ns.T, new, (weight * resized.reshape(n_ranks, -1)).T)
    return np.rint(dur_ns).astype(np.int64)


def _with_tasks(graph: TaskGraph, plans: list[Plan]) -> TaskGraph:
    """The graph with the new buckets' tasks appended, the absorbed ones without length."""
    copied = [_copied_tasks(graph, plan) for plan in plans]
    source = np.concatenate([np.zeros(0, np.int64), *(each["source"] for each in copied)])
    columns: dict[str, Any] = {
        field.name: np.concatenate(
            [getattr(graph.tasks, field.name), getattr(graph.tasks, field.name)[source]]
        )
        for field in fields(graph.tasks)
    }
    added = slice(graph.n_tasks, None)
    for name in ("dur_ns", "collective"):
        columns[name][added] = np.concatenate([each[name] for each in copied])
    columns["residual_ns"][added] = 0
    columns["unexplained_ns"][added] = 0
    columns["release_ns"][added] = NEVER_RELEASED_NS
    for plan in plans:
        kept = plan.transfer[:, ~plan.is_new]
        columns["dur_ns"][kept] = plan.dur_ns[:, ~plan.is_new]
        gone = plan.sequence.transfer[:, plan.absorbed]
        columns["dur_ns"][gone] = 0
        columns["dur_ns"][plan.sequence.transfer - 1] = 0
    tasks = replace(graph.tasks, **columns)
    origin = origin_with(graph, len(source))
    return replace(graph, tasks=tasks, collectives=_collectives(graph, plans), origin=origin)


def _copied_tasks(graph: TaskGraph, plan: Plan) -> dict[str, Int64]:
    """Columns of the tasks to be appended: which one each is like, and in what it differs."""
    source, dur_ns, collective = [], [], []
    meet = _meetings(graph)
    for bucket in np.flatnonzero(plan.is_new).tolist():
        transfer = plan.sequence.transfer[:, plan.template[bucket]]
        template = plan.sequence.calls[plan.template[bucket]]
        nothing = np.zeros(len(transfer), np.int64)
        lengths = np.stack([nothing, plan.dur_ns[:, bucket]], axis=1).ravel()
        source += [np.stack([transfer - 1, transfer], axis=1).ravel(), meet[template]]
        dur_ns += [lengths, np.zeros(1, np.int64)]
        collective.append(np.full(2 * len(transfer) + 1, plan.call[bucket]))
    return {
        name: np.concatenate([np.zeros(0, np.int64), *map(np.atleast_1d, values)])
        for name, values in (("source", source), ("dur_ns", dur_ns), ("collective", collective))
    }


def _meetings(graph: TaskGraph) -> Int64:
    """Per collective, the task in which its members meet."""
    meet = np.flatnonzero(graph.tasks.kind == TaskKind.MEET)
    found = np.full(len(graph.collectives.kind), NONE, np.int64)
    found[graph.tasks.collective[meet]] = meet
    return found


def _collectives(graph: TaskGraph, plans: list[Plan]) -> Collectives:
    """Columns of the collectives with those of new buckets appended."""
    calls = graph.collectives
    source = np.concatenate(
        [plan.sequence.calls[plan.template[plan.is_new]] for plan in plans]
    ).astype(np.int64)
    columns: dict[str, Any] = {
        field.name: np.concatenate([getattr(calls, field.name), getattr(calls, field.name)[source]])
        for field in fields(calls)
    }
    for plan in plans:
        columns["size_bytes"][plan.sequence.calls[plan.absorbed]] = 0
        columns["size_bytes"][plan.call] = plan.sizes
        columns["transfer_ns"][plan.call] = np.median(plan.dur_ns, axis=0).astype(np.int64)
    return replace(calls, **columns)


def _edges(ready: Ready, plans: list[Plan]) -> EdgeList:
    """All edges: the recorded ones but the order inside a sequence, and those of new buckets."""
    old = listed_edges(ready.graph)
    inside = np.zeros(len(old), bool)
    lag_ns = old.lag_ns.copy()
    added = []
    for plan in plans:
        incoming = _Incoming.of(ready.graph, old, plan.sequence)
        inside |= incoming.inside
        others_later_ns = {
            arrival: ready.others_later_ns(arrival)
            for arrival in (plan.sequence.transfer - 1).ravel().tolist()
        }
        lag_ns += _later_ns(ready, others_later_ns, old)
        added += [
            _chained(ready, plan, incoming),
            _launched(ready, plan, others_later_ns),
            _after_kernels(ready, plan, others_later_ns),
            _met(plan),
            _awaited(plan, old, incoming),
        ]
    return concatenate([replace(old, lag_ns=lag_ns).select(~inside), *added])


def _later_ns(ready: Ready, others_later_ns: dict[int, int], old: EdgeList) -> Int64:
    """Per edge, what is added to its lag, ns.

    Members that are not in the files come as much later than those that are, however many buckets
    there are: the wait for them counts from when a bucket is ready, not from the end of the last.
    """
    later_ns = np.zeros(len(old), np.int64)
    start = ready.graph.edges.start
    for arrival, later in others_later_ns.items():
        mine = slice(int(start[arrival]), int(start[arrival + 1]))
        later_ns[mine] = np.where(old.kind[mine] != EdgeKind.STREAM_ORDER, later, 0)
    return later_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Incoming:
    """How the recorded buckets of a sequence follow each other and are awaited."""

    inside: Bool
    """Per edge: it orders two buckets of the sequence."""
    order_lag_ns: int
    at_once: int
    """Buckets that may run at the same time: worker threads of a library on the host, else 1."""
    bucket_of: Int64
    """Per task: the recorded bucket that it transfers; -1."""
    arrival: Bool
    """Per task: it is the arrival of a recorded bucket."""

    @classmethod
    def of(cls, graph: TaskGraph, old: EdgeList, sequence: Sequence) -> "_Incoming":
        """Read off the edges of the recording."""
        bucket_of = np.full(graph.n_tasks, NONE, np.int64)
        bucket_of[sequence.transfer] = np.arange(len(sequence.calls))
        arrival = np.zeros(graph.n_tasks, bool)
        arrival[sequence.transfer - 1] = True
        order = old.kind == EdgeKind.STREAM_ORDER
        inside = order & (bucket_of[old.src] >= 0) & arrival[old.dst]
        lags = old.lag_ns[inside]
        lanes = max(len(np.unique(graph.tasks.lane[each])) for each in sequence.transfer)
        return cls(
            inside=inside,
            order_lag_ns=int(np.median(lags)) if len(lags) else 0,
            at_once=lanes,
            bucket_of=bucket_of,
            arrival=arrival,
        )


def _chained(ready: Ready, plan: Plan, incoming: _Incoming) -> EdgeList:
    """Order of the new buckets, and what else had been launched on their lanes before them."""
    width = incoming.at_once
    src = plan.transfer[:, :-width].ravel()
    dst = plan.transfer[:, width:].ravel() - 1
    chain = edge_list(
        src,
        dst,
        lag_ns=incoming.order_lag_ns,
        kind=EdgeKind.STREAM_ORDER,
        evidence=Evidence.INFERRED,
    )
    foreign = []
    left_out = incoming.arrival | (incoming.bucket_of >= 0)
    for rank, bucket, task in plan.new_members():
        arrival = plan.like(rank, bucket) - 1
        before = ready.before_on_lane(arrival, int(plan.ready_ns[rank, bucket]), left_out)
        if before != NONE:
            foreign.append((before, task - 1, incoming.order_lag_ns))
    return concatenate([chain, _edge_list(foreign, EdgeKind.STREAM_ORDER, from_start=False)])


def _launched(ready: Ready, plan: Plan, others_later_ns: dict[int, int]) -> EdgeList:
    """A new bucket is launched by the host once its last gradient is ready."""
    found = []
    for rank, bucket, task in plan.new_members():
        arrival = plan.like(rank, bucket) - 1
        lag_ns = ready.launch_lag_ns(arrival) + others_later_ns[arrival]
        host, caller = int(plan.host[rank, bucket]), int(ready.graph.tasks.caller[arrival])
        if host != NONE:
            lag_ns += ready.offset_ns(host, int(plan.ready_ns[rank, bucket]))
            found.append((host, task - 1, lag_ns))
        elif caller != NONE:
            found.append((caller, task - 1, lag_ns + int(ready.graph.tasks.dur_ns[caller])))
    return _edge_list(found, EdgeKind.LAUNCH, from_start=True)


def _after_kernels(ready: Ready, plan: Plan, others_later_ns: dict[int, int]) -> EdgeList:
    """On a device it waits for the kernels that had been launched when its gradients were ready."""
    found = []
    for rank, bucket, task in plan.new_members():
        arrival = plan.like(rank, bucket) - 1
        later_ns = others_later_ns[arrival]
        moment_ns = int(plan.ready_ns[rank, bucket])
        found += [
            (kernel, task - 1, lag_ns + later_ns)
            for kernel, lag_ns in ready.waited_kernels(arrival, moment_ns)
        ]
    return _edge_list(found, EdgeKind.EVENT_WAIT, from_start=False)


def _edge_list(found: list[tuple[int, int, int]], kind: EdgeKind, *, from_start: bool) -> EdgeList:
    """Edges from (source, destination, lag)."""
    src, dst, lag_ns = np.array(found, np.int64).reshape(-1, 3).T
    return edge_list(
        src, dst, lag_ns=lag_ns, kind=kind, evidence=Evidence.INFERRED, from_start=from_start
    )


def _met(plan: Plan) -> EdgeList:
    """The members of a new bucket meet, then move its bytes."""
    transfer = plan.transfer[:, plan.is_new]
    meet = np.broadcast_to(transfer[-1] + 1, transfer.shape).ravel()
    return concatenate(
        [
            edge_list(transfer.ravel() - 1, meet, lag_ns=0, kind=EdgeKind.COLLECTIVE),
            edge_list(meet, transfer.ravel(), lag_ns=0, kind=EdgeKind.COLLECTIVE),
        ]
    )


def _awaited(plan: Plan, old: EdgeList, incoming: _Incoming) -> EdgeList:
    """What waited for a recorded bucket waits for every new one that has some of its bytes."""
    begins = plan.cut.ends - plan.sizes
    old_begins = plan.sequence.ends - plan.sequence.sizes
    waits = (incoming.bucket_of[old.src] >= 0) & ~incoming.arrival[old.dst]
    waits &= old.kind != EdgeKind.STREAM_ORDER
    found = [NO_EDGES]
    for edge in np.flatnonzero(waits):
        recorded = incoming.bucket_of[old.src[edge]]
        rank = int(np.flatnonzero(plan.sequence.transfer[:, recorded] == old.src[edge])[0])
        shares = (begins < plan.sequence.ends[recorded]) & (plan.cut.ends > old_begins[recorded])
        others = plan.transfer[rank, shares]
        others = others[others != old.src[edge]]
        copies = old.select(np.full(len(others), edge))
        found.append(replace(copies, src=others.astype(np.int32)))
    return concatenate(found)
