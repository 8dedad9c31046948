"""The door: where every task of a run belongs, and the model that it computes."""

import re
from dataclasses import dataclass, field

import numpy as np

from ingest.vocab import CollectiveKind, TaskKind
from replay.graph.arrays import NONE, Bool, Int8, Int32, TaskGraph
from whatif.description.described import Finding
from whatif.description.doing import Doing
from whatif.description.labels import Labels
from whatif.description.model import told_of_model
from whatif.description.named import named_layers
from whatif.description.parts import Parts, parts_of
from whatif.description.passes import RECEIVES, SENDS, passes_of
from whatif.description.places import places_of
from whatif.description.spread import spread
from whatif.description.strokes import Strokes, strokes_of
from whatif.models.places import Part, Pass
from whatif.models.shape import ModelShape
from whatif.parallelism import Axis, Layout

_MUCH_LARGER = 1.4
_BETWEEN_TWO = (CollectiveKind.SEND, CollectiveKind.RECV, CollectiveKind.SEND_RECV)
_SEND = re.compile(r"^c10d::send$|^gloo:send$|Send(?!Recv)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Labels and what they tell of the model."""

    labels: Labels
    model: ModelShape = field(default_factory=ModelShape)
    micro_batches: dict[int, int] = field(default_factory=dict)
    """Forward passes of a step, by rank in the files."""
    samples: float | None = None
    """Of a micro-batch."""
    sequence: int | None = None
    """Tokens of a sample, as one rank sees them."""
    rank_layers: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Layers that each rank in the files computes, in its own count from 0 (or as FSDP names
    them); empty where none were told apart."""
    findings: tuple[Finding, ...] = ()
    doubts: tuple[str, ...] = ()


def label(graph: TaskGraph, layout: Layout) -> Labelled:
    """Say of every task where it belongs.

    Args:
        graph: of a run.
        layout: what its communicators are for.
    """
    ranks = []
    evidence: dict[int, str] = {}
    for strokes in strokes_of(graph):
        named = named_layers(graph, strokes)
        passes = passes_of(strokes, named.layer, _messages(graph, layout, strokes))
        parts = parts_of(strokes, passes, named, stepped=graph.steps_recorded)
        ranks.append((strokes, parts, places_of(strokes, parts)))
        evidence[strokes.rank] = named.evidence
    told = told_of_model(graph, layout, ranks)
    return Labelled(
        labels=spread(graph, ranks),
        model=told.model,
        micro_batches={strokes.rank: parts.passes for strokes, parts, _ in ranks},
        samples=told.samples,
        sequence=told.sequence,
        rank_layers={strokes.rank: parts.layers for strokes, parts, _ in ranks},
        findings=told.findings,
        doubts=_doubts([(strokes, parts) for strokes, parts, _ in ranks]),
    )


def _messages(graph: TaskGraph, layout: Layout, strokes: Strokes) -> Int8:
    """SENDS or RECEIVES of strokes between stages of a pipeline; 0 of others.

    On a device these are kernels; on the host the stroke that begins where a transfer was issued.
    """
    tasks, calls = graph.tasks, graph.collectives
    if strokes.on_device:
        member = np.flatnonzero((strokes.doing == Doing.MESSAGE) & (strokes.collective != NONE))
        call = strokes.collective[member]
    else:
        mine = (tasks.kind == TaskKind.TRANSFER) & (tasks.rank == strokes.rank)
        transfer = np.flatnonzero(mine & (tasks.caller != NONE) & (tasks.step >= 0))
        issuer = tasks.caller[transfer]
        ends_ns = tasks.ts_ns[issuer] + tasks.dur_ns[issuer]
        member = np.searchsorted(strokes.issue_ns, ends_ns)
        call = tasks.collective[transfer]
        member, call = member[member < len(strokes)], call[member < len(strokes)]
    stages = [role.axis in (Axis.PIPELINE, Axis.UNCLEAR) for role in layout.roles]
    kind = calls.kind[call]
    between = np.array([*stages, False], bool)[calls.group[call]] & np.isin(kind, _BETWEEN_TWO)
    name = tasks.name[strokes.task[member]]
    sends = kind == CollectiveKind.SEND
    named = np.array([_SEND.search(one) is not None for one in graph.names] + [False], bool)
    sends |= named[name] | _is_under(graph, strokes.node[member], named)
    found = np.zeros(len(strokes), np.int8)
    found[member[between & ~sends]] = RECEIVES
    found[member[between & sends]] = SENDS
    return found


def _is_under(graph: TaskGraph, node: Int32, named: Bool) -> Bool:
    """One of the names is among the stacks around strokes."""
    scopes = graph.scopes
    found = np.zeros(len(node), bool)
    node = node.astype(np.int64)
    while (node >= 0).any():
        inside = node >= 0
        found[inside] |= named[scopes.name[node[inside]]]
        node[inside] = scopes.parent[node[inside]]
    return found


def _doubts(ranks: list[tuple[Strokes, Parts]]) -> tuple[str, ...]:
    doubts = []
    if any(not parts.layers for _, parts in ranks):
        doubts.append("layers could not be told apart: the whole model counts as one layer")
    if any(parts.uneven for _, parts in ranks):
        doubts.append("passes of the step do not all have the same number of layers")
    larger = max((_larger_layer(*one) for one in ranks), default=0.0)
    if larger:
        doubts.append(
            f"layers are not alike: one has {larger:.1f} times the products of the usual one"
        )
    return tuple(doubts)


def _larger_layer(strokes: Strokes, parts: Parts) -> float:
    """Products of the largest layer over those of the usual one; 0 where none is much larger."""
    rows = (parts.part == Part.LAYER) & (parts.direction == Pass.FORWARD)
    rows &= (strokes.doing == Doing.PRODUCT) & (strokes.op_id >= 0)
    cells = np.stack([strokes.step, parts.micro_batch, parts.layer, strokes.op_id])[:, rows]
    calls = np.unique(cells, axis=1)
    if not parts.layers or not calls.shape[1]:
        return 0.0
    _, count = np.unique(calls[:3], axis=1, return_counts=True)
    ratio = float(count.max() / np.median(count))
    return ratio if ratio >= _MUCH_LARGER else 0.0
