"""Where gradient buckets end, and when each of their ends is ready on every rank."""

from dataclasses import dataclass

import numpy as np

from ingest.errors import ScenarioError
from ingest.vocab import EdgeKind
from replay.graph.arrays import NONE, Int64, TaskGraph
from replay.graph.csr import destinations
from whatif.transforms.gradients import Sequence
from whatif.transforms.ready import Ready

NEVER_NS = int(np.iinfo(np.int64).max)
MOST_BUCKETS = 10_000
"""Of one communicator in a step: models have hundreds of gradients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """What buckets are made of, in the order in which it becomes ready: gradients, or parts."""

    ends: Int64
    """Bytes up to the end of each."""
    ready_ns: Int64
    """Recorded moment on each rank, shape (ranks, pieces)."""
    task: Int64
    """Host task that runs then, the same shape."""
    exact: bool
    """They are the gradients as recorded; else bytes spread evenly between recorded buckets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Buckets made of pieces."""

    last_piece: Int64
    """Last piece of each new bucket."""
    pieces: Pieces

    @property
    def ends(self) -> Int64:
        """Bytes up to the end of each new bucket."""
        return self.pieces.ends[self.last_piece]


def recut(
    ready: Ready, sequence: Sequence, cap_bytes: int, first_cap_bytes: int | None = None
) -> Cut:
    """New buckets, each closed once it holds `cap_bytes`, as PyTorch's DDP closes them.

    A bucket takes no piece that was ready only after somebody waited for bytes that it holds.

    Args:
        ready: the run, asked when pieces are ready.
        sequence: the recorded buckets of one communicator and step.
        cap_bytes: size of a bucket.
        first_cap_bytes: of the first one, where it is another.

    Raises:
        ScenarioError: far too many buckets.
    """
    pieces = _gradients(ready, sequence) or _parts(ready, sequence, cap_bytes)
    sizes = np.diff(pieces.ends, prepend=0).tolist()
    awaited_ns = _awaited_ns(ready, sequence)
    bucket_at = {end: bucket for bucket, end in enumerate(sequence.ends.tolist())}
    last: list[int] = []
    held = 0
    deadline_ns = np.full(len(sequence.ranks), NEVER_NS)
    for piece, end in enumerate(pieces.ends.tolist()):
        held += sizes[piece]
        cap = cap_bytes if last or first_cap_bytes is None else first_cap_bytes
        if end in bucket_at:
            deadline_ns = np.minimum(deadline_ns, awaited_ns[:, bucket_at[end]])
        if (
            piece + 1 == len(sizes)
            or (pieces.ready_ns[:, piece + 1] >= deadline_ns).any()
            or _is_full(held, sizes[piece + 1], cap, exact=pieces.exact)
        ):
            last.append(piece)
            held, deadline_ns = 0, np.full(len(sequence.ranks), NEVER_NS)
    return Cut(last_piece=np.array(last, np.int64), pieces=pieces)


def _is_full(held: int, following: int, cap_bytes: int, *, exact: bool) -> bool:
    """DDP closes a bucket with the gradient that fills it; parts are cut so that none does."""
    return held >= cap_bytes if exact else held + following > cap_bytes


def _awaited_ns(ready: Ready, sequence: Sequence) -> Int64:
    """When the first task that waits for a bucket was launched, shape (ranks, buckets).

    What only follows it in its stream does not count.
    """
    edges = ready.graph.edges
    place = np.full(ready.graph.n_tasks, NONE, np.int64)
    place[sequence.transfer.ravel()] = np.arange(sequence.transfer.size)
    member = np.zeros(ready.graph.n_tasks, bool)
    member[sequence.transfer - 1] = True
    dst = destinations(ready.graph)
    waits = (place[edges.src] >= 0) & ~member[dst] & (edges.kind != EdgeKind.STREAM_ORDER)
    earliest_ns = np.full(sequence.transfer.size, NEVER_NS)
    np.minimum.at(earliest_ns, place[edges.src[waits]], ready.launched_ns[dst[waits]])
    return earliest_ns.reshape(sequence.transfer.shape)


def _gradients(ready: Ready, sequence: Sequence) -> Pieces | None:
    """The gradients of the sequence's step; None unless they fill the recorded buckets exactly."""
    graph = ready.graph
    gradients = graph.gradients
    if not len(gradients):
        return None
    step = int(graph.tasks.step[sequence.transfer[0, 0]])
    of_step = (gradients.task != NONE) & (graph.tasks.step[gradients.task] == step)
    rows = [np.flatnonzero(of_step & (gradients.rank == rank)) for rank in sequence.ranks]
    if len({len(mine) for mine in rows}) != 1 or not len(rows[0]):
        return None
    sizes = gradients.size_bytes[np.stack(rows)]
    ends = np.cumsum(sizes[0])
    alike = (sizes == sizes[0]).all() and (sizes > 0).all()
    if not alike or not np.isin(sequence.ends, ends).all() or ends[-1] != sequence.ends[-1]:
        return None
    return Pieces(
        ends=ends,
        ready_ns=_beside_launches(ready, sequence, ends, gradients.ready_ns[np.stack(rows)]),
        task=gradients.task[np.stack(rows)],
        exact=True,
    )


