"""Predictions against runs that were made since."""

import gzip
from dataclasses import replace

import msgspec
import pytest

from ingest.errors import UsageError
from tests.sides import Work, run_of, scaled
from whatif.compare.gate import parse_limit
from whatif.compare.prediction import read_prediction
from whatif.compare.side import Side
from whatif.compare.verify import Verification, verify
from whatif.compare.verify_text import render_verification
from whatif.report.answer import (
    Answer,
    BaselineFacts,
    BreakdownFacts,
    Parts,
    Prediction,
    RankFacts,
    TrustFacts,
    to_json,
)
from whatif.report.view import trace_facts

STEP = [Work(host_ns=100, dur_ns=2_000_000), Work(host_ns=100, what="relu", dur_ns=1_000_000)]
TRUST = TrustFacts(
    grade="A",
    strict_error_frac=0.0,
    explained_frac=1.0,
    start_error_ns=0,
    unlinked_frac=0.0,
    reasons=(),
    issues={},
    start_error_p90_ns=0,
    host_path_frac=0.0,
    evidence_frac={},
    by_step=(),
    by_rank=(),
    unexplained=(),
    advice=(),
)


def parts(compute_ns: int, idle_ns: int) -> Parts:
    return Parts(
        compute_ns=compute_ns,
        exposed_comm_ns=0,
        exposed_memcpy_ns=0,
        idle_ns=idle_ns,
        exposed_wait_ns=0,
    )


def predicted(before: Side, step_ns: int, *, scenario: str = "gemm kernels x 2") -> Answer:
    """That gemm takes twice as long; idle stays."""
    measured_ns = int(before.baseline.measured.mean_ns)
    idle_ns = measured_ns - 3_000_000
    return Answer(
        trace=trace_facts(before.graph, before.facts, 0),
        trust=TRUST,
        baseline=BaselineFacts(
            measured_ns=measured_ns, replayed_ns=measured_ns, strict_ns=measured_ns
        ),
        prediction=Prediction(
            step_ns=step_ns,
            low_ns=step_ns - 100_000,
            high_ns=step_ns + 100_000,
            speedup=measured_ns / step_ns,
            scenario=(scenario,),
            assumptions=(),
            no_effect=(),
        ),
        ranks=(
            RankFacts(
                rank=0, measured_ns=measured_ns, replayed_ns=measured_ns, predicted_ns=step_ns
            ),
        ),
        breakdown=BreakdownFacts(
            baseline=parts(3_000_000, idle_ns), predicted=parts(step_ns - idle_ns, idle_ns)
        ),
    )


def checked(step_ns: int, factor: int = 2, limit: str = "10%") -> Verification:
    before, after = run_of(STEP, STEP), run_of(scaled(STEP, "gemm", factor))
    return verify(predicted(before, step_ns), "p.json", after, parse_limit(limit, "--max-error"))


def test_a_right_prediction_is_inside_and_every_part_is_right() -> None:
    measured_ns = int(run_of(scaled(STEP, "gemm", 2)).baseline.measured.mean_ns)
    found = checked(measured_ns)
    assert (found.error_ns, found.is_inside) == (0, True)
    assert abs(sum(part.error_ns for part in found.parts)) == 0
    assert found.gate is not None
    assert found.gate.is_passed


def test_a_wrong_prediction_says_which_part_was_wrong() -> None:
    measured_ns = int(run_of(scaled(STEP, "gemm", 3)).baseline.measured.mean_ns)
    found = checked(measured_ns - 2_000_000, factor=3)
    assert (found.error_ns, found.is_inside) == (-2_000_000, False)
    assert sum(part.error_ns for part in found.parts) == found.error_ns
    worst = max(found.parts, key=lambda part: abs(part.error_ns))
    assert worst.part == "compute"
    assert found.gate is not None
    assert not found.gate.is_passed
    assert "too fast, outside the range" in found.sentence
    assert "most of the error: compute, -2.00 ms" in render_verification(found)


