"""`replay report`: its forms, what it refuses, and the command that it tells."""

import json
import shutil
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import jsonschema
import msgspec
import pytest

from replay import api
from replay.cli.browser import open_page
from tests.cli.calls import ROOT, Run
from tests.unit.postmortem.sample_report import sample_report
from whatif.postmortem.contract import Report
from whatif.postmortem.schemas import FILE, schema_text
from whatif.report.answer import to_json
from whatif.scenario import Scenario
from whatif.transforms.network import NetworkScale

TRACE = "sample_traces/tiny/cpu_only.json"


def test_the_schema_file_follows_from_the_structs(agrees: Callable[[str, Path], None]) -> None:
    agrees(schema_text(), FILE)


def test_a_report_follows_the_schema_and_comes_back_the_same() -> None:
    written = to_json(sample_report())
    jsonschema.validate(msgspec.json.decode(written), msgspec.json.decode(schema_text()))
    assert msgspec.json.decode(written, type=Report) == sample_report()


@pytest.mark.parametrize(
    ("name", "start"),
    [("r.html", "<!DOCTYPE html>"), ("r.md", "# Post-mortem: "), ("r.JSON", "{\n")],
)
def test_the_ending_says_what_is_written(run: Run, tmp_path: Path, name: str, start: str) -> None:
    path = tmp_path / name
    outcome = run("report", TRACE, "-o", path)
    assert (outcome.code, outcome.out) == (0, "")
    assert f"written: {path}, " in outcome.err
    assert path.read_text(encoding="utf-8").startswith(start)
    assert [found.name for found in tmp_path.iterdir()] == [name]


def test_without_a_file_it_is_markdown(run: Run) -> None:
    outcome = run("report", TRACE)
    assert outcome.code == 0
    assert outcome.out.startswith("# Post-mortem: ")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["-o", "report.pdf"], "which form?"),
        (["-o", "report"], "which form?"),
        (["-o", "run.duckdb"], "which form?"),
        (["-o", "no/such/folder/report.html"], "is no folder"),
        (["--open"], "--open shows a page"),
        (["--open", "-o", "report.md"], "--open shows a page"),
    ],
)
def test_what_cannot_be_written_is_refused_before_reading(
    run: Run, options: list[str], word: str
) -> None:
    outcome = run("report", "no_such_trace.json" if "-o" not in options else TRACE, *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert word in outcome.err


def test_a_folder_is_no_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.html").mkdir()
    outcome = run("report", TRACE, "-o", tmp_path / "x.html")
    assert (outcome.code, "is a folder" in outcome.err) == (2, True)


def test_traces_and_other_json_are_not_overwritten(run: Run, tmp_path: Path) -> None:
    read, other = tmp_path / "read.json", tmp_path / "other.json"
    for path in (read, other):
        shutil.copy(ROOT / TRACE, path)
    before = read.read_bytes()
    for path in (read, other):
        outcome = run("report", read, "-o", path)
        assert (outcome.code, "not overwritten" in outcome.err) == (2, True)
        assert path.read_bytes() == before


def test_an_older_report_is_overwritten(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    assert [run("report", TRACE, "-o", path).code for _ in range(2)] == [0, 0]
    assert json.loads(path.read_text(encoding="utf-8"))["schema_version"] == 1


def test_a_page_is_opened_where_asked(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: bool(opened.append(url)))
    monkeypatch.setenv("DISPLAY", ":0")
    outcome = run("report", TRACE, "-o", tmp_path / "r.html", "--open")
    assert opened == [(tmp_path / "r.html").as_uri()]
    assert "no browser" in outcome.err


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there are always windows")
def test_no_page_takes_over_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webbrowser.open", lambda _: True)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert not open_page("http://127.0.0.1/")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert open_page("http://127.0.0.1/")


def test_a_report_tells_the_command_that_makes_it_again(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a b.json"
    run("report", TRACE, "--host-scale", "2", "-o", path)
    command = json.loads(path.read_text(encoding="utf-8"))["command"]
    assert command == f"replay report {TRACE} --host-scale 2 -o '{path}'"


def test_a_report_from_python_spells_its_command(
    cache_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_home))
    made = api.report(
        [ROOT / TRACE],
        Scenario(transforms=(NetworkScale(factor=2.0),)),
        window=api.Window(ranks=(0,)),
    )
    assert made.command == f"replay report {ROOT / TRACE} --network-scale 2 --ranks 0"


def test_files_left_out_are_told_beside_and_in_the_report(run: Run, tmp_path: Path) -> None:
    shutil.copy(ROOT / TRACE, tmp_path / "good.json")
    (tmp_path / "bad.json").write_text("hello\n", encoding="utf-8")
    outcome = run("report", tmp_path)
    assert outcome.code == 0
    assert "left out: " in outcome.err
    assert "Left out: `bad.json`: " in outcome.out


def test_a_program_that_is_not_installed_still_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("replay.calls.program.version", missing)
    assert api.program() == "trace-replay, not installed"
