"""Selectors: which tasks a text means."""

import numpy as np
import pytest

from ingest.errors import ScenarioError, UsageError
from ingest.vocab import KernelClass, Phase, TaskKind
from replay.graph.arrays import TaskGraph
from tests.builders import GraphBuilder
from whatif.transforms.select import select


@pytest.fixture
def graph() -> TaskGraph:
    build = GraphBuilder(ranks=(0, 1))
    callers = {}
    for rank in (0, 1):
        build.host(rank, "aten::mm", 5, op="aten::mm")
        launch = build.call(rank, "cudaLaunchKernel", 5)
        build.kernel(
            rank,
            "gemm<int, 4>",
            10,
            caller=launch,
            op="aten::mm",
            module="mlp",
            phase=Phase.FORWARD,
        )
        build.kernel(rank, "add", 10, kernel_class=KernelClass.ELEMENTWISE, stream=9)
        build.kernel(rank, "Memcpy HtoD", 10, kind=TaskKind.MEMCPY, kernel_class=KernelClass.MEMCPY)
        callers[rank] = build.call(rank, "cudaLaunchKernelExC", 5)
    build.collective(10, callers=callers)
    return build.build()


def names(graph: TaskGraph, text: str) -> list[str]:
    return sorted({graph.names[name] for name in graph.tasks.name[select(graph, text)]})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name:gemm*", ["gemm<int, 4>"]),
        ("name:gemm<int, 4>", ["gemm<int, 4>"]),
        ("class:gemm", ["gemm<int, 4>"]),
        ("class:compute", ["add", "gemm<int, 4>"]),
        ("class:memcpy", ["Memcpy HtoD"]),
        ("class:collective", ["ncclDevKernel_AllReduce"]),
        ("class:host", ["aten::mm", "cudaLaunchKernel", "cudaLaunchKernelExC"]),
        ("stream:9", ["add"]),
        ("op:aten::mm,class:compute", ["gemm<int, 4>"]),
        ("module:mlp", ["gemm<int, 4>"]),
        ("phase:forward", ["gemm<int, 4>"]),
        ("class:compute, stream:7", ["gemm<int, 4>"]),
    ],
)
def test_a_selector_names_its_tasks(graph: TaskGraph, text: str, expected: list[str]) -> None:
    assert names(graph, text) == expected


def test_a_rank_selects_tasks_of_that_rank_only(graph: TaskGraph) -> None:
    assert np.unique(graph.tasks.rank[select(graph, "rank:1")]).tolist() == [1]


def test_meetings_are_never_selected(graph: TaskGraph) -> None:
    assert TaskKind.MEET not in graph.tasks.kind[select(graph, "name:*")]


def test_names_are_case_sensitive(graph: TaskGraph) -> None:
    with pytest.raises(ScenarioError, match=r"no task matches `name:GEMM\*`"):
        select(graph, "name:GEMM*")


@pytest.mark.parametrize(
    ("text", "nearby"),
    [
        ("class:gem", "gemm"),
        ("name:gemn*", "gemm<int, 4>"),
        ("op:aten::mn", "aten::mm"),
        ("rank:7", "0"),
        ("stream:8", "7"),
    ],
)
def test_no_match_is_refused_with_the_nearest_names(
    graph: TaskGraph, text: str, nearby: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        select(graph, text)
    assert nearby in caught.value.hint
    assert caught.value.exit_code == 4


def test_parts_that_never_meet_in_one_task_are_refused(graph: TaskGraph) -> None:
    with pytest.raises(ScenarioError, match="no task matches all of"):
        select(graph, "class:gemm,stream:9")


@pytest.mark.parametrize("text", ["", "gemm", "colour:red", "name:", "class:gemm,colour:red"])
def test_what_is_no_selector_is_refused_with_the_keys(graph: TaskGraph, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        select(graph, text)
    assert "name, class, stream, rank, op, module, phase" in caught.value.hint
