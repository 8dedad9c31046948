"""`replay hardware`, and `--hardware FILE` wherever the catalog is used."""

import csv
import io
import json
import re
import shlex
from pathlib import Path

import pytest

from tests.arch.test_docs import _commands
from tests.cli.calls import ROOT, Run
from whatif.models.hardware import OWN_FILE, catalog

DOCUMENT = ROOT / "docs" / "hardware.md"
DDP8 = "sample_traces/ddp8_h100"


@pytest.fixture(autouse=True)
def _no_file_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OWN_FILE, raising=False)


@pytest.fixture
def machines(tmp_path: Path) -> Path:
    """The file of the document."""
    (text,) = re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "machines.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_list_has_a_line_per_accelerator_and_its_units(run: Run) -> None:
    outcome = run("hardware", "list")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    names = [device.name for device in catalog().accelerators]
    assert [line[: len(name)] for line, name in zip(lines[1:], names, strict=False)] == names
    (h100,) = [line.split() for line in lines if line.startswith("H100 SXM5 80 GB")]
    assert h100[4:] == ["hopper", "989.5", "1979", "80", "3350", "NVLink4", "450", "node"]
    assert "dense TFLOP/s" in outcome.out
    assert max(map(len, lines)) <= 100


def test_the_list_is_what_comes_without_a_word(run: Run) -> None:
    assert run("hardware") == run("hardware", "list")


def test_as_data_the_list_has_base_units(run: Run) -> None:
    found = {row["name"]: row for row in json.loads(run("hardware", "--json").out)}
    assert found["H100 SXM5 80 GB"] == {
        "name": "H100 SXM5 80 GB",
        "architecture": "hopper",
        "bf16_flops_per_s": 989.5e12,
        "fp8_flops_per_s": 1979e12,
        "memory_bytes": 80 * 2**30,
        "memory_bytes_per_s": 3350e9,
        "link": "NVLink4",
        "link_one_way_bytes_per_s": 450e9,
        "link_shape": "switch",
        "link_joins": None,
    }
    assert found["L4 24 GB"]["link"] is None
    rows = list(csv.DictReader(io.StringIO(run("hardware", "list", "--format", "csv").out)))
    assert [row["name"] for row in rows] == list(found)


def test_links_are_listed_by_themselves(run: Run) -> None:
    rows = {row["name"]: row for row in json.loads(run("hardware", "--links", "--json").out)}
    assert rows["InfiniBand NDR"] == {
        "name": "InfiniBand NDR",
        "scope": "port",
        "one_way_bytes_per_s": 50e9,
        "both_ways_bytes_per_s": 100e9,
        "latency_ns": 2800,
    }
    assert "InfiniBand NDR      port       50        100      2.8" in run("hardware", "--links").out


def test_one_entry_is_shown_with_range_and_pages(run: Run) -> None:
    outcome = run("hardware", "show", "NVIDIA", "B200")
    assert (outcome.code, outcome.err) == (0, "")
    assert re.search(r"memory bandwidth +8,000 GB/s +7,672 to 8,000 +\[\d\]", outcome.out)
    assert re.search(r"one direction +900 GB/s", outcome.out)
    assert re.search(r"^\[1\] https://\S+ \(read 2026-11\)$", outcome.out, re.MULTILINE)
    numbers = {int(number) for number in re.findall(r"\[(\d)\]", outcome.out)}
    assert numbers == set(range(1, len(numbers) + 1))


def test_an_entry_as_json_is_that_of_the_file(run: Run) -> None:
    shown = json.loads(run("hardware", "show", "h100", "--json").out)
    assert shown["matrix_flops_per_s"]["bf16"]["value"] == 989.5e12
    assert shown["scale_up"]["bytes_per_s"]["value"] == 900e9
    rows = list(csv.DictReader(io.StringIO(run("hardware", "show", "h100", "--format", "csv").out)))
    (l2,) = [row for row in rows if row["figure"] == "L2 cache"]
    assert (float(l2["value"]), l2["unit"]) == (50 * 2**20, "B")


def test_every_entry_can_be_shown(run: Run) -> None:
    for entry in (*catalog().accelerators, *catalog().links):
        outcome = run("hardware", "show", entry.name)
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out.startswith(f"name          {entry.name}")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("show", "H10O"), 4, "nearest names: H100"),
        (("show", "infiniband", "ndx"), 4, "InfiniBand NDR"),
        (("show",), 2, "which device or link?"),
        (("list", "H100"), 2, "`list` takes no name"),
        (("lst",), 2, "lst"),
        (("list", "--hardware", "absent.yaml"), 2, "absent.yaml"),
    ],
)
def test_what_cannot_be_answered_says_why(
    run: Run, arguments: tuple[str, ...], code: int, message: str
) -> None:
    outcome = run("hardware", *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err


def test_the_file_of_the_document_is_read_and_left_behind(run: Run, machines: Path) -> None:
    (command,) = [each for each in _commands(DOCUMENT) if "hardware show Next" in each]
    words = [str(machines) if word == machines.name else word for word in shlex.split(command)[1:]]
    outcome = run(*words)
    assert (outcome.code, outcome.err) == (0, "")
    assert re.search(r"bf16 matrix, dense +5,000 TFLOP/s", outcome.out)
    assert run("hardware", "show", "Next GPU").code == 4


def test_a_what_if_uses_the_own_file(run: Run, machines: Path) -> None:
    asked = (DDP8, "--nvlink", "7200GBps", "--base-gpu", "Next GPU")
    assert run(*asked).code == 4
    outcome = run(*asked, "--hardware", machines, "--json")
    assert outcome.code == 0
    assumptions = json.loads(outcome.out)["prediction"]["assumptions"]
    assert any("base: Next GPU, NVLink6 3600 GB/s (catalog)" in each for each in assumptions)


def test_a_mistake_in_the_own_file_stops_the_what_if(run: Run, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("accelerators: [{name: H100, tdp_w: {value: hot, source: s}}]")
    outcome = run(DDP8, "--hardware", wrong)
    assert (outcome.code, outcome.out) == (4, "")
    assert "at `$.accelerators[0].tdp_w.value`" in outcome.err
