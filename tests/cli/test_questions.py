"""`replay levers`, `replay sweep` and `replay solve` on the samples: one answer with `replay`."""

import csv
import io
import json
import re
from pathlib import Path

import jsonschema
import pytest

from tests.cli.calls import Run
from whatif.report.schemas import schema_of

SAMPLE = "sample_traces/ddp8_h100"
SWEEP = ("sweep", SAMPLE, "--network-scale", "0.5,1,2", "--scale", "class:gemm=1,0.5")


def predicted(run: Run, *flags: str) -> dict[str, int]:
    answer = json.loads(run(SAMPLE, *flags, "--json").out)["prediction"]
    return {name: answer[name] for name in ("step_ns", "low_ns", "high_ns")}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("levers", ("levers", SAMPLE)),
        ("levers", ("levers", SAMPLE, "--network-scale", "2")),
        ("sweep", SWEEP),
        ("sweep", ("sweep", SAMPLE, "--remove", "class:gemm|class:nothing")),
        ("solve", ("solve", SAMPLE, "--speedup", "1.1", "--vary", "scale:class:gemm")),
        ("solve", ("solve", SAMPLE, "--speedup", "90", "--vary", "network-scale")),
    ],
)
def test_json_is_what_the_schema_says(run: Run, name: str, arguments: tuple[str, ...]) -> None:
    outcome = run(*arguments, "--json")
    assert outcome.code == 0, outcome.err
    jsonschema.validate(json.loads(outcome.out), schema_of(name))


def test_a_lever_is_what_its_flag_answers(run: Run) -> None:
    best = json.loads(run("levers", SAMPLE, "--json").out)["levers"][0]
    moved = best["twice"] or best["limit"]
    option, _, value = moved["flag"].partition(" ")
    alone = predicted(run, *filter(None, (option, value)))
    assert alone == {name: moved[name] for name in alone}


def test_levers_are_ranked_and_say_what_to_type(run: Run) -> None:
    out = run("levers", SAMPLE).out
    shares = [float(share) for share in re.findall(r"^.{10,}?(-[\d.]+)%  +-[\d.]+% to", out, re.M)]
    assert len(shares) >= 3
    assert shares == sorted(shares)
    assert "--scale class:gemm=0.5" in out


def test_a_point_of_a_sweep_is_what_replay_answers(run: Run) -> None:
    points = json.loads(run(*SWEEP, "--json").out)["points"]
    (point,) = [
        point
        for point in points
        if point["at"] == {"network-scale": "2", "scale class:gemm": "0.5"}
    ]
    alone = predicted(run, "--network-scale", "2", "--scale", "class:gemm=0.5")
    assert alone == {name: point[name] for name in alone}
    assert point["flags"] == "--network-scale 2 --scale class:gemm=0.5"


def test_points_that_say_other_things_of_the_recorded_machine_are_each_answered(run: Run) -> None:
    one_rank = f"{SAMPLE}/rank3.json.gz"
    said = ("--base-nvlink", "450GBps,900GBps", "--nvlink", "1800GBps")
    points = json.loads(run("sweep", one_rank, *said, "--json").out)["points"]
    for rate, point in zip(("450GBps", "900GBps"), points, strict=True):
        flags = ("--base-nvlink", rate, "--nvlink", "1800GBps", "--json")
        alone = json.loads(run(one_rank, *flags).out)["prediction"]
        assert {name: alone[name] for name in ("step_ns", "low_ns", "high_ns")} == {
            name: point[name] for name in ("step_ns", "low_ns", "high_ns")
        }
    assert points[0]["step_ns"] < points[1]["step_ns"]


def test_csv_has_a_row_for_each_point(run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(run(*SWEEP, "--format", "csv").out)))
    assert [row["network-scale"] for row in rows] == ["0.5", "0.5", "1", "1", "2", "2"]
    assert all(int(row["low_ns"]) <= int(row["step_ns"]) <= int(row["high_ns"]) for row in rows)


def test_the_table_of_a_sweep_has_all_points_a_chart_and_the_best(run: Run) -> None:
    out = run(*SWEEP).out
    assert len(re.findall(r"^(?:0\.5|1|2) +(?:0\.5|1) .*ms", out, re.M)) == 6
    assert "best   " in out
    assert "at network-scale 2, scale class:gemm 0.5" in out
    assert out.count("┤") == 14
    assert "no effect" in out


