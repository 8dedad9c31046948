"""Each view answers its question on a trace that is small enough to do the sum by hand."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

from ingest.pipeline import Run
from ingest.store import SQL, VIEW_FILES, Store
from tests.kineto import AUTOGRAD, NETWORK, KinetoFile
from tests.reading import Row, document, host, kernel, reading, rows, write

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
ENGINE = "autograd::engine::evaluate_function: MmBackward0"
OPTIMIZER = "Optimizer.step#SGD.step"


def _training(folder: Path) -> list[Path]:
    """One step of one rank, us.

    host     op 2-26 (launches at 5, 14, 20), autograd 62-70, loader 70-75, optimizer 76-90 (at 80)
    compute  gemm 12-32, late 86-96
    network  all-reduce 27-50
    copies   45-60
    """
    file = KinetoFile()
    file.step(1, (0, 100))
    file.op("aten::linear", (2, 26), **{"Input Dims": [[2, 3]], "Input type": ["float"]})
    file.op("aten::addmm", (4, 12), **{"Input Dims": [[3]], "Input type": ["float"]})
    file.launched("gemm", (5, 10), (12, 32))
    file.all_reduce(1, (14, 18), (27, 50))
    file.copy("DtoH (Device -> Pinned)", (20, 24), (45, 60))
    file.op(ENGINE, (62, 70), thread=AUTOGRAD)
    file.annotation(LOADER, (70, 75))
    file.annotation(OPTIMIZER, (76, 90))
    file.launched("late", (80, 84), (86, 96))
    return [file.write(folder / "rank0.json")]


def _running_ahead(folder: Path) -> list[Path]:
    """A host that is done with its steps at 50 and 100; their kernels end at 70 and 130."""
    file = KinetoFile()
    file.step(1, (0, 50))
    file.launched("a", (40, 45), (48, 70))
    file.step(2, (50, 100))
    file.launched("b", (90, 95), (100, 130))
    return [file.write(folder / "rank0.json")]


def _cut_off(folder: Path) -> list[Path]:
    """A step whose kernel ends at 70, and one that the recording ends in before it has any work."""
    file = KinetoFile()
    file.step(1, (0, 50))
    file.launched("a", (40, 45), (48, 70))
    file.step(2, (50, 51))
    return [file.write(folder / "rank0.json")]


def _two_ranks(folder: Path) -> list[Path]:
    """Three all-reduces of 4,000 bytes: rank 1 is late by 20 us, rank 0 by 10 us, then nobody."""
    runs = {0: ((10, 40), (60, 80), (100, 120)), 1: ((30, 40), (50, 80), (100, 120))}
    calls = {0: ((2, 5), (55, 58), (85, 88)), 1: ((2, 5), (20, 23), (85, 88))}
    written = []
    for rank in (0, 1):
        file = KinetoFile(rank=rank, ranks=(0, 1))
        file.step(1, (0, 130))
        for number in range(3):
            file.all_reduce(number, calls[rank][number], runs[rank][number])
        written.append(file.write(folder / f"rank{rank}.json"))
    return written


def _modules(folder: Path) -> list[Path]:
    """A network with one layer; it launches 10 us in the layer and 5 us outside of it."""
    frames = [
        ("nn.Module: Net_0", 0, 50),
        ("net.py(3): forward", 2, 46),
        ("nn.Module: Linear_0", 5, 35),
    ]
    events = [host("python_function", name, ts, dur) for name, ts, dur in frames]
    events += [
        host("cuda_runtime", "cudaLaunchKernel", 10, 5, correlation=1),
        kernel("gemm", 20, 10, correlation=1),
        host("cuda_runtime", "cudaLaunchKernel", 42, 4, correlation=2),
        kernel("ncclDevKernel_AllReduce_Sum", 60, 5, stream=NETWORK, correlation=2),
    ]
    return [write(folder / "t.json", document(*events))]


def _copies(folder: Path) -> list[Path]:
    """A copy of 30,000 bytes in 10 us, half of it under a kernel, and a memset."""
    copy = kernel("Memcpy HtoD (Pageable -> Device)", 10, 10, stream=9, bytes=30_000)
    zero = kernel("Memset (Device)", 30, 2, bytes=64)
    events = [
        kernel("gemm", 5, 10),
        copy.replace('"cat": "kernel"', '"cat": "gpu_memcpy"'),
        zero.replace('"cat": "kernel"', '"cat": "gpu_memset"'),
    ]
    return [write(folder / "t.json", document(*events))]


Trace = Callable[[Path], list[Path]]
Ask = Callable[[Trace, str], list[Row]]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Rows of a query on a trace; each trace is read once for all tests."""
    with ExitStack() as opened:

        @cache
        def run(trace: Trace) -> Run:
            return opened.enter_context(reading(*trace(tmp_path_factory.mktemp("trace"))))

        yield lambda trace, query: run(trace).store.rows(query)


