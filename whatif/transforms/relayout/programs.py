"""Which new rank runs which segments, in which order."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ingest.errors import ScenarioError
from whatif.models.pipeline.costs import bubble_frac
from whatif.models.pipeline.orders import turns
from whatif.models.pipeline.partition import partition
from whatif.models.pipeline.terms import PassTimes, Pipeline, pipeline_of
from whatif.models.shape import SHARDS_GRADIENTS
from whatif.tape.assemble import original
from whatif.tape.segments import Program, Tape
from whatif.transforms.relayout.agreement import standing_in
from whatif.transforms.relayout.columns import Column, columns_of
from whatif.transforms.relayout.messages import messages_of
from whatif.transforms.relayout.parts import Ask
from whatif.transforms.relayout.passes import recorded_passes
from whatif.transforms.relayout.structure import same_structure
from whatif.transforms.relayout.turned import Turning
from whatif.transforms.relayout.writer import Plan, program_of
from whatif.transforms.words import counted

Told = tuple[str, ...]


def programs_of(tape: Tape, ask: Ask) -> tuple[tuple[Program, ...], Told]:
    """The programs of the new ranks, and what was taken for granted.

    Raises:
        ScenarioError: the schedule cannot run so many micro-batches, layers are too few for the
            stages, or what stages hand to one another is not known.
    """
    ranks = [info.rank for info in tape.graph.ranks]
    stages = ask.described.stage_of_rank
    columns = columns_of(stages, ranks, ask.before.degrees, ask.target.degrees)
    left = len(ranks) - sum(len(column.ranks) for column in columns)
    told: Told = ()
    if left:
        told = (f"{left} of {len(ranks)} recorded ranks have no counterpart and are left out",)
    if same_structure(ask.before, ask.target):
        return _as_recorded(tape, ask, columns), told
    programs, more = written(tape, ask, columns)
    return programs, (*told, *more)


def written(tape: Tape, ask: Ask, columns: Sequence[Column]) -> tuple[tuple[Program, ...], Told]:
    """Programs in the order that the target's schedule has, whatever the recorded one was.

    Raises:
        ScenarioError: as `programs_of`.
    """
    plan = _plan(tape, ask)
    passes = [recorded_passes(tape, column) for column in columns]
    sources, odd = standing_in(tape, columns, passes)
    made = [
        program_of(
            plan, passes[source], replace(columns[source], place=column.place), stage, number
        )
        for number, (source, column) in enumerate(zip(sources, columns, strict=True))
        for stage in range(plan.pipeline.stages)
    ]
    missing = sum(one.missing for one in made)
    _refuse_missing(missing, sum(one.asked for one in made))
    return tuple(one.program for one in made), (*odd, *_told(ask, plan, missing))


MOST_MISSING_FRAC = 0.1
"""Of the passes of layers: with more of them missing, what is left is not that run."""


def _refuse_missing(missing: int, asked: int) -> None:
    if missing > MOST_MISSING_FRAC * asked:
        raise ScenarioError(
            f"{missing:,} of {asked:,} passes of layers cannot be cut out of this run: the host "
            "does not launch them one by one (a graph of kernels launches many), or they were not "
            "told apart",
            hint="a trace without CUDA graphs, with record_shapes=True and with_modules=True",
        )


def stage_layers(ask: Ask) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Layers of each chunk of each stage of the target: as recorded where nothing of it changes."""
    pipeline = pipeline_of(ask.target)
    layers = ask.target.model.layers or 1
    before = ask.described.stage_layers
    same = pipeline.depth == len(before) and layers == sum(len(chunk) for chunk in before)
    if same and ask.before.degrees.pp == pipeline.stages:
        return tuple(
            tuple(before[pipeline.place(stage, chunk)] for chunk in range(pipeline.chunks_per_rank))
            for stage in range(pipeline.stages)
        )
    return partition(layers, pipeline)


def _as_recorded(tape: Tape, ask: Ask, columns: Sequence[Column]) -> tuple[Program, ...]:
    """What the recorded ranks ran, under their new numbers."""
    stages, per_stage = ask.described.stage_of_rank, _ranks_of_stage(ask)
    number = {
        rank: column.place + stages.get(rank, 0) * per_stage
        for column in columns
        for rank in column.ranks
    }
    return tuple(
        replace(program, rank=number[program.like])
        for program in original(tape)
        if program.like in number
    )


def _ranks_of_stage(ask: Ask) -> int:
    return ask.target.degrees.world // ask.target.degrees.pp


def _plan(tape: Tape, ask: Ask) -> Plan:
    pipeline = pipeline_of(ask.target)
    return Plan(
        pipeline=pipeline,
        per_stage=_ranks_of_stage(ask),
        stage_layers=stage_layers(ask),
        turns=tuple(turns(pipeline, stage) for stage in range(pipeline.stages)),
        messages=messages_of(tape.graph, ask) if pipeline.stages > 1 else None,
        domain=ask.context.places.domain_of(np.arange(ask.target.degrees.world, dtype=np.int64)),
        turning=Turning.of(tape.segments.direction, ask),
        layers=ask.target.model.layers or 1,
        dense_layers=ask.before.model.dense_layers,
        recorded_stages=ask.described.stage_layers,
        stage_of_rank=ask.described.stage_of_rank,
    )


def _told(ask: Ask, plan: Plan, missing: int) -> Told:
    lines: list[str] = []
    if plan.messages is not None:
        lines += [_schedule_told(ask, plan.pipeline), *plan.messages.told]
    before, after = ask.before.batch.micro_batches, ask.target.batch.micro_batches
    if after > before:
        each = ask.target.degrees.zero >= SHARDS_GRADIENTS
        lines.append(
            f"micro-batches beyond the {before} recorded are copies of these; gradients are "
            f"exchanged {'by each of them' if each else 'after the last one'}"
        )
    if missing:
        lines.append(f"{missing:,} passes of layers were recorded by no rank and are left out")
    return tuple(lines)


def _schedule_told(ask: Ask, pipeline: Pipeline) -> str:
    asked = ask.target.options.schedule
    habit = "" if asked is pipeline.kind else ", by habit (--schedule chooses)"
    thirds = PassTimes(forward=1, backward_input=1, backward_weight=1)
    return (
        f"{counted(pipeline.stages, 'stage')}, "
        f"{counted(pipeline.micro_batches, 'micro-batch', 'micro-batches')}, schedule "
        f"{pipeline.kind}{habit}: of equal stages the bubble is "
        f"{bubble_frac(pipeline, thirds):.0%} of the work"
    )
