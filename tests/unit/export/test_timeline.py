"""Timelines of runs that are known by hand."""

import json
from collections.abc import Mapping
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ingest.pipeline import IngestOptions
from ingest.store import Store
from replay import api
from replay.calls.reported import run_title
from tests.kineto import BASE_NS, KinetoFile
from tests.oracles.trace_format import faults, read
from whatif.scenario import Scenario
from whatif.transforms.remove import Remove
from whatif.transforms.scale import Scale

NO_CACHE = IngestOptions(cache=False)
FASTER = Scenario(transforms=(Scale(where="name:gemm", factor=0.5),))


def _file(rank: int = 0, ranks: tuple[int, ...] = (0,), late_us: float = 0.0) -> KinetoFile:
    """A product, a wait for it, and an all-reduce where there are several ranks."""
    file = KinetoFile(rank=rank, ranks=ranks)
    file.step(3, (0, 200))
    file.op("aten::mm", (5, 20))
    file.launched("gemm", (8, 12), (14, 94))
    file.call("cudaDeviceSynchronize", (30, 100))
    file.op("aten::add", (110 + late_us, 118 + late_us))
    file.launched("add", (112 + late_us, 114 + late_us), (116 + late_us, 126 + late_us))
    if len(ranks) > 1:
        file.all_reduce(1, (130 + late_us, 134 + late_us), (136 + late_us, 180))
    return file


def _export(
    tmp_path: Path, scenario: Scenario = api.UNCHANGED
) -> tuple[api.Exported, dict[str, Any]]:
    trace = _file().write(tmp_path / "rank0.json")
    output = tmp_path / "out.json"
    made = api.export_timeline([trace], scenario, output=output, options=NO_CACHE)
    return made, read(output)