class Case(NamedTuple):
    """The trace, the view, what is asked of it and the answer."""

    view: str
    trace: Trace
    query: str
    expect: list[Row]


CASES = (
    Case(
        "step_window",
        _running_ahead,
        "SELECT step, ts, dur, is_recorded FROM step_window ORDER BY step",
        [(1, 0, 70_000, True), (2, 70_000, 60_000, True)],
    ),
    Case(
        "step_window",
        _cut_off,
        "SELECT step, ts, dur, is_recorded FROM step_window ORDER BY step",
        [(1, 0, 70_000, True)],
    ),
    Case(
        "step_window",
        _copies,
        "SELECT step, ts, dur, is_recorded FROM step_window",
        [(0, 0, 27_000, False)],
    ),
    Case(
        "gpu_segment",
        _training,
        "SELECT ts, dur, state, has_comm, only_waits FROM gpu_segment ORDER BY ts",
        [
            (0, 12_000, "idle", False, False),
            (12_000, 15_000, "compute", False, False),
            (27_000, 5_000, "compute", True, False),
            (32_000, 13_000, "exposed_comm", True, False),
            (45_000, 5_000, "exposed_comm", True, False),
            (50_000, 10_000, "exposed_memcpy", False, False),
            (60_000, 26_000, "idle", False, False),
            (86_000, 10_000, "compute", False, False),
            (96_000, 4_000, "idle", False, False),
        ],
    ),
    Case(
        "gpu_timeline",
        _training,
        "SELECT * FROM gpu_timeline",
        [(0, 0, 1, 0, 100_000, 30_000, 18_000, 10_000, 42_000, 0, 23_000, 5 / 23, 0)],
    ),
    Case(
        "gpu_timeline",
        _two_ranks,
        "SELECT rank, exposed_comm_dur, exposed_wait_dur, idle_dur FROM gpu_timeline ORDER BY rank",
        [(0, 70_000, 20_000, 60_000), (1, 60_000, 10_000, 70_000)],
    ),
    Case(
        "gpu_timeline",
        _running_ahead,
        "SELECT step, compute_dur, idle_dur, total_dur FROM gpu_timeline ORDER BY step",
        [(1, 22_000, 48_000, 70_000), (2, 30_000, 30_000, 60_000)],
    ),
    Case(
        "step_breakdown",
        _training,
        "SELECT * FROM step_breakdown",
        [(0, 1, 100_000, 30_000, 18_000, 10_000, 0, 9_000, 5_000, 13_000, 15_000)],
    ),
    Case(
        "gpu_idle",
        _training,
        "SELECT g.step, g.ts, g.dur, g.cause, p.name, n.name, s.name FROM gpu_idle g"
        " LEFT JOIN kernel p ON p.id = g.prev_kernel_id"
        " LEFT JOIN kernel n ON n.id = g.next_kernel_id"
        " LEFT JOIN slice s ON s.id = g.cpu_slice_id ORDER BY g.ts",
        [
            (1, 0, 12_000, "launch_overhead", None, "gemm", "cudaLaunchKernel"),
            (1, 60_000, 26_000, "dataloader", "Memcpy DtoH (Device -> Pinned)", "late", LOADER),
            (1, 96_000, 4_000, "unknown", "late", None, "ProfilerStep#1"),
        ],
    ),
    Case(
        "queue_depth",
        _training,
        "SELECT ts, dur, stream, depth, stream_depth, is_full FROM queue_depth ORDER BY ts",
        [
            (5_000, 5_000, 7, 1, 1, False),
            (14_000, 4_000, NETWORK, 1, 1, False),
            (20_000, 4_000, 7, 2, 1, False),
            (80_000, 4_000, 7, 1, 1, False),
        ],
    ),
    Case(
        "overlap_matrix",
        _training,
        "SELECT step, class_a, class_b, overlap_dur, class_a_dur, overlap_frac FROM overlap_matrix"
        " ORDER BY class_a, class_b",
        [
            (1, "collective", "gemm", 5_000, 23_000, 5 / 23),
            (1, "collective", "memcpy", 5_000, 23_000, 5 / 23),
            (1, "gemm", "collective", 5_000, 20_000, 1 / 4),
            (1, "memcpy", "collective", 5_000, 15_000, 1 / 3),
        ],
    ),
    Case(
        "kernel_summary",
        _two_ranks,
        "SELECT class, instances, total_dur, time_frac, avg_dur, med_dur, min_dur, max_dur, p95_dur"
        " FROM kernel_summary",
        [("collective", 6, 130_000, 1, 130_000 / 6, 20_000, 10_000, 30_000, 30_000)],
    ),
    Case(
        "kernel_step_summary",
        _running_ahead,
        "SELECT rank, step, short_name, class, instances, total_dur, time_frac"
        " FROM kernel_step_summary ORDER BY step",
        [(0, 1, "a", "other", 1, 22_000, 1), (0, 2, "b", "other", 1, 30_000, 1)],
    ),
    Case(
        "kernel_exposure",
        _training,
        "SELECT k.class, k.dur, e.exposed_dur FROM kernel_exposure e JOIN kernel k USING (id)"
        " ORDER BY k.ts",
        [
            ("gemm", 20_000, 20_000),
            ("collective", 23_000, 18_000),
            ("memcpy", 15_000, 10_000),
            ("other", 10_000, 10_000),
        ],
    ),
    Case(
        "op_summary",
        _training,
        "SELECT name, calls, cpu_self_dur, cpu_total_dur, device_self_dur, device_total_dur"
        " FROM op_summary ORDER BY name",
        [
            ("aten::addmm", 1, 3_000, 8_000, 20_000, 20_000),
            ("aten::linear", 1, 8_000, 24_000, 38_000, 58_000),
            (ENGINE, 1, 8_000, 8_000, 0, 0),
        ],
    ),
    Case(
        "op_shape_summary",
        _training,
        "SELECT name, input_dims, input_type, calls, device_total_dur FROM op_shape_summary"
        " WHERE device_total_dur > 0 ORDER BY name",
        [
            ("aten::addmm", "[[3]]", '["float"]', 1, 20_000),
            ("aten::linear", "[[2, 3]]", '["float"]', 1, 58_000),
        ],
    ),
    Case(
        "module_summary",
        _modules,
        "SELECT path, name, calls, cpu_total_dur, device_self_dur, device_total_dur,"
        " exposed_comm_dur FROM module_summary ORDER BY path",
        [
            ("Net_0", "nn.Module: Net_0", 1, 50_000, 5_000, 15_000, 5_000),
            ("Net_0.Linear_0", "nn.Module: Linear_0", 1, 35_000, 10_000, 10_000, 0),
        ],
    ),
    Case(
        "python_hot",
        _modules,
        "SELECT name, calls, self_dur, self_frac, total_dur, is_module FROM python_hot"
        " ORDER BY self_dur DESC",
        [
            ("nn.Module: Linear_0", 1, 30_000, 30 / 41, 35_000, True),
            ("net.py(3): forward", 1, 7_000, 7 / 41, 46_000, False),
            ("nn.Module: Net_0", 1, 4_000, 4 / 41, 50_000, True),
        ],
    ),
    Case(
        "annotation_summary",
        _training,
        "SELECT name, calls, cpu_total_dur, device_self_dur, device_total_dur, exposed_comm_dur"
        " FROM annotation_summary ORDER BY name",
        [
            (OPTIMIZER, 1, 14_000, 10_000, 10_000, 0),
            ("ProfilerStep#1", 1, 100_000, 0, 68_000, 18_000),
            (LOADER, 1, 5_000, 0, 0, 0),
        ],
    ),
    Case(
        "launch_summary",
        _training,
        "SELECT api, kind, calls, device_rows, total_dur, queue_dur, med_queue_dur, queued_frac,"
        " kernel_dur FROM launch_summary ORDER BY api",
        [
            ("cudaLaunchKernel", "launch", 3, 3, 13_000, 13_000, 2_000, 0, 53_000),
            ("cudaMemcpyAsync", "memcpy", 1, 1, 4_000, 21_000, 21_000, 1, 15_000),
        ],
    ),
    Case(
        "memcpy_summary",
        _copies,
        "SELECT direction, is_pageable, copies, bytes, total_dur, gbps, exposed_dur"
        " FROM memcpy_summary ORDER BY direction",
        [
            ("HtoD", True, 1, 30_000, 10_000, 3, 5_000),
            ("memset", False, 1, 64, 2_000, 0.032, 2_000),
        ],
    ),
    Case(
        "collective_summary",
        _two_ranks,
        "SELECT kind, group_size, dtype, msg_bytes, operations, med_transfer_dur, med_busbw,"
        " p95_busbw, skew_dur, transfer_dur, wait_dur, exposed_dur FROM collective_summary",
        [
            (
                "all_reduce",
                2,
                "Float",
                4_000,
                3,
                20_000,
                0.2,
                pytest.approx(0.38),
                30_000,
                100_000,
                30_000,
                130_000,
            )
        ],
    ),
    Case(
        "collective_skew",
        _two_ranks,
        "SELECT seq, step, ts, n_seen, first_rank, last_rank, skew_dur, wait_dur, is_resolvable"
        " FROM collective_skew WHERE skew_dur > 0 ORDER BY ts",
        [
            (0, 1, 10_000, 2, 0, 1, 20_000, 20_000, True),
            (1, 1, 50_000, 2, 1, 0, 10_000, 10_000, True),
        ],
    ),
    Case(
        "collective_late",
        _two_ranks,
        "SELECT c.seq, l.rank, l.waiting, l.wait_dur, l.kernel_id = m.kernel_id"
        " FROM collective_late AS l JOIN collective AS c USING (coll_id)"
        " JOIN collective_rank AS m ON m.coll_id = l.coll_id AND m.rank = l.rank ORDER BY c.seq",
        [(0, 1, 1, 20_000, True), (1, 0, 1, 10_000, True), (2, 1, 0, 0, True)],
    ),
    Case(
        "collective_exposure",
        _two_ranks,
        "SELECT c.seq, e.rank, e.step, e.comm_dur, e.hidden_dur, e.exposed_dur, e.exposed_wait_dur"
        " FROM collective_exposure AS e JOIN collective_rank AS m ON m.kernel_id = e.kernel_id"
        " JOIN collective AS c ON c.coll_id = m.coll_id ORDER BY c.seq, e.rank",
        [
            (0, 0, 1, 30_000, 0, 30_000, 20_000),
            (0, 1, 1, 10_000, 0, 10_000, 0),
            (1, 0, 1, 20_000, 0, 20_000, 0),
            (1, 1, 1, 30_000, 0, 30_000, 10_000),
            (2, 0, 1, 20_000, 0, 20_000, 0),
            (2, 1, 1, 20_000, 0, 20_000, 0),
        ],
    ),
    Case(
        "collective_exposure",
        _training,
        "SELECT step, comm_dur, hidden_dur, exposed_dur, exposed_wait_dur FROM collective_exposure",
        [(1, 23_000, 5_000, 18_000, 0)],
    ),
    Case(
        "collective_wait",
        _two_ranks,
        "SELECT c.seq, w.rank, w.late_rank, w.wait_dur, w.late_kernel_id = m.kernel_id"
        " FROM collective_wait AS w JOIN collective AS c USING (coll_id)"
        " JOIN collective_rank AS m ON m.coll_id = w.coll_id AND m.rank = w.late_rank"
        " ORDER BY c.seq",
        [(0, 0, 1, 20_000, True), (1, 1, 0, 10_000, True)],
    ),
    Case(
        "straggler",
        _two_ranks,
        "SELECT * FROM straggler",
        [(0, 3, 1, 1 / 3, 10_000, 20_000, 10_000), (1, 3, 1, 1 / 3, 20_000, 10_000, 0)],
    ),
    Case(
        "phase_summary",
        _training,
        "SELECT step, phase, ops, cpu_self_dur, device_rows, compute_dur, comm_dur,"
        " exposed_comm_dur, memcpy_dur FROM phase_summary ORDER BY phase",
        [
            (1, "backward", 1, 8_000, 0, 0, 0, 0, 0),
            (1, "forward", 2, 11_000, 3, 20_000, 23_000, 18_000, 15_000),
            (1, "optimizer", 0, 0, 1, 10_000, 0, 0, 0),
        ],
    ),
    Case(
        "trace_quality",
        _training,
        "SELECT check_name, value, threshold FROM trace_quality WHERE verdict = 'care'"
        " ORDER BY check_name",
        [("no_stacks", 1, 0), ("no_sync_events", 1, 0)],
    ),
    Case(
        "trace_quality",
        _copies,
        "SELECT check_name, verdict, value FROM trace_quality WHERE verdict <> 'ok'"
        " ORDER BY check_name",
        [
            ("graph_launches_without_kernels_frac", "not applicable", None),
            ("guessed_rank", "care", 1),
            ("no_shapes", "care", 1),
            ("no_stacks", "care", 1),
            ("no_steps", "care", 1),
            ("no_sync_events", "care", 1),
            ("unlinked_frac", "distrust", 1),
            ("unmatched_frac", "not applicable", None),
            ("unsized_frac", "not applicable", None),
        ],
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.view} {case.trace.__name__}")
def test_a_view_says_what_was_worked_out_by_hand(ask: Ask, case: Case) -> None:
    assert ask(case.trace, case.query) == case.expect


def _second_launch(call: tuple[float, float], run: tuple[float, float]) -> Callable[[Path], Path]:
    """A kernel that ends at 100 us, and another one."""

    def build(folder: Path) -> Path:
        file = KinetoFile()
        file.launched("a", (0, 5), (10, 100))
        file.launched("b", call, run)
        return file.write(folder / "t.json")

    return build


def _synchronised(folder: Path) -> Path:
    file = KinetoFile()
    file.launched("a", (0, 5), (10, 100))
    file.call("cudaStreamSynchronize", (20, 103))
    file.launched("b", (150, 155), (157, 170))
    return file.write(folder / "t.json")


def _item(folder: Path) -> Path:
    file = KinetoFile()
    file.copy("DtoH (Device -> Pageable)", (0, 103), (10, 100))
    file.launched("b", (150, 155), (157, 170))
    return file.write(folder / "t.json")


def _graph(folder: Path) -> Path:
    file = KinetoFile()
    call = file.call("cudaGraphLaunch", (0, 9))
    for span in ((10, 100), (150, 160)):
        file.kernel("node", span, call=call)
    return file.write(folder / "t.json")


@pytest.mark.parametrize(
    ("trace", "cause"),
    [
        (_second_launch((150, 155), (157, 170)), "host_late"),
        (_second_launch((102, 150), (155, 170)), "launch_overhead"),
        (_second_launch((95, 130), (135, 170)), "launch_overhead"),
        (_second_launch((6, 9), (105, 110)), "launch_overhead"),
        (_second_launch((6, 9), (150, 160)), "unknown"),
        (_second_launch((110, 115), (300, 310)), "unknown"),
        (_synchronised, "sync_drain"),
        (_item, "sync_drain"),
        (_graph, "graph_gap"),
    ],
)
def test_a_gap_has_the_cause_that_the_host_shows(
    tmp_path: Path, trace: Callable[[Path], Path], cause: str
) -> None:
    query = "SELECT cause FROM gpu_idle WHERE ts = (SELECT MIN(ts + dur) FROM kernel)"
    assert rows(trace(tmp_path), query) == [(cause,)]


def test_a_gap_under_a_collective_of_the_host_waits_for_it(tmp_path: Path) -> None:
    file = KinetoFile()
    file.launched("a", (0, 5), (10, 100))
    file.op("c10d::allreduce_", (101, 104), **{"Input Dims": [[[8]]], "Input type": ["TensorList"]})
    file.annotation("gloo:all_reduce", (103, 180), thread=600)
    file.launched("b", (185, 190), (192, 200))
    path = file.write(tmp_path / "t.json")
    assert rows(path, "SELECT cause FROM gpu_idle WHERE ts = 100000") == [("comm_wait",)]


def test_parts_add_up_on_every_rank_and_step() -> None:
    """On a run of eight ranks, to the nanosecond."""
    sample = Path(__file__).resolve().parents[2] / "sample_traces" / "ddp8_h100"
    with reading(sample) as run:
        assert run.store.rows(
            "SELECT COUNT(*) > 0, BOOL_AND(t.total_dur = t.compute_dur + t.exposed_comm_dur"
            " + t.exposed_memcpy_dur + t.idle_dur AND t.total_dur = w.dur),"
            " BOOL_AND(t.compute_dur = b.kernel_dur"
            " AND t.exposed_comm_dur = b.communication_dur"
            " AND t.exposed_memcpy_dur = b.memcpy_dur + b.memset_dur AND t.idle_dur ="
            " b.runtime_dur + b.dataloader_dur + b.cpu_exec_dur + b.other_dur)"
            " FROM gpu_timeline t JOIN step_window w USING (step)"
            " JOIN step_breakdown b USING (rank, step)"
        ) == [(True, True, True)]
        assert (
            run.store.rows(
                "SELECT rank, step, idle_dur FROM gpu_timeline"
                " EXCEPT SELECT rank, step, SUM(dur) FROM gpu_idle GROUP BY rank, step"
            )
            == []
        )


@contextmanager
def _tables(table: str, frame: pl.DataFrame) -> Iterator[Store]:
    """A store that holds nothing but these rows."""
    with Store.create(Path(":memory:")) as store:
        store.insert(table, frame)
        for path in VIEW_FILES:
            store.run_file(path)
        yield store


def test_the_peak_of_memory_is_the_largest_total() -> None:
    events = {
        "trace_id": [0] * 3,
        "rank": [0] * 3,
        "ts": [10, 20, 30],
        "device_type": [1] * 3,
        "device": [0] * 3,
        "bytes": [512, 1024, -512],
        "total_allocated": [512, 1536, 1024],
        "total_reserved": [2048, 2048, 2048],
    }
    with _tables("memory_event", pl.DataFrame(events)) as store:
        assert store.rows("SELECT * FROM memory_peak") == [
            (0, 1, 0, 1536, 20, None, None, 2048, 2, 1536)
        ]


def test_a_counter_holds_its_value_until_the_next_sample() -> None:
    samples = {
        "trace_id": [0] * 3,
        "rank": [0] * 3,
        "name": ["power"] * 3,
        "device": [0] * 3,
        "ts": [0, 10, 40],
        "value": [100.0, 300.0, 200.0],
    }
    with _tables("counter", pl.DataFrame(samples)) as store:
        assert store.rows("SELECT * FROM counter_summary") == [
            (0, "power", 0, 3, 100.0, 250.0, 300.0, 10)
        ]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("ms(1500000)", 1.5),
        ("us(1500)", 1.5),
        ("to_unix(1000)", 1_900_000_000_000_001_000),
        ("size_bucket(1)", 1),
        ("size_bucket(4095)", 2048),
        ("size_bucket(4096)", 4096),
        ("size_bucket(0)", 0),
        ("size_bucket(NULL)", None),
        ("busbw('all_reduce', 1000, 8, 10)", 175),
        ("busbw('_allgather_base', 1000, 8, 10)", 87.5),
        ("busbw('reduce_scatter', 1000, 8, 10)", 87.5),
        ("busbw('send', 1000, 2, 10)", 100),
        ("busbw('unknown', 1000, 8, 10)", None),
        ("busbw('all_reduce', 1000, 8, 0)", None),
        ("is_chosen('0,11', 11)", True),
        ("is_chosen('0,11', 1)", False),
        ("is_chosen(NULL, 1)", True),
    ],
)
def test_a_macro_computes(ask: Ask, expression: str, value: float | None) -> None:
    assert ask(_training, f"SELECT {expression}") == [(value,)]


