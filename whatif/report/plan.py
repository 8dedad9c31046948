"""`replay plan` as data (the JSON contract, `schema/plan.schema.json`) and as a table."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from textwrap import wrap

import msgspec

from ingest.units import format_gib, format_ms
from whatif.models.shape import Recompute, RunShape
from whatif.plan.front import Point
from whatif.plan.plan import Candidate, Plan
from whatif.plan.score import Losses
from whatif.report.columns import aligned, to_type
from whatif.report.description import layout_words
from whatif.report.run_facts import RunFacts, head

LEAST_LOSS = 0.005
"""Share of the step that a loss needs to be told."""
EXCLUDED_SHOWN = 6
FRONT_SHOWN = 8
_LOSSES = {
    "small_kernels": "smaller kernels and sums of gradients",
    "recomputation": "recomputation",
    "tensor": "tensor communication",
    "context": "context communication",
    "experts": "expert communication",
    "messages": "messages between stages",
    "replicas": "gradients and parameters",
    "bubble": "bubble",
    "imbalance": "uneven stages",
    "optimizer": "optimizer",
    "rest": "host and waits",
}


class LossFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a step by the closed form."""

    name: str
    time_ns: int
    """Below 0 where the layout gains: larger kernels than one GPU's best."""
    step_frac: float


class LayoutFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A layout."""

    words: str
    """`dp 4 (ZeRO 1) x tp 2`."""
    gpus: int
    shape: RunShape
    """Degrees, batch and options of the layout; as a description has them."""
    flags: str
    """The what-ifs that make it of the recorded run."""
    step_ns: int
    """By the replay, else by the closed form."""
    low_ns: int
    high_ns: int
    is_replayed: bool
    refused: str
    """Why it was not replayed; empty where it was."""
    closed_form_ns: int
    samples_per_s: float
    speedup: float | None
    """Samples per second, against the replayed run; null where the recorded samples of a step are
    not known."""
    memory_bytes: int
    """Of the fullest rank, as tensors."""
    fits: bool | None
    """Null: it depends on what the allocator reserves, or the memory is not known."""
    ideal_ns: int
    """The work on all GPUs at once, in kernels that nothing divides."""
    losses: tuple[LossFacts, ...]
    """Of the closed form, the biggest first; with `ideal_ns` they add up to it."""


class ExcludedFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Layouts that were not scored."""

    reason: str
    values: tuple[str, ...]
    """What it holds for: degrees, ZeRO stages, micro-batches by stages."""
    count: int
    """Combinations that it leaves out, each of one layout or several."""


class FrontFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A layout that no other beats in step, GPUs and memory; replayed ones beat replayed ones."""

    words: str
    gpus: int
    step_ns: int
    """By the replay, else by the closed form times what replays of like layouts were over it."""
    is_replayed: bool
    memory_bytes: int


class PlanAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What `replay plan TRACE --gpus N --json` prints."""

    schema_version: int = 1
    run: RunFacts
    recorded: str
    """Its layout."""
    gpus: tuple[int, ...]
    gpu: str
    """Accelerator that is planned for."""
    gpus_per_node: int
    samples_per_step: int
    memory_bytes: int | None
    """Of one device; null where it is not known."""
    tried: int
    """Layouts that were scored."""
    fitting: int
    too_large: int
    best: tuple[LayoutFacts, ...]
    front: tuple[FrontFacts, ...]
    excluded: tuple[ExcludedFacts, ...]
    """The most frequent reason first."""
    notes: tuple[str, ...]


def plan_answer(run: RunFacts, plan: Plan) -> PlanAnswer:
    """The contract's object."""
    memory = plan.machine.memory_bytes
    return PlanAnswer(
        run=run,
        recorded=layout_words(plan.base),
        gpus=tuple(space.gpus for space in plan.spaces),
        gpu=plan.machine.name,
        gpus_per_node=plan.spaces[0].node,
        samples_per_step=plan.spaces[0].samples,
        memory_bytes=None if memory is None else int(memory),
        tried=plan.found.tried,
        fitting=len(plan.found.ranked),
        too_large=plan.found.too_large,
        best=tuple(_layout(one, plan, run) for one in plan.best),
        front=tuple(_front(one) for one in plan.front),
        excluded=tuple(
            ExcludedFacts(reason=reason, values=_values(plan, reason), count=count)
            for reason, count in plan.found.excluded.counts.most_common()
        ),
        notes=plan.notes,
    )


