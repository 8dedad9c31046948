"""Tables as files of other programs."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from ingest.errors import UsageError
from ingest.pipeline import IngestOptions
from replay import api
from tests.kineto import KinetoFile

NO_CACHE = IngestOptions(cache=False)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Two products in a step."""
    file = KinetoFile()
    file.step(1, (0, 100))
    file.launched("gemm", (5, 8), (10, 40))
    file.launched("gemm", (15, 18), (40, 75.5))
    return file.write(tmp_path / "rank0.json")


@pytest.mark.parametrize(
    ("suffix", "reader"),
    [(".parquet", pl.read_parquet), (".arrow", pl.read_ipc), (".csv", pl.read_csv)],
)
def test_a_table_reads_back_as_it_is(
    trace: Path, tmp_path: Path, suffix: str, reader: Callable[[Path], pl.DataFrame]
) -> None:
    output = tmp_path / f"kernel{suffix}"
    made = api.export_tables([trace], "kernel", output, options=NO_CACHE)
    (written,) = made.written
    assert (written.rows, written.size_bytes) == (2, output.stat().st_size)
    with api.open_run(trace, options=NO_CACHE) as run:
        expected = run.table("kernel").collect()
    columns = ["id", "name", "ts", "dur", "stream"]
    assert reader(output).select(columns).rows() == expected.select(columns).rows()


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_types_are_those_of_the_tables(trace: Path, tmp_path: Path, suffix: str) -> None:
    output = tmp_path / f"t{suffix}"
    reader = {".parquet": pl.read_parquet, ".arrow": pl.read_ipc}[suffix]
    with api.open_run(trace, options=NO_CACHE) as run:
        for table in ("kernel", "kernel_summary", "step_breakdown"):
            api.export_tables([trace], table, output, options=NO_CACHE)
            assert reader(output).schema == run.table(table).collect().schema


def test_all_tables_go_to_a_folder_with_those_of_the_replay(trace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    made = api.export_tables([trace], "all", folder, options=NO_CACHE)
    with api.open_run(trace, options=NO_CACHE) as run:
        assert [table.name for table in made.written] == list(run.tables)
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        f"{table.name}.parquet" for table in made.written
    )
    assert len(pl.read_parquet(folder / "task.parquet")) > 0
    assert made.left_out == ()


@pytest.mark.parametrize(
    ("table", "name", "word"),
    [
        ("kernels", "k.parquet", "no table `kernels`"),
        ("kernel", "k.xlsx", "which form"),
        ("all", "k.parquet", "is no folder"),
        ("kernel", "nowhere/k.parquet", "is no folder"),
        ("kernel", "rank0.json", "is the trace itself"),
    ],
)
def test_what_cannot_be_written_is_refused(
    trace: Path, tmp_path: Path, table: str, name: str, word: str
) -> None:
    before = trace.read_bytes()
    with pytest.raises(UsageError, match=word):
        api.export_tables([trace], table, tmp_path / name, options=NO_CACHE)
    assert trace.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["rank0.json"]