def test_the_union_of_intervals_counts_each_moment_once(ask: Ask) -> None:
    assert ask(_training, "SELECT * FROM interval_union('kernel')") == [
        (0, 12_000, 48_000),
        (0, 86_000, 10_000),
    ]


def test_spans_are_those_of_the_chosen_steps_and_ranks(ask: Ask) -> None:
    (device,) = ask(_training, "SELECT ts, ts + dur, 1 FROM step_window WHERE step = 1")
    (host,) = ask(_training, "SELECT rank, ts, ts + dur, 1 FROM step WHERE step = 1")
    for chosen in ("NULL, NULL", "1, 1", "NULL, 1"):
        assert ask(_training, f"SELECT * FROM step_span({chosen})") == [device]
        assert ask(_training, f"SELECT * FROM host_span('0', {chosen})") == [host]
    assert ask(_training, "SELECT * FROM step_span(2, NULL)") == [(None, None, 0)]
    assert ask(_training, "SELECT * FROM host_span('1', NULL, NULL)") == []


def test_the_stack_of_a_slice_begins_outside(ask: Ask) -> None:
    query = "SELECT depth, name FROM slice_stack((SELECT id FROM slice WHERE name = 'aten::addmm'))"
    assert ask(_training, query) == [
        (0, "ProfilerStep#1"),
        (1, "aten::linear"),
        (2, "aten::addmm"),
    ]


