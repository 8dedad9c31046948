"""Scenario files: written by a call, stacked, checked, and described by a schema."""

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import msgspec
import pytest
import yaml

from tests.cli.calls import Run
from whatif.report.schemas import FOLDER, STRUCTS, schema_text
from whatif.scenario import Scenario, load_scenario

SAMPLE = "sample_traces/ddp8_h100"
FLAGS = ("--nvlink", "1800GBps", "--base-gpu", "h100", "--scale", "class:gemm,rank:3=0.5")
MORE = ("--no-stragglers", "--remove", "name:*copy*")


@pytest.mark.parametrize("name", STRUCTS)
def test_the_schema_files_follow_from_the_structs(
    name: str, agrees: Callable[[str, Path], None]
) -> None:
    agrees(schema_text(name), FOLDER / f"{name}.schema.json")


def test_a_saved_call_gives_the_same_answer(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "next.yaml"
    first = run(SAMPLE, *FLAGS, *MORE, "--json", "--save-scenario", path)
    assert (first.code, first.err) == (0, f"written: {path}\n")
    again = run(SAMPLE, "--scenario", path, "--json")
    said, later = (json.loads(outcome.out)["prediction"] for outcome in (first, again))
    assert (said.pop("name"), later.pop("name")) == ("", "next")
    assert said == later


def test_saving_what_was_loaded_changes_nothing(run: Run, tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    run(SAMPLE, *FLAGS, *MORE, "--save-scenario", first)
    run(SAMPLE, "--scenario", first, "--save-scenario", second)
    assert first.read_text() == second.read_text()
    assert load_scenario(first).transforms == load_scenario(second).transforms


def test_files_stack_with_flags_in_the_order_typed_and_their_names_are_told(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "links.yaml").write_text(
        "name: next links\ntransforms: [{kind: network_scale, factor: 2}]"
    )
    (tmp_path / "kernels.yaml").write_text(
        "transforms: [{kind: scale, where: 'class:gemm', factor: 0.5}]"
    )
    outcome = run(
        SAMPLE,
        *("--scenario", tmp_path / "kernels.yaml"),
        "--no-stragglers",
        *("--scenario", tmp_path / "links.yaml"),
    )
    assert (
        "what if  kernels + next links: class:gemm x0.5, then no stragglers, then network x2"
        in outcome.out
    )


def test_a_scenario_is_checked_without_a_trace(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "idea.yaml"
    run(SAMPLE, *FLAGS, *MORE, "--save-scenario", path)
    assert run("scenario", path).out == (
        "idea\n"
        "  recorded machine: --base-gpu h100\n"
        "  --nvlink 1800GBps\n"
        "  --scale class:gemm,rank:3=0.5\n"
        "  --no-stragglers\n"
        "  --remove 'name:*copy*'\n"
    )


def test_a_mistake_deep_in_a_file_has_one_path(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "idea.yaml"
    path.write_text("transforms: [{kind: no_stragglers}, {kind: network_scale, factor: fast}]")
    outcome = run("scenario", path)
    assert outcome.code == 4
    assert "idea.yaml, at `$.transforms[1].factor`: Expected `float`, got `str`" in outcome.err


def test_without_a_file_the_command_says_what_to_type(run: Run) -> None:
    assert run("scenario").code == 2


def test_the_schema_takes_what_the_loader_takes(run: Run, tmp_path: Path) -> None:
    printed = run("scenario", "--schema").out
    assert printed == schema_text("scenario")
    schema = json.loads(printed)
    path = tmp_path / "idea.yaml"
    run(SAMPLE, *FLAGS, *MORE, "--save-scenario", path)
    jsonschema.validate(yaml.safe_load(path.read_text()), schema)
    for wrong in (
        {"transforms": [{"kind": "nvlnk", "rate": "x2"}]},
        {"transforms": [{"kind": "nvlink"}]},
        {"transforms": [{"kind": "network_scale", "factor": 0}]},
        {"transform": []},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def test_an_empty_scenario_is_the_run_as_it_was() -> None:
    assert msgspec.convert({}, Scenario) == Scenario()
