"""Memory of a report: peaks, what holds them, what getting memory costs."""

from pathlib import Path

import pytest

from tests.kineto import KinetoFile
from tests.material import block_of, column_of, is_whole, keys_of, material_of, table_of
from whatif.postmortem.sections import memory
from whatif.report.blocks import Lines

MB = 10**6
BEFORE = 100 * MB


def _event(file: KinetoFile, ts: float, address: int, size: int, total: int | None) -> None:
    """A row of the allocator: `size` below zero frees."""
    args: dict[str, object] = {
        "Device Type": 1,
        "Device Id": 0,
        "Addr": address,
        "Bytes": size,
    }
    if total is not None:
        args |= {"Total Allocated": total, "Total Reserved": 400 * MB}
    file.rows.append(
        {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": 400,
            "tid": 400,
            "ts": ts,
            "args": args,
        }
    )


def _allocating(folder: Path, *, has_totals: bool = True) -> Path:
    """100 MB were there; 60 and 30 MB come, 60 go, 80 and 10 come: 160, then 220 with them."""
    file = KinetoFile()
    file.step(1, (0, 100))
    file.launched("k", (2, 4), (6, 90))
    file.op("aten::mm", (9, 21))
    file.op("aten::add", (39, 51))
    total = BEFORE
    for ts, address, size in (
        (10, 1, 60 * MB),
        (20, 2, 30 * MB),
        (30, 1, -60 * MB),
        (40, 1, 80 * MB),
        (50, 3, 10 * MB),
        (60, 1, -80 * MB),
    ):
        total += size
        _event(file, ts, address, size, total if has_totals else None)
    return file.write(folder / "rank0.json")


def test_the_peak_is_told_with_what_the_allocator_holds_beyond(tmp_path: Path) -> None:
    with material_of(_allocating(tmp_path)) as material:
        section = memory.section(material)
    peaks = table_of(section, "memory.peaks")
    assert column_of(peaks, "allocated") == [220 * MB]
    assert column_of(peaks, "reserved") == [400 * MB]
    assert column_of(peaks, "not in use") == [180 * MB]
    assert column_of(peaks, "least") == [130 * MB]
    assert column_of(peaks, "peak at") == [50_000]
    assert column_of(peaks, "operator") == ["aten::add"]
    assert section.summary.startswith("At most 220 MB allocated (rank 0, device 0)")
    assert not section.missing


def test_what_holds_the_peak_adds_up_to_it(tmp_path: Path) -> None:
    with material_of(_allocating(tmp_path)) as material:
        held = table_of(memory.section(material), "memory.held")
    assert dict(zip(column_of(held, "allocated by"), column_of(held, "held"), strict=True)) == {
        "(held before the recording)": BEFORE,
        "aten::add": 90 * MB,
        "aten::mm": 30 * MB,
    }
    assert sum(float(str(share)) for share in column_of(held, "share")) == pytest.approx(1)


def test_the_curve_keeps_the_peak_however_few_points_it_has(tmp_path: Path) -> None:
    with material_of(_allocating(tmp_path)) as material:
        chart = block_of(memory.section(material), "memory.curve")
        (only,) = material.ask("memory_curve", stretches=1).dicts()
    assert isinstance(chart, Lines)
    assert {line.name: max(filter(None, line.values)) for line in chart.lines} == {
        "allocated": 220 * MB,
        "reserved": 400 * MB,
    }
    assert (only["allocated_bytes"], only["after_dur"]) == (220 * MB, 50_000)


def test_without_totals_it_tells_how_far_allocations_rise(tmp_path: Path) -> None:
    with material_of(_allocating(tmp_path, has_totals=False)) as material:
        section = memory.section(material)
    assert column_of(table_of(section, "memory.peaks"), "rise") == [120 * MB]
    assert "120 MB above what was held before" in section.summary
    assert [one.what for one in section.missing] == [
        "Totals of the allocator: this profiler wrote allocations only."
    ]
    assert "memory.held" not in keys_of(section)


def test_the_largest_allocations_come_first(tmp_path: Path) -> None:
    with material_of(_allocating(tmp_path)) as material:
        largest = table_of(memory.section(material), "memory.allocations")
    assert column_of(largest, "size") == [80 * MB, 60 * MB, 30 * MB, 10 * MB]
    assert column_of(largest, "operator") == ["aten::add", "aten::mm", "aten::mm", "aten::add"]


def test_calls_that_allocate_in_the_steps_are_told_with_their_part_of_the_path(
    tmp_path: Path,
) -> None:
    file = KinetoFile()
    file.step(1, (0, 100))
    file.call("cudaMalloc", (10, 40))
    file.launched("k", (45, 50), (52, 100))
    with material_of(file.write(tmp_path / "rank0.json")) as material:
        section = memory.section(material)
    calls = table_of(section, "memory.calls")
    assert column_of(calls, "per step") == [30_000]
    assert column_of(calls, "on the path") == [1]
    assert column_of(calls, "path per step") == [30_000]
    assert "allocating and freeing in the steps takes up to 30.00 us of a step" in section.summary


def test_a_run_without_memory_rows_says_how_to_record_them() -> None:
    with material_of(Path("sample_traces/tiny/graph_launch.json")) as material:
        section = memory.section(material)
    assert keys_of(section) == []
    assert [one.how for one in section.missing] == ["Record with profile_memory=True."]
    assert section.summary == "How much of 85.9 GB per device the run held is not recorded."


@pytest.mark.parametrize("name", ["cpu_only", "truncated", "old_categories"])
def test_odd_recordings_have_the_section_too(name: str) -> None:
    with material_of(Path(f"sample_traces/tiny/{name}.json")) as material:
        assert is_whole(memory.section(material))
