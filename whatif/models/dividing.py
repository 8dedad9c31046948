"""What must divide what in a layout: one list for runs that are read, made and asked about."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt

from ingest.errors import ScenarioError
from whatif.models.shape import ContextKind, RunShape

_SHOWN = 8
"""Divisors in a hint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """So many things over so many."""

    whole: int | None
    """None: not known."""
    what: str
    over: int
    name: str
    field: str
    """That says `over`."""

    @property
    def fits(self) -> bool:
        """Whether it comes out even, as far as is known."""
        return self.whole is None or self.whole % self.over == 0

    def error(self, place: str = "") -> ScenarioError:
        """What is wrong with it.

        Args:
            place: file that says it; empty: none does.
        """
        whole = self.whole or 0
        where = f"{place}, at `$.{self.field}`: " if place else ""
        return ScenarioError(
            f"{where}{whole:,} {self.what} do not divide over {self.over:,} {self.name}",
            hint=f"what divides them: {_divisors(whole, self.over)}",
        )


def splits(shape: RunShape) -> Iterator[Split]:
    """All of a shape, in an order that is the same for every shape.

    Sources: heads and tensor ranks arXiv:1909.08053, copies of keys arXiv:2305.13245, heads of
    all-to-all context ranks arXiv:2309.14509, experts arXiv:2101.03961.
    """
    model, degrees, batch = shape.model, shape.degrees, shape.batch
    heads, tp, cp = model.heads, degrees.tp, degrees.cp
    yield Split(
        whole=heads,
        what="attention heads",
        over=tp,
        name="tensor-parallel ranks",
        field="degrees.tp",
    )
    yield Split(
        whole=batch.sequence,
        what="tokens of a sample",
        over=cp,
        name="context-parallel ranks",
        field="degrees.cp",
    )
    over_heads = cp if degrees.cp_kind is ContextKind.ALL_TO_ALL else 1
    yield Split(
        whole=None if heads is None or heads % tp else heads // tp,
        what="attention heads of a tensor rank",
        over=over_heads,
        name="all-to-all context ranks",
        field="degrees.cp",
    )
    yield Split(
        whole=model.experts,
        what="experts",
        over=degrees.ep,
        name="expert-parallel ranks",
        field="degrees.ep",
    )
    yield Split(
        whole=degrees.dp * cp * tp,
        what="data, context and tensor ranks together",
        over=degrees.ep,
        name="expert-parallel ranks",
        field="degrees.ep",
    )
    yield Split(
        whole=degrees.dp,
        what="replicas",
        over=degrees.shard or 1,
        name="that share state",
        field="degrees.shard",
    )
    yield from _of_model(shape)


def _of_model(shape: RunShape) -> Iterator[Split]:
    """Heads within the model, and copies of those of keys where ranks are more."""
    model, tp = shape.model, shape.degrees.tp
    keys = model.kv_heads
    yield Split(
        whole=model.heads,
        what="attention heads",
        over=keys or 1,
        name="heads of keys",
        field="model.kv_heads",
    )
    many, few = max(keys or tp, tp), min(keys or tp, tp)
    yield Split(
        whole=many,
        what="tensor-parallel ranks" if many == tp else "heads of keys",
        over=few,
        name="heads of keys" if many == tp else "tensor-parallel ranks",
        field="degrees.tp",
    )
    apart = model.head_dim is None and model.hidden is not None
    yield Split(
        whole=model.hidden if apart else None,
        what="units of the model's width",
        over=model.heads or 1,
        name="attention heads",
        field="model.heads",
    )


def refuse_contradictory(shape: RunShape, place: str = "") -> None:
    """Refuse a shape that contradicts itself.

    Args:
        shape: as a person says it.
        place: file that says it; empty: none does.

    Raises:
        ScenarioError: it does not divide, or speaks of experts that it does not have.
    """
    for split in splits(shape):
        if not split.fits:
            raise split.error(place)
    model, degrees = shape.model, shape.degrees
    where = f"{place}, at `$." if place else "`"
    if model.experts is None and degrees.ep > 1:
        raise ScenarioError(
            f"{where}degrees.ep`: {degrees.ep:,} ranks for experts, and the model has none",
            hint="model: {experts: 8, top_k: 2, expert_ffn: 4096}, or no ep",
        )
    if model.experts is not None and model.top_k > model.experts:
        raise ScenarioError(
            f"{where}model.top_k`: a token goes to {model.top_k:,} of {model.experts:,} experts",
            hint=f"a number from 1 to {model.experts:,}",
        )


def _divisors(whole: int, over: int) -> str:
    """Those nearest to what was asked for."""
    found = [n for n in range(1, isqrt(whole) + 1) if whole % n == 0]
    found = sorted({*found, *(whole // n for n in found)})
    near = sorted(sorted(found, key=lambda n: abs(n - over))[:_SHOWN])
    return ", ".join(f"{n:,}" for n in near)