def test_steps_only_says_that_the_range_is_narrower(run: Run) -> None:
    out = run(*SWEEP, "--range", "steps").out
    assert "only how far the steps are apart" in out


def test_a_page_stands_alone(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "sweep.html"
    outcome = run(*SWEEP, "--html", page)
    text = page.read_text(encoding="utf-8")
    assert (outcome.code, f"written: {page}" in outcome.err) == (0, True)
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=", text)
    tables = re.findall(r'<table[^>]* data-key="([^"]+)">(.*?)</table>', text, re.DOTALL)
    rows = {key: inside.count("<tr>") for key, inside in tables}
    assert rows == {"sweep.lines.data": 4, "sweep.map": 3, "sweep.all": 7}
    assert "--network-scale 2 --scale class:gemm=0.5" in text


def test_a_page_without_a_folder_is_refused_before_anything_is_replayed(run: Run) -> None:
    outcome = run(*SWEEP, "--html", "/no/such/folder/page.html")
    assert (outcome.code, outcome.out) == (2, "")


def test_a_point_that_does_not_fit_leaves_the_others(run: Run) -> None:
    outcome = run("sweep", SAMPLE, "--remove", "class:gemm|class:nothing")
    assert outcome.code == 0
    assert "does not fit: no task matches `class:nothing`" in outcome.out


def test_a_sweep_of_which_no_point_fits_is_a_wrong_scenario(run: Run) -> None:
    assert run("sweep", SAMPLE, "--remove", "class:nothing|class:none").code == 4


def test_a_solution_meets_its_goal_when_typed(run: Run) -> None:
    answer = json.loads(
        run("solve", SAMPLE, "--speedup", "1.05", "--vary", "scale:class:gemm", "--json").out
    )
    option, value = answer["needed"]["flag"].split()
    alone = predicted(run, option, value)
    assert alone == {name: answer["needed"][name] for name in alone}
    assert alone["step_ns"] <= answer["goal_ns"]


def test_what_cannot_be_reached_names_the_bound_and_is_an_answer(run: Run) -> None:
    outcome = run("solve", SAMPLE, "--step", "1us", "--vary", "network-scale")
    assert outcome.code == 0
    assert re.search(r"cannot be reached with --network-scale: bound \d\.\d{3}x", outcome.out)


def test_a_goal_far_beyond_what_there_is_is_out_of_reach(run: Run) -> None:
    outcome = run("solve", SAMPLE, "--speedup", "1e6", "--vary", "network-scale")
    assert outcome.code == 0
    assert "cannot be reached" in outcome.out


def test_levers_and_points_use_what_is_said_of_the_recorded_machine(run: Run) -> None:
    said = ("--base-nvlink", "450GBps")
    assert run("levers", SAMPLE, *said).code == 0
    points = json.loads(run("sweep", SAMPLE, "--nvlink", "none,900", *said, "--json").out)["points"]
    assert [point["step_ns"] for point in points] == [
        json.loads(run(SAMPLE, "--json").out)["baseline"]["replayed_ns"],
        predicted(run, "--nvlink", "900GBps", *said)["step_ns"],
    ]
    assert run("sweep", SAMPLE, "--network-scale", "1,2", *said).code == 2
    assert run("solve", SAMPLE, "--speedup", "1.1", "--vary", "network-scale", *said).code == 2


@pytest.mark.parametrize("goal", [(), ("--speedup", "2", "--step", "1ms"), ("--speedup", "0")])
def test_a_goal_is_one_speed_or_one_step(run: Run, goal: tuple[str, ...]) -> None:
    assert run("solve", SAMPLE, *goal, "--vary", "nvlink").code == 2


def test_the_plain_answer_has_the_short_levers_in_its_json(run: Run) -> None:
    told = json.loads(run(SAMPLE, "--json").out)["levers"]
    text = run(SAMPLE).out
    assert 1 <= len(told) <= 3
    assert all(lever["flag"] in text for lever in told)


def test_an_axis_that_a_later_what_if_undoes_is_told(run: Run) -> None:
    out = run("sweep", SAMPLE, "--network-scale", "1,2", "--remove", "class:collective").out
    assert "network-scale makes no difference (what-ifs stack in the order typed)" in out
