"""Facts about unions of intervals."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from replay.results.cover import cover, disjoint

Pairs = list[tuple[int, int]]
PAIRS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda p: (p[0], sum(p))))


def _moments(pairs: Pairs) -> set[int]:
    return {moment for lo, hi in pairs for moment in range(lo, hi)}


@given(PAIRS, PAIRS)
def test_a_stretch_is_covered_where_any_interval_lies(pairs: Pairs, stretches: Pairs) -> None:
    lo, hi = np.array(pairs, np.int64).reshape(-1, 2).T
    from_ns, to_ns = np.array(stretches, np.int64).reshape(-1, 2).T
    covered = cover(lo, hi).within(from_ns, to_ns)
    moments = _moments(pairs)
    assert covered.tolist() == [len(moments & set(range(a, b))) for a, b in stretches]


@given(PAIRS)
def test_what_each_adds_makes_up_the_union(pairs: Pairs) -> None:
    pairs = sorted(pairs, key=lambda pair: pair[0])
    lo, hi = np.array(pairs, np.int64).reshape(-1, 2).T
    first, last = disjoint(lo, hi)
    assert (last >= first).all()
    assert int((last - first).sum()) == len(_moments(pairs))


def test_a_stretch_that_ends_before_it_begins_is_empty() -> None:
    whole = cover(np.array([0]), np.array([10]))
    assert whole.within(np.array([8]), np.array([2])).tolist() == [0]
