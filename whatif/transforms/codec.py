"""Work that is done before and after a transfer, on its own stream."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ingest.vocab import EdgeKind, Evidence, KernelClass, TaskKind
from replay.graph.arrays import NEVER_RELEASED_NS, NONE, Bool, Int64, TaskGraph, Tasks
from replay.graph.csr import EdgeList, by_destination, concatenate, listed_edges, topological_order
from replay.graph.rules.base import edge_list
from whatif.transforms.rewire import origin_with


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """Columns with one row per transfer."""

    transfer: Int64
    encode_ns: Int64
    """Before the arrival."""
    decode_ns: Int64
    """After the transfer."""
    name: str


def with_codec(graph: TaskGraph, codec: Codec) -> TaskGraph:
    """The graph with two tasks more per transfer; ids of tasks that there were stay.

    What the arrival waited for, the encoding waits for; what waited for the transfer, waits for
    the decoding.
    """
    n = len(codec.transfer)
    encode = graph.n_tasks + np.arange(n)
    decode = encode + n
    edges = by_destination(_edges(graph, codec, encode, decode), graph.n_tasks + 2 * n)
    boundaries = graph.boundaries
    after = np.arange(graph.n_tasks)
    after[codec.transfer] = decode
    return replace(
        graph,
        tasks=_tasks(graph, codec),
        edges=edges,
        order=topological_order(edges),
        boundaries=replace(boundaries, task=after[boundaries.task].astype(np.int32)),
        origin=origin_with(graph, 2 * len(codec.transfer)),
        names=(*graph.names, f"{codec.name} encode", f"{codec.name} decode"),
    )


def _tasks(graph: TaskGraph, codec: Codec) -> Tasks:
    """Columns with the encodings and then the decodings appended."""
    tasks, n = graph.tasks, len(codec.transfer)
    source = np.concatenate([codec.transfer - 1, codec.transfer])
    columns: dict[str, Any] = {
        field.name: np.concatenate([getattr(tasks, field.name), getattr(tasks, field.name)[source]])
        for field in fields(tasks)
    }
    added = slice(graph.n_tasks, None)
    on_host = graph.collectives.on_host[tasks.collective[source]]
    end_ns = tasks.ts_ns[codec.transfer] + tasks.dur_ns[codec.transfer]
    columns["kind"][added] = np.where(on_host, TaskKind.HOST_WORK, TaskKind.KERNEL)
    columns["kernel_class"][added] = KernelClass.ELEMENTWISE
    columns["name"][added] = len(graph.names) + np.repeat([0, 1], n)
    columns["ts_ns"][added] = np.concatenate([tasks.ts_ns[codec.transfer - 1], end_ns])
    columns["dur_ns"][added] = np.concatenate([codec.encode_ns, codec.decode_ns])
    columns["release_ns"][added] = NEVER_RELEASED_NS
    columns["release_ns"][added][:n] = tasks.release_ns[codec.transfer - 1]
    for name, value in (("residual_ns", 0), ("unexplained_ns", 0), ("slice_id", NONE)):
        columns[name][added] = value
    columns["collective"][added] = NONE
    return replace(tasks, **columns)


def _edges(graph: TaskGraph, codec: Codec, encode: Int64, decode: Int64) -> EdgeList:
    edges = listed_edges(graph)
    into = np.arange(graph.n_tasks)
    into[codec.transfer - 1] = encode
    after = np.arange(graph.n_tasks)
    after[codec.transfer] = decode
    from_end = _leaves_at_end(graph, edges)
    moved = replace(
        edges,
        src=np.where(from_end, after[edges.src], edges.src).astype(np.int32),
        dst=into[edges.dst].astype(np.int32),
    )
    return concatenate([moved, _order(encode, codec.transfer - 1), _order(codec.transfer, decode)])


def _leaves_at_end(graph: TaskGraph, edges: EdgeList) -> Bool:
    """Edges that count from the end of a transfer."""
    found: Bool = (graph.tasks.kind[edges.src] == TaskKind.TRANSFER) & ~edges.from_start
    return found


def _order(src: Int64, dst: Int64) -> EdgeList:
    return edge_list(src, dst, lag_ns=0, kind=EdgeKind.STREAM_ORDER, evidence=Evidence.INFERRED)
