"""Host of a report: what the thread of the step does, lead on the device, calls, frames."""

from pathlib import Path

import pytest

from replay.api import Window
from tests.kineto import AUTOGRAD, KinetoFile
from tests.material import block_of, column_of, is_whole, keys_of, material_of, table_of
from whatif.postmortem.sections import host
from whatif.report.blocks import Lines, StackedBars

SAMPLE = Path("sample_traces/ddp8_h100")
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def _training(folder: Path) -> Path:
    """One step of 100 us on the main thread.

    loader 0-10, operator 10-30 with a launch 12-16, nothing 30-40, backward 40-70 on its thread,
    a synchronise 75-95 under an operator 72-96.
    """
    file = KinetoFile()
    file.step(1, (0, 100))
    file.annotation(LOADER, (0, 10))
    file.op("aten::copy_", (2, 6))
    file.op("aten::mm", (10, 30))
    file.launched("gemm", (12, 16), (20, 60))
    file.op("autograd::engine::evaluate_function: MmBackward0", (40, 70), thread=AUTOGRAD)
    file.launched("gemm", (45, 50), (60, 94), thread=AUTOGRAD)
    file.op("aten::item", (72, 96))
    file.call("cudaDeviceSynchronize", (75, 95))
    return file.write(folder / "rank0.json")


def test_what_the_thread_of_the_step_does_adds_up_to_the_step(tmp_path: Path) -> None:
    with material_of(_training(tmp_path)) as material:
        chart = block_of(host.section(material), "host.time")
    assert isinstance(chart, StackedBars)
    assert {part.name: part.values[0] for part in chart.parts} == {
        "data loader": 10_000,
        "operators": 16_000 + 4_000,
        "runtime calls": 4_000,
        "waiting for the device": 20_000,
        "nothing, while the backward works": 30_000,
        "nothing recorded": 10_000 + 2_000 + 4_000,
    }


def test_the_frame_that_runs_the_backward_waits_for_it(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 100))
    frame = "<built-in method run_backward of torch._C._EngineBase object at 0x7f>"
    file.host_row("python_function", frame, (20, 80))
    file.op("autograd::engine::evaluate_function: MmBackward0", (30, 70), thread=AUTOGRAD)
    file.launched("gemm", (35, 40), (50, 60), thread=AUTOGRAD)
    with material_of(file.write(tmp_path / "rank0.json")) as material:
        chart = block_of(host.section(material), "host.time")
    assert isinstance(chart, StackedBars)
    assert {part.name: part.values[0] for part in chart.parts} == {
        "Python frames": 20_000,
        "nothing, while the backward works": 40_000,
        "nothing recorded": 40_000,
    }


def test_the_parts_of_every_rank_of_the_sample_are_its_mean_step() -> None:
    with material_of(SAMPLE) as material:
        section = host.section(material)
        steps = {
            record["rank"]: record["step_dur"] for record in material.ask("host_threads").dicts()
        }
    chart = block_of(section, "host.time")
    assert isinstance(chart, StackedBars)
    for at, category in enumerate(chart.categories):
        whole = sum(part.values[at] or 0 for part in chart.parts)
        assert whole == pytest.approx(steps[int(category.split()[1])], abs=len(chart.parts))
    assert is_whole(section)


def test_lead_is_from_the_end_of_the_call_to_the_start_of_its_work(tmp_path: Path) -> None:
    with material_of(_training(tmp_path)) as material:
        section = host.section(material)
    lead = table_of(section, "host.lead")
    assert column_of(lead, "launches") == [2]
    assert column_of(lead, "lead p50") == [(4_000 + 10_000) / 2]
    assert column_of(lead, "below 20 us") == [1]
    assert (
        "100% of the launches are less than 20.00 us ahead of their work; "
        "half are less than 7.00 us"
    ) in section.summary


def test_threads_are_told_by_what_they_spend_their_own_time_in(tmp_path: Path) -> None:
    with material_of(_training(tmp_path)) as material:
        threads = table_of(host.section(material), "host.threads")
    assert column_of(threads, "thread") == ["main", "autograd"]
    assert column_of(threads, "in operators") == [4_000 + 16_000 + 4_000, 25_000]
    assert column_of(threads, "waiting") == [20_000, 0]
    assert column_of(threads, "in annotations") == [6_000, 0]


def test_calls_have_their_cost_and_those_that_are_slow(tmp_path: Path) -> None:
    file = KinetoFile()
    for number, start in ((1, 0), (2, 500)):
        file.step(number, (start, start + 500))
        file.launched("k", (start + 10, start + 14), (start + 20, start + 30))
    file.launched("k", (600, 800), (820, 830))
    with material_of(file.write(tmp_path / "rank0.json")) as material:
        calls = table_of(host.section(material), "host.calls")
    assert calls.rows == (
        ("cudaLaunchKernel", "launch", 3, 2, 104_000, 4_000, 180_400, 200_000, 1, 100_000),
    )
    assert calls.about == "Launches take 0.10 ms per step and rank in 2 calls."


