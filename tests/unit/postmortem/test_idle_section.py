"""Section `idle` on traces whose gaps and causes are known."""

from pathlib import Path

import pytest

from replay import api
from tests.kineto import KinetoFile
from tests.unit.postmortem.sections import bars_of, rows_of, section_of
from whatif.postmortem.contract import Section
from whatif.postmortem.sections import idle
from whatif.report.blocks import Words

ROOT = Path(__file__).resolve().parents[3]
TRACES = ROOT.parent / "shared" / "traces"
GLOO = ROOT / "sample_traces" / "gloo2_cpu"
with_shared = pytest.mark.skipif(not TRACES.is_dir(), reason="shared/ is not beside the checkout")


def _with_item(folder: Path) -> list[Path]:
    """One step of 100 us; the device runs 12-32 and 58-80, the host waits for it from 22 to 33."""
    file = KinetoFile()
    file.step(1, (0, 100))
    file.host_row("python_function", "train.py(3): main", (0, 100))
    file.host_row("python_function", "train.py(9): loss_of", (18, 56))
    file.host_row("python_function", "torch/_tensor.py(1): item", (19, 50))
    file.launched("gemm", (5, 10), (12, 32))
    file.op("aten::item", (20, 48))
    file.call("cudaStreamSynchronize", (22, 33))
    file.launched("add", (52, 55), (58, 80))
    file.call("cudaStreamSynchronize", (60, 62))
    return [file.write(folder / "rank0.json")]


def _words(section: Section) -> str:
    return " ".join(
        text for block in section.blocks if isinstance(block, Words) for text in block.paragraphs
    )


def test_causes_add_up_to_the_idle_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section, material = section_of(idle.section, _with_item(tmp_path), monkeypatch)
    rows = rows_of(section, "idle.causes")
    assert sum(row["a step"] for row in rows) == 12_000 + 26_000 + 20_000
    assert sum(row["of idle"] for row in rows) == pytest.approx(1)
    assert material.answer.breakdown.baseline.idle_ns == 58_000
    told = {row["cause"]: row["a step"] for row in rows}
    assert told["no more work"] == 20_000
    (bar,) = bars_of(section, "idle.devices").values()
    assert sum(value or 0 for value in bar.values()) == 58_000
    assert section.summary.startswith("The devices do nothing for 0.06 ms of a step (58.0%)")


def test_a_gap_names_the_operator_and_the_frame_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section, _ = section_of(idle.section, _with_item(tmp_path), monkeypatch)
    gap = rows_of(section, "idle.gaps")[0]
    assert (gap["next work"], gap["idle"], gap["at"]) == ("add", 26_000, 32_000)
    assert gap["operator"] == "aten::item"
    assert gap["frame"] == "train.py(9): loss_of"
    assert not any("with_stack" in missing.how for missing in section.missing)


def test_the_call_that_emptied_the_device_costs_and_the_other_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section, _ = section_of(idle.section, _with_item(tmp_path), monkeypatch)
    (call,) = rows_of(section, "idle.syncs")
    assert (call["call"], call["operator"]) == ("cudaStreamSynchronize", "aten::item")
    assert (call["calls"], call["with idle"], call["idle after"]) == (1, 1, 26_000)
    assert "Of 2 calls that block the host, 1 let the device run out of work" in _words(section)


def test_gaps_inside_a_graph_are_not_called_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = KinetoFile()
    file.step(1, (0, 100))
    call = file.call("cudaGraphLaunch", (5, 10))
    file.kernel("a", (12, 22), call=call)
    file.kernel("b", (72, 98), call=call)
    section, _ = section_of(idle.section, [file.write(tmp_path / "rank0.json")], monkeypatch)
    told = {row["cause"]: row["a step"] for row in rows_of(section, "idle.causes")}
    assert told["in CUDA graphs"] == 50_000
    assert "something without a row probably ran" in section.summary
    assert any("graphs turned off" in missing.how for missing in section.missing)
    assert "No call makes the host wait" in _words(section)


def test_a_run_without_devices_tells_what_its_threads_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    section, material = section_of(idle.section, [GLOO], monkeypatch)
    waited_ms = material.answer.breakdown.baseline.idle_ns / 1e6
    assert section.summary.startswith(
        f"No device is recorded; the threads that carry the step wait {waited_ms:,.2f} ms"
    )
    assert section.blocks == ()


@with_shared
@pytest.mark.parametrize(
    "window",
    [api.WHOLE, api.Window(steps=range(5, 7)), api.Window(ranks=(0, 2))],
    ids=["whole", "steps", "ranks"],
)
def test_causes_of_real_ranks_add_up_in_any_window(
    window: api.Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    section, material = section_of(
        idle.section, [TRACES / "v100x4_torchrec_fp32"], monkeypatch, window
    )
    rows = rows_of(section, "idle.causes")
    assert sum(row["a step"] for row in rows) == material.answer.breakdown.baseline.idle_ns
    if window.ranks is None:
        assert all(row["cause"] != "rest" for row in rows)
