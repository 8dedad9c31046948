"""How far the step spreads: replays with durations drawn from the variation that was measured.

What varies together is drawn together. For each rank and step the host tasks take the durations
that their twins had in one other step (a slow moment of a host slows all that it does), and so do
the device tasks; transfers take those of one step on all ranks, as a network is shared. Where fewer
than LEAST_STEPS steps were recorded, the ranks that do the same work stand for the steps: with two
steps by how far they are from their own mean, so that a rank that is always slow stays slow; with
one a slow rank cannot be told from chance.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ingest.units import Nanos
from ingest.vocab import HOST_KINDS, TaskKind
from replay.engine.batch import replay_batch
from replay.graph.arrays import NONE, Bool, Float64, Int64, TaskGraph
from replay.results.metrics import step_times_of_ends
from whatif.transforms.base import with_durations
from whatif.transforms.jitter import Jitter
from whatif.transforms.rank_roles import rank_roles
from whatif.transforms.stragglers import LEVELLED, twins

LEAST_STEPS = 3
"""With two, a step could only be itself or the other."""
OF_TWO = 2**0.5
"""Two values lie by so much less from their mean than from that of many."""
SEED = 0
AT_ONCE = 64
"""Samples replayed together: their durations are 0.5 GB for a million tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Single steps over all samples, ns."""

    samples: int
    p50_ns: Nanos
    p95_ns: Nanos
    step_ns: Int64
    """Shape (samples, steps)."""
    drawn: str
    """What the durations were drawn from, in words."""
    ranks_as_chance: bool
    """One step was recorded: the ranks stand for what varies, a slow one among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """Durations of twins, by the cell (rank, step) that they were measured in."""

    task: Int64
    """Tasks that vary."""
    cell: Int64
    """Of each of them; rank position x steps + step."""
    twin: Int64
    table_ns: Int64
    """Shape (twins, cells); -1 where a cell has no such task."""
    typical_ns: Int64
    """Median of each twin over the steps of a rank, or where only one was recorded over the ranks;
    shape (twins, cells)."""


