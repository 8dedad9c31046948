"""`replay diff`, `replay verify` and the gate, as typed."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from tests.cli.calls import ROOT, Run
from whatif.compare.schemas import FOLDER, STRUCTS, schema_of, schema_text

SAMPLE, OTHER = "sample_traces/ddp8_h100", "sample_traces/gloo2_cpu"
USAGE, TRACE, GATE = 2, 3, 5


@pytest.mark.parametrize("name", STRUCTS)
def test_the_schema_files_follow_from_the_structs(
    name: str, agrees: Callable[[str, Path], None]
) -> None:
    agrees(schema_text(name), FOLDER / f"{name}.schema.json")


def test_a_run_against_itself_has_no_difference(run: Run) -> None:
    outcome = run("diff", SAMPLE, SAMPLE, "--max-regression", "0")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("no difference: both steps take ")
    assert "gate     passed" in outcome.out


def test_steps_of_both_runs_are_chosen_each_by_its_numbers(run: Run) -> None:
    outcome = run("diff", SAMPLE, SAMPLE, "--steps", "10", "--steps-b", "11", "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert (found["a"]["trace"]["steps"], found["b"]["trace"]["steps"]) == ([10], [11])
    assert found["noise_ns"] is None


def test_the_json_is_what_the_schema_says_and_adds_up(run: Run) -> None:
    outcome = run("diff", SAMPLE, OTHER, "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    jsonschema.validate(found, schema_of("diff"))
    assert found["gate"] is None
    assert sum(row["change_ns"] for row in found["groups"]) == found["change_ns"]
    assert found["change_ns"] == found["b"]["step_ns"] - found["a"]["step_ns"]


def test_a_gate_that_fails_is_exit_code_5_after_the_answer(run: Run) -> None:
    outcome = run("diff", SAMPLE, OTHER, "--max-regression", "5%", "--json")
    assert outcome.code == GATE
    assert json.loads(outcome.out)["gate"]["is_passed"] is False
    first, empty, hint = outcome.err.splitlines()
    assert first.startswith("error: too slow: +")
    assert (empty, hint.startswith("hint: B is ")) == ("", True)


@pytest.mark.parametrize("suffix", [".html", ".md", ".json", ".txt"])
def test_the_form_of_a_file_follows_from_its_name(run: Run, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"diff{suffix}"
    outcome = run("diff", SAMPLE, OTHER, "-o", path)
    assert (outcome.code, outcome.err) == (0, f"written: {path}\n")
    text = path.read_text(encoding="utf-8")
    assert outcome.out.startswith("B is ")
    heads = {".html": "<!DOCTYPE html>", ".md": "## B is ", ".json": "{", ".txt": "B is "}
    assert text.startswith(heads[suffix])


def test_a_file_that_is_not_ours_is_never_overwritten(run: Run, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    trace.write_text('{"traceEvents": []}', encoding="utf-8")
    outcome = run("diff", SAMPLE, OTHER, "-o", trace)
    assert (outcome.code, "not overwritten" in outcome.err) == (USAGE, True)
    assert trace.read_text(encoding="utf-8") == '{"traceEvents": []}'


def test_a_gate_stands_on_the_page(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "diff.html"
    assert run("diff", SAMPLE, OTHER, "--max-regression", "5%", "-o", path).code == GATE
    page = path.read_text(encoding="utf-8")
    assert "Gate FAILED: +" in page
    assert 'id="comparison.waterfall"' in page


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (("diff", SAMPLE, SAMPLE, "--max-regression", "5"), USAGE, "neither a share nor a time"),
        (
            ("diff", SAMPLE, SAMPLE, "-o", "diff.pdf"),
            USAGE,
            "is written as .html, .json, .md, .txt",
        ),
        (("diff", SAMPLE, "missing/"), TRACE, "no such file"),
        (("diff", "missing/", SAMPLE), TRACE, "no such file"),
        (("diff", SAMPLE), USAGE, "Missing argument"),
        (("verify", "missing.json", SAMPLE), USAGE, "No such file"),
        (("verify", "pyproject.toml", SAMPLE), USAGE, "is not JSON"),
        (("verify", "whatif/report/schema/sweep.schema.json", SAMPLE), USAGE, "no answer"),
        (("report", SAMPLE, "--max-regression", "5%"), USAGE, "needs a baseline"),
    ],
)
def test_mistakes_are_told_in_one_line(
    run: Run, arguments: tuple[str, ...], code: int, word: str
) -> None:
    outcome = run(*arguments)
    assert outcome.code == code
    assert word in outcome.err


def test_a_prediction_that_came_true_is_inside_its_range(run: Run, tmp_path: Path) -> None:
    """Stragglers are what the run has none of after it was asked to have none: itself, then."""
    path = tmp_path / "prediction.json"
    path.write_text(run(SAMPLE, "--network-scale", "1.0001", "--json").out, encoding="utf-8")
    outcome = run("verify", path, SAMPLE, "--max-error", "1%", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = json.loads(outcome.out)
    jsonschema.validate(found, schema_of("verify"))
    assert found["is_inside"] is True
    assert abs(found["error_frac"]) < 0.001
    assert sum(part["error_ns"] for part in found["parts"]) == found["error_ns"]
    assert [rank["rank"] for rank in found["ranks"]] == list(range(8))


def test_a_prediction_that_did_not_come_true_fails_its_gate(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "prediction.json"
    path.write_text(run(SAMPLE, "--scale", "class:gemm=3", "--json").out, encoding="utf-8")
    outcome = run("verify", path, SAMPLE, "--max-error", "10%")
    assert outcome.code == GATE
    assert "too slow, outside the range" in outcome.out.replace("\n", " ")
    assert outcome.err.startswith("error: the prediction is off: +")


def test_a_report_has_the_comparison_and_its_gate(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    outcome = run("report", SAMPLE, "--against", SAMPLE, "--max-regression", "5%", "-o", str(path))
    assert outcome.code == 0, outcome.err
    sections = {one["key"]: one for one in json.loads(path.read_text("utf-8"))["sections"]}
    found = sections["comparison"]
    assert "no difference" in found["summary"]
    assert "Gate passed" in found["summary"]
    assert "waterfall" in {block["type"] for block in found["blocks"]}
    assert run("report", SAMPLE, "-o", str(path)).code == 0
    alone = json.loads(path.read_text("utf-8"))["sections"]
    (without,) = [section for section in alone if section["key"] == "comparison"]
    assert without["blocks"] == []
    assert "--against" in without["missing"][0]["how"]


SCRIPT = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("new", "code"), [(SAMPLE, 0), (OTHER, GATE)])
def test_the_script_for_ci_does_what_the_document_says(
    tmp_path: Path, cache_home: Path, new: str, code: int
) -> None:
    (script,) = SCRIPT.findall((ROOT / "docs/diff.md").read_text(encoding="utf-8"))
    shim = tmp_path / "replay"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m replay "$@"\n', encoding="utf-8")
    shim.chmod(0o755)
    summary = tmp_path / "summary.md"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={
            **os.environ,
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "XDG_CACHE_HOME": str(cache_home),
            "BASELINE": str(ROOT / SAMPLE),
            "RUN": str(ROOT / new),
            "GITHUB_STEP_SUMMARY": str(summary),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert summary.read_text(encoding="utf-8").startswith("## ")
