"""The answer of real runs: valid JSON, one screen of text, honest words."""

import json
from pathlib import Path

import jsonschema
import pytest

from tests.cli.calls import Run
from whatif.report import answer as contract

SCHEMA = json.loads(
    (Path(contract.__file__).parent / "schema" / "answer.schema.json").read_text(encoding="utf-8")
)
DDP8 = "sample_traces/ddp8_h100"
GLOO2 = "sample_traces/gloo2_cpu"
CPU_ONLY = "sample_traces/tiny/cpu_only.json"
CALLS = [
    (DDP8,),
    (DDP8, "--nvlink", "450GBps"),
    (DDP8, "--nvlink", "900GBps"),
    (DDP8, "--gpu", "B200", "--precision", "fp8"),
    (GLOO2, "--gpu", "H100"),
    (DDP8, "--steps", "10", "--ranks", "0,2-3", "--no-stragglers"),
    (DDP8, "--scale", "class:compute=0", "--remove", "class:collective"),
    (GLOO2, "--network-scale", "2"),
    (CPU_ONLY, "--scale", "class:host=0"),
    ("sample_traces/tiny/collective_missing_rank", "--network-scale", "2"),
    ("check", GLOO2),
]
SHORT = [call for call in CALLS if call[0] != "check"]
"""A check tells everything; all others fit on one screen."""
PARTS = ("compute_ns", "exposed_comm_ns", "exposed_memcpy_ns", "idle_ns")


@pytest.fixture(params=CALLS, ids=" ".join)
def call(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return request.param


def test_json_is_what_the_schema_says(run: Run, call: tuple[str, ...]) -> None:
    outcome = run(*call, "--json")
    assert outcome.code == 0
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(outcome.out))


def test_numbers_of_an_answer_agree_with_each_other(run: Run, call: tuple[str, ...]) -> None:
    answer = json.loads(run(*call, "--json").out)
    baseline, prediction = answer["baseline"], answer["prediction"]
    before, after = answer["breakdown"]["baseline"], answer["breakdown"]["predicted"]
    assert baseline["replayed_ns"] == baseline["measured_ns"]
    assert sum(before[part] for part in PARTS) == baseline["replayed_ns"]
    assert len(answer["ranks"]) == len(answer["trace"]["ranks"])
    if prediction is None:
        assert after is None
        assert all(rank["predicted_ns"] is None for rank in answer["ranks"])
        return
    assert sum(after[part] for part in PARTS) == prediction["step_ns"]
    assert prediction["low_ns"] <= prediction["step_ns"] <= prediction["high_ns"]
    if prediction["step_ns"]:
        ratio = baseline["replayed_ns"] / prediction["step_ns"]
        assert prediction["speedup"] == pytest.approx(ratio)
    else:
        assert prediction["speedup"] is None


@pytest.mark.parametrize("call", SHORT, ids=" ".join)
def test_text_is_one_screen(run: Run, call: tuple[str, ...]) -> None:
    outcome = run(*call)
    lines = outcome.out.splitlines()
    assert len(lines) <= 40
    wide = [line for line in lines if len(line) > 100 and not line.startswith("store ")]
    assert wide == []
    assert outcome.out.endswith("\n")


def test_an_answer_without_a_what_if_predicts_nothing(run: Run) -> None:
    text = run(DDP8).out
    assert "predicted" not in text
    assert "what if" not in text


def test_predictions_start_from_the_step_without_the_profiler_where_it_is_given(run: Run) -> None:
    call = (GLOO2, "--unprofiled-step", "40ms", "--network-scale", "2", "--json")
    answer = json.loads(run(*call).out)
    jsonschema.Draft202012Validator(SCHEMA).validate(answer)
    baseline, prediction = answer["baseline"], answer["prediction"]
    assert baseline["replayed_ns"] == pytest.approx(40_000_000, abs=1_000)
    assert baseline["unprofiled"]["step_ns"] == 40_000_000
    assert 0.1 < baseline["unprofiled"]["host_factor"] < 1
    recorded = json.loads(run(GLOO2, "--json").out)
    assert baseline["measured_ns"] == recorded["baseline"]["measured_ns"]
    assert answer["trust"] == recorded["trust"]
    assert prediction["speedup"] == baseline["replayed_ns"] / prediction["step_ns"]
    assert "40.00 ms measured without the profiler" in prediction["assumptions"][0]


