"""Moments of a thread whose tasks have moved keep their order, and waiting goes between."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.results.timeline.events import nested_in_layers
from replay.results.timeline.moved import Moved, moved

LENGTHS = st.lists(st.tuples(*[st.integers(0, 50)] * 4), min_size=1, max_size=8)


def _array(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _two_tasks() -> Moved:
    """Recorded 10..20 and 30..40; the second waits 5 more and takes half as long."""
    return moved(_array(10, 30), _array(10, 10), _array(10, 35), _array(20, 40))


def test_inside_a_task_time_is_stretched_evenly() -> None:
    moves = _two_tasks()
    assert moves.starts(_array(10, 15, 30, 34, 36)).tolist() == [10, 15, 35, 37, 38]
    assert moves.ends(_array(20, 36, 40)).tolist() == [20, 38, 40]


def test_outside_of_all_tasks_time_is_shifted() -> None:
    moves = _two_tasks()
    assert moves.starts(_array(0, 50)).tolist() == [0, 50]
    assert moves.ends(_array(3, 45)).tolist() == [3, 45]


def test_new_waiting_lies_after_what_ends_there_and_before_what_starts_there() -> None:
    moves = moved(_array(0, 10), _array(10, 10), _array(0, 25), _array(10, 35))
    assert moves.ends(_array(10)).tolist() == [10]
    assert moves.starts(_array(10)).tolist() == [25]


@settings(deadline=None)  # the first call compiles
@given(LENGTHS, st.lists(st.tuples(st.integers(-5, 300), st.integers(0, 80)), max_size=20))
def test_rows_that_nest_still_nest_when_their_thread_moves(
    tasks: list[tuple[int, int, int, int]], rows: list[tuple[int, int]]
) -> None:
    gaps, lengths, new_gaps, new_lengths = (
        np.array(column, np.int64) for column in zip(*tasks, strict=True)
    )
    ends, new_ends = np.cumsum(gaps + lengths), np.cumsum(new_gaps + new_lengths)
    moves = moved(ends - lengths, lengths, new_ends - new_lengths, new_ends)
    start = np.array(sorted(row[0] for row in rows), np.int64)
    end = start + np.array([row[1] for row in rows], np.int64)
    order = np.lexsort((-end, start))
    kept = order[nested_in_layers(start[order], end[order])[0]] if len(rows) else order
    new_start = moves.starts(start[kept])
    new_end = np.maximum(moves.ends(end[kept]), new_start)
    assert (np.diff(new_start) >= 0).all()
    again = np.lexsort((np.arange(len(kept)), -new_end, new_start))
    assert len(nested_in_layers(new_start[again], new_end[again])) <= 1


@settings(deadline=None)  # the first call compiles
@given(LENGTHS, st.lists(st.integers(-5, 300), min_size=1, max_size=20))
def test_a_schedule_that_is_the_recording_moves_nothing(
    tasks: list[tuple[int, int, int, int]], moments: list[int]
) -> None:
    gaps, lengths = (np.array([task[at] for task in tasks], np.int64) for at in (0, 1))
    ends = np.cumsum(gaps + lengths)
    moves = moved(ends - lengths, lengths, ends - lengths, ends)
    assert moves.starts(np.array(moments)).tolist() == moments
    assert moves.ends(np.array(moments)).tolist() == moments


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=25))
def test_layers_hold_every_interval_once_and_only_nested_ones(
    intervals: list[tuple[int, int]],
) -> None:
    spans = sorted(((start, start + length) for start, length in intervals), key=_longest_first)
    start = np.array([span[0] for span in spans], np.int64)
    end = np.array([span[1] for span in spans], np.int64)
    layers = nested_in_layers(start, end)
    assert sorted(row for layer in layers for row in layer.tolist()) == list(range(len(spans)))
    for layer in layers:
        kept = [spans[row] for row in layer.tolist()]
        assert all(
            not _cross(one, other) for at, one in enumerate(kept) for other in kept[at + 1 :]
        )
        assert all(one[0] <= other[0] for one, other in pairwise(kept))


def _longest_first(span: tuple[int, int]) -> tuple[int, int]:
    return span[0], -span[1]


def _cross(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[0] < one[1] < other[1]
