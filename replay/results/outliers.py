"""Steps far longer than the others, and what grew in them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ingest.vocab import KernelClass
from replay.graph import thresholds
from replay.graph.arrays import NONE, Int64, TaskGraph
from replay.results.causes import WORDS, Cause, task_causes
from replay.results.fidelity import Baseline

TOLD = 3
"""Causes told of a step, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Work of one kind that took longer on the critical path of a step than in the other steps."""

    cause: Cause
    name: str
    """Call or operator for host work, class for device work, empty for the rest."""
    rank: int | None
    """The rank that most of it was on; None where it is no rank's."""
    spent_ns: int
    """On the path of this step."""
    usual_ns: int
    """Median over the other steps."""

    @property
    def grown_ns(self) -> int:
        """How much more than usual."""
        return self.spent_ns - self.usual_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class LongStep:
    """A step more than `thresholds.LONG_STEP` times the median."""

    step: int
    """As recorded."""
    step_ns: int
    median_ns: int
    grown: tuple[Growth, ...]
    """What grew most, largest first; empty where nothing stands out."""


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Stretches of the critical path and what each is spent on."""

    lo_ns: Int64
    hi_ns: Int64
    kinds: list[tuple[int, int]]
    """Kinds of work that occur: cause, and name or kernel class or NONE."""
    kind: Int64
    """Per stretch: its place in `kinds`."""
    rank: Int64
    """-1 for none: counts backwards into the last column of a table of ranks."""


def long_steps(graph: TaskGraph, baseline: Baseline) -> tuple[LongStep, ...]:
    """Outlier steps of the recording with their cause.

    The critical path covers every step from boundary to boundary, so its time by kind of work adds
    up to the step: host work by name of call or operator, device work by class, transfers, waiting,
    and gaps. What took longer than the median of the other steps has grown.
    """
    steps_ns = baseline.measured.per_step_ns
    median_ns = int(np.median(steps_ns))
    chosen = np.flatnonzero(steps_ns > thresholds.LONG_STEP * max(median_ns, 1)).tolist()
    if not chosen:
        return ()
    pieces = _pieces(graph, baseline)
    spent_ns = _spent(pieces, baseline.replayed.boundary_ns)
    return tuple(
        LongStep(
            step=graph.steps[place],
            step_ns=int(steps_ns[place]),
            median_ns=median_ns,
            grown=tuple(_grown(graph, pieces, spent_ns, place, int(steps_ns[place]) - median_ns)),
        )
        for place in chosen
    )


def _grown(
    graph: TaskGraph, pieces: _Pieces, spent_ns: Int64, place: int, growth_ns: int
) -> Iterator[Growth]:
    """What grew in the step at `place` by a notable part of its growth, largest first."""
    others = np.arange(len(spent_ns)) != place
    usual_ns = np.median(spent_ns[others].sum(axis=2), axis=0)
    mine_ns = spent_ns[place].sum(axis=1)
    for kind in np.argsort(usual_ns - mine_ns, kind="stable")[:TOLD].tolist():
        if mine_ns[kind] - usual_ns[kind] < thresholds.GROWN_FRAC * growth_ns:
            return
        cause, detail = pieces.kinds[kind]
        yield Growth(
            cause=Cause(cause),
            name=_name_of(graph, Cause(cause), detail),
            rank=_rank_of(spent_ns[place][kind]),
            spent_ns=int(mine_ns[kind]),
            usual_ns=round(float(usual_ns[kind])),
        )


def _pieces(graph: TaskGraph, baseline: Baseline) -> _Pieces:
    """Lags and tasks of the critical path in turn, from the first boundary on."""
    path, tasks = baseline.path, graph.tasks
    length_ns = np.column_stack([path.lag_ns, path.span_ns]).ravel()
    hi_ns = path.window_ns[0] + np.cumsum(length_ns)
    cause = task_causes(graph)[path.task]
    detail = np.select(
        [cause == Cause.HOST, cause == Cause.COMPUTE],
        [tasks.name[path.task].astype(np.int64), tasks.kernel_class[path.task].astype(np.int64)],
        NONE,
    )
    of_lag = np.full((len(cause), 2), (Cause.UNKNOWN, NONE))
    both = np.stack([of_lag, np.column_stack([cause, detail])], axis=1).reshape(-1, 2)
    kinds, kind = np.unique(both, axis=0, return_inverse=True)
    return _Pieces(
        lo_ns=hi_ns - length_ns,
        hi_ns=hi_ns,
        kinds=[(int(cause), int(detail)) for cause, detail in kinds],
        kind=kind.reshape(-1),
        rank=np.repeat(tasks.rank[path.task].astype(np.int64), 2),
    )


def _spent(pieces: _Pieces, boundary_ns: Int64) -> Int64:
    """Time of the path, shape (steps, kinds of work, ranks + 1); the last column is no rank's."""
    n_ranks = int(pieces.rank.max(initial=0)) + 1
    spent_ns = np.zeros((len(boundary_ns) - 1, len(pieces.kinds), n_ranks + 1), np.int64)
    for step, (lo_ns, hi_ns) in enumerate(pairwise(boundary_ns.tolist())):
        inside_ns = np.clip(pieces.hi_ns, lo_ns, hi_ns) - np.clip(pieces.lo_ns, lo_ns, hi_ns)
        np.add.at(spent_ns[step], (pieces.kind, pieces.rank), inside_ns)
    return spent_ns


def _name_of(graph: TaskGraph, cause: Cause, detail: int) -> str:
    if detail == NONE:
        return ""
    return KernelClass(detail).name.lower() if cause is Cause.COMPUTE else graph.names[detail]


def _rank_of(spent_ns: Int64) -> int | None:
    """The rank with the most time; None where most of it is no rank's (a meeting)."""
    most = int(np.argmax(spent_ns))
    return most if most < len(spent_ns) - 1 and spent_ns[most] > 0 else None


def told(growth: Growth) -> str:
    """What grew, in words: `cudaFree`, `gemm kernels`, `communication`."""
    if growth.cause is Cause.COMPUTE:
        return f"{growth.name} kernels"
    return growth.name or WORDS[growth.cause]
