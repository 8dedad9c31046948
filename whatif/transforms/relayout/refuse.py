"""Layouts that a run cannot have, or that its trace says too little for."""

from collections.abc import Callable, Iterator

import numpy as np

from ingest.errors import ScenarioError
from ingest.vocab import TaskKind
from replay.graph.arrays import Bool, TaskGraph
from whatif.description.described import Described, Kind
from whatif.description.labels import Labels, Part, Place
from whatif.models.dividing import splits
from whatif.models.pipeline.terms import check, pipeline_of
from whatif.models.shape import SHARDS_PARAMETERS, Batch, ModelShape, RunShape, Schedule
from whatif.models.transformer.parameters import is_as_dense
from whatif.transforms.relayout.structure import canonical

LEAST_KNOWN_FRAC = 0.5
"""Of the time of the work: of a run of which less is understood nothing is said about layouts."""
MOST_TASKS = 10_000_000
"""Of a graph that is made: about a minute of work, and gigabytes."""
MORE = (
    "a trace with record_shapes=True and with_modules=True tells more, or --describe FILE says it "
    "by hand (`replay describe` shows what was found)"
)
TRAINING_ONLY: tuple[tuple[str, Callable[[RunShape], object]], ...] = (
    ("pipeline stages", lambda shape: shape.degrees.pp),
    ("a schedule", lambda shape: shape.options.schedule),
    ("ZeRO", lambda shape: (shape.degrees.zero, shape.degrees.shard)),
    ("micro-batches", lambda shape: shape.batch.micro_batches),
    ("recomputation", lambda shape: shape.options.recompute),
    ("an optimizer to offload", lambda shape: shape.options.offload),
    ("an exchange of gradients", lambda shape: shape.options.sync_every),
)
OF_LAYERS: tuple[Callable[[RunShape], object], ...] = (
    lambda shape: (shape.degrees.pp, shape.degrees.virtual_stages),
    lambda shape: shape.model.layers,
    lambda shape: shape.options.recompute,
)
OF_PLACES: tuple[Callable[[RunShape], object], ...] = (
    lambda shape: (shape.degrees.tp, shape.degrees.sp),
    lambda shape: shape.degrees.cp,
    lambda shape: shape.degrees.ep,
    lambda shape: shape.batch.sequence,
)


def refuse(graph: TaskGraph, described: Described, target: RunShape) -> tuple[str, ...]:
    """Refuse what cannot be, or cannot be told; warn of what is unusual.

    Raises:
        ScenarioError: heads, layers, experts or ranks do not divide; or the run was not understood
            well enough for this change.
    """
    before, after = canonical(described.shape), canonical(target)
    _refuse_other_kind(described, before, after)
    _refuse_other_world(described)
    _refuse_unknown(graph, described.labels, before, after)
    _refuse_indivisible(before, after)
    _refuse_parts_of_samples(described.shape.batch, target.batch)
    _refuse_one_chunk(target)
    check(pipeline_of(target))
    _refuse_large(graph, before, after)
    return tuple(_unusual(after)) + described.doubts


def _refuse_large(graph: TaskGraph, before: RunShape, after: RunShape) -> None:
    """What grows are layers and micro-batches; stages share the layers, other ranks are folded."""
    longer = (after.model.layers or 1) / (before.model.layers or 1)
    oftener = after.batch.micro_batches / before.batch.micro_batches
    n_tasks = graph.n_tasks * max(longer, 1.0) * max(oftener, 1.0)
    if n_tasks > max(MOST_TASKS, graph.n_tasks):
        raise ScenarioError(
            f"about {n_tasks:,.0f} tasks, from {graph.n_tasks:,}; at most {MOST_TASKS:,} are made",
            hint="fewer layers or micro-batches, or a trace of fewer steps and ranks",
        )


def _differs(one: Callable[[RunShape], object], before: RunShape, after: RunShape) -> bool:
    return one(before) != one(after)


def _refuse_other_kind(described: Described, before: RunShape, after: RunShape) -> None:
    if described.kind is Kind.TRAINING:
        return
    for name, field in TRAINING_ONLY:
        if not _differs(field, before, after):
            continue
        if described.kind is Kind.INFERENCE:
            raise ScenarioError(
                f"this run infers: it has no backward pass, and {name} cannot change in it",
                hint="--tp, --batch-scale and --layers can",
            )
        raise ScenarioError(f"whether this run trains was not understood: {name} stay", hint=MORE)


def _refuse_other_world(described: Described) -> None:
    found, ranks = described.shape.degrees.world, described.layout.world_size
    if found != ranks:
        raise ScenarioError(
            f"the degrees of the recorded run make {found:,} ranks, and its job has {ranks:,}",
            hint="--describe FILE with degrees: {tp: N, pp: N, dp: N, …} says them",
        )


