"""Orders of pipeline schedules against the closed forms of their papers."""

from collections import Counter

import pytest

from ingest.errors import ScenarioError
from tests.oracles.pipeline import makespan
from whatif.models.pipeline.costs import bubble, bubble_frac, held, held_of_stage
from whatif.models.pipeline.orders import turns
from whatif.models.pipeline.partition import partition
from whatif.models.pipeline.terms import PassTimes, Pipeline, Turn, Work, effective
from whatif.models.shape import Schedule

TIMES = [(1, 1, 1), (2, 3, 1), (1, 2, 1), (3, 3, 2), (2, 1, 3)]
CASES = [
    (Schedule.NONE, 1, 5, 1),
    (Schedule.GPIPE, 2, 3, 1),
    (Schedule.GPIPE, 4, 2, 1),
    (Schedule.ONE_F_ONE_B, 2, 2, 1),
    (Schedule.ONE_F_ONE_B, 4, 3, 1),
    (Schedule.ONE_F_ONE_B, 8, 32, 1),
    (Schedule.INTERLEAVED, 2, 2, 2),
    (Schedule.INTERLEAVED, 4, 4, 3),
    (Schedule.INTERLEAVED, 4, 16, 2),
    (Schedule.ZERO_BUBBLE, 2, 4, 1),
    (Schedule.ZERO_BUBBLE, 4, 4, 1),
    (Schedule.ZERO_BUBBLE, 8, 24, 1),
    (Schedule.DUALPIPE, 2, 4, 1),
    (Schedule.DUALPIPE, 4, 8, 1),
    (Schedule.DUALPIPE, 8, 20, 1),
]


def _pipeline(schedule: Schedule, stages: int, micro_batches: int, chunks: int = 1) -> Pipeline:
    return Pipeline(schedule=schedule, stages=stages, micro_batches=micro_batches, chunks=chunks)


def _times(forward: float, backward_input: float, backward_weight: float) -> PassTimes:
    return PassTimes(
        forward=forward, backward_input=backward_input, backward_weight=backward_weight
    )


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("times", TIMES)
def test_equal_stages_take_the_work_and_the_bubble_of_the_closed_form(
    case: tuple[Schedule, int, int, int], times: tuple[int, int, int]
) -> None:
    pipeline, spent = _pipeline(*case), _times(*times)
    work = pipeline.micro_batches * spent.whole
    assert makespan(pipeline, spent) == pytest.approx(work + bubble(pipeline, spent), abs=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_every_stage_runs_every_micro_batch_of_every_chunk_once(
    case: tuple[Schedule, int, int, int],
) -> None:
    pipeline = _pipeline(*case)
    for stage in range(pipeline.stages):
        order = turns(pipeline, stage)
        forwards = Counter((t.chunk, t.micro_batch) for t in order if t.work is Work.FORWARD)
        inputs = Counter(
            (t.chunk, t.micro_batch)
            for t in order
            if t.work in (Work.BACKWARD, Work.BACKWARD_INPUT)
        )
        weights = Counter(
            (t.chunk, t.micro_batch)
            for t in order
            if t.work in (Work.BACKWARD, Work.BACKWARD_WEIGHT)
        )
        passes = pipeline.micro_batches * pipeline.depth // pipeline.stages
        assert len(forwards) == passes
        assert set(forwards.values()) == {1}
        assert forwards == inputs == weights


@pytest.mark.parametrize("case", CASES)
def test_what_a_stage_holds_is_told_without_its_order(
    case: tuple[Schedule, int, int, int],
) -> None:
    pipeline = _pipeline(*case)
    for stage in range(pipeline.stages):
        assert held_of_stage(pipeline, stage) == held(turns(pipeline, stage))


def test_bubbles_are_those_of_the_textbook() -> None:
    times = _times(1, 1, 1)
    assert bubble_frac(_pipeline(Schedule.GPIPE, 4, 8), times) == 3 / 8
    assert bubble_frac(_pipeline(Schedule.ONE_F_ONE_B, 4, 8), times) == 3 / 8
    assert bubble_frac(_pipeline(Schedule.INTERLEAVED, 4, 8, 2), times) == 3 / 16
    assert bubble(_pipeline(Schedule.ZERO_BUBBLE, 4, 8), times) == 3 * (1 + 1 - 1)
    assert bubble(_pipeline(Schedule.DUALPIPE, 8, 20), times) == (8 / 2 - 1) * (3 + 2 - 3)


def test_a_pair_that_overlaps_shortens_dualpipe() -> None:
    pipeline = _pipeline(Schedule.DUALPIPE, 8, 20)
    alone = makespan(pipeline, _times(2, 2, 2))
    beside = PassTimes(forward=2, backward_input=2, backward_weight=2, pair=5)
    assert makespan(pipeline, beside) < alone
    assert bubble(pipeline, beside) == 3 * (5 + 4 - 6)


def test_orders_are_those_of_the_papers() -> None:
    """Figure 4 of arXiv:2104.04473 (both halves), its last and its first stage."""
    assert turns(_pipeline(Schedule.ONE_F_ONE_B, 4, 8), 3)[:4] == (
        Turn(Work.FORWARD, 0, 0),
        Turn(Work.BACKWARD, 0, 0),
        Turn(Work.FORWARD, 0, 1),
        Turn(Work.BACKWARD, 0, 1),
    )
    interleaved = turns(_pipeline(Schedule.INTERLEAVED, 4, 8, 2), 0)
    first = [(t.chunk, t.micro_batch) for t in interleaved[:12] if t.work is Work.FORWARD]
    assert first[:8] == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3)]
    assert next(t for t in interleaved if t.work is Work.BACKWARD) == Turn(Work.BACKWARD, 1, 0)


