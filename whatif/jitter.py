"""How far the step spreads: replays with durations drawn from the variation that was measured.

What varies together is drawn together. For each rank and step the host tasks take the durations
that their twins had in one other step (a slow moment of a host slows all that it does), and so do
the device tasks; transfers take those of one step on all ranks, as a network is shared. Where fewer
than LEAST_STEPS steps were recorded, the ranks that do the same work stand for the steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ingest.units import Nanos
from ingest.vocab import HOST_KINDS, TaskKind
from replay.engine.batch import replay_batch
from replay.graph.arrays import NONE, Bool, Int64, TaskGraph
from replay.results.metrics import step_times_of_ends
from whatif.transforms.base import with_durations
from whatif.transforms.jitter import Jitter
from whatif.transforms.rank_roles import rank_roles
from whatif.transforms.stragglers import LEVELLED, twins

LEAST_STEPS = 3
"""With two, a step could only be itself or the other."""
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
    """Median of each twin, shape (twins,)."""


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
            (ranks if own or len(ranks) == 1 else ranks[ranks != rank]) * n_steps + at
            for rank, ranks in enumerate(alike)
            for at in step
        )
        told = (
            "host and device of every rank drawn from the ranks that do the same work, as too few "
            "steps were recorded: a slow rank counts as chance; transfers as recorded"
        )
        return cls(cells=cells, steps=(), n_steps=n_steps, told=told)


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
    typical_ns = np.nanmedian(known, axis=1) if n_twins else np.zeros(0)
    return _Measured(
        task=task,
        cell=cell,
        twin=twin,
        table_ns=table_ns,
        typical_ns=np.rint(typical_ns).astype(np.int64),
    )


def _draw(
    graph: TaskGraph,
    measured: _Measured,
    groups: tuple[Bool, Bool, Bool],
    donors: _Donors,
    scale: float,
    random: np.random.Generator,
) -> Int64:
    """Durations of one sample."""
    drawn_ns = graph.tasks.dur_ns[measured.task]
    for group, donor in zip(groups, _choices(donors, random), strict=True):
        found_ns = measured.table_ns[measured.twin[group], donor[measured.cell[group]]]
        drawn_ns[group] = np.where(found_ns >= 0, found_ns, drawn_ns[group])
    if scale != 1:
        middle_ns = measured.typical_ns[measured.twin]
        drawn_ns = np.rint(middle_ns + scale * (drawn_ns - middle_ns)).astype(np.int64)
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
