"""The shape of the model, from the products and attentions of its layers."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ingest.vocab import CollectiveKind
from replay.graph.arrays import TaskGraph
from whatif.description.described import Finding, Sure
from whatif.description.doing import Doing
from whatif.description.experts import (
    chosen,
    dense_layers,
    expert_width,
    is_gated_expert,
    shared_experts,
    without_experts,
)
from whatif.description.placed import Ranks, products_at, strokes_at, usual_product
from whatif.description.products import dims_of
from whatif.models.places import Part, Pass, Place
from whatif.models.shape import ModelShape, as_found
from whatif.parallelism import Axis, Layout

_ATTENTION_DIMS = 4
LEAST_WIDTH = 16
"""Of a model; matrix units work on tiles of at least as many elements."""
_FROM_WIDTH = (Place.QKV, Place.UP, Place.ROUTER, Place.LOGITS)
_SUMS = (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the work tells of the model and its batch."""

    model: ModelShape
    samples: float | None
    sequence: int | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Core:
    """One attention as a rank computes it."""

    samples: int
    sequence: int
    heads: int
    kv_heads: int
    head_dim: int


def told_of_model(graph: TaskGraph, layout: Layout, ranks: Ranks) -> Told:
    """From all ranks together; what no recorded shape tells stays None."""
    tp = layout.degree(Axis.TENSOR)
    products = {place: usual_product(ranks, place) for place in Place}
    core = _core(graph, ranks) or _core_of_parts(ranks)
    projection, down, qkv = (products[one] for one in (Place.PROJECTION, Place.DOWN, Place.QKV))
    hidden = _width(ranks, projection[2] if projection else (down[2] if down else None))
    up = products[Place.UP]
    logits = products[Place.LOGITS]
    router = products[Place.ROUTER]
    tokens = (qkv or projection or down or (0, 0, 0, 0))[1]
    sequence = core.sequence if core else None
    latent = _latent(ranks, hidden)
    expert = products[Place.EXPERT]
    # Experts that lie on ranks of their own are whole, and tensor ranks bring them other tokens.
    apart = tp if layout.degree(Axis.EXPERT) > 1 else 1
    model = as_found(
        ModelShape,
        layers=_layers(layout, ranks),
        hidden=hidden,
        heads=core.heads * tp if core else None,
        kv_heads=core.kv_heads * tp if core and core.kv_heads != core.heads else None,
        head_dim=core.head_dim - latent.rope if core else None,
        ffn=_dense_width(ranks, down) * tp if down else None,
        gated=_gated(ranks, up, down) or is_gated_expert(ranks),
        vocab=_vocab(graph, ranks, logits, tp),
        experts=router[2] if router else None,
        top_k=chosen(ranks, tokens // apart) if router else 1,
        expert_ffn=(expert_width(ranks, hidden) or 0) * (tp // apart) or None if expert else None,
        shared_experts=shared_experts(ranks, hidden) if expert else 0,
        dense_layers=dense_layers(ranks) if expert else 0,
        q_lora=latent.query,
        kv_lora=latent.key,
        rope_head_dim=latent.rope or None,
        v_head_dim=projection[3] // core.heads if latent.key and projection and core else None,
    )
    samples = tokens / sequence if tokens and sequence else None
    if samples is not None and core is not None and samples != core.samples:
        samples = float(core.samples)
    return Told(
        model=model,
        samples=samples,
        sequence=sequence,
        findings=tuple(_findings(model, samples, sequence)),
    )


def _width(ranks: Ranks, found: int | None) -> int | None:
    """What products come back to, if others begin from it: else it is no width of the model.

    A head of a few classes or scores has a width too.
    """
    begins = {k for place in _FROM_WIDTH for (_, _, _, k) in products_at(ranks, place)}
    return found if found and found >= LEAST_WIDTH and (not begins or found in begins) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Latent:
    """Ranks of compressed queries and keys; None and 0 where nothing is compressed."""

    query: int | None = None
    key: int | None = None
    rope: int = 0


def _latent(ranks: Ranks, hidden: int | None) -> _Latent:
    """From products to queries and keys that start from less than the width of the model.

    Keys and values are compressed together with the part of the keys that is rotated, which goes
    round the second product; queries are not.
    """
    if hidden is None:
        return _Latent()
    found = products_at(ranks, Place.QKV)
    outer = {n for _, _, n, k in found if k == hidden}
    query: int | None = None
    key: int | None = None
    rope = 0
    for inner in sorted({k for _, _, _, k in found if k < hidden}):
        if inner in outer:
            query = inner
            continue
        wider = min((n for n in outer if n > inner), default=0)
        key, rope = inner, max(wider - inner, 0)
    # Rotated are fewer than are compressed; what is wider is another model's.
    return _Latent(query=query, key=key, rope=rope) if key and rope * 2 < key else _Latent()


def _dense_width(ranks: Ranks, down: tuple[int, int, int, int]) -> int:
    """Of layers without experts, where there are such; else the usual one."""
    dense = [k for (_, _, _, k) in products_at(without_experts(ranks), Place.DOWN)]
    return dense[0] if dense else down[3]


def _findings(model: ModelShape, samples: float | None, sequence: int | None) -> Iterator[Finding]:
    for what in ("hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "experts"):
        value = getattr(model, what)
        if value is not None:
            yield Finding(
                what=f"model.{what}",
                value=f"{value:,}",
                sure=Sure.MEASURED,
                evidence="shapes of products and attention",
            )
    if model.gated:
        yield Finding(
            what="model.gated",
            value="true",
            sure=Sure.MEASURED,
            evidence="the feed-forward goes up twice as wide as it comes down",
        )
    for what, batch in (("samples", samples), ("sequence", sequence)):
        if batch is not None:
            yield Finding(
                what=f"batch.{what}",
                value=f"{batch:,}",
                sure=Sure.MEASURED,
                evidence="shapes of attention",
            )


def _layers(layout: Layout, ranks: Ranks) -> int | None:
    """Of all stages: named numbers count over all; else each stage counts its own."""
    each = {parts.layers for _, parts, _ in ranks if parts.layers}
    if not each:
        return None
    stages = layout.degree(Axis.PIPELINE)
    union = {layer for layers in each for layer in layers}
    own = max(len(layers) for layers in each)
    if stages == 1 or (min(min(layers) for layers in each) == 0 and max(union) >= own):
        return max(union) + 1
    return own * stages


def _gated(
    ranks: Ranks,
    up: tuple[int, int, int, int] | None,
    down: tuple[int, int, int, int] | None,
) -> bool:
    """Two products up for each one down, or one of twice the width."""
    if up is None or down is None:
        return False
    if up[2] == 2 * down[3]:
        return True
    ups, downs = (
        sum(len(np.unique(strokes.op_id[rows])) for strokes, _, rows in strokes_at(ranks, place))
        for place in (Place.UP, Place.DOWN)
    )
    return up[2] == down[3] and ups == 2 * downs


def _vocab(
    graph: TaskGraph,
    ranks: Ranks,
    logits: tuple[int, int, int, int] | None,
    tp: int,
) -> int | None:
    """Columns of the logits, else rows of the embedding; parts of it under tensor parallelism."""
    width = logits[2] if logits else _embedding_rows(graph, ranks)
    return width * tp if width and _is_divided(graph, ranks, tp) else width


def _is_divided(graph: TaskGraph, ranks: Ranks, tp: int) -> bool:
    """Reductions in the embedding or the head sum what each rank has of the vocabulary."""
    if tp == 1:
        return False
    for strokes, parts, _ in ranks:
        rows = (strokes.doing == Doing.EXCHANGE) & (parts.direction == Pass.FORWARD)
        rows &= np.isin(parts.part, (Part.EMBEDDING, Part.HEAD))
        called = strokes.collective[rows]
        if (called < 0).any() or np.isin(graph.collectives.kind[called], _SUMS).any():
            return True
    return False


def _embedding_rows(graph: TaskGraph, ranks: Ranks) -> int | None:
    """Rows of the largest table that is looked up."""
    most = 0
    for strokes, _, rows in strokes_at(ranks, Place.EMBEDDING):
        for shape in np.unique(strokes.shape[rows]).tolist():
            name, dims = graph.scopes.shapes[shape] if shape >= 0 else ("", "[]")
            sizes = dims_of(dims)
            if "embedding" in name and sizes and len(sizes[0]) == 2:  # noqa: PLR2004  (a table)
                most = max(most, sizes[0][0])
    return most or None


def _core(graph: TaskGraph, ranks: Ranks) -> _Core | None:
    """The attention that is computed most often."""
    counts: Counter[_Core] = Counter()
    for strokes, parts, places in ranks:
        rows = np.flatnonzero(
            (places == Place.ATTENTION)
            & (parts.direction == Pass.FORWARD)
            & (strokes.doing == Doing.ATTENTION)
        )
        shapes, number = np.unique(strokes.shape[rows], return_counts=True)
        for shape, count in zip(shapes.tolist(), number.tolist(), strict=True):
            found = _core_of(*graph.scopes.shapes[shape]) if shape >= 0 else None
            if found is not None:
                counts[found] += count
    return counts.most_common(1)[0][0] if counts else None


def _core_of_parts(ranks: Ranks) -> _Core | None:
    """Of attention that is made of parts: the product of queries and keys is square."""
    scores = next(
        (one for one in products_at(ranks, Place.ATTENTION) if one[0] > 1 and one[1] == one[2]),
        None,
    )
    qkv = usual_product(ranks, Place.QKV)
    if scores is None or qkv is None or qkv[1] % scores[1]:
        return None
    batch, sequence, _, head_dim = scores
    samples = qkv[1] // sequence
    heads = batch // samples
    return _Core(samples=samples, sequence=sequence, heads=heads, kv_heads=heads, head_dim=head_dim)


def _core_of(name: str, dims: str) -> _Core | None:
    """From queries and keys.

    `aten` lays them (sample, head, token, width), flash-attn and what `aten` calls inside
    (sample, token, head, width).
    """
    sizes = dims_of(dims)
    if len(sizes) < 2 or len(sizes[0]) != _ATTENTION_DIMS or len(sizes[1]) != _ATTENTION_DIMS:  # noqa: PLR2004
        return None
    query, key = sizes[0], sizes[1]
    heads_second = "scaled_dot_product" in name
    if not heads_second and query[1] != key[1] and query[2] == key[2]:
        heads_second = True
    heads, tokens = (1, 2) if heads_second else (2, 1)
    return _Core(
        samples=query[0],
        sequence=query[tokens],
        heads=query[heads],
        kv_heads=key[heads],
        head_dim=query[3],
    )
