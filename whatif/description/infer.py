"""A task graph -> what the run is."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from replay.graph.arrays import TaskGraph
from whatif.description.agreement import agreed
from whatif.description.contradictions import Measured, refuse_overruled
from whatif.description.degrees import degrees_of
from whatif.description.described import Described, Finding, Sure
from whatif.description.elements import elements_of, is_tied, parameters_of
from whatif.description.file import Said, refuse_contradictions, said_over
from whatif.description.kind import kind_of
from whatif.description.label import Labelled, label
from whatif.description.memory import memory_findings
from whatif.description.messages import Chain, chain_of, messages_of, orders_of
from whatif.description.micro_batches import alternations, micro_batches_of
from whatif.description.recompute import recompute_of
from whatif.description.schedule import FoundSchedule, schedule_of
from whatif.description.stages import stage_layers_of, stages_of, whole_model
from whatif.description.turns import both_ways, turns_of
from whatif.models.shape import (
    Batch,
    Degrees,
    ModelShape,
    Options,
    RunShape,
    Schedule,
    as_found,
)
from whatif.parallelism import Layout, layout_of

THE_FILE = "the description"
LEAST_CHUNKS = 2
"""Of layers on a stage, where the last stage feeds the first."""


def describe(graph: TaskGraph, said: Said | None = None, place: str = THE_FILE) -> Described:
    """Understand a run.

    Args:
        graph: of the run.
        said: what a person says of it; overrules what is found, field by field.
        place: where that was said, for messages.

    Raises:
        ScenarioError: what is said contradicts itself or the run.
    """
    layout = layout_of(graph)
    kind, kind_finding = kind_of(graph, layout)
    degrees = degrees_of(graph, layout, kind)
    labelled = label(graph, layout)
    pipe = _pipeline(graph, layout, labelled, degrees.degrees.pp)
    found, findings, doubts = _shape(graph, layout, labelled, degrees.degrees, pipe)
    found = _with_layers(
        found, labelled, _stage_of_rank(graph, layout, pipe.chain, found.degrees.pp)
    )
    shape = said_over(found, said, place)
    stage_of_rank = _stage_of_rank(graph, layout, pipe.chain, shape.degrees.pp)
    stage_layers = stage_layers_of(
        labelled.rank_layers, stage_of_rank, shape.degrees, shape.model.layers
    )
    seen = sum(map(len, stage_layers)) if any(labelled.rank_layers.values()) else 0
    refuse_contradictions(
        shape,
        said,
        place,
        world_size=layout.world_size,
        layers_seen=seen,
        counted=found.model.parameters if found.model.experts is None else None,
    )
    ranks = (labelled.rank_layers, stage_of_rank, shape.degrees.pp)
    refuse_overruled(shape, found, said, place, Measured.of(graph, labelled.labels, *ranks))
    whole = whole_model(graph, labelled.labels, stage_of_rank, stage_layers)
    layers = _layers_told(found, labelled)
    told = (kind_finding, *degrees.findings, *findings, *layers, *labelled.findings)
    return Described(
        kind=kind,
        shape=shape,
        layout=layout,
        labels=agreed(graph, whole, stage_of_rank),
        stage_of_rank=stage_of_rank,
        stage_layers=stage_layers,
        findings=(*_with_said(told, found, shape), *memory_findings(shape, kind, graph.work)),
        doubts=(*degrees.doubts, *doubts, *labelled.doubts, *_recording_doubts(graph)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pipeline:
    """What the messages between stages tell."""

    chain: Chain | None
    orders: Mapping[int, str]
    """By rank in the files."""
    chunks: int
    schedule: FoundSchedule


def _pipeline(graph: TaskGraph, layout: Layout, labelled: Labelled, stages: int) -> _Pipeline:
    messages = messages_of(graph, layout) if stages > 1 else []
    chain = chain_of(messages)
    orders = {} if chain is None else orders_of(messages, chain)
    stage = _stage_of_rank(graph, layout, chain, stages)
    chunks = LEAST_CHUNKS if chain is not None and chain.cyclic else 1
    ways = chain is not None and chain.both_ways
    told = orders
    if stages > 1 and not orders:
        told, chunks, ways = _by_turns(graph, labelled, stage)
    found = schedule_of(
        {stage[rank]: order for rank, order in told.items() if rank in stage},
        stages,
        chunks=chunks,
        both_ways=ways,
    )
    return _Pipeline(chain=chain, orders=orders, chunks=chunks, schedule=found)


def _by_turns(
    graph: TaskGraph, labelled: Labelled, stage: Mapping[int, int]
) -> tuple[dict[int, str], int, bool]:
    """Orders, chunks, and whether both ends feed the pipeline, where messages do not tell.

    Of the ends of the pipeline in the files: of the stages between them the ends of passes are
    less sure.
    """
    turns = turns_of(graph, labelled.labels)
    if not turns:
        return {}, 1, False
    first, last = (end(turns, key=lambda rank: stage.get(rank, 0)) for end in (min, max))
    if both_ways(graph, labelled.labels, first, last):
        return {}, 1, True
    ends = {rank: turns[rank][0] for rank in (first, last)}
    return ends, max(1, min(turns[rank][1] for rank in ends)), False


def _stage_of_rank(
    graph: TaskGraph, layout: Layout, chain: Chain | None, stages: int
) -> dict[int, int]:
    told = {} if chain is None else chain.stage_of_rank
    return stages_of([info.rank for info in graph.ranks], layout, told, stages)


def _shape(
    graph: TaskGraph, layout: Layout, labelled: Labelled, degrees: Degrees, pipe: _Pipeline
) -> tuple[RunShape, tuple[Finding, ...], tuple[str, ...]]:
    """All that was found, put together."""
    forwards = {rank: order.count("F") // pipe.chunks for rank, order in pipe.orders.items()}
    count, told, doubts = micro_batches_of(
        labelled.micro_batches, forwards, alternations(graph) if graph.steps_recorded else {}
    )
    model, told_model = _model(graph, layout, labelled, degrees, count)
    elements, told_elements = elements_of(graph, layout)
    schedule = pipe.schedule
    findings = [told, *told_model, *told_elements]
    if degrees.pp > 1:
        findings.append(
            _finding("options.schedule", schedule.schedule, schedule.sure, schedule.evidence)
        )
        if pipe.chunks > 1:
            text = "forwards in several turns, or a last stage that feeds the first"
            findings.append(_finding("degrees.virtual_stages", pipe.chunks, Sure.GUESSED, text))
    recompute, told_recompute = recompute_of(graph, labelled.labels)
    findings += told_recompute
    shape = RunShape(
        model=model,
        degrees=structs.replace(degrees, virtual_stages=pipe.chunks),
        batch=as_found(
            Batch,
            micro_batches=count,
            samples=labelled.samples,
            sequence=None if labelled.sequence is None else labelled.sequence * degrees.cp,
        ),
        elements=elements,
        options=Options(schedule=schedule.schedule, recompute=recompute),
    )
    if schedule.schedule is Schedule.DUALPIPE:
        doubts = (
            *doubts,
            "DualPipe: layers and micro-batches are those of one rank, say the model's",
        )
    return shape, tuple(findings), doubts


def _with_layers(found: RunShape, labelled: Labelled, stage_of_rank: Mapping[int, int]) -> RunShape:
    """The shape with the layers of all stages, where ranks tell theirs."""
    if not any(labelled.rank_layers.values()) or (found.model.layers and found.degrees.pp == 1):
        return found
    stages = stage_layers_of(labelled.rank_layers, stage_of_rank, found.degrees, None)
    return structs.replace(found, model=structs.replace(found.model, layers=sum(map(len, stages))))


def _layers_told(found: RunShape, labelled: Labelled) -> tuple[Finding, ...]:
    """What the number of layers rests on."""
    counts = sorted({len(layers) for layers in labelled.rank_layers.values() if layers})
    told = "model.layers" in {one.what for one in labelled.findings}
    if told or not counts or found.model.layers is None:
        return ()
    each = " or ".join(map(str, counts))
    evidence = f"{each} repeated in the passes of a rank"
    if found.degrees.pp > 1:
        evidence += f", over {found.degrees.pp} stages"
    return (_finding("model.layers", found.model.layers, Sure.MEASURED, evidence),)


def _model(
    graph: TaskGraph, layout: Layout, labelled: Labelled, degrees: Degrees, micro_batches: int
) -> tuple[ModelShape, tuple[Finding, ...]]:
    """The model as labelled, its parameters by the gradients where these tell them.

    Gradients of experts that lie on several ranks are reduced over few or none: a rank does not
    tell how many there are, the shape of the model does.
    """
    model = labelled.model
    spread = degrees.ep > 1 and model.experts is not None and model.expert_ffn is not None
    if model.parameters is not None or spread:
        return model, ()
    count, findings = parameters_of(graph, layout, degrees, micro_batches)
    counted = structs.replace(model, parameters=count)
    if not is_tied(counted):
        return counted, findings
    evidence = "as many gradients as without a table of its own for the logits"
    tied = structs.replace(counted, tied=True)
    return tied, (*findings, _finding("model.tied", "true", Sure.MEASURED, evidence))


def _finding(what: str, value: object, sure: Sure, evidence: str) -> Finding:
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return Finding(what=what, value=shown, sure=sure, evidence=evidence)


def _with_said(
    findings: tuple[Finding, ...], found: RunShape, shape: RunShape
) -> tuple[Finding, ...]:
    """Findings, those that a person overrules replaced by what was said."""
    given = {what: value for what, value in _fields(shape).items() if value != _fields(found)[what]}
    kept = [
        one
        if one.what not in given
        else _finding(
            one.what,
            given[one.what],
            Sure.GIVEN,
            f"the trace tells {one.value}, {one.sure}: {one.evidence}",
        )
        for one in findings
    ]
    told = {one.what for one in findings}
    return (
        *kept,
        *(
            _finding(what, value, Sure.GIVEN, "the trace does not tell it")
            for what, value in given.items()
            if what not in told
        ),
    )


def _fields(shape: RunShape) -> dict[str, object]:
    """`degrees.tp` and so on."""
    return {
        f"{section}.{name}": getattr(getattr(shape, section), name)
        for section in shape.__struct_fields__
        for name in getattr(shape, section).__struct_fields__
    }


def _recording_doubts(graph: TaskGraph) -> tuple[str, ...]:
    """What was not recorded, and weakens all of it."""
    doubts = []
    if not graph.steps_recorded:
        doubts.append("no steps are recorded: the whole recording is taken as one")
    world = graph.world_size or len(graph.ranks)
    if world > len(graph.ranks):
        doubts.append(f"{len(graph.ranks):,} of {world:,} ranks are in the files")
    tasks = graph.tasks
    ours = np.unique(tasks.collective[(tasks.collective >= 0) & (tasks.step >= 0) & ~tasks.fixed])
    unsized = int((graph.collectives.size_bytes[ours] < 0).sum())
    if unsized:
        doubts.append(f"sizes of {unsized:,} of {len(ours):,} collectives are not recorded")
    return tuple(doubts)