def _refuse_unknown(graph: TaskGraph, labels: Labels, before: RunShape, after: RunShape) -> None:
    of_layers = any(_differs(field, before, after) for field in OF_LAYERS)
    of_places = any(_differs(field, before, after) for field in OF_PLACES)
    # What comes after the passes is understood: it says nothing against those.
    work = _work(graph) & ~np.isin(labels.part, (Part.SYNC, Part.OPTIMIZER))
    if before.batch.micro_batches != after.batch.micro_batches:
        known = _frac(graph, work & (labels.direction > 0), work)
        if known < LEAST_KNOWN_FRAC:
            raise ScenarioError(
                f"only {known:.0%} of the work of this run is known to be forward or backward",
                hint=MORE,
            )
    if not (of_layers or of_places):
        return
    if before.model.layers is None or not (labels.part == Part.LAYER).any():
        raise ScenarioError("no repeated layers were found in this run", hint=MORE)
    body = work & np.isin(labels.part, (Part.EMBEDDING, Part.LAYER, Part.HEAD))
    known = _frac(graph, body, work)
    if known < LEAST_KNOWN_FRAC:
        raise ScenarioError(
            f"only {known:.0%} of the work of this run is known to belong to its model's parts",
            hint=MORE,
        )
    placed = _frac(graph, body & (labels.place != Place.UNKNOWN), body)
    if of_places and placed < LEAST_KNOWN_FRAC:
        raise ScenarioError(
            f"of only {placed:.0%} of the work of the layers it is known what it computes",
            hint=MORE,
        )


def _work(graph: TaskGraph) -> Bool:
    """Kernels of the steps; of CPU runs what threads compute in them."""
    tasks = graph.tasks
    in_steps: Bool = tasks.step >= 0
    kernels: Bool = in_steps & (tasks.kind == TaskKind.KERNEL)
    return kernels if kernels.any() else in_steps & (tasks.kind == TaskKind.HOST_WORK)


def _frac(graph: TaskGraph, part: Bool, whole: Bool) -> float:
    dur_ns = graph.tasks.dur_ns
    return float(dur_ns[part].sum()) / max(float(dur_ns[whole].sum()), 1.0)


def _refuse_indivisible(before: RunShape, after: RunShape) -> None:
    """Of what changes; the recorded layout was possible."""
    if after.degrees.ep not in (before.degrees.ep, 1):
        _refuse_experts(after)
    for was, split in zip(splits(before), splits(after), strict=True):
        if not split.fits and (was.whole, was.over) != (split.whole, split.over):
            raise split.error()


def _refuse_parts_of_samples(was: Batch, now: Batch) -> None:
    """Micro-batches of whole samples are cut into such."""
    if was.micro_batches == now.micro_batches or was.samples is None or now.samples is None:
        return
    if _is_whole(was.samples) and not _is_whole(now.samples):
        all_of_them = now.samples * now.micro_batches
        raise ScenarioError(
            f"{now.micro_batches:,} micro-batches do not divide the {all_of_them:g} sample"
            f"{'' if all_of_them == 1 else 's'} of a replica in a step",
            hint=f"--grad-accum {now.micro_batches} keeps the size of each, --batch-scale "
            f"{now.micro_batches} beside it the number of samples that each needs",
        )


def _is_whole(samples: float) -> bool:
    return abs(samples - round(samples)) < SAME_SAMPLES and round(samples) > 0


SAME_SAMPLES = 1e-9


def _refuse_one_chunk(target: RunShape) -> None:
    """Interleaving takes several chunks of layers per stage."""
    degrees, layers = target.degrees, target.model.layers
    if target.options.schedule is not Schedule.INTERLEAVED or degrees.pp == 1:
        return
    if degrees.virtual_stages == 1:
        of_stage = 0 if layers is None or layers % degrees.pp else layers // degrees.pp
        fits = [chunks for chunks in range(2, of_stage + 1) if of_stage % chunks == 0]
        chunks = fits[0] if fits else 2
        raise ScenarioError(
            f"interleaved over {degrees.pp} stages of one chunk of layers each is 1f1b",
            hint=f"add --virtual-stages {chunks}"
            + (f": {layers} layers divide over {degrees.pp} x {chunks}" if fits else ""),
        )


def no_experts(model: ModelShape) -> ScenarioError:
    """Of a run in whose layers none were found."""
    fact = "no experts were found in the layers of this run"
    if is_as_dense(model):
        return ScenarioError(
            f"{fact}, and it has as many parameters as without",
            hint="a what-if puts none in: a run that has some tells, or `replay synth` makes one",
        )
    return ScenarioError(fact, hint="--describe FILE with model: {experts: N, top_k: K} says them")


def _refuse_experts(after: RunShape) -> None:
    if after.model.experts is None:
        raise no_experts(after.model)


def _unusual(after: RunShape) -> Iterator[str]:
    degrees, model = after.degrees, after.model
    if degrees.pp > 1 and degrees.zero > 1:
        yield (
            f"ZeRO-{degrees.zero} in a pipeline: every micro-batch exchanges gradients"
            + (" and parameters" if degrees.zero == SHARDS_PARAMETERS else "")
        )
    layers, depth = model.layers or 0, pipeline_of(after).depth
    if degrees.pp > 1 and layers % depth:
        yield (
            f"{layers} layers do not divide evenly over {depth} stages and chunks: those in the "
            "middle have one more"
        )
