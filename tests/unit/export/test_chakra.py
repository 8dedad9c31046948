"""Chakra execution traces: the graph as a simulator reads it."""

import json
from pathlib import Path

import pytest

from ingest.vocab import CollectiveKind
from replay.engine.run import replay
from replay.export.chakra import write_execution_traces
from replay.graph.arrays import TaskGraph
from replay.results.chakra import COMM_COLL_NODE, COMP_NODE
from tests.builders import GraphBuilder

pytest.importorskip("google.protobuf", reason="comes with the extra `test`")
from tests.oracles import chakra

GATHER, REDUCE = CollectiveKind.ALL_GATHER, CollectiveKind.ALL_REDUCE


def _written(graph: TaskGraph, folder: Path) -> list[chakra.File]:
    made = write_execution_traces(graph, replay(graph), folder)
    return [chakra.read(path) for path in made.files]


def _two_ranks(kind: CollectiveKind = REDUCE, size_bytes: int = 8_000) -> TaskGraph:
    """Each rank computes, then all meet, then each computes again."""
    build = GraphBuilder(ranks=(4, 5))
    calls, before = {}, {}
    for rank in (4, 5):
        launch = build.call(rank, "launch", 2_000)
        before[rank] = build.kernel(rank, "before", 10_400 * (rank - 3), caller=launch)
        calls[rank] = build.call(rank, "launch collective", 3_000)
    transfers = build.collective(
        5_300, callers=calls, after=before, kind=kind, size_bytes=size_bytes
    )
    for rank, transfer in zip((4, 5), transfers, strict=True):
        after = build.kernel(rank, "after", 7_000, caller=build.call(rank, "launch after", 1_000))
        build.edge(transfer, after)
    return build.build()


def test_files_are_numbered_as_the_simulator_counts_npus(tmp_path: Path) -> None:
    made = write_execution_traces(_two_ranks(), replay(_two_ranks()), tmp_path / "et")
    assert [path.name for path in made.files] == ["replay.0.et", "replay.1.et"]
    read = [chakra.read(path) for path in made.files]
    assert [file.version for file in read] == ["0.0.4", "0.0.4"]
    assert [file.attributes for file in read] == [{"rank": 4}, {"rank": 5}]


def test_a_kernel_has_its_duration_and_waits_for_its_launch(tmp_path: Path) -> None:
    first, _ = _written(_two_ranks(), tmp_path)
    kernel = first.named("before")
    assert kernel.kind == COMP_NODE
    assert kernel.attributes["is_cpu_op"] is False
    assert (kernel.duration_us, kernel.attributes["duration_ns"]) == (10, 10_400)
    assert kernel.waits_for == (first.named("launch").number,)
    assert first.named("launch").attributes["is_cpu_op"] is True


def test_a_collective_is_one_node_on_each_rank(tmp_path: Path) -> None:
    files = _written(_two_ranks(), tmp_path)
    for file in files:
        node = file.named("ncclDevKernel_AllReduce")
        assert node.kind == COMM_COLL_NODE
        assert node.attributes["comm_type"] == 0
        assert node.attributes["comm_size"] == 8_000
        assert node.attributes["pg_name"] == "1"
        assert file.named("before").number in node.waits_for
        assert node.number in file.named("after").waits_for
    groups = json.loads((tmp_path / "comm_groups.json").read_text(encoding="utf-8"))
    assert groups == {"1": [0, 1]}


def test_an_all_gather_tells_what_each_member_puts_in(tmp_path: Path) -> None:
    first, _ = _written(_two_ranks(GATHER), tmp_path)
    node = first.named("ncclDevKernel_AllReduce")
    assert (node.attributes["comm_type"], node.attributes["comm_size"]) == (2, 4_000)


@pytest.mark.parametrize("kind", [CollectiveKind.SEND_RECV, CollectiveKind.UNKNOWN])
def test_what_a_simulator_cannot_know_keeps_its_duration(
    tmp_path: Path, kind: CollectiveKind
) -> None:
    graph = _two_ranks(kind)
    made = write_execution_traces(graph, replay(graph), tmp_path)
    assert made.traces.timed == 2
    node = chakra.read(made.files[0]).named("ncclDevKernel_AllReduce")
    assert (node.kind, node.duration_us) == (COMP_NODE, 5)


def test_without_a_size_a_collective_keeps_its_duration(tmp_path: Path) -> None:
    graph = _two_ranks(size_bytes=-1)
    assert write_execution_traces(graph, replay(graph), tmp_path).traces.timed == 2


def test_rounding_to_microseconds_loses_nothing_of_a_stream(tmp_path: Path) -> None:
    build = GraphBuilder()
    call = build.call(0, "launch", 1_000)
    for _ in range(1_000):
        build.kernel(0, "short", 1_300, caller=call)
    (file,) = _written(build.build(), tmp_path)
    durations = [node.duration_us for node in file.nodes if node.name == "short"]
    assert (sum(durations), set(durations)) == (1_300, {1, 2})


def test_who_starts_with_another_waits_for_what_that_waits_for(tmp_path: Path) -> None:
    build = GraphBuilder()
    first = build.host(0, "first", 5_000)
    blocking = build.call(0, "blocking", 9_000)
    kernel = build.kernel(0, "kernel", 4_000)
    build.edge(blocking, kernel, from_start=True)
    (file,) = _written(build.build(), tmp_path)
    assert file.named("kernel").waits_for == (first + 1,)


def test_every_node_comes_after_those_that_it_waits_for(tmp_path: Path) -> None:
    for file in _written(_two_ranks(), tmp_path):
        seen: set[int] = set()
        for node in file.nodes:
            assert set(node.waits_for) <= seen
            seen.add(node.number)
        assert len(seen) == len(file.nodes)
