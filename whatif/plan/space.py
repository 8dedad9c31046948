"""Layouts that a number of GPUs can have at one global batch, and why others cannot."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from msgspec.structs import replace

from ingest.errors import UsageError
from whatif.models.shape import (
    MOST_DEGREE,
    SHARDS_GRADIENTS,
    Degrees,
    Recompute,
    RunShape,
    Schedule,
)

MICRO_SAMPLES = (1, 2, 4, 8, 16, 32)
"""Samples of a micro-batch that are tried, beside the recorded number."""
CHUNKS = (2, 4)
"""Chunks of layers per stage of interleaved pipelines."""
LONG_CONTEXT = 16_384
"""Tokens of a sample from which on context parallelism is tried without being asked for."""
USUAL_MOST_CP, USUAL_MOST_PP = 8, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What is tried."""

    gpus: int
    samples: int
    """Of a step of the whole job."""
    node: int
    """GPUs that the scale-up link joins."""
    most_tp: int | None = None
    """None: those of a node."""
    most_pp: int = USUAL_MOST_PP
    most_cp: int | None = None
    """None: 1 of short samples, else 8."""

    def __post_init__(self) -> None:
        """Refuse what no job has."""
        if not 1 <= self.gpus <= MOST_DEGREE:
            raise UsageError(f"{self.gpus:,} GPUs", hint=f"a number from 1 to {MOST_DEGREE:,}")
        if self.samples < 1:
            raise UsageError(f"a global batch of {self.samples} samples", hint="1 or more")


@dataclass(slots=True)
class Excluded:
    """Why layouts were not looked at: how many, by reason."""

    counts: Counter[str] = field(default_factory=Counter)
    values: dict[str, set[str]] = field(default_factory=dict)
    """By reason, what it holds for: `8` of "tp does not divide"."""

    def because(self, reason: str, value: str = "") -> None:
        """Count one."""
        self.counts[reason] += 1
        if value:
            self.values.setdefault(reason, set()).add(value)


def layouts(base: RunShape, space: Space, excluded: Excluded) -> Iterator[RunShape]:
    """All layouts of the model over the GPUs; those that do not divide are counted.

    Args:
        base: model, elements and options of the run.
        space: what is tried.
        excluded: counts what is left out.
    """
    for tp, cp, pp in _inner(base, space, excluded):
        dp = space.gpus // (tp * cp * pp)
        for micro_samples, count in _batches(base, space, dp, excluded):
            batch = replace(base.batch, samples=float(micro_samples), micro_batches=count)
            for degrees in _degrees(base, (tp, cp, pp, dp), excluded):
                for schedule, chunks in _schedules(base, pp, count, excluded):
                    for recompute in Recompute:
                        yield replace(
                            base,
                            degrees=replace(degrees, virtual_stages=chunks),
                            batch=batch,
                            options=replace(
                                base.options,
                                schedule=schedule,
                                recompute=recompute,
                                recompute_layers=None,
                            ),
                        )


def _divisors(number: int, most: int) -> list[int]:
    return [one for one in range(1, min(number, most) + 1) if number % one == 0]


def _inner(base: RunShape, space: Space, excluded: Excluded) -> Iterator[tuple[int, int, int]]:
    """Degrees inside a replica."""
    model = base.model
    most_tp = space.most_tp or space.node
    for tp, cp, pp in product(
        _divisors(space.gpus, most_tp),
        _divisors(space.gpus, _most_cp(base, space)),
        _divisors(space.gpus, space.most_pp),
    ):
        if space.gpus % (tp * cp * pp):
            continue
        heads, kv_heads = model.heads or tp, model.kv_heads or model.heads or tp
        widths = [width for width in (model.ffn, model.expert_ffn) if width]
        if heads % tp or (kv_heads % tp and tp % kv_heads):
            excluded.because(f"tp does not divide {heads} heads, {kv_heads} of keys", f"{tp}")
        elif any(width % tp for width in widths):
            excluded.because(f"tp does not divide a feed-forward of {max(widths):,}", f"{tp}")
        elif model.layers is not None and pp > model.layers:
            excluded.because(f"more stages than the {model.layers} layers", f"{pp}")
        elif (base.batch.sequence or 0) % (2 * cp if cp > 1 else 1):
            excluded.because(f"cp does not divide {base.batch.sequence:,} tokens in pairs", f"{cp}")
        else:
            yield tp, cp, pp


def _most_cp(base: RunShape, space: Space) -> int:
    if space.most_cp is not None:
        return space.most_cp
    is_long = (base.batch.sequence or 0) >= LONG_CONTEXT
    return USUAL_MOST_CP if is_long or base.degrees.cp > 1 else 1


def _batches(
    base: RunShape, space: Space, dp: int, excluded: Excluded
) -> Iterator[tuple[int, int]]:
    """Samples of a micro-batch, and micro-batches of a replica."""
    if space.samples % dp:
        excluded.because(f"dp does not divide a batch of {space.samples:,} samples", f"{dp}")
        return
    own = space.samples // dp
    recorded = round(base.batch.samples or 1)
    for size in sorted({*MICRO_SAMPLES, max(recorded, 1)}):
        if size <= own and own % size == 0:
            yield size, own // size


def _degrees(
    base: RunShape, inner: tuple[int, int, int, int], excluded: Excluded
) -> Iterator[Degrees]:
    """Sequence parallelism, sharded state and experts of such degrees."""
    tp, cp, pp, dp = inner
    for sp, zero, ep in product(
        _sequence(base, tp),
        range(4) if dp * cp > 1 else (0,),
        _experts(base),
    ):
        if zero >= SHARDS_GRADIENTS and pp > 1:
            excluded.because(
                "with a pipeline, ZeRO exchanges gradients for every micro-batch", f"ZeRO {zero}"
            )
        elif (dp * cp) % ep:
            excluded.because("ep does not divide the replicas", f"{ep} of {dp * cp}")
        else:
            yield Degrees(
                tp=tp, sp=sp, cp=cp, cp_kind=base.degrees.cp_kind, pp=pp, dp=dp, zero=zero, ep=ep
            )


def _sequence(base: RunShape, tp: int) -> tuple[bool, ...]:
    """Without sequence parallelism only where the run has none: it costs nothing to have."""
    if tp == 1:
        return (False,)
    return (True,) if base.degrees.sp else (False, True)


def _experts(base: RunShape) -> list[int]:
    experts = base.model.experts
    return [1] if experts is None else _divisors(experts, experts)


def _schedules(
    base: RunShape, pp: int, count: int, excluded: Excluded
) -> Iterator[tuple[Schedule, int]]:
    """Schedules and chunks of layers that so many stages and micro-batches can have."""
    if pp == 1:
        yield Schedule.NONE, 1
        return
    yield Schedule.GPIPE, 1
    yield Schedule.ONE_F_ONE_B, 1
    yield Schedule.ZERO_BUBBLE, 1
    for chunks in CHUNKS:
        if (base.model.layers or 0) % (pp * chunks):
            excluded.because(
                f"interleaved: chunks do not divide {base.model.layers} layers", f"{pp * chunks}"
            )
        elif count % pp:
            excluded.because(
                "interleaved: micro-batches do not divide by the stages", f"{count} by {pp}"
            )
        else:
            yield Schedule.INTERLEAVED, chunks
    if pp % 2 == 0 and count % 2 == 0 and count >= 2 * pp and 2 * pp <= (base.model.layers or 0):
        yield Schedule.DUALPIPE, 1