def test_trust_adds_up_over_steps_and_ranks(run: Run) -> None:
    answer = json.loads(run("check", DDP8, "--json").out)
    trust, steps = answer["trust"], answer["trust"]["by_step"]
    assert [step["number"] for step in steps] == answer["trace"]["steps"]
    assert [rank["number"] for rank in trust["by_rank"]] == answer["trace"]["ranks"]
    measured_ns = sum(step["measured_ns"] for step in steps)
    strict_ns = sum(step["strict_ns"] for step in steps)
    assert strict_ns / measured_ns - 1 == pytest.approx(trust["strict_error_frac"])
    missing = sum(step["unexplained_ns"] for step in steps)
    assert 1 - missing / measured_ns == pytest.approx(trust["explained_frac"])
    assert missing == sum(rank["unexplained_ns"] for rank in trust["by_rank"])
    assert sum(rank["device_tasks"] for rank in trust["by_rank"]) > 0


def test_the_identity_says_why_nothing_changed(run: Run) -> None:
    answer = json.loads(run(DDP8, "--nvlink", "900GBps", "--json").out)
    assert answer["prediction"]["step_ns"] == answer["baseline"]["replayed_ns"]
    assert any("already has 900 GB/s" in reason for reason in answer["prediction"]["no_effect"])
    assert "already has 900 GB/s" in run(DDP8, "--nvlink", "900GBps").out


def test_a_run_without_gpu_rows_is_never_called_idle(run: Run) -> None:
    outcome = run(CPU_ONLY)
    assert outcome.code == 0
    assert "no GPU rows" in outcome.out
    assert "idle   " not in outcome.out
    answer = json.loads(run(CPU_ONLY, "--json").out)
    assert answer["trace"]["gpu"] is None
    assert answer["breakdown"]["baseline"]["idle_ns"] < answer["baseline"]["measured_ns"]


def test_chosen_steps_and_ranks_are_repeated(run: Run) -> None:
    text = run(DDP8, "--steps", "11:12", "--ranks", "0,2-3").out
    assert "ranks 0, 2-3 of 8" in text
    assert "step 11" in text


def test_json_goes_to_stdout_alone(run: Run) -> None:
    assert run(DDP8, "--json").err == ""


def test_format_json_is_the_same_as_json(run: Run) -> None:
    assert run(DDP8, "--format", "json").out == run(DDP8, "--json").out


def test_no_cache_keeps_no_store(run: Run, cache_home: Path) -> None:
    before = sorted(cache_home.rglob("*"))
    outcome = run(CPU_ONLY, "--no-cache")
    assert "none kept" in outcome.out
    assert sorted(cache_home.rglob("*")) == before


def test_cache_dir_is_where_the_store_lies(run: Run, tmp_path: Path) -> None:
    first = run(CPU_ONLY, "--cache-dir", tmp_path)
    second = run(CPU_ONLY, "--cache-dir", tmp_path)
    assert str(tmp_path) in first.out
    assert "MB, new)" in first.out
    assert "MB, already there)" in second.out
    assert len(list(tmp_path.glob("*.duckdb"))) == 1


def test_a_check_tells_edges_lags_and_path(run: Run) -> None:
    text = run("check", DDP8).out
    for title in ("files", "edges", "lags", "critical path", "idle devices"):
        assert f"\n{title}\n" in text
    assert run("check", DDP8, "--json").out == run(DDP8, "--json").out


def test_a_store_answers_like_its_traces(run: Run, tmp_path: Path) -> None:
    store = tmp_path / "run.duckdb"
    made = run("ingest", DDP8, "-o", store)
    assert (made.code, made.out) == (0, f"{store}\n")
    assert run(store, "--json").out == run(DDP8, "--json").out