def test_a_step_outside_the_range_by_less_than_its_noise_is_told_as_such() -> None:
    after = run_of(*(scaled(STEP, "gemm", factor) for factor in (1, 3)))
    step_ns = int(after.baseline.measured.mean_ns)
    found = verify(predicted(run_of(STEP), step_ns - 200_000), "p", after)
    assert (found.is_inside, found.is_within_noise) == (False, True)
    assert "but no further from it than steps vary by chance" in found.sentence


def test_another_gpu_than_the_what_if_speaks_of_is_told() -> None:
    before = run_of(STEP)
    gpus = tuple(replace(rank, gpu="NVIDIA B200") for rank in before.graph.ranks)
    after = replace(before, graph=replace(before.graph, ranks=gpus))
    said = verify(predicted(before, 3_000_000), "p", after)
    assert any("no what-if says so" in reason for reason in said.reasons)
    said = verify(predicted(before, 3_000_000, scenario="gpu NVIDIA B200"), "p", after)
    assert said.reasons == ()
    said = verify(predicted(before, 3_000_000, scenario="gpu NVIDIA B200"), "p", before)
    assert any("as before" in reason for reason in said.reasons)


def test_a_saved_answer_is_read_back() -> None:
    answer = predicted(run_of(STEP), 5_000_000)
    assert read_prediction(to_json(answer), "p.json") == answer


def test_answers_of_later_minor_versions_are_read() -> None:
    raw = msgspec.json.decode(to_json(predicted(run_of(STEP), 5_000_000)))
    raw["a_field_of_tomorrow"] = {"x": 1}
    assert read_prediction(msgspec.json.encode(raw), "p").prediction is not None


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (b"", "not JSON"),
        (gzip.compress(b"{}", mtime=0), "is compressed"),
        (b"[1, 2]", "no answer of replay"),
        (b"{}", "no answer of a what-if"),
        (b'{"points": []}', "`replay sweep`"),
        (b'{"levers": []}', "`replay levers`"),
        (b'{"vary": "nvlink"}', "`replay solve`"),
        (b'{"prediction": {}, "schema_version": 7}', "schema version 7"),
        (b'{"prediction": {}, "schema_version": 1}', "no answer of replay: "),
    ],
)
def test_what_is_no_prediction_is_refused(text: bytes, word: str) -> None:
    with pytest.raises(UsageError, match=r"p\.json") as caught:
        read_prediction(text, "p.json")
    assert word in str(caught.value)


@pytest.mark.parametrize(
    ("low_ns", "step_ns", "high_ns"), [(0, 0, 0), (-9, -5, -1), (6, 5, 7), (3, 5, 4)]
)
def test_a_step_that_no_replay_gives_is_refused(low_ns: int, step_ns: int, high_ns: int) -> None:
    answer = predicted(run_of(STEP), 5_000_000)
    assert answer.prediction is not None
    wrong = msgspec.structs.replace(
        answer.prediction, low_ns=low_ns, step_ns=step_ns, high_ns=high_ns
    )
    text = to_json(msgspec.structs.replace(answer, prediction=wrong))
    with pytest.raises(UsageError, match="predicts what no replay does"):
        read_prediction(text, "p.json")


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (4, None, "the job had 4 ranks then, a number of ranks that is not recorded now"),
        (1, 4, "the job had 1 rank then, 4 ranks now"),
    ],
)
def test_worlds_of_other_sizes_are_told_in_words(
    then: int | None, now: int | None, said: str
) -> None:
    before = run_of(STEP)
    answer = predicted(before, 5_000_000)
    trace = msgspec.structs.replace(answer.trace, world_size=then)
    after = replace(before, graph=replace(before.graph, world_size=now))
    told = verify(msgspec.structs.replace(answer, trace=trace), "p", after)
    assert said in told.reasons


def test_an_answer_without_a_what_if_predicts_nothing() -> None:
    answer = predicted(run_of(STEP), 5_000_000)
    plain = msgspec.structs.replace(
        answer,
        prediction=None,
        breakdown=msgspec.structs.replace(answer.breakdown, predicted=None),
    )
    with pytest.raises(UsageError, match="predicts nothing"):
        read_prediction(to_json(plain), "p.json")
