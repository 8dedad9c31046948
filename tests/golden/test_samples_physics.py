"""The synthetic traces obey the physics that they claim (checked without the product)."""

import gzip
import json
from collections import defaultdict
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
RANKS = range(8)
COMPUTE, NCCL = 7, 23

Row = dict[str, Any]


def _load(rank: int) -> list[Row]:
    path = SAMPLES / "ddp8_h100" / f"rank{rank}.json.gz"
    document = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    events: list[Row] = document["traceEvents"]
    for event in events:
        event["start"] = int(Decimal(event["ts"]) * 1000)
        event["end"] = event["start"] + int(Decimal(event.get("dur", 0)) * 1000)
    return events


@pytest.fixture(scope="module")
def traces() -> list[list[Row]]:
    return [_load(rank) for rank in RANKS]


def _device(events: list[Row]) -> list[Row]:
    return [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy")]


def _calls(events: list[Row]) -> list[Row]:
    calls = [event for event in events if event.get("cat") in ("cuda_runtime", "cuda_driver")]
    return sorted(calls, key=lambda call: call["start"])


def _windows(events: list[Row]) -> list[Row]:
    return [
        event
        for event in events
        if event.get("cat") == "user_annotation" and event["name"].startswith("ProfilerStep#")
    ]


def _launched_before(events: list[Row], moment: int) -> list[Row]:
    """Device work whose launch was seen before `moment`, or was not seen at all."""
    launch = {call["args"]["correlation"]: call["start"] for call in _calls(events)}
    return [
        work for work in _device(events) if launch.get(work["args"]["correlation"], -1) < moment
    ]


def test_host_rows_of_a_thread_nest(traces: list[list[Row]]) -> None:
    for events in traces:
        threads: dict[Any, list[Row]] = defaultdict(list)
        for event in events:
            if event.get("cat") in ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver"):
                threads[event["tid"]].append(event)
        assert len(threads) == 3
        for rows in threads.values():
            _assert_nested(sorted(rows, key=lambda row: (row["start"], -row["end"])))


def _assert_nested(rows: list[Row]) -> None:
    around: list[Row] = []
    for row in rows:
        while around and around[-1]["end"] <= row["start"]:
            around.pop()
        assert not around or row["end"] <= around[-1]["end"], (around[-1], row)
        around.append(row)


def test_work_starts_after_its_launching_call(traces: list[list[Row]]) -> None:
    for events in traces:
        ends = {call["args"]["correlation"]: call["end"] for call in _calls(events)}
        linked = [work for work in _device(events) if work["args"]["correlation"] in ends]
        assert len(linked) > 500
        for work in linked:
            assert work["start"] > ends[work["args"]["correlation"]], work


def test_work_of_a_stream_never_overlaps(traces: list[list[Row]]) -> None:
    for events in traces:
        for stream in (COMPUTE, NCCL):
            rows = [work for work in _device(events) if work["tid"] == stream]
            rows.sort(key=lambda work: work["start"])
            correlations = [work["args"]["correlation"] for work in rows]
            assert correlations == sorted(correlations)
            for before, after in pairwise(rows):
                assert before["end"] + 1_000 <= after["start"]


def test_members_of_an_all_reduce_end_together_after_the_last_has_started(
    traces: list[list[Row]],
) -> None:
    members: dict[int, list[Row]] = defaultdict(list)
    for events in traces:
        for work in _device(events):
            if "Seq" in work["args"]:
                members[work["args"]["Seq"]].append(work)
    assert len(members) == 26
    for group in members.values():
        assert len(group) == len(RANKS)
        ends = [member["end"] for member in group]
        assert max(ends) - min(ends) <= 400
        assert len({member["args"]["In msg nelems"] for member in group}) == 1
        assert min(ends) - max(member["start"] for member in group) >= 22_000


def test_all_reduces_wait_for_the_gradients_before_their_record(traces: list[list[Row]]) -> None:
    for events in traces:
        by_correlation = {work["args"]["correlation"]: work for work in _device(events)}
        last_compute: Row | None = None
        for call in _calls(events):
            work = by_correlation.get(call["args"]["correlation"])
            if work is None:
                continue
            if work["tid"] == COMPUTE:
                last_compute = work
            else:
                assert last_compute is not None
                assert work["start"] >= last_compute["end"] + 1_500


def test_gradients_are_copied_back_after_their_all_reduce(traces: list[list[Row]]) -> None:
    for events in traces:
        device = sorted(_device(events), key=lambda work: work["start"])
        reduced = [work for work in device if "Seq" in work["args"]]
        operators = {
            event["args"]["External id"]: event for event in events if event.get("cat") == "cpu_op"
        }
        back = [
            work
            for work in device
            if (operator := operators.get(work["args"].get("External id"))) is not None
            and operator["name"] == "aten::copy_"
            and work["cat"] == "kernel"
        ]
        for step in range(2):
            last_all_reduce = reduced[13 * step + 12]
            last_copy = back[len(back) // 2 * (step + 1) - 1]
            assert last_copy["start"] >= last_all_reduce["end"]


def test_every_launch_has_its_arrow_and_heads_have_half_of_one(traces: list[list[Row]]) -> None:
    for events in traces:
        starts = {event["id"] for event in events if event["ph"] == "s"}
        ends = {event["id"] for event in events if event["ph"] == "f"}
        assert starts < ends
        heads = [work for work in _device(events) if work["args"]["correlation"] not in starts]
        assert 100 < len(heads) < 400
        assert not any("External id" in work["args"] for work in heads)
        assert not any("Collective name" in work["args"] for work in heads)


def test_the_cpu_runs_ahead_by_more_than_half_a_step(traces: list[list[Row]]) -> None:
    for events in traces:
        first, last = _windows(events)
        for moment in (first["start"], last["end"]):
            behind = max(work["end"] for work in _launched_before(events, moment)) - moment
            assert behind > 9_000_000


def test_the_launch_queue_never_fills(traces: list[list[Row]]) -> None:
    for events in traces:
        end = _windows(events)[-1]["end"]
        assert sum(work["start"] > end for work in _device(events)) < 900


def test_rank_3_computes_slowest_and_rank_5_starts_last(traces: list[list[Row]]) -> None:
    compute = []
    for events in traces:
        launched = {call["args"]["correlation"] for call in _calls(events)}
        compute.append(
            sum(
                work["end"] - work["start"]
                for work in _device(events)
                if work["tid"] == COMPUTE and work["args"]["correlation"] in launched
            )
        )
    others = [total for rank, total in enumerate(compute) if rank != 3]
    assert compute[3] > 1.11 * max(others)
    starts = [_windows(events)[0]["start"] for events in traces]
    assert starts[5] - max(start for rank, start in enumerate(starts) if rank != 5) > 2_500_000


def test_main_thread_is_silent_while_the_autograd_thread_works(traces: list[list[Row]]) -> None:
    for events in traces:
        rows = [event for event in events if event.get("cat") == "cpu_op"]
        main = _windows(events)[0]["tid"]
        autograd = [row for row in rows if row["name"].startswith("autograd::engine")]
        assert autograd
        assert all(row["tid"] != main for row in autograd)
        first = min(row["start"] for row in autograd)
        middle = [row for row in autograd if row["start"] < first + 5_000_000]
        last = max(row["end"] for row in middle)
        assert not [row for row in rows if row["tid"] == main and first < row["start"] < last]


def test_step_time_in_the_traces_is_the_truth(
    traces: list[list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first: list[int] = []
    last: list[int] = []
    for events in traces:
        windows = _windows(events)
        for boundary, moment in ((first, windows[0]["start"]), (last, windows[-1]["end"])):
            works = _launched_before(events, moment)
            boundary.append(max(moment, *(work["end"] for work in works)))
    monkeypatch.syspath_prepend(str(SAMPLES))
    from make_ddp8 import truth

    assert (max(last) - max(first)) / 2 == pytest.approx(truth(900e9), abs=1)
