"""What HTA sees of a small run: its columns, its files, and what it says when it is absent."""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ingest.errors import UsageError
from ingest.pipeline import IngestOptions, open_run
from replay.bridge.hta import analysis_of, trace_analysis
from tests.kineto import KinetoFile

Analysis = Any  # hta has no types
UNCACHED = IngestOptions(cache=False)
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # of pandas, about HTA


def _job(folder: Path) -> list[Path]:
    """Two ranks, two steps, kernels of a third of a microsecond that touch each other."""
    paths = []
    for rank in (0, 1):
        file = KinetoFile(rank=rank, ranks=(0, 1))
        for number in range(2):
            at = 1000.0 * number
            file.step(number, (at, at + 900))
            file.op("aten::mm", (at + 1, at + 40.5), **{"Input Dims": [[2, 3], [3, 4]]})
            for piece in range(10):
                start = at + 100 + piece * 0.333
                call = (at + 2 + piece, at + 2.5 + piece)
                file.launched("gemm", call, (round(start, 3), round(start + 0.333, 3)))
            file.all_reduce(number, (at + 20, at + 21), (at + 102.5, at + 110.125))
            file.copy("DtoH (Device -> Pageable)", (at + 30, at + 31), (at + 120, at + 120.4))
        file.rows.insert(0, {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)"})
        file.rows[0] |= {"pid": "Spans", "tid": "PyTorch Profiler", "ts": 0, "dur": 2000}
        paths.append(file.write(folder / f"rank{rank}.json"))
    return paths


@pytest.fixture
def analysis(tmp_path: Path) -> Analysis:
    pytest.importorskip("hta", reason="comes with the extra `hta`")
    _job(tmp_path)
    return trace_analysis(tmp_path, options=UNCACHED)


def test_one_path_is_a_run_and_its_ranks_are_those_recorded(
    analysis: Analysis, tmp_path: Path
) -> None:
    assert analysis.t.get_ranks() == [0, 1]
    assert analysis.t.trace_files == {rank: f"{tmp_path}/rank{rank}.json" for rank in (0, 1)}
    assert analysis.t.is_parsed
    assert analysis.t.meta_data[1]["distributedInfo"]["rank"] == 1


def test_times_are_microseconds_from_the_first_row(analysis: Analysis) -> None:
    frame = analysis.t.get_trace(0)
    assert frame["ts"].min() == 0
    assert (frame["end"] == frame["ts"] + frame["dur"]).all()
    assert analysis.t.get_trace_start_unixtime_ns(0) == 1_900_000_000_000_000_000


def test_rows_that_touch_stay_touching_so_nothing_is_idle_between_them(analysis: Analysis) -> None:
    """33.3 and 0.333 us are no floats; sums of them part rows that touch."""
    (answer,) = analysis.get_temporal_breakdown(visualize=False).query("rank == 0").to_numpy()
    idle, compute, other, total = answer[1:5]
    assert total == pytest.approx(20.4, abs=1e-4)
    assert compute == pytest.approx(3.33, abs=1e-4)
    assert idle == pytest.approx(20.4 - 10.125 - 0.4, abs=1e-4)
    assert idle + compute + other == total


def test_the_last_step_counts_when_asked_for(analysis: Analysis, tmp_path: Path) -> None:
    whole = trace_analysis(tmp_path, options=UNCACHED, include_last_profiler_step=True)
    assert analysis.get_profiler_steps() == [0]
    assert whole.get_profiler_steps() == [0, 1]


def test_arguments_are_columns_with_defaults(analysis: Analysis) -> None:
    words = analysis.t.symbol_table.get_sym_table()
    frame = analysis.t.get_trace(0)
    frame = frame.set_index(frame["name"].map(lambda number: words[number]))
    assert frame.loc["aten::mm", "input_dims"] == [[2, 3], [3, 4]]
    assert frame.loc["aten::mm", "stream"] == -1
    assert frame.loc["cudaMemcpyAsync", "input_dims"] == "-1"
    assert set(frame.loc["gemm", "stream"]) == {7}
    assert set(frame.loc["gemm", "iteration"]) == {0}


def test_own_arguments_of_the_configuration_become_columns(tmp_path: Path) -> None:
    pytest.importorskip("hta", reason="comes with the extra `hta`")
    from hta.configs.parser_config import ParserConfig

    before = ParserConfig.get_default_cfg()
    wanted = before.clone()
    wanted.add_args(ParserConfig.ARGS_COMMUNICATION)
    ParserConfig.set_default_cfg(wanted)
    try:
        analysis = trace_analysis(_job(tmp_path), options=UNCACHED)
    finally:
        ParserConfig.set_default_cfg(before)
    frame = analysis.t.get_trace(0)
    assert set(frame["collective_name"]) == {"", "allreduce"}
    assert frame["in_msg_nelems"].max() == 1000
    assert frame["group_size"].dtype.kind == "i"


def test_all_arguments_become_columns_when_asked_for(tmp_path: Path) -> None:
    pytest.importorskip("hta", reason="comes with the extra `hta`")
    from hta.configs.parser_config import ParserConfig

    before = ParserConfig.get_default_cfg()
    ParserConfig.set_default_cfg(before.clone().set_parse_all_args(parse_all_args=True))
    try:
        analysis = trace_analysis(_job(tmp_path), options=UNCACHED)
    finally:
        ParserConfig.set_default_cfg(before)
    assert {"process_group_ranks", "seq", "stream"} <= set(analysis.t.get_trace(0))


def test_hta_can_mark_the_critical_path_in_a_trace_of_the_store(
    analysis: Analysis, tmp_path: Path
) -> None:
    """Its positions in the list of events are those of its index."""
    graph, _ = analysis.critical_path_analysis(0, "ProfilerStep", 0)
    written = analysis.overlay_critical_path_analysis(
        0, graph, str(tmp_path / "out"), only_show_critical_events=False
    )
    events = json.loads(gzip.decompress(Path(written).read_bytes()))["traceEvents"]
    words = analysis.t.symbol_table.get_sym_table()
    rows = [event for event in events if event["ph"] == "X"]
    marked = [event["name"] for event in rows if event["args"].get("critical")]
    expected = analysis.t.get_trace(0).loc[sorted(graph.critical_path_events_set), "name"]
    assert marked == [words[number] for number in expected]
    assert marked


def test_hta_can_mark_frequent_sequences_in_a_trace_of_the_store(
    analysis: Analysis, tmp_path: Path
) -> None:
    found = analysis.get_frequent_cuda_kernel_sequences("aten::mm", str(tmp_path))
    assert found["count"].tolist() == [1]
    written = tmp_path / "overlaid_rank0.json"
    events = json.loads(gzip.decompress(written.read_bytes()))["traceEvents"]
    marked = [event["name"] for event in events if "Patterns" in event.get("args", {})]
    assert marked.count("gemm") == 10
    assert "aten::mm" in marked


def test_hta_can_write_counters_beside_the_trace(analysis: Analysis, tmp_path: Path) -> None:
    analysis.generate_trace_with_counters(ranks=[1])
    written = (tmp_path / "rank1_with_counters.json").read_bytes()
    events = json.loads(gzip.decompress(written))["traceEvents"]
    rows = [event for event in events if event["ph"] == "X"]
    lengths = [event for event in events if event["name"] == "Queue Length"]
    assert (len(rows), len(lengths)) == (53, 24)
    starts = {event["ts"] for event in rows}
    assert {round(event["ts"], 3) for event in lengths} <= starts


def test_a_run_that_is_open_serves_too(tmp_path: Path) -> None:
    pytest.importorskip("hta", reason="comes with the extra `hta`")
    with open_run(_job(tmp_path), options=UNCACHED) as run:
        assert analysis_of(run, round_like_hta=True).get_profiler_steps() == [0]


def test_a_file_that_cannot_be_read_is_told_and_left_out(tmp_path: Path) -> None:
    pytest.importorskip("hta", reason="comes with the extra `hta`")
    paths = _job(tmp_path)
    paths[1].write_text("{", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"left out: .*rank1\.json"):
        analysis = trace_analysis(paths, options=UNCACHED)
    assert analysis.t.get_ranks() == [0]


def test_without_hta_a_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hta.trace_analysis", None)
    with pytest.raises(UsageError, match="HolisticTraceAnalysis cannot be imported") as caught:
        trace_analysis("anything.json")
    assert caught.value.hint == "pip install 'trace-replay[hta]'"
