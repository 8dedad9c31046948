"""Device times that no device can have are put right and counted; what is odd but real stays."""

from pathlib import Path

from tests.reading import document, host, issues, kernel, reading, rows, write

HIP = host("cuda_runtime", "hipLaunchKernel", 0, 1, correlation=900)
SPANS = "SELECT k.name, k.ts, k.dur, s.repair FROM kernel k JOIN slice s USING (id) ORDER BY k.ts"


def test_a_rocm_duration_that_runs_into_later_kernels_ends_where_the_next_begins(
    tmp_path: Path,
) -> None:
    path = write(
        tmp_path / "t.json",
        document(
            HIP,
            kernel("broken", 10, 2_000_000, stream=0),
            kernel("next", 15, 5, stream=0),
            kernel("after", 25, 5, stream=0),
            kernel("elsewhere", 12, 50, stream=3),
        ),
    )
    with reading(path) as run:
        assert run.store.rows(SPANS) == [
            ("broken", 10_000, 5_000, "clipped"),
            ("elsewhere", 12_000, 50_000, None),
            ("next", 15_000, 5_000, None),
            ("after", 25_000, 5_000, None),
        ]
        assert issues(run)["duration_clipped"] == 1
        assert issues(run)["duration_clipped_ns"] == 1_999_995_000
        assert run.store.rows("SELECT name, event_excerpt, action FROM import_log") == [
            ("duration_clipped", "broken", "1999995000 ns cut off its end")
        ]


def test_overlaps_that_may_be_real_stay(tmp_path: Path) -> None:
    dependent = [kernel("k", 10, 9), kernel("early start", 15, 9), kernel("k", 26, 5)]
    long = [kernel("last but one", 50, 9_000, stream=3), kernel("last", 60, 5, stream=3)]
    cuda = write(tmp_path / "cuda.json", document(kernel("a", 10, 2_000_000), *dependent[1:]))
    graph = host("cuda_runtime", "hipGraphLaunch", 0, 1, correlation=7)
    branches = [kernel("branch", 100 + n, 5_000 - n, correlation=7) for n in range(3)]
    rocm = write(tmp_path / "rocm.json", document(HIP, graph, *dependent, *long, *branches))
    for path in (cuda, rocm):
        with reading(path) as run:
            assert {repair for *_, repair in run.store.rows(SPANS)} == {None}
            assert "duration_clipped" not in issues(run)


def test_a_kernel_with_times_zero_stands_at_its_call(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.json",
        document(
            host("cuda_runtime", "cudaLaunchKernel", 1700000000000000, 5, correlation=4),
            host("cuda_runtime", "cudaLaunchKernel", 1700000000000020, 5, correlation=5),
            kernel("untimed", 0, 0, correlation=5),
            kernel("fine", 1700000000000007, 3, correlation=4),
        ),
    )
    with reading(path) as run:
        assert run.store.rows(SPANS) == [
            ("fine", 7_000, 3_000, None),
            ("untimed", 20_000, 0, "moved"),
        ]
        assert issues(run)["device_time_missing"] == 1


def test_annotations_of_streams_lose_the_ns_that_the_profiler_adds(tmp_path: Path) -> None:
    def annotation(name: str, ts: float, dur: float) -> str:
        return kernel(name, ts, dur).replace('"cat": "kernel"', '"cat": "gpu_user_annotation"')

    path = write(
        tmp_path / "t.json",
        document(
            kernel("k", 10, 5),
            kernel("k", 20, 5),
            annotation("padded", 9.999, 15.002),
            annotation("older", 9.999, 5.001),
            annotation("own bounds", 19.5, 6),
        ),
    )
    with reading(path) as run:
        assert run.store.rows(
            "SELECT name, ts, dur, self_dur FROM slice WHERE cat = 'gpu_user_annotation'"
            " ORDER BY name"
        ) == [
            ("older", 0, 5_000, 5_000),
            ("own bounds", 9_500, 6_000, 6_000),
            ("padded", 0, 15_000, 15_000),
        ]
        assert issues(run)["annotation_padded"] == 2


def test_streams_come_from_the_arguments_and_stream_0_is_one(tmp_path: Path) -> None:
    sync = kernel("Stream Sync", 30, 2, stream=1_000_007).replace(
        '"cat": "kernel"', '"cat": "cuda_sync"'
    )
    sync = sync.replace(
        '"stream": 1000007', '"stream": 7, "correlation": 3, "cuda_sync_kind": "Stream Sync"'
    )
    path = write(
        tmp_path / "t.json", document(kernel("a", 1, 1, stream=0), kernel("b", 3, 1), sync)
    )
    assert rows(path, "SELECT name, stream FROM kernel ORDER BY ts") == [("a", 0), ("b", 7)]
    assert rows(path, "SELECT kind, stream FROM sync") == [("Stream Sync", 7)]