def spread(graph: TaskGraph, asked: Jitter, *, own: bool = True) -> Spread | None:
    """The spread of the steps of a graph; None where nothing can be drawn (one rank, few steps).

    Args:
        graph: with all what-ifs made.
        asked: how many samples of how much of the variation.
        own: a step may be drawn as it was recorded; without, it is made of others only.
    """
    donors = _Donors.of(graph, own=own)
    if donors is None:
        return None
    measured = _measure(graph, donors.with_transfers)
    kind = graph.tasks.kind[measured.task]
    groups = (
        np.isin(kind, [int(code) for code in HOST_KINDS]),
        ~np.isin(kind, [int(code) for code in HOST_KINDS]) & (kind != TaskKind.TRANSFER),
        kind == TaskKind.TRANSFER,
    )
    random = np.random.default_rng(SEED)
    steps = []
    for first in range(0, asked.samples, AT_ONCE):
        drawn = [
            with_durations(graph, _draw(graph, measured, groups, donors, asked.scale, random))
            for _ in range(min(AT_ONCE, asked.samples - first))
        ]
        steps += [
            step_times_of_ends(graph, ends_ns).per_step_ns
            for ends_ns in replay_batch(drawn, graph.boundaries.task)
        ]
    step_ns = np.array(steps, np.int64)
    middle, late = np.quantile(step_ns, [0.5, 0.95])
    return Spread(
        samples=asked.samples,
        p50_ns=Nanos(round(middle)),
        p95_ns=Nanos(round(late)),
        step_ns=step_ns,
        drawn=donors.told,
        ranks_as_chance=len(graph.steps) == 1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Donors:
    """From which cells the durations of each cell may come."""

    cells: tuple[Int64, ...]
    """Per cell."""
    steps: tuple[Int64, ...]
    """Per step, those whose network it may have."""
    n_steps: int
    told: str
    around_own: bool = False
    """Only how far a donor is from the middle of its own rank is taken."""

    @property
    def with_transfers(self) -> bool:
        """Transfers are drawn as well: they are compared over steps only."""
        return len(self.steps) > 0

    @classmethod
    def of(cls, graph: TaskGraph, *, own: bool) -> "_Donors | None":
        """Other steps where there are enough, else other ranks of the role; None without either."""
        n_steps, n_ranks = len(graph.steps), len(graph.ranks)
        step = np.arange(n_steps)
        if n_steps >= LEAST_STEPS:
            of_step = tuple(step if own else step[step != at] for at in step)
            told = f"host, device and network each drawn from the {n_steps} recorded steps"
            if n_ranks > 1:
                told += "; host and device of every rank by itself"
            cells = tuple(rank * n_steps + of_step[at] for rank in range(n_ranks) for at in step)
            return cls(cells=cells, steps=of_step, n_steps=n_steps, told=told)
        roles = rank_roles(graph)
        alike = [np.flatnonzero(roles == role) for role in roles]
        if all(len(ranks) == 1 for ranks in alike):
            return None
        cells = tuple(
            np.add.outer(
                (ranks if own or len(ranks) == 1 else ranks[ranks != rank]) * n_steps, step
            ).ravel()
            for rank, ranks in enumerate(alike)
            for _ in step
        )
        told = (
            "host and device of every rank drawn from the ranks that do the same work, as too few "
            "steps were recorded: a slow rank counts as chance, which moves p50 away from the "
            "prediction; transfers as recorded"
        )
        if n_steps > 1:
            told = (
                "host and device of every rank around its own mean, as far as the ranks that do "
                "the same work are from theirs, as too few steps were recorded; transfers as "
                "recorded"
            )
        return cls(cells=cells, steps=(), n_steps=n_steps, told=told, around_own=n_steps > 1)


def _measure(graph: TaskGraph, with_transfers: bool) -> _Measured:  # noqa: FBT001
    tasks = graph.tasks
    kinds = [*LEVELLED, TaskKind.TRANSFER] if with_transfers else list(LEVELLED)
    varies = np.isin(tasks.kind, [int(kind) for kind in kinds])
    task = np.flatnonzero(varies & ~tasks.fixed & (tasks.lane >= 0) & (tasks.step >= 0))
    position = np.full(max((info.rank for info in graph.ranks), default=0) + 1, NONE, np.int64)
    position[[info.rank for info in graph.ranks]] = np.arange(len(graph.ranks))
    cell = position[tasks.rank[task]] * len(graph.steps) + tasks.step[task]
    twin = twins(graph, task, over_steps=True)
    n_twins = int(twin.max()) + 1 if len(twin) else 0
    table_ns = np.full((n_twins, len(graph.ranks) * len(graph.steps)), NONE, np.int64)
    table_ns[twin, cell] = tasks.dur_ns[task]
    known = np.where(table_ns >= 0, table_ns, np.nan)
    by_rank = known.reshape(n_twins, len(graph.ranks), len(graph.steps))
    typical_ns = _median(by_rank, axis=2 if len(graph.steps) > 1 else 1)
    typical_ns = np.broadcast_to(typical_ns, by_rank.shape).reshape(table_ns.shape)
    return _Measured(
        task=task,
        cell=cell,
        twin=twin,
        table_ns=table_ns,
        typical_ns=np.rint(typical_ns).astype(np.int64),
    )


def _median(known_ns: Float64, axis: int) -> Float64:
    """Of what is there; 0 of nothing."""
    nothing = np.isnan(known_ns).all(axis=axis, keepdims=True)
    median: Float64 = np.nanmedian(np.where(nothing, 0.0, known_ns), axis=axis, keepdims=True)
    return median


def _draw(
    graph: TaskGraph,
    measured: _Measured,
    groups: tuple[Bool, Bool, Bool],
    donors: _Donors,
    scale: float,
    random: np.random.Generator,
) -> Int64:
    """Durations of one sample."""
    own_ns = graph.tasks.dur_ns[measured.task]
    drawn_ns = own_ns.copy()
    middle_ns = measured.typical_ns[measured.twin, measured.cell]
    for group, donor in zip(groups, _choices(donors, random), strict=True):
        twin, other = measured.twin[group], donor[measured.cell[group]]
        found_ns = measured.table_ns[twin, other]
        if donors.around_own:
            apart_ns = found_ns - measured.typical_ns[twin, other]
            drawn = np.rint(middle_ns[group] + OF_TWO * apart_ns).astype(np.int64)
        else:
            drawn = found_ns
        drawn_ns[group] = np.where(found_ns >= 0, drawn, own_ns[group])
    # Less than measured lies between the prediction and a draw, more beyond the draw.
    center_ns = own_ns if scale < 1 else middle_ns
    drawn_ns = np.rint(center_ns + scale * (drawn_ns - center_ns)).astype(np.int64)
    dur_ns = graph.tasks.dur_ns.copy()
    dur_ns[measured.task] = np.maximum(drawn_ns, 0)
    return dur_ns


def _choices(donors: _Donors, random: np.random.Generator) -> Iterator[Int64]:
    """Donor cell of every cell: for host tasks, for device tasks, and for transfers."""
    for _ in ("host", "device"):
        yield _one_of_each(donors.cells, random)
    own = np.arange(len(donors.cells))
    if not donors.with_transfers:
        yield own
        return
    of_step = _one_of_each(donors.steps, random)
    yield own // donors.n_steps * donors.n_steps + of_step[own % donors.n_steps]


def _one_of_each(sets: tuple[Int64, ...], random: np.random.Generator) -> Int64:
    """An element of every set."""
    count = np.array([len(each) for each in sets], np.int64)
    first = np.cumsum(count) - count
    chosen: Int64 = np.concatenate(sets)[first + random.integers(count)]
    return chosen