def test_the_loader_counts_its_outermost_rows_in_the_steps_of_the_window(tmp_path: Path) -> None:
    file = KinetoFile()
    for number, start in ((1, 0), (2, 100)):
        file.step(number, (start, start + 100))
        file.annotation(LOADER, (start, start + 20 * number))
        file.annotation(LOADER, (start + 1, start + 5))
        file.launched("k", (start + 50, start + 52), (start + 55, start + 60))
    path = file.write(tmp_path / "rank0.json")
    with material_of(path, window=Window(steps=range(2, 3))) as material:
        loading = table_of(host.section(material), "host.data_loader")
    assert column_of(loading, "calls") == [1]
    assert column_of(loading, "per step") == [40_000]
    assert column_of(loading, "share") == [pytest.approx(0.4)]


def test_frames_that_wait_are_told_apart(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 100))
    file.host_row("python_function", "train.py(3): step", (0, 90))
    file.host_row("python_function", "<method 'acquire' of '_thread.lock' objects>", (10, 40))
    file.op("aten::mm", (50, 60))
    file.launched("gemm", (52, 54), (56, 70))
    with material_of(file.write(tmp_path / "rank0.json")) as material:
        section = host.section(material)
    frames = table_of(section, "host.python")
    assert column_of(frames, "own time") == [50_000, 30_000]
    assert column_of(frames, "waits") == ["", "yes"]
    assert "30.00 us of it in frames that wait" in frames.about
    assert not any(one.what.startswith("Python frames") for one in section.missing)


def test_overhead_that_the_profiler_wrote_down_asks_for_a_step_without_it(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 100))
    file.launched("k", (10, 12), (15, 30))
    file.host_row("overhead", "Buffer Flush", (40, 60), thread=9)
    with material_of(file.write(tmp_path / "rank0.json")) as material:
        section = host.section(material)
    assert column_of(table_of(section, "host.profiler"), "share") == [pytest.approx(0.2)]
    (told,) = (one for one in section.missing if "profiler" in one.what)
    assert "20.0%" in told.what
    assert "--unprofiled-step" in told.how


def test_the_lead_over_time_has_a_place_for_each_stretch_with_launches() -> None:
    with material_of(SAMPLE) as material:
        chart = block_of(host.section(material), "host.lead_curve")
    assert isinstance(chart, Lines)
    assert list(chart.x) == sorted(chart.x)
    assert len(chart.x) <= 120
    assert all(any(value is not None for value in line.values) for line in chart.lines)


@pytest.mark.parametrize(
    "name", ["cpu_only", "graph_launch", "kernel_without_launch", "truncated", "crossing_slices"]
)
def test_odd_recordings_have_the_section_too(name: str) -> None:
    with material_of(Path(f"sample_traces/tiny/{name}.json")) as material:
        section = host.section(material)
    assert is_whole(section)
    assert ("host.lead" in keys_of(section)) == (name != "cpu_only")


def test_a_thread_waits_for_the_device_until_its_work_ends(tmp_path: Path) -> None:
    with material_of(_training(tmp_path)) as material:
        waits = table_of(host.section(material), "host.waits")
    (told,) = (row for row in waits.rows if row[1] == "main")
    assert told[2:] == ("the device", 1, 20_000, 20_000)


def test_without_a_device_the_summary_tells_what_a_thread_waits_for() -> None:
    with material_of(Path("sample_traces/gloo2_cpu")) as material:
        section = host.section(material)
    waits = table_of(section, "host.waits")
    assert set(column_of(waits, "waits for")) == {"a collective"}
    assert "a thread waits up to 4.31 ms of a step for a collective (rank 1)" in section.summary


def test_the_rank_whose_device_waits_most_is_named_not_the_least_median(tmp_path: Path) -> None:
    """Leads of rank 0: 30, 30, 30 us; of rank 1: 5, 50, 50 us."""
    for rank, leads_us in ((0, (30, 30, 30)), (1, (5, 50, 50))):
        file = KinetoFile(rank=rank, ranks=(0, 1))
        file.step(1, (0, 400))
        for number, lead_us in enumerate(leads_us):
            at = 10 + 100 * number
            file.launched("gemm", (at, at + 5), (at + 5 + lead_us, at + 15 + lead_us))
        file.write(tmp_path / f"rank{rank}.json")
    with material_of(tmp_path / "rank0.json", tmp_path / "rank1.json") as material:
        summary = host.section(material).summary
    assert "33% of the launches of rank 1 are less than 20.00 us ahead" in summary
