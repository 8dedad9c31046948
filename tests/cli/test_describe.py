"""`replay describe` on the samples: what a run is, and a description that can be given back."""

import json
from pathlib import Path

import jsonschema
import pytest

from tests.cli.calls import Run
from whatif.report.schemas import schema_of

SAMPLE = "sample_traces/ddp8_h100"


def test_json_is_what_the_schema_says(run: Run) -> None:
    outcome = run("describe", SAMPLE, "--json")
    assert outcome.code == 0, outcome.err
    told = json.loads(outcome.out)
    jsonschema.validate(told, schema_of("describe"))
    assert (told["kind"], told["layout"]) == ("training", "dp 8")
    assert told["shape"]["degrees"] == {"dp": 8}
    (world,) = told["communicators"]
    assert (world["axis"], world["ranks"]) == ("data", list(range(8)))


def test_the_text_says_what_each_finding_rests_on(run: Run) -> None:
    lines = run("describe", SAMPLE).out.splitlines()
    assert "layout   dp 8" in lines
    (dp,) = [line for line in lines if line.startswith("degrees.dp")]
    assert dp.split()[1:3] == ["8", "measured"]
    assert "gradients reduced after forward" in dp


def test_a_printed_description_given_back_changes_nothing(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(run("describe", SAMPLE, "--yaml").out)
    assert run("describe", SAMPLE, "--describe", path).out == run("describe", SAMPLE).out


def test_an_edited_field_overrules_the_trace_and_keeps_what_it_told(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("degrees: {tp: 2, dp: 4}\n")
    told = json.loads(run("describe", SAMPLE, "--describe", path, "--json").out)
    assert told["shape"]["degrees"] == {"tp": 2, "dp": 4}
    dp = next(one for one in told["findings"] if one["what"] == "degrees.dp")
    assert dp["confidence"] == "given"
    assert dp["evidence"].startswith("the trace tells 8, measured")


def test_a_contradiction_is_refused_with_its_place(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("degrees: {tp: 2}\n")
    outcome = run("describe", SAMPLE, "--describe", path)
    assert outcome.code == 4
    assert f"{path}, at `$.degrees`: tp 2 x dp 8 = 16 ranks, but the run has 8" in outcome.err


def test_two_forms_at_once_are_refused(run: Run) -> None:
    assert run("describe", SAMPLE, "--yaml", "--json").code == 2


MADE = """\
model: {{layers: 8, hidden: 1024, heads: 16, ffn: 4096, vocab: 8000}}
machine: {{gpu: H100 SXM5 80 GB, nodes_of: 8}}
degrees: {degrees}
batch: {{micro_batches: 8, samples: 1, sequence: 1024}}
options: {options}
"""


@pytest.mark.parametrize(
    ("degrees", "options", "layout"),
    [
        ("{pp: 4}", "{schedule: gpipe}", "pp 4 (gpipe)"),
        ("{tp: 2, pp: 4}", "{schedule: 1f1b}", "tp 2 x pp 4 (1f1b)"),
        ("{pp: 4, virtual_stages: 2}", "{schedule: interleaved}", "pp 4 (interleaved)"),
        ("{pp: 4, dp: 2}", "{schedule: zero_bubble}", "dp 2 x pp 4 (zero_bubble)"),
        ("{pp: 4}", "{schedule: dualpipe}", "pp 4 (dualpipe)"),
        ("{dp: 4, zero: 3}", "{}", "dp 4 (ZeRO 3)"),
        ("{tp: 2, sp: true, dp: 4}", "{}", "dp 4 x tp 2 (sequence parallel)"),
    ],
)
def test_the_layout_of_a_made_run_is_recovered(
    run: Run, tmp_path: Path, degrees: str, options: str, layout: str
) -> None:
    model = tmp_path / "model.yaml"
    model.write_text(MADE.format(degrees=degrees, options=options))
    made = run("synth", model, "-o", tmp_path / "run")
    assert made.code == 0, made.err
    told = json.loads(run("describe", tmp_path / "run", "--json").out)
    assert (told["kind"], told["layout"]) == ("training", layout)
