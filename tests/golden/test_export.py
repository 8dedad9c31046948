"""Timelines of real runs: valid, drawn by others as by us, and readable as recordings.

The traces lie in the folder `shared/` beside the checkout; the sample is in the repository.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest.pipeline import IngestOptions
from ingest.vocab import EdgeKind
from replay import api
from replay.cli.stack import Typed
from replay.cli.what_ifs import scenario_in
from replay.run import Run
from tests.oracles.trace_format import faults, read, slices_by_track

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
SAMPLE = ROOT / "sample_traces" / "ddp8_h100"
HALF_NETWORK = scenario_in([Typed("network_scale", "2")])
RUNS = {
    "ddp8": (SAMPLE, HALF_NETWORK),
    "torchtitan": (SHARED / "traces/h100x4_torchtitan_fsdp_A", HALF_NETWORK),
    "torchrec": (SHARED / "traces/v100x4_torchrec_fp32", scenario_in([Typed("net", "x2")])),
    "mi300": (SHARED / "traces/single/mi300_resnet_ddp.json.gz", api.UNCHANGED),
    "vllm": (
        SHARED / "traces/single/vllm_piecewise_graphs.json.gz",
        scenario_in([Typed("fuse", "class:elementwise")]),
    ),
    "hta_meta": (SHARED / "traces/hta_meta_128gpu_sampled", HALF_NETWORK),
    "cpu_only": (
        SHARED / "traces/single/cpu_only_rank34of300.json.gz",
        scenario_in([Typed("host_scale", "2")]),
    ),
    "gloo": (SHARED / "groundtruth/ddp/1g", HALF_NETWORK),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> IngestOptions:
    """Each run is read once for all tests."""
    return IngestOptions(cache_dir=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def sample(kept: IngestOptions) -> Iterator[Run]:
    with api.open_run(SAMPLE, options=kept) as run:
        yield run


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory, kept: IngestOptions) -> dict[str, Any]:
    """The timeline of the sample, without a what-if."""
    output = tmp_path_factory.mktemp("drawn") / "out.json.gz"
    api.export_timeline([SAMPLE], output=output, options=kept)
    return read(output)


def _path(name: str) -> Path:
    path, _ = RUNS[name]
    if not path.exists():
        pytest.skip("no folder shared/ beside the checkout")
    return path


@pytest.mark.parametrize("name", RUNS)
def test_the_timeline_of_a_real_run_keeps_to_the_format(
    name: str, tmp_path: Path, kept: IngestOptions
) -> None:
    output = tmp_path / "out.json.gz"
    made = api.export_timeline([_path(name)], RUNS[name][1], output=output, options=kept)
    document = read(output)
    assert faults(document) == []
    events = document["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == made.timelines.slices
    assert sum(event["ph"] == "s" for event in events) == made.timelines.flows
    assert output.stat().st_size == made.timelines.size_bytes


@pytest.mark.parametrize("name", ["ddp8", "torchrec", "vllm", "cpu_only", "gloo"])
def test_each_half_read_as_a_recording_has_the_step_that_it_shows(
    name: str, tmp_path: Path, kept: IngestOptions
) -> None:
    folder = tmp_path / "out"
    path, scenario = _path(name), RUNS[name][1]
    made = api.export_timeline([path], scenario, output=folder, options=kept)
    before = api.replay_run([path], options=kept)
    recorded = api.replay_run([folder / "recorded"], options=kept)
    assert recorded.baseline.measured.mean_ns == before.baseline.measured.mean_ns
    assert recorded.graph.steps == before.graph.steps
    assert recorded.graph.steps_recorded == before.graph.steps_recorded
    label, step_ns = list(made.steps_ns.items())[1]
    other = api.replay_run([folder / label], options=kept)
    assert other.baseline.measured.mean_ns == step_ns


def test_the_critical_path_and_the_idle_time_are_those_of_the_tables(
    drawn: dict[str, Any], sample: Run
) -> None:
    names = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in drawn["traceEvents"]
        if event["name"] == "thread_name"
    }
    tracks = slices_by_track(drawn["traceEvents"])
    by_name = {names[place]: events for place, events in tracks.items() if place[0] == 1}
    length_ns = sum(round(event["dur"] * 1000) for event in by_name["critical path recorded"])
    ((expected_ns,),) = sample.rows("SELECT sum(total_dur)::BIGINT FROM critical_path").rows
    ((idle_ns,),) = sample.rows(
        "SELECT sum(dur)::BIGINT FROM device_idle WHERE cause <> 'short'"
    ).rows
    assert length_ns == expected_ns
    pids = {
        event["pid"]
        for event in drawn["traceEvents"]
        if event["name"] == "process_name" and event["args"]["name"].endswith("recorded")
    }
    idle = [
        event
        for place, events in tracks.items()
        if place[0] in pids and "idle" in names[place]
        for event in events
    ]
    assert sum(round(event["dur"] * 1000) for event in idle) == idle_ns


def test_what_started_a_task_is_an_edge_of_the_graph(drawn: dict[str, Any], sample: Run) -> None:
    edges = set(sample.rows("SELECT src_id, dst_id, kind FROM edge WHERE binding").rows)
    told = [
        event["args"]["replay"]
        for event in drawn["traceEvents"]
        if event["ph"] == "X"
        and event["cat"] == "kernel"
        and "correlation" in event["args"]
        and "start_change_ns" not in event["args"]["replay"]
        and "started_by" in event["args"]["replay"]
    ]
    assert len(told) > 4_000
    kinds = {kind.name.lower() for kind in EdgeKind}
    for one in told:
        by = one["started_by"]
        assert by["edge"] in kinds
        assert (by["task"], one["task"], by["edge"]) in edges


@pytest.mark.filterwarnings("ignore")  # of pandas, about what HTA does
def test_hta_reads_both_halves_and_counts_the_same_kernel_time(
    tmp_path: Path, kept: IngestOptions
) -> None:
    pytest.importorskip("hta", reason="comes with the extra `hta`")
    folder, window = tmp_path / "out", api.Window(ranks=(2, 3))
    api.export_timeline([SAMPLE], HALF_NETWORK, output=folder, window=window, options=kept)
    expected = _kernel_times([SAMPLE / "rank2.json.gz", SAMPLE / "rank3.json.gz"])
    recorded = _kernel_times(sorted((folder / "recorded").glob("*.gz")))
    predicted = _kernel_times(sorted((folder / "predicted").glob("*.gz")))
    for rank, (kernels, total_us) in expected.items():
        rounded_us = 3 * kernels**0.5  # HTA rounds each to a microsecond after the file's origin
        assert recorded[rank] == (kernels, pytest.approx(total_us, abs=rounded_us))
        assert predicted[rank][0] == kernels
        assert predicted[rank][1] < total_us - rounded_us


def _kernel_times(files: list[Path]) -> dict[int, tuple[int, float]]:
    """Kernels and their time by rank, as HTA's own parser has them."""
    from hta.common.trace import Trace

    trace = Trace(trace_files={_rank(file): str(file) for file in files}, trace_dir="")
    trace.parse_traces(max_ranks=len(files), use_multiprocessing=False)
    found = {}
    for rank in trace.get_all_traces():
        frame = trace.get_trace(rank)
        symbols = trace.symbol_table.get_sym_table()
        kernels = frame[[symbols[number] == "kernel" for number in frame["cat"]]]
        found[rank] = (len(kernels), float(kernels["dur"].sum()))
    return found


def _rank(file: Path) -> int:
    with gzip.open(file, "rt", encoding="utf-8") as opened:
        document: dict[str, Any] = json.load(opened)
    return int(document["distributedInfo"]["rank"])