def test_zero_bubble_holds_as_much_on_every_stage_as_1f1b_on_its_first() -> None:
    pipeline = _pipeline(Schedule.ZERO_BUBBLE, 4, 8)
    assert [held_of_stage(pipeline, stage) for stage in range(4)] == [4, 4, 4, 4]
    plain = _pipeline(Schedule.ONE_F_ONE_B, 4, 8)
    assert [held_of_stage(plain, stage) for stage in range(4)] == [4, 3, 2, 1]


def test_layers_are_shared_out_evenly_and_the_middle_has_what_is_left() -> None:
    two = partition(8, _pipeline(Schedule.ONE_F_ONE_B, 2, 2))
    assert two == (((0, 1, 2, 3),), ((4, 5, 6, 7),))
    uneven = partition(10, _pipeline(Schedule.GPIPE, 4, 2))
    assert [len(chunks[0]) for chunks in uneven] == [2, 3, 3, 2]
    chunked = partition(8, _pipeline(Schedule.INTERLEAVED, 2, 2, 2))
    assert chunked == (((0, 1), (4, 5)), ((2, 3), (6, 7)))
    both_ways = partition(4, _pipeline(Schedule.DUALPIPE, 4, 8))
    assert both_ways == (((0,), (3,)), ((1,), (2,)), ((2,), (1,)), ((3,), (0,)))


@pytest.mark.parametrize(
    ("case", "fact"),
    [
        ((Schedule.INTERLEAVED, 4, 6, 2), "do not divide by 4 stages"),
        ((Schedule.DUALPIPE, 3, 8, 1), "DualPipe over 3 stages"),
        ((Schedule.DUALPIPE, 4, 6, 1), "needs an even number of micro-batches, 8 or more"),
    ],
)
def test_what_a_schedule_cannot_run_is_refused(
    case: tuple[Schedule, int, int, int], fact: str
) -> None:
    with pytest.raises(ScenarioError, match=fact):
        turns(_pipeline(*case), 0)


def test_more_chunks_than_layers_are_refused() -> None:
    with pytest.raises(ScenarioError, match="3 layers over 4 stages"):
        partition(3, _pipeline(Schedule.GPIPE, 4, 2))


def test_several_stages_have_a_schedule_and_one_has_none() -> None:
    assert effective(Schedule.GPIPE, stages=1) is Schedule.NONE
    assert effective(Schedule.NONE, stages=2) is Schedule.ONE_F_ONE_B
    assert effective(Schedule.NONE, stages=2, chunks=2) is Schedule.INTERLEAVED
    assert effective(Schedule.INTERLEAVED, stages=2, chunks=1) is Schedule.ONE_F_ONE_B
    assert effective(Schedule.GPIPE, stages=2) is Schedule.GPIPE
