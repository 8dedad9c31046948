"""Rows gathered by spans, and the latest row of a kind before another: without loops."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from replay.graph.arrays import NONE, Bool, Int64


def spread(start: Int64, count: Int64) -> Int64:
    """`start[0], start[0] + 1, ...` (`count[0]` of them), then those of the next span."""
    total = int(count.sum())
    ends = np.cumsum(count)
    return np.repeat(start - (ends - count), count) + np.arange(total)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """Rows by their group: those of group g are `row[first[g] : first[g + 1]]`, ascending."""

    first: Int64
    row: Int64

    @classmethod
    def of(cls, group: Int64, n_groups: int) -> "Grouped":
        """Rows whose group is below 0 are left out."""
        order = np.argsort(group, kind="stable")
        order = order[np.searchsorted(group[order], 0) :]
        count = np.bincount(group[order], minlength=n_groups)
        return cls(first=np.concatenate([[0], np.cumsum(count)]), row=order)

    @property
    def count(self) -> Int64:
        """Rows of each group."""
        return np.diff(self.first)

    def gathered(self, group: Int64) -> tuple[Int64, Int64]:
        """Of each group in turn all rows: the place in `group`, and the row."""
        count = self.count[group]
        return np.repeat(np.arange(len(group)), count), self.row[spread(self.first[group], count)]


def numbered(columns: Sequence[Int64]) -> tuple[Int64, int]:
    """Dense number of each row, ascending with its columns (the first counts most); how many."""
    order = np.lexsort(tuple(columns[::-1]))
    differs = np.zeros(len(order), bool)
    for column in columns:
        differs[1:] |= np.diff(column[order]) != 0
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(differs)
    return number, int(number.max()) + 1 if len(number) else 0


def nth(group: Int64) -> Int64:
    """How many rows of its group come before each row."""
    order = np.argsort(group, kind="stable")
    first = np.searchsorted(group[order], group[order])
    found = np.empty(len(group), np.int64)
    found[order] = np.arange(len(group)) - first
    return found


def latest(known: Sequence[Int64], wanted: Sequence[Int64], before: Int64) -> Int64:
    """Per wanted row the last known one with equal columns that stands before a place; -1.

    Args:
        known: columns of the rows known, in their order.
        wanted: the same columns of the rows wanted.
        before: per wanted row: places of known rows below it count.
    """
    n_known = len(known[0])
    if not n_known or not len(before):
        return np.full(len(before), NONE, np.int64)
    joint = [np.concatenate(pair) for pair in zip(known, wanted, strict=True)]
    number, _ = numbered(joint)
    width = n_known + 1
    place = np.sort(number[:n_known] * width + np.arange(n_known))
    asked = number[n_known:] * width
    at = np.searchsorted(place, asked + np.clip(before, 0, n_known)) - 1
    found = place[at]
    fits: Bool = (at >= 0) & (found >= asked)
    return np.where(fits, found % width, NONE)