def _values(plan: Plan, reason: str) -> tuple[str, ...]:
    """In the order of the numbers in them."""
    found = plan.found.excluded.values.get(reason, set())
    return tuple(sorted(found, key=lambda value: [int(part) for part in re.findall(r"\d+", value)]))


def words_of(shape: RunShape) -> str:
    """The layout with its micro-batches and what it computes again."""
    batch, options, degrees = shape.batch, shape.options, shape.degrees
    chunks = f", {degrees.virtual_stages} chunks" if degrees.virtual_stages > 1 else ""
    again = "" if options.recompute is Recompute.NONE else f", recompute {options.recompute}"
    micro = f"{batch.micro_batches:,} x {batch.samples or 1:g}"
    return f"{layout_words(shape)}{chunks}, micro-batches {micro}{again}"


def _samples(shape: RunShape) -> float:
    return shape.degrees.dp * shape.batch.micro_batches * (shape.batch.samples or 1.0)


def _layout(one: Candidate, plan: Plan, run: RunFacts) -> LayoutFacts:
    scored, study = one.scored, one.study
    step_ns = max(one.step_ns, 1.0)
    rate = _samples(scored.shape) / step_ns
    recorded = _samples(plan.base) / max(run.replayed_ns, 1)
    flags = " ".join(to_type(change.flag) for change in one.scenario.transforms)
    return LayoutFacts(
        words=words_of(scored.shape),
        gpus=scored.gpus,
        shape=scored.shape,
        flags=flags,
        step_ns=round(step_ns),
        low_ns=round(one.low_ns if study is None else study.low_ns),
        high_ns=round(one.high_ns if study is None else study.high_ns),
        is_replayed=study is not None,
        refused=one.refused,
        closed_form_ns=round(scored.step_ns),
        samples_per_s=rate * 1e9,
        speedup=rate / recorded if plan.base.batch.samples else None,
        memory_bytes=round(scored.memory_bytes),
        fits=scored.fits,
        ideal_ns=round(scored.losses.ideal),
        losses=tuple(_losses(scored.losses)),
    )


def _losses(losses: Losses) -> list[LossFacts]:
    step_ns = max(losses.step_ns, 1.0)
    found = [
        LossFacts(
            name=_LOSSES[field.name],
            time_ns=round(getattr(losses, field.name)),
            step_frac=getattr(losses, field.name) / step_ns,
        )
        for field in fields(losses)
        if field.name != "ideal"
    ]
    return sorted(found, key=lambda one: -one.time_ns)


def _front(one: Point) -> FrontFacts:
    return FrontFacts(
        words=words_of(one.scored.shape),
        gpus=one.gpus,
        step_ns=round(one.step_ns),
        is_replayed=one.is_replayed,
        memory_bytes=round(one.memory_bytes),
    )


def render_plan(answer: PlanAnswer, width: int) -> str:
    """For people: the best layouts, what each loses, and what to type."""
    sections = (
        list(_head(answer, width)),
        list(_best(answer, width)),
        list(_front_lines(answer)),
        list(_left_out(answer, width)),
    )
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _head(answer: PlanAnswer, width: int) -> Iterator[str]:
    yield from wrap(f"run      {head(answer.run)}", width, subsequent_indent=" " * 9)
    yield f"recorded {answer.recorded}: replayed {format_ms(answer.run.replayed_ns)}"
    gpus = " or ".join(f"{number:,}" for number in answer.gpus)
    text = (
        f"planned  {gpus} {answer.gpu}, {answer.gpus_per_node} to a node, "
        f"{answer.samples_per_step:,} samples a step: {answer.tried:,} layouts scored, "
        f"{answer.fitting:,} fit, {answer.too_large:,} do not"
    )
    yield from wrap(text, width, subsequent_indent=" " * 9)


