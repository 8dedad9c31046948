"""Where copies of segments do other work than the segments that they are copies of.

Backward that is split does a part of its work in each half; gradients are exchanged by the last
micro-batch alone; attention alone is run again; a stage keeps and updates its own parameters.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ingest.vocab import CollectiveKind, TaskKind
from replay.graph.arrays import NONE, Bool, Float64, Int8, Int32, Int64, TaskGraph
from replay.graph.hosts import computes_on_hosts, host_tasks
from whatif.description.labels import Part, Pass, Place
from whatif.models.pipeline.terms import pipeline_of
from whatif.models.places import BACKWARDS
from whatif.models.shape import SHARDS_GRADIENTS, SHARDS_PARAMETERS, Recompute, Schedule
from whatif.parallelism import REPLICATED, Axis, layout_of
from whatif.tape.insert import without
from whatif.tape.segments import Program, Tape
from whatif.transforms.gradients import REDUCTIONS
from whatif.transforms.relayout.parts import DEVICE_WORK, Ask
from whatif.transforms.relayout.stage_weights import shares_of
from whatif.transforms.relayout.structure import canonical, same_structure
from whatif.transforms.relayout.work_done import with_parts_of_work

HALVED = (
    Place.UNKNOWN,
    Place.QKV,
    Place.PROJECTION,
    Place.UP,
    Place.DOWN,
    Place.EXPERT,
    Place.ROUTER,
    Place.LOGITS,
)
"""Products: backward has as much to compute for their inputs as for their weights."""
SMALL_BYTES = 1 << 20
"""Collectives of less (norms, flags, losses) carry no parameters."""
OVER_REPLICAS = (*REPLICATED, Axis.UNCLEAR, Axis.WORLD)
AFTER_LAST = (Part.SYNC, Part.OPTIMIZER)


def settled(tape: Tape, programs: Sequence[Program], ask: Ask) -> Tape:
    """The assembled tape with the work that each copy of a segment does.

    Args:
        tape: as put together.
        programs: that it was put together of.
        ask: of the relayout.
    """
    if same_structure(ask.before, ask.target):
        return tape
    tape = _with_directions(tape, programs)
    tape = without(tape, _superfluous(tape, ask))
    graph = tape.graph
    factor = _shares(tape, programs, ask)
    if ask.target.options.recompute is Recompute.SELECTIVE and _made_again(ask):
        factor[_direction(tape) == Pass.RECOMPUTE] = 0.0
        factor[_attention(tape)] = 1.0
    if _splits(ask):
        factor *= _halves(tape)
    changed = factor != 1.0
    if not changed.any():
        return tape
    dur_ns = graph.tasks.dur_ns.copy()
    dur_ns[changed] = np.rint(dur_ns[changed] * factor[changed]).astype(np.int64)
    moved = _with_transfers(graph, dur_ns, factor)
    return replace(tape, graph=with_parts_of_work(moved, factor))


def _with_directions(tape: Tape, programs: Sequence[Program]) -> Tape:
    """The tape whose segments have the directions that the programs gave their instances."""
    segments = tape.segments
    direction = segments.direction.copy()
    for program in programs:
        mine = segments.rank == program.rank
        if program.direction is not None:
            direction[mine] = program.direction[: int(mine.sum())]
    of_task = np.append(direction, np.int8(Pass.NONE))[tape.segment]
    return replace(
        tape,
        segments=replace(segments, direction=direction),
        labels=replace(tape.labels, direction=of_task),
    )


def _direction(tape: Tape) -> Int64:
    return _of_segment(tape, tape.segments.direction)


def _of_segment(tape: Tape, column: Int8 | Int32) -> Int64:
    """A column of the segments by task; -1 outside."""
    value: Int64 = np.append(column.astype(np.int64), -1)[tape.segment]
    return value


def _made_again(ask: Ask) -> bool:
    """What runs again was made of forwards, and not recorded."""
    return ask.before.options.recompute is not ask.target.options.recompute


def _splits(ask: Ask) -> bool:
    """Backward comes in halves that were not recorded as such."""
    halves = (Schedule.ZERO_BUBBLE, Schedule.DUALPIPE)
    before, after = (canonical(shape).options.schedule for shape in (ask.before, ask.target))
    return after in halves and before not in halves


def _superfluous(tape: Tape, ask: Ask) -> Bool:
    """Collectives that copies of segments have and that the new run has not."""
    gone = np.zeros(len(tape.graph.collectives.kind), bool)
    direction, micro_batch = _of_calls(tape)
    of_state = _reductions(tape.graph) & np.isin(direction, BACKWARDS)
    count = ask.target.batch.micro_batches
    if ask.before.batch.micro_batches == 1 < count and ask.target.degrees.zero < SHARDS_GRADIENTS:
        ends = [count - 1]
        if pipeline_of(ask.target).kind is Schedule.DUALPIPE:
            ends.append(count // 2 - 1)
        gone |= of_state & ~np.isin(micro_batch, ends) & (micro_batch >= 0)
    if ask.before.batch.micro_batches < count and 0 < ask.target.degrees.zero < SHARDS_PARAMETERS:
        gone |= _gathers(tape.graph, ask) & (direction == Pass.FORWARD) & (micro_batch > 0)
    if _splits(ask):
        gone |= of_state & (direction == Pass.BACKWARD_INPUT)
        gone |= ~of_state & (direction == Pass.BACKWARD_WEIGHT)
    if _made_again(ask):
        gone |= _gathers(tape.graph, ask) & (direction == Pass.RECOMPUTE)
    return gone


def _of_calls(tape: Tape) -> tuple[Int64, Int64]:
    """Direction and micro-batch of each collective: of its last member's segment."""
    tasks = tape.graph.tasks
    transfer = np.flatnonzero(tasks.kind == TaskKind.TRANSFER)
    found = []
    for column in (tape.segments.direction, tape.segments.micro_batch):
        value = np.full(len(tape.graph.collectives.kind), -1, np.int64)
        value[tasks.collective[transfer]] = _of_segment(tape, column)[transfer]
        found.append(value)
    return found[0], found[1]


