"""Layers that names tell: nn.Module rows, annotations of people, marks of FSDP."""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from replay.graph.arrays import Bool, Int32, Int64, TaskGraph
from replay.graph.scopes import ANNOTATION, MODULE
from whatif.description.doing import Doing
from whatif.description.strokes import Strokes

_MODULE = re.compile(r"^nn\.Module: (?P<stem>.+)_(?P<number>\d+)$")
_ANNOTATED = re.compile(r"^(?P<stem>.*(?:layer|block)s?)[ ._\[(-]*(?P<number>\d+)[\])]*$", re.I)
_FSDP = re.compile(
    r"^FSDP::(?P<when>pre|post)_forward \((?P<stem>(?:[\w.]*\.)?)(?P<number>\d+)(?:\.[\w.]+)?\)$"
)
_LAYER_LIKE = re.compile(r"layer|block|bottleneck|decoder|encoder", re.I)
_LEAST_COVER = 0.4
"""Part of the products under modules that a kind of module covers at least to be the layer."""
_SEVERAL = 4
"""Different things that a layer does at least: norm, products, attention."""
_WEIGHTY = (Doing.PRODUCT, Doing.ATTENTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Layers of the strokes of a rank, by name."""

    layer: Int32
    """Of forward strokes (and of others through their forward); -1 where no name tells."""
    evidence: str
    """In words; empty where nothing is named."""


def named_layers(graph: TaskGraph, strokes: Strokes) -> Named:
    """By the surest names that there are."""
    for found in (_by_modules(graph, strokes), _by_marks(graph, strokes)):
        if found is not None:
            return found
    return Named(layer=np.full(len(strokes), -1, np.int32), evidence="")


def _by_modules(graph: TaskGraph, strokes: Strokes) -> Named | None:
    """The outermost kind of module that repeats, holds others and covers the products."""
    scopes = graph.scopes
    if not len(scopes.parent):
        return None
    inside, holds = _numbered(graph)
    holds += [stem for stem in _working(strokes, inside) if stem not in holds]
    node = np.where(strokes.node >= 0, strokes.node, len(scopes.parent))
    weighty = np.isin(strokes.doing, _WEIGHTY) & (strokes.forward_node < 0)
    time_ns = np.bincount(node[weighty], strokes.dur_ns[weighty], minlength=len(scopes.parent) + 1)[
        :-1
    ]
    whole_ns = sum(time_ns[one] for one in range(len(inside)) if inside[one])
    best: tuple[bool, int, float, str] | None = None
    for stem in holds:
        covered_ns = sum(time_ns[one] for one, stems in enumerate(inside) if stem in stems)
        numbers = {stems[stem][0] for stems in inside if stem in stems}
        depth = min(stems[stem][1] for stems in inside if stem in stems)
        if len(numbers) > 1 and covered_ns >= _LEAST_COVER * max(whole_ns, 1):
            rank = (_LAYER_LIKE.search(stem) is None, depth, -covered_ns, stem)
            best = rank if best is None else min(best, rank)
    if best is None:
        return None
    stem = best[3]
    number = np.array([stems[stem][0] if stem in stems else -1 for stems in inside] + [-1])
    around = np.where(strokes.forward_node >= 0, strokes.forward_node, strokes.node)
    layer = number[around]
    used = np.unique(layer[layer >= 0])
    ordinal = np.where(layer >= 0, np.searchsorted(used, layer), -1).astype(np.int32)
    return Named(layer=ordinal, evidence=f"{len(used)} of {stem}")


def _working(strokes: Strokes, inside: list[dict[str, tuple[int, int]]]) -> list[str]:
    """Stems whose instances do several things themselves, as no module of one operator does."""
    mine = np.flatnonzero(strokes.node >= 0)
    pairs = np.unique(np.stack([strokes.node[mine], strokes.token[mine]]), axis=1)
    tokens: dict[tuple[str, int], set[int]] = {}
    for node, token in pairs.T.tolist():
        for stem, (number, _) in inside[node].items():
            tokens.setdefault((stem, number), set()).add(token)
    return list({stem: None for (stem, _), found in tokens.items() if len(found) >= _SEVERAL})


def _numbered(graph: TaskGraph) -> tuple[list[dict[str, tuple[int, int]]], list[str]]:
    """Per node: of each stem around it the number and depth; and the stems that hold others."""
    scopes = graph.scopes
    inside: list[dict[str, tuple[int, int]]] = []
    holds: dict[str, None] = {}
    for around, name, kind in zip(
        scopes.parent.tolist(), scopes.name.tolist(), scopes.kind.tolist(), strict=True
    ):
        before = inside[around] if around >= 0 else {}
        found = _stem(graph.names[name], kind)
        if found is None:
            inside.append(before)
            continue
        stem, number = found
        holds |= dict.fromkeys(before)
        inside.append(before if stem in before else {**before, stem: (number, len(before))})
        if kind == ANNOTATION:
            holds[stem] = None
    return inside, list(holds)


def _stem(name: str, kind: int) -> tuple[str, int] | None:
    pattern = {MODULE: _MODULE, ANNOTATION: _ANNOTATED}.get(kind)
    found = pattern.match(name) if pattern else None
    if found is None or name.startswith(("FSDP::", "##")):
        return None
    return found["stem"].strip(), int(found["number"])


def _by_marks(graph: TaskGraph, strokes: Strokes) -> Named | None:
    """Between `FSDP::pre_forward (layers.3)` and its `post_forward`."""
    scopes = graph.scopes
    mine = np.flatnonzero(scopes.mark_rank == strokes.rank)
    marks = [(at, _FSDP.match(graph.names[scopes.mark_name[at]])) for at in mine.tolist()]
    told = [(at, one) for at, one in marks if one is not None]
    if not told:
        return None
    stem = Counter(one["stem"] for _, one in told).most_common(1)[0][0]
    layer = np.full(len(strokes), -1, np.int32)
    forward = strokes.forward_ns < 0
    opened: dict[int, int] = {}
    for at, one in told:
        if one["stem"] != stem:
            continue
        number = int(one["number"])
        if one["when"] == "pre":
            opened[number] = int(scopes.mark_ns[at])
        elif number in opened:
            _fill(
                layer,
                strokes.issue_ns,
                forward,
                opened.pop(number),
                int(scopes.mark_end_ns[at]),
                number,
            )
    found = np.unique(layer[layer >= 0])
    if not len(found):
        return None
    name = stem.rstrip(".") or "modules"
    return Named(layer=layer, evidence=f"FSDP names {len(found)} of {name}")


def _fill(
    layer: Int32, issue_ns: Int64, forward: Bool, begin_ns: int, end_ns: int, number: int
) -> None:
    low, high = np.searchsorted(issue_ns, [begin_ns, end_ns])
    inside = np.arange(low, high)
    layer[inside[forward[low:high]]] = number
