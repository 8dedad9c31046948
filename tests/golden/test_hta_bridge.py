"""HTA's answers on the store: to the letter of its own parser, or to the nanosecond.

The traces lie in the folder `shared/` beside the checkout. What HTA computes from exact times is
held against `tests.oracles.hta`, which counts whole nanoseconds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ingest.pipeline import IngestOptions
from replay.bridge.hta import trace_analysis
from tests.oracles import hta as oracle

pytest.importorskip("hta", reason="comes with the extra `hta`")
pd = pytest.importorskip("pandas", reason="comes with the extra `hta`")

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
pytestmark = [
    pytest.mark.skipif(not TRACES.is_dir(), reason="no folder shared/ beside the checkout"),
    pytest.mark.filterwarnings("ignore"),  # of pandas, about what HTA does
]

RUNS = {
    "h100": [f"h100x4_torchtitan_fsdp_A/rank{rank}.json.gz" for rank in range(4)],
    "v100": [f"v100x4_torchrec_fp32/rank{rank}.json.gz" for rank in range(4)],
    "a100": ["single/a100_nccl_metadata_rank0.json.gz"],
    "mi300": ["single/mi300_resnet_ddp.json.gz"],
}
GRID_NS = 0.07
"""Exact times are this close; see `replay.bridge.times`."""
NUMBERED_ANEW = ["index", "index_correlation"]
SORTED_BY = ["ts", "dur", "name", "correlation"]
Frame = Analysis = Answer = Any  # pandas and hta have no types


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """The same run three times."""

    run: str
    paths: list[Path]
    theirs: Analysis
    """By HTA's own parser."""
    rounded: Analysis
    exact: Analysis

    @property
    def ranks(self) -> list[int]:
        return list(range(len(self.paths)))

    def device_offset(self, rank: int) -> int:
        """Added to device times of a rank by the store, ns."""
        return int(self.exact.t.get_raw_trace_for_one_rank.files[rank].device_offset_ns)


