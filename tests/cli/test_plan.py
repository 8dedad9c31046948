"""`replay plan` on the sample: layouts that can be typed, each with what it loses."""

import json
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ingest.errors import ScenarioError
from tests.cli.calls import Run
from whatif.models.shape import ModelShape, RunShape
from whatif.plan.refuse import require_model
from whatif.report.schemas import schema_of

SAMPLE = "sample_traces/ddp8_h100"
SMALL = ("plan", SAMPLE, "--gpus", "8", "--top", "2", "--max-pp", "1", "--max-tp", "2")


_PLANS: list[dict[str, Any]] = []


def plan_of(run: Run) -> dict[str, Any]:
    """As JSON, made once for the tests of this file."""
    if not _PLANS:
        outcome = run(*SMALL, "--json")
        assert outcome.code == 0, outcome.err
        _PLANS.append(json.loads(outcome.out))
    return _PLANS[0]


def test_the_answer_is_what_the_schema_says_and_holds_together(run: Run) -> None:
    told = plan_of(run)
    jsonschema.validate(told, schema_of("plan"))
    assert told["tried"] == told["fitting"] + told["too_large"]
    for one in told["best"]:
        parts_ns = one["ideal_ns"] + sum(loss["time_ns"] for loss in one["losses"])
        assert parts_ns == pytest.approx(one["closed_form_ns"], abs=len(one["losses"]))
        assert one["low_ns"] <= one["step_ns"] <= one["high_ns"]
    steps = [one["step_ns"] for one in told["best"] if one["is_replayed"]]
    assert steps == sorted(steps)


def test_the_recorded_layout_is_met_exactly_by_closed_form_and_replay(run: Run) -> None:
    told = plan_of(run)
    (own,) = [one for one in told["best"] if not one["flags"]]
    replayed_ns = told["run"]["replayed_ns"]
    assert own["step_ns"] == replayed_ns
    assert own["closed_form_ns"] == pytest.approx(replayed_ns, abs=2)
    assert own["speedup"] == pytest.approx(1.0)


def test_what_is_told_to_type_gives_the_step_of_the_plan(run: Run) -> None:
    told = plan_of(run)
    one = next(one for one in told["best"] if one["flags"] and one["is_replayed"])
    typed = json.loads(run(SAMPLE, *shlex.split(one["flags"]), "--json").out)["prediction"]
    assert (typed["step_ns"], typed["low_ns"], typed["high_ns"]) == (
        one["step_ns"],
        one["low_ns"],
        one["high_ns"],
    )


def test_the_text_and_the_page_tell_layouts_losses_and_what_was_left_out(
    run: Run, tmp_path: Path
) -> None:
    page = tmp_path / "plan.html"
    outcome = run(*SMALL, "--html", page)
    assert outcome.code == 0, outcome.err
    assert "recorded dp 8: replayed" in outcome.out
    assert "loses " in outcome.out
    assert "type  (the recorded layout)" in outcome.out
    html = page.read_text(encoding="utf-8")
    for words in ("Step, GPUs and memory", "What they lose against the ideal", "left out"):
        assert words in html


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--gpus", "eight"), 2, "`--gpus eight` is no number of GPUs"),
        (("--gpus", "7", "--max-tp", "1", "--max-pp", "1"), 4, "dp does not divide a batch of 8"),
    ],
)
def test_what_cannot_be_planned_is_refused(
    run: Run, arguments: tuple[str, ...], code: int, message: str
) -> None:
    outcome = run("plan", SAMPLE, *arguments)
    assert outcome.code == code
    assert message in outcome.err


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ("sample_traces/gloo2_cpu", "no GPU rows in this trace"),
        ("sample_traces/tiny/stream_overlap.json", "a plan is for training, and this run is none"),
    ],
)
def test_a_run_that_tells_no_training_on_gpus_is_refused(
    run: Run, trace: str, message: str
) -> None:
    outcome = run("plan", trace, "--gpus", "8")
    assert outcome.code == 4
    assert message in outcome.err


def test_a_model_that_is_not_told_asks_for_a_description() -> None:
    shape = RunShape(model=ModelShape(layers=8, hidden=512, heads=8, ffn=2048))
    with pytest.raises(ScenarioError, match="does not tell vocab, samples, sequence") as caught:
        require_model(shape)
    assert "--describe run.yaml" in caught.value.hint
