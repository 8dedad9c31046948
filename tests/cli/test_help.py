"""Help texts as they are printed, and the list of all options."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from replay.cli.app import COMMANDS, WELCOME
from replay.cli.helping import GROUPS
from tests.arch.test_docs import require_parsable
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
        *("--dp", "--tp", "--sp", "--pp", "--schedule", "--virtual-stages", "--zero"),
        *("--ep", "--imbalance", "--capacity", "--cp", "--micro-batches", "--grad-accum"),
        *("--batch-scale", "--seq-scale", "--layers", "--recompute", "--offload"),
        *("--sync-every", "--describe"),
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
    "report": MANY - {"--format", "--json"}
    | {"--output", "--open", "--against", "--max-regression"},
    "levers": MANY,
    "sweep": MANY | {"--most", "--range", "--html"},
    "solve": MANY | {"--vary", "--speedup", "--step"},
    "scenario": {"--schema"},
    "plan": OPTIONS["check"]
    | {"--gpus", "--gpu", "--nodes-of", "--global-batch", "--top", "--max-tp", "--max-pp"}
    | {"--max-cp", "--describe", "--base-gpu", "--base-net", "--hardware", "--html"},
    "synth": {"--output", "--ranks", "--json"},
    "describe": OPTIONS["check"] - {"--unprofiled-step"} | {"--describe", "--yaml"},
    "serve": MANY - {"--format", "--json"} | {"--port", "--no-open"},
    "diff": OPTIONS["check"] - {"--unprofiled-step"}
    | {"--max-regression", "--output", "--steps-b"},
    "verify": OPTIONS["check"] - {"--unprofiled-step"} | {"--max-error"},
    "capture": {
        *("--output", "--steps", "--warmup", "--skip", "--step-is", "--ranks", "--metadata"),
        *("--stacks", "--memory", "--no-shapes"),
    },
    "completion": set(),
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
    assert "replay --help" in outcome.err


def test_what_is_told_to_type_first_works_from_a_clone(run: Run) -> None:
    (line,) = re.findall(r"^  replay (sample_traces/.*)$", WELCOME, re.MULTILINE)
    outcome = run(*shlex.split(line))
    assert (outcome.code, "predicted" in outcome.out) == (0, True)


def test_every_line_that_is_told_first_can_be_parsed() -> None:
    lines = re.findall(r"^  (replay .*?)(?:  .*)?$", WELCOME, re.MULTILINE)
    assert len(lines) == 7
    for line in lines:
        require_parsable(line)


@pytest.mark.parametrize("command", [name for name, _, _ in COMMANDS])
def test_help_ends_with_examples_that_can_be_parsed(run: Run, command: str) -> None:
    _, _, examples = run(command, "--help").out.partition("\n  Examples:\n")
    lines = re.findall(r"^    (replay .*?)(?:   .*| > .*| \| .*)?$", examples, re.MULTILINE)
    assert lines
    for line in lines:
        require_parsable(line)


def test_every_command_is_listed_once_and_its_line_is_whole(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("--help").out.partition("\nOptions:\n")[2]
    listed = re.findall(r"^  (\w+) +\S", shown, re.MULTILINE)
    assert sorted(listed) == sorted(name for name, _, _ in COMMANDS)
    assert "..." not in shown


def test_groups_name_only_commands_that_exist() -> None:
    names = [name for _, group in GROUPS for name in group]
    assert set(names) <= {name for name, _, _ in COMMANDS}
    assert len(set(names)) == len(names)


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