def _reductions(graph: TaskGraph) -> Bool:
    """All-reduces and reduce-scatters over replicas, or over all ranks as far as told."""
    groups = np.array([role.axis in OVER_REPLICAS for role in layout_of(graph).roles], bool)
    calls = graph.collectives
    if not len(groups):
        return np.zeros(len(calls.kind), bool)
    found: Bool = groups[calls.group] & np.isin(calls.kind, REDUCTIONS)
    return found


def _gathers(graph: TaskGraph, ask: Ask) -> Bool:
    """All-gathers of sharded parameters, which backward has of its own."""
    sharded = np.array([role.axis is Axis.SHARDED for role in layout_of(graph).roles], bool)
    calls = graph.collectives
    if not len(sharded):
        return np.zeros(len(calls.kind), bool)
    # Ranks of new stages keep the names of the recorded communicators, not always their members.
    roles = ask.described.layout.roles
    known = {
        (group.name, group.description)
        for group, role in zip(graph.groups, roles, strict=False)
        if role.axis is Axis.SHARDED
    }
    sharded |= [(group.name, group.description) in known for group in graph.groups]
    found: Bool = sharded[calls.group] & (calls.kind == CollectiveKind.ALL_GATHER)
    return found


def _shares(tape: Tape, programs: Sequence[Program], ask: Ask) -> Float64:
    """Per task around the passes: parameters of its stage over those of the recorded rank.

    The work of the optimizer is scaled before, to an equal part of each stage; what a stage has
    more or less than that is left.
    """
    tasks, calls = tape.graph.tasks, tape.graph.collectives
    shares = shares_of(programs, ask)
    size = 1 + max(shares, default=0)
    whole, beside_mean = np.ones(size, np.float64), np.ones(size, np.float64)
    for rank, share in shares.items():
        whole[rank], beside_mean[rank] = share.whole, share.beside_mean
    part = _of_segment(tape, tape.segments.part)
    small = np.append(np.abs(calls.size_bytes) < SMALL_BYTES, False)[tasks.collective]
    free = (tasks.rank >= 0) & ~tasks.fixed & ~(small & (tasks.collective != NONE))
    moved = np.flatnonzero((np.isin(part, AFTER_LAST) | _early_gathers(tape, part, ask)) & free)
    kind = tasks.kind[moved]
    on_hosts = computes_on_hosts(tape.graph)
    work = np.isin(kind, DEVICE_WORK) | ((kind == TaskKind.HOST_WORK) & on_hosts)
    scaled = (part[moved] == Part.OPTIMIZER) | (tape.labels.place[moved] == Place.OPTIMIZER)
    of_rank = tasks.rank[moved]
    factor = np.ones(tape.graph.n_tasks, np.float64)
    factor[moved] = np.where(work & scaled, beside_mean[of_rank], whole[of_rank])
    return factor


def _early_gathers(tape: Tape, part: Int64, ask: Ask) -> Bool:
    """Members of gathers, before the first pass, of all parameters that other ranks updated."""
    if not 0 < ask.target.degrees.zero < SHARDS_PARAMETERS:
        return np.zeros(tape.graph.n_tasks, bool)
    gathers = np.append(_gathers(tape.graph, ask), False)[tape.graph.tasks.collective]
    found: Bool = gathers & (part == Part.ENTRY)
    return found


def _attention(tape: Tape) -> Bool:
    """Tasks of attention's core that run again, and the calls that launch them."""
    tasks = tape.graph.tasks
    chosen: Bool = (_direction(tape) == Pass.RECOMPUTE) & (tape.labels.place == Place.ATTENTION)
    callers = tasks.caller[chosen & (tasks.caller != NONE)]
    chosen[callers] = True
    return chosen


def _halves(tape: Tape) -> Float64:
    """Per task: which part of a recorded backward it does where that is split."""
    direction, place = _direction(tape), tape.labels.place
    inputs, weights = direction == Pass.BACKWARD_INPUT, direction == Pass.BACKWARD_WEIGHT
    halved = np.isin(place, HALVED) | host_tasks(tape.graph)
    on_calls = tape.graph.tasks.collective != NONE
    only_weights = place == Place.GRADIENT
    factor = np.ones(tape.graph.n_tasks, np.float64)
    factor[(inputs | weights) & halved] = 0.5
    factor[inputs & ~halved & only_weights] = 0.0
    factor[weights & ~halved & ~only_weights] = 0.0
    factor[on_calls] = 1.0
    return factor


def _with_transfers(graph: TaskGraph, dur_ns: Int64, factor: Float64) -> TaskGraph:
    """The graph with other durations, and the bytes and times of its collectives with them."""
    tasks, calls = graph.tasks, graph.collectives
    transfer = np.flatnonzero((tasks.kind == TaskKind.TRANSFER) & (factor != 1.0))
    number = tasks.collective[transfer]
    of_call = np.ones(len(calls.kind), np.float64)
    of_call[number] = factor[transfer]

    def scaled(values: Int64) -> Int64:
        return np.where(values > 0, np.rint(values * of_call), values).astype(np.int64)

    return replace(
        graph,
        tasks=replace(tasks, dur_ns=dur_ns),
        collectives=replace(
            calls,
            size_bytes=scaled(calls.size_bytes),
            transfer_ns=scaled(calls.transfer_ns),
        ),
    )
