"""Gradients of a table that embedding and head share, where a new pipeline parts the two."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ingest.vocab import CollectiveKind
from replay.graph.arrays import NONE, Group, Int64, TaskGraph
from whatif.models.pipeline.terms import pipeline_of
from whatif.models.places import Pass
from whatif.models.transformer.dims import is_known
from whatif.models.transformer.parameters import (
    embedding_parameters,
    given_share,
    held_by_rank,
)
from whatif.tape.insert import inserted
from whatif.tape.inserting.rows import Insertions
from whatif.tape.segments import Program, Tape
from whatif.transforms.relayout.exchanges.inside import LAUNCH_NS
from whatif.transforms.relayout.exchanges.links import links_of
from whatif.transforms.relayout.exchanges.units import Units, units_of
from whatif.transforms.relayout.parts import Ask

NAME = "sums of the shared table"


@dataclass(frozen=True, slots=True, kw_only=True)
class TiedSums:
    """A tape in which the first and the last stage add up their gradients of the shared table."""

    tape: Tape
    assumptions: tuple[str, ...] = ()


def with_tied_sums(
    recorded: TaskGraph, tape: Tape, programs: Sequence[Program], ask: Ask
) -> TiedSums:
    """Put them behind backward, in its way (Megatron-LM's `_allreduce_word_embedding_grads`).

    A recorded pipeline has them already.

    Args:
        recorded: graph of the run, whose collectives tell of its links.
        tape: as put together for the target.
        programs: that it was put together of.
        ask: of the relayout.

    Raises:
        ScenarioError: the link between the two stages is not known.
    """
    model, ends = ask.target.model, _end_stages(ask)
    if ask.before.degrees.pp > 1 or not model.tied or not is_known(model) or len(ends) == 1:
        return TiedSums(tape=tape)
    units = units_of(tape)
    stage = {program.rank: program.stage for program in programs}
    at = [place for rank, place in _last_backwards(units) if stage.get(rank) in ends]
    if not at:
        return TiedSums(tape=tape)
    addition = _insertions(recorded, tape, units, np.array(at, np.int64), ask)
    told = (
        f"embedding and head share their weights: the stages that hold them add up "
        f"{addition.size_bytes[0] / 1e6:,.3g} MB of gradients behind backward, "
        f"{addition.transfer_ns[0] / 1e6:,.3g} ms by the model"
    )
    return TiedSums(tape=inserted(tape, [addition]), assumptions=(told,))


def _end_stages(ask: Ask) -> set[int]:
    """Stages with the first and the last part of the model."""
    pipeline = pipeline_of(ask.target)
    wanted = (0, pipeline.depth - 1)
    return {
        stage
        for stage in range(pipeline.stages)
        for chunk in range(pipeline.chunks_per_rank)
        if pipeline.place(stage, chunk) in wanted
    }


def _last_backwards(units: Units) -> Iterator[tuple[int, int]]:
    """Rank, and place in the line of its last task of backward, of every step."""
    last: dict[tuple[int, int], int] = {}
    for unit in np.flatnonzero(units.way == Pass.BACKWARD).tolist():
        key = int(units.rank[unit]), int(units.step[unit])
        last[key] = max(last.get(key, NONE), int(units.last[unit]))
    for (rank, _), place in sorted(last.items()):
        yield rank, place


def _insertions(recorded: TaskGraph, tape: Tape, units: Units, at: Int64, ask: Ask) -> Insertions:
    """Beside what backward still hands to the stage before; the next work of the stage waits."""
    after = units.line[at]
    target, elements = ask.target, ask.target.elements
    table = embedding_parameters(target.model).times(given_share(target.model))
    reduced = elements.gradient if elements.reduced is None else elements.reduced
    size = np.full(len(after), round(held_by_rank(target, table) * reduced), np.int64)
    tasks, per_stage = tape.graph.tasks, target.degrees.world // target.degrees.pp
    place = tasks.rank[after].astype(np.int64) % per_stage
    ranks = tuple(stage * per_stage for stage in sorted(_end_stages(ask)))
    links = links_of(recorded, ask.context)
    group = Group(
        name=NAME,
        ranks=ranks,
        size=len(ranks),
        backend="cpu:gloo" if links.on_host else "nccl",
        description="embedding",
    )
    return Insertions(
        key=tasks.step[after] * per_stage + place,
        after=after.astype(np.int32),
        kind=CollectiveKind.ALL_REDUCE,
        group=group,
        size_bytes=size,
        transfer_ns=links.transfer_ns(CollectiveKind.ALL_REDUCE, size, ranks),
        beside=True,
        waits=units.following(at).astype(np.int32),
        host_ns=np.full(len(after), links.launch_ns(LAUNCH_NS), np.int64),
        name=NAME,
    )
