"""The JSON answer says what was found."""

import json
from dataclasses import replace

from tests.builders import data_parallel, facts_of
from tests.unit.report.findings import READING, findings_of
from whatif.report.answer import to_json
from whatif.report.view import answer_of
from whatif.transforms.network import NetworkScale
from whatif.transforms.scale import Scale


def test_the_answer_without_a_what_if_has_nulls_where_a_prediction_would_stand() -> None:
    answer = json.loads(to_json(answer_of(findings_of(data_parallel()))))
    assert answer["prediction"] is None
    assert answer["breakdown"]["predicted"] is None
    assert [rank["predicted_ns"] for rank in answer["ranks"]] == [None, None]


def test_a_transfer_twice_as_fast_saves_half_of_it_and_none_of_the_waiting() -> None:
    """A 2 ms GEMM on rank 1, 1 ms on rank 0; the all-reduce of 400 us meets after the slow one."""
    graph = data_parallel(slow_rank=1)
    answer = answer_of(findings_of(graph, NetworkScale(factor=2)))
    assert answer.prediction is not None
    assert answer.breakdown.predicted is not None
    assert answer.baseline.replayed_ns == 2_410_000
    assert answer.prediction.step_ns == 2_210_000
    assert answer.prediction.speedup == 2_410_000 / 2_210_000
    before, after = answer.breakdown.baseline, answer.breakdown.predicted
    assert before.exposed_comm_ns - after.exposed_comm_ns == 200_000
    assert before.exposed_wait_ns == after.exposed_wait_ns == 500_000


def test_the_ranks_stand_in_order_with_their_own_clock_offsets() -> None:
    answer = answer_of(findings_of(data_parallel(ranks=(2, 5))))
    assert answer.trace.ranks == (2, 5)
    assert [rank.rank for rank in answer.ranks] == [2, 5]
    assert answer.trace.clock_offset_ns == {"2": 14, "5": 35}


def test_files_that_failed_are_counted_beside_those_that_answer() -> None:
    reading = replace(READING, failed=(("a.json", "file is empty"),))
    trace = answer_of(findings_of(data_parallel(), reading=reading)).trace
    assert (trace.files, trace.files_failed, trace.events) == (2, 1, 2_000)


def test_no_gpu_is_named_when_there_are_no_gpu_rows() -> None:
    graph = data_parallel()
    facts = replace(facts_of(graph), has_device=False)
    assert answer_of(findings_of(graph, facts=facts)).trace.gpu is None


def test_steps_that_are_not_recorded_are_an_empty_list() -> None:
    graph = replace(data_parallel(), steps_recorded=False)
    assert answer_of(findings_of(graph)).trace.steps == ()


def test_a_step_of_which_nothing_is_left_has_no_speedup() -> None:
    graph = data_parallel(ranks=(0,))
    changes = (Scale(where="class:compute", factor=0), Scale(where="class:host", factor=0))
    answer = answer_of(findings_of(graph, *changes, Scale(where="class:collective", factor=0)))
    assert answer.prediction is not None
    assert (answer.prediction.step_ns, answer.prediction.speedup) == (0, None)
    assert b'"speedup": null' in to_json(answer)
