"""Who launched what, what holds what, which rank a file is: told without a guess, or counted."""

import os
from pathlib import Path

import pytest

from ingest.errors import TraceError
from tests.kineto import KinetoFile
from tests.reading import document, host, issues, kernel, rank_of, reading, rows, write

LINKS = """
    SELECT k.name, r.api, o.name
    FROM kernel k
    LEFT JOIN runtime r ON r.id = k.runtime_id
    LEFT JOIN slice o ON o.id = k.op_id
    ORDER BY k.ts
"""


def launch(ts: float, correlation: int, name: str = "cudaLaunchKernel") -> str:
    """A launching call of 5 us."""
    return host("cuda_runtime", name, ts, 5, correlation=correlation)


def test_a_kernel_is_linked_by_its_correlation_to_call_and_operator(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.json",
        document(
            host("cpu_op", "aten::linear", 0, 50),
            host("cpu_op", "aten::addmm", 5, 30),
            launch(10, 7, "hipExtSomethingNew"),
            kernel("gemm", 20, 9, correlation=7),
        ),
    )
    assert rows(path, LINKS) == [("gemm", "hipExtSomethingNew", "aten::addmm")]
    assert rows(path, "SELECT api, kind, n_gpu_events FROM runtime") == [
        ("hipExtSomethingNew", "launch", 1)
    ]


def test_correlation_zero_is_no_id(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.json",
        document(
            host("cuda_runtime", "hipGetDevice", 0, 1, correlation=0),
            launch(2, 8, "hipExtLaunchKernel"),
            kernel("ncclDevKernel_Generic_4", 10, 30, correlation=0),
            kernel("ncclDevKernel_Generic_4", 50, 30, correlation=0),
        ),
    )
    with reading(path) as run:
        assert run.store.rows(LINKS) == [("ncclDevKernel_Generic_4", None, None)] * 2
        assert run.store.rows("SELECT DISTINCT class, linked, link_method FROM kernel") == [
            ("collective", False, None)
        ]
        assert issues(run)["zero_correlation"] == 2
        assert issues(run)["unlinked"] == 2


def test_one_graph_launch_holds_all_its_kernels_and_counts_once(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.json",
        document(
            launch(0, 50, "cudaGraphLaunch"),
            *(kernel(f"k{number}", 10 + 9 * number, 5, correlation=50) for number in range(3)),
        ),
    )
    assert rows(path, "SELECT api, kind, n_gpu_events FROM runtime") == [
        ("cudaGraphLaunch", "graph_launch", 3)
    ]
    assert rows(path, "SELECT count(*), sum(dur) FROM kernel WHERE linked") == [(3, 15_000)]
    assert rows(path, "SELECT api, calls, device_rows FROM launch_summary") == [
        ("cudaGraphLaunch", 1, 3)
    ]


def test_a_kernel_that_starts_before_its_call_is_moved_to_its_start(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.json",
        document(
            launch(100, 11),
            kernel("early", 99.2, 3, correlation=11),
            launch(110, 12),
            kernel("fine", 113, 4, correlation=12),
        ),
    )
    with reading(path) as run:
        assert run.store.rows(
            "SELECT k.name, k.ts - c.ts, k.dur, s.repair FROM kernel k"
            " JOIN slice c ON c.id = k.runtime_id JOIN slice s ON s.id = k.id ORDER BY k.ts"
        ) == [("early", 0, 3000, "moved"), ("fine", 3000, 4000, None)]
        assert issues(run)["kernel_before_launch"] == 1


def test_a_device_clock_that_runs_ahead_is_brought_to_the_host(tmp_path: Path) -> None:
    file = KinetoFile()
    for number in range(10):
        call = file.call("cudaLaunchKernel", (100 * number, 100 * number + 4))
        file.kernel("k", (100 * number - 44, 100 * number - 14), call=call)
    path = file.write(tmp_path / "t.json")
    with reading(path) as run:
        assert run.store.rows("SELECT device_clock_offset_ns FROM trace") == [(50_000,)]
        assert run.store.rows(
            "SELECT DISTINCT k.ts - c.ts FROM kernel k JOIN slice c ON c.id = k.runtime_id"
        ) == [(6_000,)]
        assert issues(run)["device_clock_shift"] == 50_000