def _tracks(document: Mapping[str, Any]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Slices by the names of process and track."""
    events = document["traceEvents"]
    process = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    thread = {e["pid"]: {} for e in events}
    for event in events:
        if event["name"] == "thread_name":
            thread[event["pid"]][event["tid"]] = event["args"]["name"]
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for event in events:
        if event["ph"] == "X":
            place = (process[event["pid"]], thread[event["pid"]][event["tid"]])
            found.setdefault(place, []).append(event)
    return found


def _span(event: Mapping[str, Any]) -> tuple[float, float]:
    return float(event["ts"]), float(Decimal(event["ts"]) + Decimal(event["dur"]))


def _named(events: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (found,) = (event for event in events if event["name"] == name)
    return found


def test_the_recorded_half_is_the_recording(tmp_path: Path) -> None:
    _, document = _export(tmp_path, FASTER)
    tracks = _tracks(document)
    assert document["baseTimeNanoseconds"] == BASE_NS
    main = tracks["rank 0 recorded", "main"]
    assert _span(_named(main, "aten::mm")) == (5, 20)
    assert _span(_named(main, "cudaDeviceSynchronize")) == (30, 100)
    assert _span(_named(tracks["rank 0 recorded", "GPU 0 stream 7"], "gemm")) == (14, 94)


def test_a_kernel_twice_as_fast_lets_the_host_go_on_earlier(tmp_path: Path) -> None:
    made, document = _export(tmp_path, FASTER)
    tracks = _tracks(document)
    assert made.steps_ns["recorded"] - made.steps_ns["predicted"] == 40_000
    main = tracks["rank 0 predicted", "main"]
    assert _span(_named(tracks["rank 0 predicted", "GPU 0 stream 7"], "gemm")) == (14, 54)
    assert _span(_named(main, "aten::mm")) == (5, 20)
    assert _span(_named(main, "cudaDeviceSynchronize")) == (30, 60)
    assert _span(_named(main, "aten::add")) == (70, 78)
    assert _span(_named(tracks["run", "steps predicted"], "step 3")) == (0, 160)


def test_what_a_thread_waits_for_is_a_slice_of_its_own(tmp_path: Path) -> None:
    _, document = _export(tmp_path, FASTER)
    tracks = _tracks(document)
    wait = _named(tracks["rank 0 recorded", "main"], "wait for device")
    call = _named(tracks["rank 0 recorded", "main"], "cudaDeviceSynchronize")
    assert _span(call)[0] <= _span(wait)[0] < _span(wait)[1] <= _span(call)[1]
    assert wait["args"]["replay"]["started_by"]["name"] == "gemm"
    shorter = _named(tracks["rank 0 predicted", "main"], "wait for device")
    assert wait["dur"] - shorter["dur"] == 40


def test_arguments_tell_what_a_task_is_and_what_changed(tmp_path: Path) -> None:
    _, document = _export(tmp_path, FASTER)
    tracks = _tracks(document)
    recorded = _named(tracks["rank 0 recorded", "GPU 0 stream 7"], "gemm")["args"]
    assert recorded["correlation"] == 1
    assert recorded["replay"]["op"] == "aten::mm"
    assert recorded["replay"]["critical"] is True
    assert recorded["replay"]["slack_ns"] == 0
    assert recorded["replay"]["started_by"]["edge"] == "launch"
    assert "dur_change_ns" not in recorded["replay"]
    predicted = _named(tracks["rank 0 predicted", "GPU 0 stream 7"], "gemm")["args"]
    assert (predicted["correlation"], predicted["stream"]) == (1, 7)
    assert predicted["replay"]["dur_change_ns"] == -40_000
    assert predicted["replay"]["start_change_ns"] == 0
    later = _named(tracks["rank 0 predicted", "GPU 0 stream 7"], "add")["args"]["replay"]
    assert (later["start_change_ns"], later["dur_change_ns"]) == (-40_000, 0)


@pytest.mark.parametrize("version", ["recorded", "predicted"])
def test_the_critical_path_fills_the_steps_without_a_hole(tmp_path: Path, version: str) -> None:
    _, document = _export(tmp_path, FASTER)
    tracks = _tracks(document)
    path = tracks["run", f"critical path {version}"]
    (step,) = tracks["run", f"steps {version}"]
    moments = [_span(piece) for piece in path]
    assert moments[0][0] == _span(step)[0]
    assert moments[-1][1] == _span(step)[1]
    assert all(one[1] == other[0] for one, other in pairwise(moments))
    assert {"gemm", "cudaDeviceSynchronize"} <= {piece["name"] for piece in path}


def test_idle_time_of_the_device_has_its_cause(tmp_path: Path) -> None:
    _, document = _export(tmp_path)
    idle = _tracks(document)["rank 0 recorded", "GPU 0 idle"]
    gap = next(event for event in idle if _span(event) == (94, 116))
    assert gap["name"] in {"host late", "sync drain"}
    assert gap["args"]["next"] == "add"
    assert sum(gap["args"]["shares_ns"].values()) == 22_000


def test_every_launch_has_its_arrow(tmp_path: Path) -> None:
    made, document = _export(tmp_path, FASTER)
    starts = [event for event in document["traceEvents"] if event["ph"] == "s"]
    assert made.timelines.flows == len(starts) == 4
    assert {event["cat"] for event in starts} == {"launch"}


def test_without_a_what_if_the_strict_replay_stands_beside_the_recording(tmp_path: Path) -> None:
    made, document = _export(tmp_path)
    assert list(made.steps_ns) == ["recorded", "replayed"]
    assert ("rank 0 replayed", "main") in _tracks(document)


def test_members_of_a_collective_wait_and_then_transfer(tmp_path: Path) -> None:
    for rank, late_us in ((0, 0.0), (1, 24.0)):
        _file(rank, (0, 1), late_us).write(tmp_path / f"rank{rank}.json")
    output = tmp_path / "out.json"
    api.export_timeline([tmp_path], output=output, options=NO_CACHE)
    document = read(output)
    assert faults(document) == []
    tracks = _tracks(document)
    early = tracks["rank 0 recorded", "GPU 0 stream 20"]
    assert [event["name"].split("_")[0] for event in early] == [
        "ncclDevKernel",
        "wait for members",
        "transfer",
    ]
    assert [_span(event) for event in early] == [(136, 180), (136, 160), (160, 180)]
    late = tracks["rank 1 recorded", "GPU 0 stream 20"]
    assert [_span(event) for event in late] == [(160, 180), (160, 180)]
    arrows = [e for e in document["traceEvents"] if e.get("cat") == "collective"]
    recorded = [event for event in arrows if event["id"] == arrows[0]["id"]]
    assert [(event["ph"], float(event["ts"])) for event in recorded] == [("s", 136), ("f", 160)]


def test_steps_of_both_halves_begin_together(tmp_path: Path) -> None:
    trace = tmp_path / "rank0.json"
    file = _file()
    file.launched("warm up", (-50, -48), (-46, -6))
    file.write(trace)
    output = tmp_path / "out.json"
    api.export_timeline([trace], FASTER, output=output, options=NO_CACHE)
    tracks = _tracks(read(output))
    (recorded,), (predicted,) = (
        tracks["run", f"steps {version}"] for version in ("recorded", "predicted")
    )
    assert recorded["ts"] == predicted["ts"] == 50


def test_chosen_steps_begin_with_the_first_call_of_their_host(tmp_path: Path) -> None:
    file = KinetoFile()
    for number in range(3):
        begin = 100.0 * number
        file.step(number, (begin, begin + 100))
        file.launched(f"kernel {number}", (begin + 10, begin + 12), (begin + 130, begin + 220))
    trace = file.write(tmp_path / "rank0.json")
    output = tmp_path / "out.json"
    api.export_timeline(
        [trace], output=output, options=NO_CACHE, window=api.Window(steps=range(1, 2))
    )
    tracks = _tracks(read(output))
    device = [event["name"] for event in tracks["rank 0 recorded", "GPU 0 stream 7"]]
    assert "kernel 1" in device
    assert "kernel 2" not in device
    calls = [e for e in tracks["rank 0 recorded", "main"] if e["name"] == "cudaLaunchKernel"]
    assert len(calls) >= 1
    kernel = _named(tracks["rank 0 recorded", "GPU 0 stream 7"], "kernel 1")["args"]
    assert kernel["correlation"] in {call["args"]["correlation"] for call in calls}


def test_removed_work_takes_no_time_and_is_still_shown(tmp_path: Path) -> None:
    gone = Scenario(transforms=(Remove(where="name:gemm"),))
    _, document = _export(tmp_path, gone)
    assert faults(document) == []
    kernel = _named(_tracks(document)["rank 0 predicted", "GPU 0 stream 7"], "gemm")
    assert kernel["dur"] == 0


def test_a_folder_gets_one_trace_per_rank_and_version(tmp_path: Path) -> None:
    for rank in (0, 1):
        _file(rank, (0, 1)).write(tmp_path / f"rank{rank}.json")
    folder = tmp_path / "out"
    made = api.export_timeline([tmp_path], FASTER, output=folder, options=NO_CACHE)
    names = [str(path.relative_to(folder)) for path in made.timelines.files]
    assert names == [
        f"{version}/rank{rank}.json.gz" for version in ("recorded", "predicted") for rank in (0, 1)
    ]
    document = read(folder / "predicted" / "rank1.json.gz")
    assert faults(document) == []
    assert document["distributedInfo"]["rank"] == 1
    categories = {e["cat"] for e in document["traceEvents"] if e["ph"] == "X"}
    assert categories == {"user_annotation", "cpu_op", "cuda_runtime", "kernel"}


@pytest.mark.parametrize("half", ["recorded", "predicted"])
def test_the_files_of_a_half_read_back_give_its_step(tmp_path: Path, half: str) -> None:
    for rank in (0, 1):
        _file(rank, (0, 1), 24.0 * rank).write(tmp_path / f"rank{rank}.json")
    folder = tmp_path / "out"
    made = api.export_timeline([tmp_path], FASTER, output=folder, options=NO_CACHE)
    answer = api.analyse([folder / half], options=NO_CACHE)
    assert answer.baseline.measured_ns == made.steps_ns[half]


def test_recorded_arguments_that_are_no_json_stay_as_text(tmp_path: Path) -> None:
    text = _file().write(tmp_path / "rank0.json").read_text(encoding="utf-8")
    broken = text.replace('"correlation": 1}', '"correlation": 1, "bytes": NaN}')
    assert broken != text
    (tmp_path / "rank0.json").write_text(broken, encoding="utf-8")
    output = tmp_path / "out.json"
    api.export_timeline([tmp_path / "rank0.json"], output=output, options=NO_CACHE)
    assert faults(read(output)) == []
    assert "NaN" not in json.dumps(json.loads(output.read_text(encoding="utf-8"))["otherData"])


def test_arguments_of_many_streams_are_read_by_one_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = KinetoFile()
    file.step(3, (0, 1000))
    for number in range(50):
        at = 10.0 * number
        file.launched(f"k{number}", (at, at + 2), (at + 3, at + 9), stream=7 + number)
    trace = file.write(tmp_path / "rank0.json")
    asked: list[int] = []
    read_file = Store.arrays_from_file

    def counted(self: Store, path: Path, params: dict[str, object]) -> object:
        asked.append(path.name == "timeline_args.sql")
        return read_file(self, path, params)

    monkeypatch.setattr(Store, "arrays_from_file", counted)
    api.export_timeline([trace], api.UNCHANGED, output=tmp_path / "out.json", options=NO_CACHE)
    kernels = [
        one for one in read(tmp_path / "out.json")["traceEvents"] if one.get("cat") == "kernel"
    ]
    assert {one["args"]["stream"] for one in kernels} == {7 + number for number in range(50)}
    assert sum(asked) <= 3


def test_a_run_is_named_by_as_many_words_as_tell_its_files_apart() -> None:
    assert run_title(["/a/x/rank0.json", "/a/x/rank0.json"]) == "rank0.json"
    assert run_title(["/a/x/rank0.json", "/a/y/rank0.json"]) == "x/rank0.json y/rank0.json"
    assert run_title(["/a/x"]) == "x"