def test_every_view_column_and_macro_has_a_comment() -> None:
    with _tables("name", pl.DataFrame()) as store:
        assert (
            store.rows(
                "SELECT view_name FROM duckdb_views() WHERE NOT internal AND comment IS NULL"
                " UNION SELECT table_name || '.' || column_name FROM duckdb_columns()"
                " WHERE schema_name = 'main' AND NOT internal AND comment IS NULL"
                " UNION SELECT function_name FROM duckdb_functions()"
                " WHERE NOT internal AND comment IS NULL"
            )
            == []
        )


def test_every_view_that_answers_a_question_has_a_golden_case() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in VIEW_FILES if path.name > "03")
    defined = {
        line.split()[2]
        for line in text.splitlines()
        if line.startswith("CREATE VIEW ") and "store." not in line
    }
    told_alone = {"memory_peak", "counter_summary"}
    assert {case.view for case in CASES} | told_alone == defined


def test_sql_files_only_create_and_comment() -> None:
    for path in SQL.glob("*.sql"):
        for statement in path.read_text(encoding="utf-8").split(";\n"):
            lines = [line for line in statement.strip().splitlines() if not line.startswith("--")]
            first = next((line for line in lines if line), "CREATE ")
            assert first.startswith(("CREATE ", "COMMENT ON ")), f"{path.name}: {first}"