def test_rows_that_cross_are_siblings_and_never_form_a_cycle(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.json",
        document(
            host("user_annotation", "ProfilerStep#1", 0, 100),
            host("python_function", "outlives the step", 60, 90),
            host("cpu_op", "inside the frame", 70, 10),
            host("cpu_op", "bleeds 1 us", 95, 6),
            host("cpu_op", "same span a", 110, 5),
            host("cpu_op", "same span b", 110, 5),
            host("cpu_op", "same span c", 110, 5),
        ),
    )
    with reading(path) as run:
        assert run.store.rows(
            "SELECT s.name, p.name, s.depth FROM slice s"
            " LEFT JOIN slice p ON p.id = s.parent_id ORDER BY s.id"
        ) == [
            ("ProfilerStep#1", None, 0),
            ("outlives the step", None, 0),
            ("inside the frame", "outlives the step", 1),
            ("bleeds 1 us", "outlives the step", 1),
            ("same span a", "outlives the step", 1),
            ("same span b", "same span a", 2),
            ("same span c", "same span b", 3),
        ]
        assert run.store.rows("SELECT count(*) FROM slice WHERE parent_id >= id") == [(0,)]
        assert issues(run)["crossing_slices"] == 1


def test_categories_and_metadata_of_old_profilers_are_brought_up_to_date(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.json",
        document(
            host("Operator", "aten::mm", 0, 20),
            host("Runtime", "cudaLaunchKernel", 5, 5, correlation=3),
            host("Operator", "ProfilerStep#2", 0, 40),
            kernel("gemm", 20, 5, correlation=3).replace('"cat": "kernel"', '"cat": "Kernel"'),
            kernel("Memcpy HtoD (Pageable -> Device)", 30, 5, bytes=8).replace(
                '"cat": "kernel"', '"cat": "Memcpy"'
            ),
        ),
    )
    with reading(path) as run:
        assert run.store.rows(LINKS)[0] == ("gemm", "cudaLaunchKernel", "aten::mm")
        assert run.store.rows("SELECT cat, class FROM kernel ORDER BY ts") == [
            ("kernel", "gemm"),
            ("gpu_memcpy", "memcpy"),
        ]
        assert run.store.rows("SELECT step, dur FROM step") == [(2, 40_000)]
        assert issues(run)["old_category"] == 5


def test_names_of_processes_and_threads_may_follow_the_events(tmp_path: Path) -> None:
    labels = [
        '{"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": "python"}}',
        '{"ph": "M", "name": "process_labels", "pid": 7, "tid": 0, "args": {"labels": "CPU"}}',
        '{"ph": "M", "name": "thread_name", "pid": 7, "tid": 70, "args": {"name": "main"}}',
        '{"ph": "M", "name": "thread_sort_index", "pid": 7, "tid": 70, "args": {"sort_index": 5}}',
    ]
    event = host("cpu_op", "op", 1, 1)
    for number, events in enumerate(([*labels, event], [event, *labels])):
        path = write(tmp_path / f"{number}.json", document(*events))
        assert rows(path, "SELECT pid, name, labels FROM process") == [("7", "python", "CPU")]
        assert rows(path, "SELECT tid, name, sort_index FROM thread") == [("70", "main", 5)]


def test_the_rank_may_follow_the_events(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.json", document(host("cpu_op", "op", 1, 1), tail=f", {rank_of(3, 8)}")
    )
    assert rows(path, "SELECT rank, world_size, rank_source, backend FROM trace") == [
        (3, 8, "distributedInfo", "nccl")
    ]


