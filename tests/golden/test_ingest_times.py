"""Times keep their nanoseconds in every way in which profilers have written them."""

from pathlib import Path

import pytest

from tests.reading import document, host, issues, kernel, rank_of, reading, rows, write

STARTS_AND_LENGTHS = """
    SELECT ts + ts_origin_ns, dur FROM slice JOIN trace USING (trace_id) ORDER BY ts
"""
BASE = '"baseTimeNanoseconds": 1700000000000000000'


@pytest.mark.parametrize(
    ("head", "ts", "dur", "start_ns", "dur_ns"),
    [
        ('"v": 1', "1700000000000123", "17", 1_700_000_000_000_123_000, 17_000),
        ('"v": 1', "1700000000000000.125", "0.3", 1_700_000_000_000_000_125, 300),
        ('"v": 1', "1700000000000001.001", "10.001", 1_700_000_000_000_001_001, 10_001),
        ('"v": 1', '"1700000000000000.425"', '"0.2"', 1_700_000_000_000_000_425, 200),
        ('"v": 1', "1.7000000000000004e15", "1e3", 1_700_000_000_000_000_400, 1_000_000),
        (BASE, "6322354321753.948", "1.407", 1_706_322_354_321_753_948, 1_407),
        (BASE, "0", "2147483648.001", 1_700_000_000_000_000_000, 2_147_483_648_001),
        (BASE, "-0.5", "0.001", 1_699_999_999_999_999_500, 1),
        ('"displayTimeUnit": "ns"', "12.5", "0.75", 12_500, 750),
        ('"displayTimeUnit": "ms"', "12.5", "0.75", 12_500, 750),
    ],
    ids=[
        "whole us since 1970",
        "us since 1970 with three digits",
        "a double would be 1 ns off",
        "text",
        "exponent",
        "us after a base",
        "longer than 32 bits of us",
        "before the base",
        "displayTimeUnit ns",
        "displayTimeUnit ms",
    ],
)
def test_a_time_is_exact_to_the_nanosecond(
    tmp_path: Path, head: str, ts: str, dur: str, start_ns: int, dur_ns: int
) -> None:
    path = write(tmp_path / "t.json", document(host("cpu_op", "op", ts, dur), head=head))
    assert rows(path, STARTS_AND_LENGTHS) == [(start_ns, dur_ns)]


def test_the_unit_to_display_changes_no_number_wherever_it_stands(tmp_path: Path) -> None:
    events = (kernel("a", "100.125", "0.3"), kernel("b", "100.425", "0.2"))
    told = [
        write(tmp_path / f"{number}.json", document(*events, **where))
        for number, where in enumerate(
            ({}, {"head": '"displayTimeUnit": "ms"'}, {"tail": ', "displayTimeUnit": "ns"'})
        )
    ]
    assert {tuple(rows(path, STARTS_AND_LENGTHS)) for path in told} == {
        ((100_125, 300), (100_425, 200))
    }


def test_files_with_different_bases_share_one_clock(tmp_path: Path) -> None:
    """A job over the turn of a quarter: each file counts from the base that it names."""
    paths = [
        write(
            tmp_path / f"r{rank}.json",
            document(
                host("cpu_op", "op", ts, 1),
                head=f'{rank_of(rank)}, "baseTimeNanoseconds": {base_ns}',
            ),
        )
        for rank, base_ns, ts in (
            (0, 1_700_000_000_000_000_000, 7_000_005),
            (1, 1_700_000_007_000_000_000, 25),
        )
    ]
    assert rows(paths, "SELECT rank, ts FROM slice ORDER BY rank") == [(0, 0), (1, 20_000)]


def test_rows_without_a_usable_time_are_left_out_and_counted(tmp_path: Path) -> None:
    whole = host("cpu_op", "kept", 5, 1)
    bad = [host("cpu_op", "lost", ts, 1) for ts in ("1e40", "-1e40", "null", '"NaN"', "1e999999")]
    path = write(tmp_path / "t.json", document(*bad, whole))
    with reading(path) as run:
        assert run.store.rows("SELECT name FROM slice") == [("kept",)]
        found = issues(run)
        assert found.get("event_without_time", 0) + found.get("event_unreadable", 0) == len(bad)


def test_durations_below_zero_or_missing_are_zero_and_counted(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.json",
        document(
            host("cpu_op", "negative", 1, -3),
            host("cpu_op", "unfinished", 2, "null"),
            host("cpu_op", "absurd", 3, "1e40"),
            host("cpu_op", "fine", 4, 2),
        ),
    )
    with reading(path) as run:
        assert run.store.rows("SELECT name, dur, repair FROM slice ORDER BY ts") == [
            ("negative", 0, "clamped"),
            ("unfinished", 0, "unfinished"),
            ("absurd", 0, "unfinished"),
            ("fine", 2000, None),
        ]
        assert issues(run)["negative_duration"] == 1
        assert issues(run)["missing_duration"] == 2


def test_ids_of_64_bits_are_kept_and_link(tmp_path: Path) -> None:
    big = 2**64 - 1
    path = write(
        tmp_path / "t.json",
        document(
            host("cuda_runtime", "launch", 1, 2, correlation=big, **{"External id": big - 1}),
            kernel("k", 10, 2, correlation=big),
            host("cuda_runtime", "launch", 4, 2, correlation=str(big - 2)),
            kernel("as_text", 20, 2, correlation=str(big - 2)),
            kernel("too_big", 30, 2, correlation=2**64),
        ),
    )
    assert rows(
        path,
        "SELECT k.name, c.correlation, c.external_id FROM kernel k"
        " LEFT JOIN slice c ON c.id = k.runtime_id ORDER BY k.ts",
    ) == [("k", big, big - 1), ("as_text", big - 2, None), ("too_big", None, None)]