def _parts(ready: Ready, sequence: Sequence, cap_bytes: int) -> Pieces:
    """Recorded buckets, those above the limit in equal parts; ready evenly one after the other.

    Raises:
        ScenarioError: they would be more than `MOST_BUCKETS`.
    """
    counts = np.maximum(-(-sequence.sizes // cap_bytes), 1)
    if counts.sum() > MOST_BUCKETS:
        raise ScenarioError(
            f"buckets of {cap_bytes:,} bytes are {counts.sum():,} in a step",
            hint=f"a size that makes {MOST_BUCKETS:,} of them at most",
        )
    begins = sequence.ends - sequence.sizes
    ends = np.concatenate(
        [
            begin + size * np.arange(1, count + 1) // count
            for begin, size, count in zip(
                begins.tolist(), sequence.sizes.tolist(), counts.tolist(), strict=True
            )
        ]
    )
    launched_ns = ready.launched_ns[sequence.transfer - 1]
    known = np.concatenate([[0], sequence.ends])
    ready_ns = np.stack(
        [
            np.rint(np.interp(ends, known, np.concatenate([[first], moments]))).astype(np.int64)
            for first, moments in zip(
                _first_ready_ns(launched_ns, sequence), launched_ns, strict=True
            )
        ]
    )
    task = np.stack(
        [
            ready.running_at(_launcher(ready.graph, transfer), moments)
            for transfer, moments in zip(sequence.transfer, ready_ns, strict=True)
        ]
    )
    return Pieces(
        ends=ends,
        ready_ns=_beside_launches(ready, sequence, ends, ready_ns),
        task=task,
        exact=False,
    )


def _beside_launches(ready: Ready, sequence: Sequence, ends: Int64, ready_ns: Int64) -> Int64:
    """Moments of pieces, in order, those that end a recorded bucket at its launch, none later."""
    launched_ns = np.maximum.accumulate(ready.launched_ns[sequence.transfer - 1], axis=1)
    within = np.searchsorted(sequence.ends, ends)
    found = np.minimum(ready_ns, launched_ns[:, within])
    found[:, np.searchsorted(ends, sequence.ends)] = launched_ns
    never_falling: Int64 = np.maximum.accumulate(found, axis=1)
    return never_falling


def _first_ready_ns(launched_ns: Int64, sequence: Sequence) -> Int64:
    """When the first byte was ready on each rank, at the pace of those after the first bucket."""
    later = int(sequence.ends[-1] - sequence.sizes[0])
    first: Int64 = launched_ns[:, 0]
    if later <= 0:
        return first
    pace = (launched_ns[:, -1] - first) / later
    earlier: Int64 = np.rint(pace * sequence.sizes[0]).astype(np.int64)
    return first - earlier


def _launcher(graph: TaskGraph, transfer: Int64) -> int:
    """Lane of the thread that launches a rank's buckets; -1 where no call is recorded."""
    caller = graph.tasks.caller[transfer]
    caller = caller[caller != NONE]
    return int(graph.tasks.lane[caller[0]]) if len(caller) else NONE
