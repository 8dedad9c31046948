"""The schedule of a pipeline follows from the order of forward and backward on its stages."""

import pytest

from whatif.description.described import Sure
from whatif.description.schedule import most_in_flight, schedule_of
from whatif.models.shape import Schedule


@pytest.mark.parametrize(
    ("orders", "stages", "schedule"),
    [
        pytest.param({0: "FFFFBBBB", 1: "FFFFBBBB"}, 2, Schedule.GPIPE, id="gpipe"),
        pytest.param({0: "FFBFBFBB", 1: "FBFBFBFB"}, 2, Schedule.ONE_F_ONE_B, id="1f1b"),
        pytest.param({3: "FBFBFBFB"}, 4, Schedule.ONE_F_ONE_B, id="last stage alone"),
        pytest.param({0: "FFFFBFBFBFBBBB"}, 4, Schedule.ONE_F_ONE_B, id="first stage alone"),
        pytest.param({0: "FFFFFFBBBBBB"}, 4, Schedule.GPIPE, id="first stage, all in flight"),
        pytest.param({0: "FFFFBFBWFBWFBWBWWW"}, 4, Schedule.ZERO_BUBBLE, id="weights apart"),
    ],
)
def test_the_order_of_stages_tells_the_schedule(
    orders: dict[int, str], stages: int, schedule: Schedule
) -> None:
    found = schedule_of(orders, stages)
    assert (found.schedule, found.sure) == (schedule, Sure.MEASURED)


def test_as_few_micro_batches_as_stages_look_the_same_in_every_schedule() -> None:
    found = schedule_of({0: "FFBB"}, 2)
    assert (found.schedule, found.sure) == (Schedule.ONE_F_ONE_B, Sure.GUESSED)


def test_activations_from_both_ends_and_chunks_are_told_before_the_order() -> None:
    orders = {0: "FFBB", 1: "FFBB"}
    assert schedule_of(orders, 2, both_ways=True).schedule is Schedule.DUALPIPE
    assert schedule_of(orders, 2, chunks=2).schedule is Schedule.INTERLEAVED


def test_one_stage_has_none_and_an_unrecorded_order_is_a_guess() -> None:
    assert schedule_of({}, 1).schedule is Schedule.NONE
    assert schedule_of({}, 4).sure is Sure.GUESSED


def test_in_flight_is_forwards_less_backwards_at_most() -> None:
    assert [most_in_flight(order) for order in ("", "FB", "FFBFBB", "FFFBBB")] == [0, 1, 2, 3]
