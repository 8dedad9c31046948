"""Parts that add up: rows of a query per step against the total that the report tells."""

from collections.abc import Sequence

ROUNDING_NS = 3
"""The breakdown rounds each rank and then their mean."""


def whole_ns(values: Sequence[float]) -> tuple[int, ...]:
    """Each value rounded so that they add up to the rounded sum: the largest takes the rest."""
    rounded = [round(value) for value in values]
    if rounded:
        largest = max(range(len(rounded)), key=rounded.__getitem__)
        rounded[largest] += round(sum(values)) - sum(rounded)
    return tuple(rounded)


def fitted_ns(values: Sequence[float], total_ns: int) -> tuple[tuple[int, ...], int]:
    """The values as integers that add up to `total_ns`, and the rest that they do not explain.

    The rest is 0 where no more than rounding lies between; then the largest takes that.
    """
    rounded = list(whole_ns(values))
    rest_ns = total_ns - sum(rounded)
    if rounded and abs(rest_ns) <= ROUNDING_NS:
        rounded[max(range(len(rounded)), key=rounded.__getitem__)] += rest_ns
        rest_ns = 0
    return tuple(rounded), rest_ns