def test_a_bare_list_of_events_is_a_trace(tmp_path: Path) -> None:
    events = [host("cpu_op", "a", 1, 2), host("cpu_op", "b", 4, 2)]
    path = write(tmp_path / "t.json", " [\n" + ",\n".join(events) + "\n]\n")
    assert rows(path, "SELECT name, ts, dur FROM slice ORDER BY ts") == [
        ("a", 0, 2000),
        ("b", 3000, 2000),
    ]


@pytest.mark.parametrize(
    ("names", "ranks", "source"),
    [
        (["rank_3.json", "rank_1.json"], [3, 1], "file name"),
        (["run-rank12.pt.trace.json", "run-rank2.pt.trace.json"], [12, 2], "file name"),
        (["worker0.json", "worker1.json"], [0, 1], "file name"),
        (["0.json", "10.json"], [0, 10], "file name"),
        (["trace_4.json", "trace_5.json"], [4, 5], "file name"),
        (["a100_rank3of8.json"], [3], "file name"),
        (["llama-3.1-8B-rank-2.json", "llama-3.1-8B-rank-0.json"], [2, 0], "file name"),
        (["run[3].json"], [3], "file name"),
        (["run.3.json", "run.0.json"], [3, 0], "file name"),
        (["dp0_pp0_tp1_rank5.1700000000123.pt.trace.json"], [5], "file name"),
        (["1712345678.2-TP-0.trace.json", "1712345678.2-TP-1.trace.json"], [0, 1], "file name"),
        (["Qwen_Qwen1.5-0.5B-Chat.json"], [0], "order"),
        (["Qwen1.5-7.json"], [0], "order"),
        (["resnet50.json"], [0], "order"),
        (["resnet-50.json"], [0], "order"),
        (["bs_16.json", "bs_64.json"], [0, 1], "order"),
        (["resnet50_workers4.json"], [0], "order"),
        (["tp_rank3.json"], [0], "order"),
        (["b.json", "a.json"], [0, 1], "order"),
        (["rank1.json", "copy_of_rank1.json"], [0, 1], "order"),
        (["host_88123.1700000000123.pt.trace.json"], [0], "order"),
    ],
)
def test_a_rank_that_is_not_recorded_is_read_from_the_name_or_the_order(
    tmp_path: Path, names: list[str], ranks: list[int], source: str
) -> None:
    paths = [
        write(tmp_path / name, document(host("cpu_op", f"op{number}", 1, 1)))
        for number, name in enumerate(names)
    ]
    with reading(*paths) as run:
        found = run.store.rows("SELECT path, rank, rank_source FROM trace")
        assert {Path(path).name: rank for path, rank, _ in found} == dict(
            zip(names, ranks, strict=True)
        )
        assert {how for _, _, how in found} == {source}
        issue = "rank_from_name" if source == "file name" else "rank_from_order"
        assert issues(run)[issue] == len(names)


def test_recorded_ranks_count_more_than_names(tmp_path: Path) -> None:
    paths = [
        write(
            tmp_path / f"rank{9 - rank}.json",
            document(host("cpu_op", f"{rank}", 1, 1), head=rank_of(rank)),
        )
        for rank in (0, 1)
    ]
    assert rows(paths, "SELECT rank, name FROM slice ORDER BY rank") == [(0, "0"), (1, "1")]


def test_two_files_of_one_rank_are_refused_with_both_names(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / name, document(host("cpu_op", name, 1, 1), head=rank_of(1)))
        for name in ("first.json", "second.json")
    ]
    with pytest.raises(TraceError, match=r"first\.json.*second\.json.*rank 1"), reading(*paths):
        pass


def test_a_file_that_is_there_twice_is_read_once(tmp_path: Path) -> None:
    text = document(host("cpu_op", "op", 1, 1), head=rank_of(1))
    paths = [write(tmp_path / name, text) for name in ("a.json", "b.json")]
    with reading(*paths) as run:
        assert run.store.rows("SELECT rank FROM trace") == [(1,)]
        assert issues(run) == {"duplicate_file": 1}


