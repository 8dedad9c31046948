"""The cases of real issues, where the folder `shared/` lies beside the checkout: what is read."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ingest.errors import TraceError
from tests.reading import issues, reading, rows

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="no folder shared/ beside the checkout")


def case(number: str) -> Path:
    """Folder of a case."""
    (folder,) = CASES.glob(f"{number}-*")
    return folder


def numbers(number: str) -> dict[str, Any]:
    """The numbers that a case expects."""
    text = (case(number) / "expect.md").read_text(encoding="utf-8")
    found = re.search(r"```json\n(.*?)```", text, re.DOTALL)
    assert found
    expected: dict[str, Any] = json.loads(found[1])
    return expected


def trace(number: str) -> Path:
    """The only file of a case."""
    return case(number) / "trace.json"


def test_b01_a_path_keeps_its_backslashes() -> None:
    expect = numbers("B01")
    with reading(trace("B01")) as run:
        assert run.store.rows("SELECT n_events FROM trace") == [(expect["events_lenient"],)]
        assert run.store.rows("SELECT name FROM slice ORDER BY id LIMIT 1") == [
            (r"torch\nn\modules\linear.py(114): forward",)
        ]
        assert issues(run)["bad_escape"] == expect["repaired_strings"]
        assert run.store.rows(
            "SELECT count(*), sum(k.dur) / 1e3, any_value(r.api), any_value(o.name)"
            " FROM kernel k JOIN runtime r ON r.id = k.runtime_id JOIN slice o ON o.id = k.op_id"
        ) == [(expect["kernels"], expect["gpu_time_us"], "cudaLaunchKernel", "aten::linear")]


def test_b01_strict_stops_at_line_and_column() -> None:
    expect = numbers("B01")
    place = f"line {expect['strict_error_line']}, column {expect['strict_error_column']}"
    told = rf"`trace\.json`.*invalid escape.*{place}\b"
    with pytest.raises(TraceError, match=told), reading(trace("B01"), strict=True):
        pass


def test_b04_numbers_that_are_none_are_null() -> None:
    expect = numbers("B04")
    with reading(trace("B04")) as run:
        assert run.store.rows(
            "SELECT count(*), sum(bytes), sum(dur) / 1e3,"
            " count(*) FILTER (memory_bw_gbps IS NULL), avg(memory_bw_gbps) FROM kernel"
        ) == [
            (
                expect["memcpys"],
                expect["bytes_total"],
                expect["time_total_us"],
                expect["bandwidth_null"],
                expect["avg_bandwidth_of_known_gbps"],
            )
        ]
        assert issues(run)["not_finite"] == expect["bandwidth_null"]
    with pytest.raises(TraceError, match=r"inf.*line \d+"), reading(trace("B04"), strict=True):
        pass


def test_b08_a_cut_file_gives_its_whole_events() -> None:
    expect = numbers("B08")
    with reading(trace("B08")) as run:
        assert run.store.rows("SELECT n_events, NOT complete FROM trace") == [
            (expect["whole_events"], expect["incomplete"])
        ]
        assert run.store.rows("SELECT count(*), sum(dur) / 1e3 FROM kernel") == [
            (expect["kernels"], expect["gpu_time_us"])
        ]
        assert issues(run)["truncated"] == 1
    said = rf"`trace\.json` is truncated.*byte {expect['bytes']}\b.*{expect['whole_events']} whole"
    with pytest.raises(TraceError, match=said), reading(trace("B08"), strict=True):
        pass


def test_b13_files_without_a_trace_are_told_and_the_good_one_is_read() -> None:
    expect = numbers("B13")
    good = expect["trace.json"]
    with reading(case("B13")) as run:
        assert sorted(f.path.name for f in run.failed) == sorted(expect["errors"])
        assert run.store.rows("SELECT rank, n_events FROM trace") == [
            (good["rank"], good["events"])
        ]
        assert run.store.rows(
            "SELECT count(*), sum(dur) / 1e3 FROM cpu_op JOIN slice USING (id)"
        ) == [(good["cpu_ops"], good["cpu_op_time_us"])]
        assert run.store.rows("SELECT count(*), sum(dur) / 1e3 FROM step") == [
            (good["steps"], good["step_us"])
        ]
        assert run.store.rows("SELECT count(*) FROM kernel") == [(good["gpu_rows"],)]
        assert issues(run)["rank_from_order"] == 1


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("empty_events.json", "no events"),
        ("zero_bytes.json", "file is empty"),
        ("not_a_trace.json", "no traceEvents: not a Chrome trace"),
    ],
)
def test_b13_each_of_them_alone_is_one_line(name: str, cause: str) -> None:
    with pytest.raises(TraceError, match=f"^`{name}`: {cause}$"), reading(case("B13") / name):
        pass


def test_b21_times_since_1970_are_exact() -> None:
    expect = numbers("B21")
    found = rows(
        trace("B21"),
        "SELECT ts + ts_origin_ns, dur, gap_dur FROM kernel JOIN trace USING (trace_id)"
        " ORDER BY ts",
    )
    assert [str(start) for start, _, _ in found] == expect["starts_ns"]
    assert [dur for _, dur, _ in found] == expect["durs_ns"]
    assert [gap for _, _, gap in found] == [None, 0, 0, 0]
    assert sum(dur for _, dur, _ in found) == expect["busy_ns"]
    assert found[-1][0] + found[-1][1] - found[0][0] == expect["span_ns"]


def test_b28_a_kernel_before_its_launch_is_linked_and_moved() -> None:
    expect = numbers("B28")
    with reading(trace("B28")) as run:
        found = run.store.rows(
            "SELECT c.correlation::VARCHAR, (k.ts - c.ts) / 1e3 FROM kernel k"
            " JOIN slice c ON c.id = k.runtime_id"
        )
        assert dict(found) == expect["delay_us"]
        assert len(found) == expect["links"]
        assert run.store.rows("SELECT sum(dur) / 1e3 FROM kernel") == [(expect["gpu_time_us"],)]
        assert issues(run)["kernel_before_launch"] == 1


def test_b36_clocks_of_two_hosts_are_aligned_by_the_ends_of_collectives() -> None:
    expect = numbers("B36")
    with reading(case("B36")) as run:
        ((_, _, reference), (_, offset_ns, method)) = run.store.rows(
            "SELECT rank, clock_offset_ns, clock_method FROM trace ORDER BY rank"
        )
        assert (reference, method) == ("reference", "ends")
        assert offset_ns / 1e3 == pytest.approx(
            expect["clock_offset_us"], abs=expect["tolerance_us"]
        )
        for listed in expect["collectives"]:
            found = run.store.rows(
                "SELECT r.rank::VARCHAR, r.wait_dur / 1e3, r.transfer_dur / 1e3, c.last_rank"
                " FROM collective c JOIN collective_rank r USING (coll_id) WHERE c.seq = ?",
                [listed["Seq"]],
            )
            assert {last for *_, last in found} == {listed["last"]}
            for rank, wait_us, transfer_us, _ in found:
                assert wait_us == pytest.approx(listed["wait_us"][rank], abs=1)
                assert transfer_us == pytest.approx(listed["transfer_us"], abs=1)


def test_b50_correlation_zero_links_nothing() -> None:
    expect = numbers("B50")
    with reading(trace("B50")) as run:
        assert (
            dict(
                run.store.rows(
                    "SELECT s.correlation::VARCHAR, r.api FROM kernel k JOIN slice s ON s.id = k.id"
                    " JOIN runtime r ON r.id = k.runtime_id"
                )
            )
            == expect["links_by_id"]
        )
        assert run.store.rows("SELECT count(*) FROM kernel WHERE NOT linked") == [
            (expect["unlinked_or_by_order"],)
        ]
        assert run.store.rows(
            "SELECT sum(dur) / 1e3, sum(dur) FILTER (class = 'collective') / 1e3,"
            " sum(dur) FILTER (class != 'collective') / 1e3 FROM kernel"
        ) == [(expect["gpu_time_us"], expect["comm_time_us"], expect["compute_time_us"])]
        assert (
            dict(
                run.store.rows(
                    "SELECT o.name, sum(k.dur) / 1e3 FROM kernel k JOIN slice o ON o.id = k.op_id"
                    " GROUP BY o.name"
                )
            )
            == expect["op_gpu_us"]
        )
        assert run.store.rows("SELECT DISTINCT kind FROM collective") == [("unknown",)]
        assert issues(run)["zero_correlation"] == 2


def test_b53_a_graph_launch_has_three_kernels() -> None:
    expect = numbers("B53")
    path = trace("B53")
    assert rows(path, "SELECT n_gpu_events FROM runtime WHERE kind = 'graph_launch'") == [
        (expect["links"],)
    ]
    assert rows(path, "SELECT count(DISTINCT runtime_id), sum(dur) / 1e3 FROM kernel") == [
        (expect["launches"], expect["gpu_busy_us"])
    ]


def test_b72_communication_is_told_by_name_and_metadata() -> None:
    expect = numbers("B72")
    path = trace("B72")
    assert rows(
        path,
        "SELECT class = 'collective' AS comm, count(*), sum(dur) / 1e3 FROM kernel"
        " GROUP BY comm ORDER BY comm DESC",
    ) == [
        (True, expect["comm_kernels"], expect["comm_time_us"]),
        (False, expect["compute_kernels"], expect["compute_time_us"]),
    ]
    kinds = [
        kind
        for (kind,) in rows(
            path,
            "SELECT c.kind FROM collective c JOIN collective_rank r USING (coll_id) ORDER BY r.ts",
        )
    ]
    assert kinds[:6] == [
        "all_reduce",
        "reduce_scatter",
        expect["kind_of_generic"],
        "send_recv",
        "all_reduce",
        "all_reduce",
    ]
    assert kinds[6] in {"reduce", "all_reduce", "unknown"}


def test_b121_waiting_is_told_from_transfer() -> None:
    expect = numbers("B121")
    found = rows(
        sorted(case("B121").glob("rank*.json")),
        "SELECT r.rank::VARCHAR, r.wait_dur / 1e3, r.transfer_dur / 1e3, c.last_rank, c.algbw"
        " FROM collective_rank r JOIN collective c USING (coll_id)",
    )
    assert {rank: wait for rank, wait, *_ in found} == expect["wait_us"]
    assert {transfer for _, _, transfer, *_ in found} == {expect["transfer_us"]}
    assert {(last, bandwidth) for *_, last, bandwidth in found} == {
        (expect["straggler"], expect["algbw_GBps"])
    }
