"""The critical path and idle devices: `check` and the named queries give the same numbers."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.calls import ROOT, Run
from tests.kineto import KinetoFile

REAL = ROOT.parent / "shared" / "traces"
SETS = (
    ROOT / "sample_traces" / "ddp8_h100",
    ROOT / "sample_traces" / "gloo2_cpu",
    REAL / "v100x4_torchrec_fp32",
)


@pytest.fixture(params=SETS, ids=lambda path: path.name)
def trace(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    return path


_TOLD: dict[Path, str] = {}


@pytest.fixture
def check(run: Run, trace: Path) -> str:
    """What `check` prints of the trace, asked for once."""
    if trace not in _TOLD:
        _TOLD[trace] = run("check", trace).out
    return _TOLD[trace]


def _sections(text: str) -> dict[str, list[str]]:
    """Lines of each section of `check`; those that go on are joined to the line before."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            lines = sections.setdefault(line, [])
        elif lines and line.startswith(" " * 18) and not lines[-1].startswith("  longest"):
            lines[-1] = f"{lines[-1]} {line.strip()}"
        elif line:
            lines.append(line)
    return sections


def _shares(lines: list[str], title: str) -> list[tuple[str, float]]:
    """Name and per cent of the parts of the path."""
    (line,) = [line for line in lines if line.startswith(f"  {title} ")]
    return [
        (name, float(share))
        for name, share in re.findall(r"([^\s,][^,]*) (\d+\.\d)%", line.removeprefix(f"  {title}"))
    ]


def _asked(run: Run, trace: Path, name: str) -> list[dict[str, float]]:
    rows: list[dict[str, float]] = json.loads(run("sql", trace, "--query", name, "--json").out)
    return rows


def test_shares_by_rank_are_the_same(run: Run, trace: Path, check: str) -> None:
    told = _shares(_sections(check)["critical path"], "by rank")
    asked = [(f"{row['rank']}", row["percent"]) for row in _asked(run, trace, "critical_by_rank")]
    assert told == [(rank, round(percent, 1)) for rank, percent in asked][: len(told)]
    assert sum(percent for _, percent in asked) == pytest.approx(100)


def test_shares_by_class_are_the_same(run: Run, trace: Path, check: str) -> None:
    told = _shares(_sections(check)["critical path"], "by class")
    query = """
        SELECT part, 100 * SUM(dur) / SUM(SUM(dur)) OVER () AS percent
        FROM critical_summary WHERE dimension = 'class' GROUP BY part
    """
    asked = {
        row["part"]: row["percent"] for row in json.loads(run("sql", trace, query, "--json").out)
    }
    assert len(told) >= 3
    assert told == [(name, pytest.approx(asked[name], abs=0.051)) for name, _ in told]


def test_shares_by_module_are_the_same(run: Run, trace: Path, check: str) -> None:
    lines = _sections(check)["critical path"]
    asked = _asked(run, trace, "critical_by_module")
    if all(row["module"] is None for row in asked):
        assert not any(line.startswith("  by module") for line in lines)
        return
    told = _shares(lines, "by module")
    assert [share for _, share in told] == [
        pytest.approx(row["percent"], abs=0.051) for row in asked[: len(told)]
    ]


def test_steps_are_the_sums_of_their_pieces(run: Run, trace: Path, check: str) -> None:
    lines = _sections(check)["critical path"]
    told = {
        int(step): float(ms)
        for step, ms in re.findall(r"  step (\d+) +([\d.]+) ms", "\n".join(lines))
    }
    query = "SELECT step, SUM(total_dur) / 1e6 AS ms FROM critical_path GROUP BY step"
    asked = {row["step"]: row["ms"] for row in json.loads(run("sql", trace, query, "--json").out)}
    assert told == {step: pytest.approx(ms, abs=0.0051) for step, ms in asked.items()}


def test_the_longest_piece_is_the_first_of_the_query(run: Run, trace: Path, check: str) -> None:
    lines = _sections(check)["critical path"]
    (told,) = [line for line in lines if line.startswith("  longest")]
    first = _asked(run, trace, "critical_path")[0]
    assert float(told.split()[1]) == pytest.approx(first["total_ms"], abs=0.0051)
    assert f"rank {first['rank']} {first['class']} " in told


def test_causes_of_idle_devices_are_the_same(run: Run, trace: Path, check: str) -> None:
    sections = _sections(check)
    asked = _asked(run, trace, "idle_causes")
    if not asked:
        assert "idle devices" not in sections
        return
    told = re.findall(
        r"^  (\w+) +([\d.]+) ms +[\d.]+% +([\d,]+) gaps?",
        "\n".join(sections["idle devices"]),
        re.MULTILINE,
    )
    assert [(cause, float(ms), int(gaps.replace(",", ""))) for cause, ms, gaps in told] == [
        (row["cause"], pytest.approx(row["ms_per_step"], abs=0.0051), row["gaps"]) for row in asked
    ]


def test_streams_are_those_of_the_query(run: Run, trace: Path, check: str) -> None:
    sections = _sections(check)
    asked = _asked(run, trace, "idle_by_stream")
    told = re.findall(
        r"^  stream (\d+) +([\d.]+) ms idle, ([\d.]+) ms busy",
        "\n".join(sections.get("idle devices", [])),
        re.MULTILINE,
    )
    assert bool(told) == bool(asked)
    for stream, idle_ms, busy_ms in told:
        mine = [row for row in asked if row["stream"] == int(stream)]
        for name, value in (("idle_ms", idle_ms), ("busy_ms", busy_ms)):
            mean = sum(row[name] for row in mine) / len(mine)
            assert float(value) == pytest.approx(mean, abs=0.0051)


def test_idle_of_the_check_is_that_of_the_answer(check: str) -> None:
    sections = _sections(check)
    if "idle devices" in sections:
        (idle,) = re.findall(r"^ +idle +([\d.]+) ms", check, re.MULTILINE)
        assert f"a step          {idle} ms of a device" in sections["idle devices"][0]


def test_check_tells_a_wait_without_a_name(run: Run, tmp_path: Path) -> None:
    """The longest piece is a wait for the device, between two rows of its thread."""
    file = KinetoFile()
    file.step(1, (0, 420))
    file.launched("k", (10, 15), (20, 400))
    file.call("cudaDeviceSynchronize", (20, 410))
    outcome = run("check", file.write(tmp_path / "rank0.json"))
    assert outcome.code == 0
    assert "host (waiting)" in outcome.out