def test_bad_files_are_left_out_and_told_and_the_good_ones_are_read(tmp_path: Path) -> None:
    write(tmp_path / "rank0.json", document(host("cpu_op", "op", 1, 1), head=rank_of(0)))
    write(tmp_path / "rank1.json", "")
    write(tmp_path / "rank2.json", '{"traceEvents": []}')
    write(tmp_path / "rank3.json", "no trace at all")
    with reading(tmp_path) as run:
        assert [failure.path.name for failure in run.failed] == [
            "rank1.json",
            "rank2.json",
            "rank3.json",
        ]
        assert all("\n" not in failure.reason for failure in run.failed)
        assert run.store.rows("SELECT rank FROM trace") == [(0,)]
        assert run.store.rows(
            "SELECT trace_id, value, severity FROM import_stat WHERE name = 'file_failed'"
        ) == [(None, 3, "error")]
    with pytest.raises(TraceError, match=r"rank1\.json"), reading(tmp_path, strict=True):
        pass


def test_when_no_file_can_be_read_every_reason_is_told(tmp_path: Path) -> None:
    paths = [write(tmp_path / "a.json", ""), write(tmp_path / "b.json", "[]")]
    both = r"a\.json.*file is empty.*b\.json.*no events"
    with pytest.raises(TraceError, match=both), reading(*paths):
        pass


def test_events_of_other_phases_are_counted(tmp_path: Path) -> None:
    others = [f'{{"ph": "{phase}", "name": "x", "ts": 3}}' for phase in ("C", "i", "I", "B", "")]
    path = write(
        tmp_path / "t.json", document(host("cpu_op", "op", 1, 1), *others, head=rank_of(0))
    )
    with reading(path) as run:
        assert issues(run) == {"counter_without_value": 1, "event_instant": 2, "event_other": 2}
        assert run.store.rows("SELECT n_events FROM trace") == [(6,)]


def test_arrows_join_the_rows_at_their_ends_and_halves_are_counted(tmp_path: Path) -> None:
    def arrow(phase: str, name: str, number: int, ts: float, track: tuple[int, int]) -> str:
        return (
            f'{{"ph": "{phase}", "cat": "{name}", "name": "{name}", "id": {number},'
            f' "pid": {track[0]}, "tid": {track[1]}, "ts": {ts}, "bp": "e"}}'
        )

    path = write(
        tmp_path / "t.json",
        document(
            launch(10, 7),
            kernel("k", 20, 5, correlation=7),
            arrow("s", "ac2g", 7, 10, (7, 70)),
            arrow("f", "ac2g", 7, 20, (0, 7)),
            arrow("f", "ac2g", 8, 20, (0, 7)),
            arrow("s", "fwdbwd", 7, 10, (7, 70)),
            head=rank_of(0),
        ),
    )
    with reading(path) as run:
        assert run.store.rows(
            "SELECT f.id, f.name, a.name, b.name FROM flow f"
            " JOIN slice a ON a.id = f.slice_out JOIN slice b ON b.id = f.slice_in"
        ) == [("7", "ac2g", "cudaLaunchKernel", "k")]
        assert issues(run) == {"half_flow": 2}


def test_the_default_stream_of_rocm_is_a_stream(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.json", document(launch(0, 3), kernel("k", 9, 2, stream=0, correlation=3))
    )
    assert rows(path, "SELECT device, stream, linked FROM kernel") == [(0, 0, True)]