def _best(answer: PlanAnswer, width: int) -> Iterator[str]:
    cells = [
        (
            f"{number}",
            f"{one.gpus:,}",
            format_ms(one.step_ns),
            f"{format_ms(one.low_ns)} to {format_ms(one.high_ns)}",
            "-" if one.speedup is None else f"{one.samples_per_s:,.4g}",
            "-" if one.speedup is None else f"{one.speedup:.2f}x",
            format_gib(one.memory_bytes) + ("" if one.fits else "?"),
            _known_by(one.is_replayed),
        )
        for number, one in enumerate(answer.best, start=1)
    ]
    titles = ("", "GPUs", "step", "range", "samples/s", "gain", "memory", "known by")
    lines = list(aligned([titles, *cells], ">>>>>>><"))
    yield lines[0]
    for line, one in zip(lines[1:], answer.best, strict=True):
        yield line
        yield from _wrapped(one.words, width)
        yield from _wrapped(f"loses {_loss_words(one)}", width)
        if one.refused:
            yield from _wrapped(f"not replayed: {one.refused}", width)
        yield from _wrapped(f"type  {one.flags or '(the recorded layout)'}", width)


def _known_by(is_replayed: bool) -> str:  # noqa: FBT001  (a word for it)
    return "replay" if is_replayed else "closed form"


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(
        text, width, initial_indent="   ", subsequent_indent="      ", break_on_hyphens=False
    )


def _loss_words(one: LayoutFacts) -> str:
    told = [
        f"{loss.name} {loss.step_frac:.0%}" for loss in one.losses if loss.step_frac >= LEAST_LOSS
    ]
    return ", ".join(told) or "nothing"


def _front_lines(answer: PlanAnswer) -> Iterator[str]:
    if len(answer.front) < 2:  # noqa: PLR2004  (one point is no front)
        return
    yield "no other layout is better in step, GPUs and memory at once"
    shown = _spread(answer.front)
    rows = [
        (
            f"{one.gpus:,}",
            format_ms(one.step_ns),
            format_gib(one.memory_bytes),
            _known_by(one.is_replayed),
            one.words,
        )
        for one in shown
    ]
    yield from aligned([("GPUs", "step", "memory", "known by", "layout"), *rows], ">>><<")
    if not all(one.is_replayed for one in shown):
        yield "closed form: times what replays of layouts like it came out at"
    if len(shown) < len(answer.front):
        yield f"{len(answer.front) - len(shown):,} more: --json has them"


def _spread(front: Sequence[FrontFacts]) -> list[FrontFacts]:
    """Some of the front, from end to end."""
    if len(front) <= FRONT_SHOWN:
        return list(front)
    last = len(front) - 1
    return [front[round(place * last / (FRONT_SHOWN - 1))] for place in range(FRONT_SHOWN)]


def _left_out(answer: PlanAnswer, width: int) -> Iterator[str]:
    for place, one in enumerate(answer.excluded[:EXCLUDED_SHOWN]):
        label = "left out" if place == 0 else ""
        yield from wrap(
            one.reason + (f": {', '.join(one.values)}" if one.values else ""),
            width,
            initial_indent=f"{label:<9}- ",
            subsequent_indent=" " * 11,
            break_on_hyphens=False,
        )
    if len(answer.excluded) > EXCLUDED_SHOWN:
        yield f"{'':<9}- {len(answer.excluded) - EXCLUDED_SHOWN:,} more reasons: --json has them"
    for place, note in enumerate(answer.notes):
        label = "notes" if place == 0 else ""
        yield from wrap(
            note,
            width,
            initial_indent=f"{label:<9}- ",
            subsequent_indent=" " * 11,
            break_on_hyphens=False,
        )
