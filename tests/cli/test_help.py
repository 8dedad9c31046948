"""Help texts as they are printed, and the list of all options."""

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from replay.cli.app import COMMANDS
from tests.cli.calls import Run

HELP = Path(__file__).with_name("help")
HEAVY = ("duckdb", "numba", "numpy", "polars", "rich", "msgspec", "yaml")

OPTIONS = {
    "whatif": {
        "--gpu",
        "--precision",
        "--nvlink",
        "--pcie",
        "--net",
        "--net-latency",
        "--wan",
        "--in-network",
        "--collective-algo",
        "--bucket-mb",
        "--compress",
        "--network-scale",
        "--scale",
        "--remove",
        "--no-stragglers",
        "--dp",
        "--host-scale",
        "--cuda-graphs",
        "--fuse",
        "--jitter",
        "--no-overlap",
        "--perfect-overlap",
        "--tokens-per-step",
        "--samples-per-step",
        "--flops-per-step",
        "--steps-total",
        "--hardware",
        "--scenario",
        "--save-scenario",
        "--base-gpu",
        "--base-nvlink",
        "--base-net",
        "--base-net-latency",
        "--base-pcie",
        "--gpus-per-node",
        "--topology",
        "--steps",
        "--unprofiled-step",
        "--ranks",
        "--format",
        "--json",
        "--strict",
        "--no-cache",
        "--cache-dir",
        "--window",
    },
    "ingest": {"--output", "--strict", "--no-cache", "--cache-dir", "--window", "--redact"},
    "sql": {
        "--file",
        "--query",
        "--param",
        "--output",
        "--limit",
        "--format",
        "--json",
        "--strict",
        "--no-cache",
        "--cache-dir",
        "--window",
    },
    "tables": {
        "--counts",
        "--format",
        "--json",
        "--strict",
        "--no-cache",
        "--cache-dir",
        "--window",
    },
    "schema": {"--format", "--json", "--window"},
    "queries": {"--format", "--json"},
    "hardware": {"--links", "--hardware", "--format", "--json"},
    "check": {
        "--steps",
        "--unprofiled-step",
        "--ranks",
        "--format",
        "--json",
        "--strict",
        "--no-cache",
        "--cache-dir",
        "--window",
    },
}
MANY = OPTIONS["whatif"] - {
    *("--save-scenario", "--tokens-per-step", "--samples-per-step"),
    *("--flops-per-step", "--steps-total", "--jitter"),
}
"""Those of the commands that ask many what-ifs: all what-ifs, and how traces are read."""
OPTIONS |= {
    "report": MANY - {"--format", "--json"} | {"--output"},
    "levers": MANY,
    "sweep": MANY | {"--most", "--range", "--html"},
    "solve": MANY | {"--vary", "--speedup", "--step"},
    "scenario": {"--schema"},
    "export": MANY - {"--format", "--json"} | {"--output", "--table", "--chakra"},
}


@pytest.mark.parametrize("command", [name for name, _, _ in COMMANDS])
def test_help_of_a_command_reads_as_agreed(
    run: Run, agrees: Callable[[str, Path], None], command: str
) -> None:
    outcome = run(command, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    agrees(outcome.out, HELP / f"{command}.txt")


def test_help_of_the_program_reads_as_agreed(run: Run, agrees: Callable[[str, Path], None]) -> None:
    outcome = run("--help")
    assert (outcome.code, outcome.err) == (0, "")
    agrees(outcome.out, HELP / "replay.txt")


@pytest.mark.parametrize("command", [name for name, _, _ in COMMANDS])
def test_the_options_are_these_and_no_others(run: Run, command: str) -> None:
    shown = set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", run(command, "--help").out, re.MULTILINE))
    assert shown == OPTIONS[command] | {"--help"}


def test_help_after_a_trace_is_that_of_the_what_if(run: Run) -> None:
    assert run("some.json", "--help").out == run("whatif", "--help").out


def test_no_arguments_says_what_to_type(run: Run) -> None:
    outcome = run()
    assert (outcome.code, outcome.out) == (2, "")
    assert "replay trace.json" in outcome.err
    assert "replay --help" in outcome.err


def test_version_is_the_installed_one(run: Run) -> None:
    try:
        installed = version("trace-replay")
    except PackageNotFoundError:
        pytest.skip("the project is not installed here")
    assert run("--version").out == f"trace-replay {installed}\n"


def test_help_wakes_no_heavy_module() -> None:
    code = (
        "import sys; from replay.cli.app import main; main(['whatif', '--help']); "
        f"print(sorted(set({HEAVY}) & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=HELP.parents[2],
    )
    assert done.stdout.splitlines()[-1] == "[]"