def test_sync_rows_are_evidence_and_no_work(tmp_path: Path) -> None:
    file = KinetoFile()
    file.launched("k", (0, 5), (10, 100), stream=20)
    event = file.record((20, 22))
    file.wait((25, 27), on=(20, event), waiting=30)
    file.sync_row("Context Sync", (30, 100), 9, stream=4294967295)
    path = file.write(tmp_path / "t.json")
    assert rows(path, "SELECT count(*), sum(dur) FROM kernel") == [(1, 90_000)]
    assert rows(
        path,
        "SELECT kind, stream, wait_on_stream, wait_on_cuda_event_record_corr_id FROM sync"
        " ORDER BY kind DESC",
    ) == [("Stream Wait Event", 30, 20, event), ("Context Sync", None, None, None)]


def test_a_thread_may_be_written_as_a_number_here_and_as_text_there(tmp_path: Path) -> None:
    """Old profilers wrote rows with numbers, and arrows and allocations with text."""
    call = host("cuda_runtime", "cudaLaunchKernel", 2, 1)
    around = host("cpu_op", "aten::empty", 1, 5)
    arrow = '"cat": "ac2g", "name": "ac2g", "id": 3'
    others = (
        f'{{"ph": "s", {arrow}, "pid": "7", "tid": "70", "ts": 2}}',
        f'{{"ph": "f", {arrow}, "pid": 0, "tid": "7", "ts": 4, "bp": "e"}}',
        '{"ph": "i", "name": "[memory]", "pid": "7", "tid": "70", "ts": 2.5,'
        ' "args": {"Bytes": 512, "Device Type": 0}}',
    )
    path = write(tmp_path / "t.json", document(around, call, kernel("k", 4, 1), *others))
    with reading(path) as run:
        assert run.store.rows(
            "SELECT o.name, i.name FROM flow AS f JOIN slice AS o ON o.id = f.slice_out"
            " JOIN slice AS i ON i.id = f.slice_in"
        ) == [("cudaLaunchKernel", "k")]
        assert run.store.rows(
            "SELECT s.name, m.bytes FROM memory_event AS m JOIN slice AS s ON s.id = m.op_id"
        ) == [("aten::empty", 512)]


def test_events_without_a_phase_are_lost_and_said_to_be(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", document('{"name": "x", "ts": 3}', head=rank_of(0)))
    with reading(path) as run:
        assert issues(run) == {"event_without_phase": 1}


def test_arrows_of_a_file_without_rows_lead_nowhere(tmp_path: Path) -> None:
    arrows = [
        f'{{"ph": "{phase}", "cat": "ac2g", "id": 1, "pid": 1, "tid": 1, "ts": {ts}}}'
        for phase, ts in (("s", 1), ("f", 2))
    ]
    path = write(tmp_path / "t.json", document(*arrows, head=rank_of(0)))
    with reading(path) as run:
        assert run.store.rows("SELECT slice_out, slice_in FROM flow") == [(None, None)]


def test_steps_with_a_number_that_no_column_holds_are_counted(tmp_path: Path) -> None:
    names = ("ProfilerStep#7", f"ProfilerStep#{10**18}", "ProfilerStep#\u0663", "ProfilerStep#")
    events = [host("user_annotation", name, 10 * at, 5) for at, name in enumerate(names)]
    path = write(tmp_path / "t.json", document(*events, head=rank_of(0)))
    with reading(path) as run:
        assert run.store.rows("SELECT step FROM step WHERE source = 'ProfilerStep'") == [(7,)]
        assert issues(run)["step_number_unusable"] == 3


def test_arguments_of_a_hundred_thousand_numbers_are_read(tmp_path: Path) -> None:
    event = host("cpu_op", "aten::cat", 1, 2, **{"Input Dims": [[1, 2]] * 50_000})
    path = write(tmp_path / "t.json", document(event, head=rank_of(0)))
    with reading(path) as run:
        ((length,),) = run.store.rows("SELECT length(input_dims) FROM cpu_op")
    assert length == len("[1, 2], ") * 50_000


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.json")
    with pytest.raises(TraceError, match="no regular file"), reading(tmp_path / "p.json"):
        pass
