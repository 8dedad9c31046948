"""What the calls of a trace measured themselves: time by size, per kind, group and level.

Inside its sizes a curve beats any formula: on a link twice as fast a call takes what one of half
its bytes was measured to take. Its ends tell what the steps and the bytes cost on this machine.
"""

from dataclasses import dataclass, replace

import numpy as np

from whatif.models.collectives.calls import Bool, Float64, Int64, distinct

FEWEST_CALLS = 3
"""Of one size: a median of fewer is one late call away from wrong."""
FEWEST_SIZES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Size to time of the calls of a trace; its rows are those of the calls it was made of."""

    curve: Int64
    """Per row: the number of its curve, -1 without one."""
    first: Int64
    """Per curve: its first knot; one more entry at the end."""
    size_bytes: Float64
    """Of the knots, rising within a curve."""
    time_ns: Float64
    """Of the knots, never falling within a curve."""

    def rows(self, numbers: Int64) -> "Curves":
        """Some rows, in the order given."""
        return replace(self, curve=self.curve[numbers])

    @property
    def known(self) -> Bool:
        """Rows that have a curve."""
        known: Bool = self.curve >= 0
        return known

    def ends(self) -> tuple[Float64, Float64, Float64, Float64]:
        """Smallest and largest size, and their times, per row; NaN without a curve."""
        low, high = self.first[:-1], self.first[1:] - 1
        return (
            self._spread(self.size_bytes[low]),
            self._spread(self.size_bytes[high]),
            self._spread(self.time_ns[low]),
            self._spread(self.time_ns[high]),
        )

    def at(self, size_bytes: Float64, model_ns: Float64, knots_model_ns: Float64) -> Float64:
        """Time of each row at some size; NaN without a curve.

        Between knots, which may be far apart, and beyond them the model has the shape: what is
        straight on log scales between knots (and flat beyond) is measured over modelled time.
        Never below the knot before, nor above the one after.

        Args:
            size_bytes: per row.
            model_ns: per row, of a call of that size.
            knots_model_ns: per knot.
        """
        found = np.full(len(self.curve), np.nan)
        for number in np.unique(self.curve[self.known]):
            knots = slice(self.first[number], self.first[number + 1])
            rows = self.curve == number
            sizes, times = self.size_bytes[knots], self.time_ns[knots]
            ratio = np.log(times / knots_model_ns[knots])
            log_size = np.log(np.maximum(size_bytes[rows], 1.0))
            shaped = model_ns[rows] * np.exp(np.interp(log_size, np.log(sizes), ratio))
            after = np.append(times, np.inf)[np.searchsorted(sizes, size_bytes[rows], "left")]
            before = np.append(0.0, times)[np.searchsorted(sizes, size_bytes[rows], "right")]
            found[rows] = np.clip(shaped, before, after)
        return found

    def rows_of_knots(self) -> Int64:
        """For each knot a row that has its curve; 0 where none has."""
        row = np.zeros(len(self.first) - 1, np.int64)
        row[self.curve[self.known]] = np.flatnonzero(self.known)
        return np.repeat(row, np.diff(self.first))

    def _spread(self, per_curve: Float64) -> Float64:
        padded: Float64 = np.append(per_curve, np.nan)
        return padded[self.curve]


def curves_of(
    kind: Int64, group: Int64, level: Int64, size_bytes: Int64, transfer_ns: Int64
) -> Curves:
    """Curves through the calls of a trace; the columns have one row per call.

    Args:
        kind: CollectiveKind.
        group: number of the communicator.
        level: any number that tells calls apart which cross other links.
        size_bytes: as in `Calls`; rows of unknown size (-1) belong to no curve.
        transfer_ns: measured time without waiting for late members.
    """
    curve = np.full(len(kind), -1, np.int64)
    sizes, times, first = [], [], [0]
    usable = (size_bytes > 0) & (transfer_ns > 0)
    _, key = distinct([kind, group, level])
    for number in np.unique(key[usable]):
        rows = np.flatnonzero(usable & (key == number))
        knot_sizes, knot_times = _knots(size_bytes[rows], transfer_ns[rows])
        if len(knot_sizes) < FEWEST_SIZES:
            continue
        curve[rows] = len(first) - 1
        sizes.append(knot_sizes)
        times.append(knot_times)
        first.append(first[-1] + len(knot_sizes))
    return Curves(
        curve=curve,
        first=np.array(first, np.int64),
        size_bytes=np.concatenate(sizes) if sizes else np.zeros(0),
        time_ns=np.concatenate(times) if times else np.zeros(0),
    )


def _knots(size_bytes: Int64, time_ns: Int64) -> tuple[Float64, Float64]:
    """Median time of each size that enough calls have, made to rise."""
    sizes, counts = np.unique(size_bytes, return_counts=True)
    sizes, counts = sizes[counts >= FEWEST_CALLS], counts[counts >= FEWEST_CALLS]
    medians = np.array([np.median(time_ns[size_bytes == size]) for size in sizes])
    return sizes.astype(np.float64), rising(medians, counts.astype(np.float64))


def rising(values: Float64, weights: Float64) -> Float64:
    """The closest columns that never fall: neighbours that do are pooled (isotonic regression)."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        pool = (value, weight, 1)
        while pools and pools[-1][0] > pool[0]:
            mean, held, count = pools.pop()
            total = held + pool[1]
            pool = ((mean * held + pool[0] * pool[1]) / total, total, count + pool[2])
        pools.append(pool)
    return np.repeat([mean for mean, _, _ in pools], [count for _, _, count in pools])