@pytest.fixture(scope="module", params=RUNS)
def read(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Readings:
    paths = [TRACES / name for name in RUNS[request.param]]
    options = IngestOptions(cache_dir=tmp_path_factory.mktemp("stores"))
    return Readings(
        run=request.param,
        paths=paths,
        theirs=_own_parser(paths),
        rounded=trace_analysis(paths, options=options, round_like_hta=True),
        exact=trace_analysis(paths, options=options),
    )


def _own_parser(paths: list[Path]) -> Analysis:
    """In this process: HTA would fork one for each rank."""
    from hta.common.trace import Trace
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis.__new__(TraceAnalysis)
    analysis.t = Trace({rank: str(path) for rank, path in enumerate(paths)})
    analysis.t.load_traces(use_multiprocessing=False)
    return analysis


def _rows(analysis: Analysis, rank: int) -> Frame:
    """All rows of a rank in an order that does not rest on the file, with words for symbols."""
    frame = analysis.t.get_trace(rank).copy()
    words = analysis.t.symbol_table.get_sym_table()
    for column in ("name", "cat"):
        frame[column] = [words[number] for number in frame[column]]
    partner = frame["index_correlation"].where(frame["index_correlation"] > 0)
    frame["partner_ts"] = frame["ts"].reindex(partner).to_numpy()
    return frame.sort_values(SORTED_BY).drop(columns=NUMBERED_ANEW).reset_index(drop=True)


def _ordered(answer: Answer) -> Answer:
    """The same answer in an order that does not rest on that of the file."""
    if not hasattr(answer, "columns"):
        return answer
    frame = answer.drop(columns=NUMBERED_ANEW, errors="ignore").reset_index()
    sortable = [
        column
        for column in frame.columns
        if column != "index" and not frame[column].map(lambda one: isinstance(one, list)).any()
    ]
    return frame.drop(columns="index", errors="ignore").sort_values(sortable, ignore_index=True)


def _same(ours: Answer, theirs: Answer) -> None:
    if hasattr(theirs, "columns"):
        pd.testing.assert_frame_equal(_ordered(ours), _ordered(theirs), check_dtype=False)
    else:
        assert ours == theirs


def test_rounded_rows_are_those_of_its_parser(read: Readings) -> None:
    for rank in read.ranks:
        ours, theirs = _rows(read.rounded, rank), _rows(read.theirs, rank)
        assert (theirs["partner_ts"].notna()).sum() > 800
        if read.run == "mi300":  # there the file holds the number as a text
            theirs["bytes"] = theirs["bytes"].astype("int32")
        pd.testing.assert_frame_equal(ours[theirs.columns], theirs)
    assert set(_rows(read.rounded, 0)) == set(_rows(read.theirs, 0))
    assert read.rounded.t.min_ts == read.theirs.t.min_ts
    assert read.rounded.t.meta_data == read.theirs.t.meta_data


METHODS: dict[str, Callable[[Analysis, list[int]], Answer]] = {
    "temporal_breakdown": lambda ta, _: ta.get_temporal_breakdown(visualize=False),
    "idle_time_breakdown": lambda ta, ranks: ta.get_idle_time_breakdown(
        ranks=ranks, visualize=False
    )[0],
    "gpu_kernel_types": lambda ta, _: ta.get_gpu_kernel_breakdown(visualize=False)[0],
    "gpu_kernels": lambda ta, _: ta.get_gpu_kernel_breakdown(visualize=False, num_kernels=999)[1],
    "comm_comp_overlap": lambda ta, _: ta.get_comm_comp_overlap(visualize=False),
    "launch_stats": lambda ta, ranks: pd.concat(
        frame.assign(rank=rank)
        for rank, frame in ta.get_cuda_kernel_launch_stats(ranks=ranks, visualize=False).items()
    ).reset_index(drop=True),
    "memory_bw": lambda ta, ranks: ta.get_memory_bw_summary(ranks=ranks),
    "blocked_on_full_queue": lambda ta, ranks: ta.get_time_spent_blocked_on_full_queue(
        ta.get_queue_length_time_series(ranks=ranks), max_queue_length=20
    ),
    "profiler_steps": lambda ta, _: ta.get_profiler_steps(),
    "gpu_annotations": lambda ta, _: ta.get_gpu_user_annotation_breakdown(visualize=False),
    "host_annotations": lambda ta, _: ta.get_gpu_user_annotation_breakdown(
        use_gpu_annotation=False, visualize=False
    ),
}


@pytest.mark.parametrize("method", METHODS)
def test_rounded_answers_are_those_of_its_parser(read: Readings, method: str) -> None:
    ask = METHODS[method]
    _same(ask(read.rounded, read.ranks), ask(read.theirs, read.ranks))


def test_rounded_queue_lengths_are_those_of_its_parser_after_each_instant(read: Readings) -> None:
    """Inside one microsecond its order of calls and kernels is that of an unstable sort."""

    def after_each_instant(analysis: Analysis) -> list[Frame]:
        series = analysis.get_queue_length_time_series(ranks=read.ranks)
        return [one.groupby(["stream", "ts"])["queue_length"].last() for one in series.values()]

    pairs = zip(after_each_instant(read.rounded), after_each_instant(read.theirs), strict=True)
    for ours, theirs in pairs:
        pd.testing.assert_series_equal(ours, theirs)


def test_the_critical_path_is_that_of_its_parser(read: Readings) -> None:
    def found(analysis: Analysis) -> tuple[bool, int, dict[str, float]]:
        graph, complete = analysis.critical_path_analysis(0, "ProfilerStep", 0)
        return complete, len(graph.critical_path_nodes), graph.summary().to_dict()

    assert found(read.rounded) == found(read.theirs)
    assert found(read.exact)[0]


def test_first_launches_of_an_operator_are_in_the_order_of_their_calls(
    read: Readings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two calls can start in the same microsecond, and the first one can be the shorter one."""
    from hta.analyzers.cuda_kernel_analysis import CudaKernelAnalysis

    if read.run == "v100":  # times that are whole, and a method that is slow
        monkeypatch.setattr(CudaKernelAnalysis, "visualize_aten_op_kernels_and_overhead", print)
        ours, theirs = (
            analysis.get_aten_op_kernels_and_delay()[0] for analysis in (read.rounded, read.theirs)
        )
        _same(ours, theirs)


def test_kernel_sequences_are_those_of_its_parser_where_it_has_any(
    read: Readings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its call stacks take no negative durations, as its rounding makes them."""
    from hta.analyzers.cuda_kernel_analysis import CudaKernelAnalysis

    def found(analysis: Analysis) -> Answer:
        return analysis.get_frequent_cuda_kernel_sequences("ProfilerStep", str(tmp_path))

    # what it writes is slow, and seen to in test_hta_small
    unwritten = "_overlay_frequent_patterns_with_trace"
    monkeypatch.setattr(CudaKernelAnalysis, unwritten, lambda *_: {"traceEvents": []})
    if LOST[read.run][0]:
        for analysis in (read.theirs, read.rounded):
            with pytest.raises(ValueError, match="Unexpected case"):
                found(analysis)
    else:
        _same(found(read.rounded), found(read.theirs))
    assert found(read.exact) is not None


def _near(ours_us: float, exact_ns: float, *, stamps: int) -> bool:
    """Of a sum over this many time stamps."""
    return abs(ours_us * 1000 - exact_ns) <= GRID_NS * stamps


def test_exact_temporal_breakdown_is_the_union_of_intervals(read: Readings) -> None:
    answer = read.exact.get_temporal_breakdown(visualize=False).set_index("rank")
    for rank, path in enumerate(read.paths):
        rows = oracle.read(path)
        for ours, expected in zip(answer.loc[rank], oracle.temporal(rows), strict=False):
            assert _near(ours, expected, stamps=2 * len(rows))


def test_exact_overlap_is_that_of_the_intervals(read: Readings) -> None:
    answer = read.exact.get_comm_comp_overlap(visualize=False).set_index("rank")
    for rank, path in enumerate(read.paths):
        expected = oracle.overlap(oracle.read(path))
        assert answer.loc[rank].item() == pytest.approx(expected, abs=0.0051)


def test_exact_kernel_types_lose_only_what_hta_cuts_off(read: Readings) -> None:
    """It truncates every piece of time between two changes to whole microseconds."""
    answer = read.exact.get_gpu_kernel_breakdown(visualize=False)[0]
    ours = {
        frozenset(kinds.split(" overlapping ")): total
        for kinds, total in zip(answer["kernel_type"], answer["sum"], strict=True)
    }
    expected: dict[frozenset[str], float] = {}
    pieces = 0
    for path in read.paths:
        rows = oracle.read(path)
        pieces += 2 * sum(row.stream != -1 for row in rows)
        for kinds, time in oracle.kinds(rows).items():
            expected[kinds] = expected.get(kinds, 0) + time / 1000
    assert ours.keys() == expected.keys()
    for kinds, time in expected.items():
        assert time - pieces <= ours[kinds] <= time + 0.001


def test_exact_launches_have_their_nanoseconds(read: Readings) -> None:
    answer = read.exact.get_cuda_kernel_launch_stats(ranks=read.ranks, visualize=False)
    for rank, path in enumerate(read.paths):
        frame = answer[rank]
        times = (frame[["cpu_duration", "gpu_duration", "launch_delay"]] * 1000).round()
        ours = sorted(
            (int(key), *map(int, row))
            for key, row in zip(frame["correlation"], times.to_numpy(), strict=True)
        )
        assert ours == oracle.launches(oracle.read(path), read.device_offset(rank))


def test_exact_idle_times_are_those_of_the_gaps(read: Readings) -> None:
    answer = read.exact.get_idle_time_breakdown(ranks=read.ranks, visualize=False)[0]
    for rank, path in enumerate(read.paths):
        expected = oracle.idle(oracle.read(path), read.device_offset(rank))
        for _, row in answer[answer["rank"] == rank].iterrows():
            gap_us = expected.pop((row["stream"], row["idle_category"]), 0) / 1000
            assert row["idle_time"] == pytest.approx(gap_us, abs=0.0051)
        assert not any(expected.values())


LOST = {"h100": (817, 8440), "v100": (0, 4486), "a100": (575, 17952), "mi300": (25007, 48231)}
"""Of rank 0: rows whose duration is below zero once rounded, of all."""


def test_rounding_turns_short_rows_negative_and_exact_times_do_not(read: Readings) -> None:
    negative = (read.theirs.t.get_trace(0)["dur"] < 0).sum()
    assert (negative, len(read.theirs.t.get_trace(0))) == LOST[read.run]
    assert (read.exact.t.get_trace(0)["dur"] >= 0).all()


def test_exact_times_match_kernels_to_annotations_where_rounded_ones_cannot(
    read: Readings,
) -> None:
    """A negative duration is no interval."""
    if read.run in ("h100", "mi300"):
        for analysis in (read.theirs, read.rounded):
            with pytest.raises(ValueError, match="left side of interval must be <= right side"):
                analysis.get_gpu_kernels_with_user_annotations(0)
        found = read.exact.get_gpu_kernels_with_user_annotations(0)
        assert {"h100": 807, "mi300": 2685}[read.run] == len(found)
    else:
        _same(
            read.rounded.get_gpu_kernels_with_user_annotations(0) is None,
            read.theirs.get_gpu_kernels_with_user_annotations(0) is None,
        )


def test_kernels_without_a_call_are_not_joined_to_the_first_row_of_the_file(
    tmp_path: Path,
) -> None:
    """HTA marks them with 0, which is also the index of a row: 64 kernels here are "on time"."""
    path = TRACES / "v100x8_dlrm" / "rank1.json.gz"
    theirs = _own_parser([path])
    ours = trace_analysis(path, options=IngestOptions(cache_dir=tmp_path), round_like_hta=True)
    (rank,) = ours.t.get_ranks()
    for analysis, late_us in ((theirs, 17449), (ours, 17356)):
        frame, _ = analysis.get_idle_time_breakdown(
            ranks=[analysis.t.get_ranks()[0]], streams=[7], visualize=False
        )
        assert frame.set_index("idle_category").loc["host_wait", "idle_time"] == late_us
    frame = ours.t.get_trace(rank)
    assert ((frame["stream"] == 7) & (frame["index_correlation"] == 0)).sum() == 64


def test_stragglers_are_those_of_its_parser(tmp_path: Path) -> None:
    paths = [TRACES / "v100x8_dlrm" / f"rank{rank}.json.gz" for rank in range(8)]
    options = IngestOptions(cache_dir=tmp_path)
    ours = trace_analysis(paths, options=options, round_like_hta=True)
    assert ours.get_potential_stragglers() == [2, 7]
    assert _own_parser(paths).get_potential_stragglers() == [2, 7]
