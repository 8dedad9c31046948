"""Order alignment of two sequences of calls: which call of one is which call of the other."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.normalise.monotone import best_path
from ingest.vocab import CollectiveKind

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

FREE = -1
"""A label that agrees with every other: not recorded."""

_CANDIDATES = 32
_PROJECTIONS = 3
_SPREAD_FLOOR_NS = 1_000.0
_OFFSET_WEIGHT = 0.02
_TOLERANCE_FLOOR_NS = 50_000.0
_TOLERANCE_SPREADS = 6.0
_DENSE_SHARE = 0.25
_DENSE_HALF_WIDTH = 0.319
"""Half width, in standard deviations, of the middle quarter of a normal distribution."""
_SURE_SHARE = 0.95
_SURE_SPACING = 20.0
_NEAR_ENDS = 0.1
_BAND = 16
"""Calls to either side of a known pair among which a better one is sought."""
_MOST_CELLS = 50_000_000
_SCALE_SPREADS = 3.0
_SCALE_FLOOR_NS = 2_000.0
ENDS_APART = (
    CollectiveKind.BROADCAST,
    CollectiveKind.REDUCE,
    CollectiveKind.GATHER,
    CollectiveKind.SCATTER,
    CollectiveKind.SEND,
    CollectiveKind.RECV,
    CollectiveKind.SEND_RECV,
)
"""Kinds of which a member may be done long before another has started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Calls of one rank on one communicator, in order of issue."""

    kind: Int64
    size: Int64
    dtype: Int64
    name: Int64
    number: Int64
    """Recorded number of the operation, where the ranks are known to share it."""
    start_ns: Int64
    end_ns: Int64

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, rows: Int64) -> "Calls":
        """The calls of these rows."""
        return Calls(
            kind=self.kind[rows],
            size=self.size[rows],
            dtype=self.dtype[rows],
            name=self.name[rows],
            number=self.number[rows],
            start_ns=self.start_ns[rows],
            end_ns=self.end_ns[rows],
        )

    def table(self) -> Int64:
        """All columns as the rows of one array."""
        labels = (self.kind, self.size, self.dtype, self.name, self.number)
        return np.stack((*labels, self.start_ns, self.end_ns))

    def part(self, first: int, last: int) -> "Calls":
        """Calls `[first, last)`."""
        return self.take(np.arange(first, last))


class Clock(NamedTuple):
    """How the ends of the right-hand calls lie against those of the left-hand ones."""

    offset_ns: float
    spread_ns: float

    @property
    def tolerance_ns(self) -> float:
        """Ends of one call lie no further apart than this, after the offset."""
        return max(_TOLERANCE_SPREADS * self.spread_ns, _TOLERANCE_FLOOR_NS)


class _Fit(NamedTuple):
    shift: int
    pairs: int
    """Calls that agree and end together."""
    score: float
    clock: Clock


def agree(left: Calls, right: Calls) -> Bool:
    """Whether calls may be the same one: every label agrees or is not recorded on one side.

    Names count only where a size is missing: two ranks may run different kernels of a call.
    """
    same = _equal(left.kind, right.kind, 0) & _equal(left.size, right.size, FREE)
    same &= _equal(left.dtype, right.dtype, FREE) & _equal(left.number, right.number, FREE)
    sized = (left.size != FREE) & (right.size != FREE)
    same &= sized | (left.name == right.name)
    return same


def _equal(left: Int64, right: Int64, free: int) -> Bool:
    equal: Bool = (left == right) | (left == free) | (right == free)
    return equal


def align_pair(
    left: Calls, right: Calls, *, timed: bool, clock: Clock | None = None
) -> tuple[Int64, Int64]:
    """Positions of the calls of both sides that are the same call, both ascending.

    By order; where that pairs less than half of the shorter side, by the ends alone if those
    pair more. `timed` is for calls that end together on all ranks (not gloo); `clock` is given
    where it is already known.
    """
    by_order = _by_shifts(left, right, clock, timed=timed)
    if timed:
        by_order = _by_path(left, right, clock, by_order)
    if not timed or clock is not None or 2 * len(by_order[0]) >= min(len(left), len(right)):
        return by_order
    by_time = _by_time(left, right)
    return by_time if len(by_time[0]) > len(by_order[0]) else by_order


class _Window(NamedTuple):
    """Calls `[left, left_end)` and `[right, right_end)` that may still be paired."""

    left: int
    left_end: int
    right: int
    right_end: int
    strict: bool
    """Only calls that end together; else also those that overlap in time or may end apart."""


def _by_shifts(
    left: Calls, right: Calls, clock: Clock | None, *, timed: bool
) -> tuple[Int64, Int64]:
    """Pairs by order: the best shift of all, then what it leaves before, between and after.

    A rank may lack a call; the shift then changes on the way.
    """
    none = np.empty(0, np.int64)
    found = [(none, none)]
    work = [_Window(0, len(left), 0, len(right), strict=timed)]
    while work:
        window = work.pop()
        here = left.part(window.left, window.left_end)
        there = right.part(window.right, window.right_end)
        fit = _best_shift(here, there, clock, timed=timed, strict=window.strict)
        if fit is not None:
            clock = clock or fit.clock
            i, j = _pairs_at(here, there, fit.shift)
            good = agree(_run(here, i), _run(there, j))
            if timed:
                good &= _in_time(_run(here, i), _run(there, j), clock, strict=window.strict)
            i, j = i[good] + window.left, j[good] + window.right
            found.append((i, j))
            work += _between(window, i, j)
        elif window.strict:
            work.append(window._replace(strict=False))
    i, j = (np.concatenate(side) for side in zip(*found, strict=True))
    order = np.argsort(i)
    return i[order], j[order]


def _between(window: _Window, i: Int64, j: Int64) -> list[_Window]:
    """Windows before, between and after pairs in which both sides have calls left."""
    left = np.concatenate(([window.left - 1], i, [window.left_end]))
    right = np.concatenate(([window.right - 1], j, [window.right_end]))
    gaps = np.flatnonzero((np.diff(left) > 1) & (np.diff(right) > 1))
    return [
        _Window(a + 1, b, c + 1, d, window.strict)
        for a, b, c, d in zip(
            left[gaps].tolist(),
            left[gaps + 1].tolist(),
            right[gaps].tolist(),
            right[gaps + 1].tolist(),
            strict=True,
        )
    ]


def _by_path(
    left: Calls, right: Calls, clock: Clock | None, known: tuple[Int64, Int64]
) -> tuple[Int64, Int64]:
    """The best pairs in order near the known ones.

    A shift takes all pairs that are in time, so where one side lacks a call, neighbours of it may
    be paired crosswise; weighed together, ends that lie closer win.
    """
    i, j = known
    if len(i) == 0:
        return known
    clock = clock or _densest(right.end_ns[j] - left.end_ns[i])
    low, high = _band(i, j, len(left), len(right))
    if int((high - low).sum()) > _MOST_CELLS:
        return known
    scale_ns = max(_SCALE_SPREADS * clock.spread_ns, _SCALE_FLOOR_NS)
    found = best_path(
        left.table(),
        right.table(),
        np.isin(left.kind, ENDS_APART),
        low,
        high,
        round(clock.offset_ns),
        round(clock.tolerance_ns),
        round(scale_ns),
    )
    paired = np.flatnonzero(found >= 0)
    return paired, found[paired]


def _band(i: Int64, j: Int64, n: int, m: int) -> tuple[Int64, Int64]:
    """Per left call, the right calls between the known pairs around it, and some more."""
    before = np.searchsorted(i, np.arange(n), side="right") - 1
    after = np.searchsorted(i, np.arange(n), side="left")
    low = np.concatenate((j, [0]))[before] - _BAND
    high = np.concatenate((j, [m]))[after] + _BAND + 1
    low[before < 0] = 0
    return np.clip(low, 0, m), np.clip(high, 0, m)


def _by_time(left: Calls, right: Calls) -> tuple[Int64, Int64]:
    """Agreeing calls whose ends are nearest to each other, at most a tenth of a duration apart.

    For files that lack events here and there (sampled by a tool): no shift fits there.
    """
    none = np.empty(0, np.int64)
    if len(left) == 0 or len(right) == 0:
        return none, none
    j = _nearest(right.end_ns, left.end_ns)
    mutual = _nearest(left.end_ns, right.end_ns)[j] == np.arange(len(left))
    here, there = left, right.take(j)
    shorter = np.minimum(here.end_ns - here.start_ns, there.end_ns - there.start_ns)
    near = np.abs(there.end_ns - here.end_ns) <= shorter * _NEAR_ENDS
    good = np.flatnonzero(mutual & near & agree(here, there))
    return good, j[good]


def _nearest(ends_ns: Int64, moments_ns: Int64) -> Int64:
    """Per moment, the position of the nearest end."""
    order = np.argsort(ends_ns, kind="stable")
    ends = ends_ns[order]
    after = np.clip(np.searchsorted(ends, moments_ns), 1, max(len(ends) - 1, 1))
    before = after - 1
    after = np.minimum(after, len(ends) - 1)
    closer = np.abs(ends[after] - moments_ns) < np.abs(ends[before] - moments_ns)
    nearest: Int64 = order[np.where(closer, after, before)]
    return nearest


def _pairs_at(left: Calls, right: Calls, shift: int) -> tuple[Int64, Int64]:
    """Positions paired by `right = left + shift`."""
    first, last = max(0, -shift), min(len(left), len(right) - shift)
    i = np.arange(first, max(first, last), dtype=np.int64)
    return i, i + shift


def _run(sequence: Calls, index: Int64) -> Calls:
    return sequence.part(int(index[0]), int(index[-1]) + 1) if len(index) else sequence.part(0, 0)


def _in_time(left: Calls, right: Calls, clock: Clock, *, strict: bool) -> Bool:
    apart = np.abs(right.end_ns - left.end_ns - clock.offset_ns)
    together: Bool = apart <= clock.tolerance_ns
    if strict:
        return together
    meet = np.minimum(left.end_ns, right.end_ns - clock.offset_ns) - np.maximum(
        left.start_ns, right.start_ns - clock.offset_ns
    )
    touch: Bool = together | (meet > clock.tolerance_ns) | np.isin(left.kind, ENDS_APART)
    return touch


def _best_shift(
    left: Calls, right: Calls, clock: Clock | None, *, timed: bool, strict: bool
) -> _Fit | None:
    """The shift with the highest score; labels are searched only where the obvious ones fail."""
    if len(left) == 0 or len(right) == 0:
        return None
    spacing = float(np.median(np.diff(left.end_ns))) if len(left) > 1 else 0.0
    best: _Fit | None = None
    for shifts in (_obvious_shifts, _label_shifts):
        for shift in shifts(left, right, 0.0 if clock is None else clock.offset_ns):
            if not timed:
                fit = _fit_by_labels(left, right, shift)
            elif clock is None:
                fit = _fit_by_ends(left, right, shift, spacing)
            else:
                fit = _fit_by_clock(left, right, shift, clock, strict=strict)
            if fit is not None and (best is None or fit.score > best.score):
                best = fit
        if best is not None and best.pairs >= _SURE_SHARE * min(len(left), len(right)):
            close = best.clock.spread_ns * _SURE_SPACING < spacing
            if close or not timed or clock is not None:
                break
    return best


def _fit_by_labels(left: Calls, right: Calls, shift: int) -> _Fit | None:
    """Each pair that agrees counts alike; equal counts go to the smaller offset."""
    apart = _agreeing_ends(left, right, shift)
    if len(apart) == 0:
        return None
    own = _densest(apart)
    return _Fit(shift, len(apart), len(apart) - 1e-12 * abs(own.offset_ns), own)


def _fit_by_ends(left: Calls, right: Calls, shift: int, spacing_ns: float) -> _Fit | None:
    """Each pair counts by how much closer its ends lie than the ends of neighbouring calls.

    Of shifts that fit alike (calls at equal distances) the one with the smallest offset wins.
    """
    apart = _agreeing_ends(left, right, shift)
    if len(apart) == 0:
        return None
    own = _densest(apart)
    pairs = int((np.abs(apart - own.offset_ns) <= own.tolerance_ns).sum())
    closer = np.log1p(spacing_ns / (_SPREAD_FLOOR_NS + own.spread_ns))
    far = np.log1p(abs(own.offset_ns) / (_SPREAD_FLOOR_NS + spacing_ns))
    return _Fit(shift, pairs, pairs * float(1.0 + closer - _OFFSET_WEIGHT * far), own)


def _fit_by_clock(
    left: Calls, right: Calls, shift: int, clock: Clock, *, strict: bool
) -> _Fit | None:
    """The number of pairs that agree and, on the known clock, are in time."""
    i, j = _pairs_at(left, right, shift)
    here, there = _run(left, i), _run(right, j)
    pairs = int((agree(here, there) & _in_time(here, there, clock, strict=strict)).sum())
    return _Fit(shift, pairs, float(pairs), clock) if pairs else None


def _agreeing_ends(left: Calls, right: Calls, shift: int) -> Int64:
    """Differences of the ends of agreeing calls at a shift."""
    i, j = _pairs_at(left, right, shift)
    here, there = _run(left, i), _run(right, j)
    return (there.end_ns - here.end_ns)[agree(here, there)]


def _densest(apart_ns: Int64) -> Clock:
    """Centre and spread of the densest quarter: the rest may be wrong pairs."""
    ordered = np.sort(apart_ns)
    inside = max(int(np.ceil(_DENSE_SHARE * len(ordered))), min(2, len(ordered)))
    width = ordered[inside - 1 :] - ordered[: len(ordered) - inside + 1]
    first = int(np.argmin(width))
    centre = float(np.median(ordered[first : first + inside]))
    return Clock(centre, float(width[first]) / 2 / _DENSE_HALF_WIDTH)


def _obvious_shifts(left: Calls, right: Calls, offset_ns: float) -> list[int]:
    """First with first, last with last, and by time; all shifts of short sequences."""
    n, m = len(left), len(right)
    if n + m <= _CANDIDATES:
        return list(range(1 - n, m))
    nearest = np.searchsorted(right.end_ns - offset_ns, left.end_ns) - np.arange(n)
    by_time = int(np.median(nearest))
    found = {0, m - n, by_time - 1, by_time, by_time + 1}
    return sorted(shift for shift in found if -n < shift < m)


def _label_shifts(left: Calls, right: Calls, _: float) -> list[int]:
    """Shifts at which most labels agree, estimated for all shifts at once.

    Each label becomes a random direction on the circle; the correlation of two such sequences
    counts equal labels, plus noise that averages out over several draws.
    """
    n, m = len(left), len(right)
    if n + m <= _CANDIDATES:
        return []
    length = 1 << (n + m - 1).bit_length()
    draw = np.random.default_rng(0)
    score = np.zeros(length)
    for a, b in ((left.kind, right.kind), _joint_labels(left, right)):
        labels, both = np.unique(np.concatenate((a, b)), return_inverse=True)
        for _ in range(_PROJECTIONS):
            turn = np.exp(2j * np.pi * draw.random(len(labels)))[both]
            product = np.conj(np.fft.fft(turn[:n], length)) * np.fft.fft(turn[n:], length)
            score += np.fft.ifft(product).real
    best = np.argpartition(-score, _CANDIDATES)[:_CANDIDATES]
    shifts = (int(shift) if shift < m else int(shift) - length for shift in best)
    return [shift for shift in shifts if -n < shift < m]


def _joint_labels(left: Calls, right: Calls) -> tuple[Int64, Int64]:
    n = len(left)
    kind, size, name = (
        np.unique(np.concatenate(columns), return_inverse=True)[1]
        for columns in (
            (left.kind, right.kind),
            (left.size, right.size),
            (left.name, right.name),
        )
    )
    joint = (kind * (size.max() + 1) + size) * (name.max() + 1) + name
    return joint[:n], joint[n:]
