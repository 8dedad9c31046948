"""Gradients in fewer bytes: what is sent, what the codec costs, and what stays."""

from dataclasses import replace

import numpy as np
import pytest

from ingest.errors import ScenarioError, UsageError
from ingest.vocab import CollectiveKind, Phase, TaskKind
from replay.engine.run import replay
from replay.graph.arrays import TaskGraph
from tests.builders import GraphBuilder
from whatif.models.bound import Bound
from whatif.recorded import Recorded
from whatif.transforms.base import Applied, Context
from whatif.transforms.compress import Compress, parse_method

GIB = 1 << 30
MOVE_NS = 100_000_000


def gradients(
    *,
    item_bytes: int = 4,
    kind: CollectiveKind = CollectiveKind.ALL_REDUCE,
    phase: Phase = Phase.BACKWARD,
    gpu: str | None = "NVIDIA H100 80GB HBM3",
) -> TaskGraph:
    """Each rank: a kernel of 1 ms, a reduction of 1 GiB in 100 ms, a kernel that waits for it."""
    ranks = (0, 1, 2, 3)
    build = GraphBuilder(ranks=ranks, gpu=gpu, item_bytes=item_bytes)
    kernels, callers = {}, {}
    for rank in ranks:
        call = build.call(rank, "c", 10_000)
        kernels[rank] = build.kernel(rank, "backward", 1_000_000, caller=call)
        callers[rank] = build.call(rank, "c", 10_000)
    members = build.collective(MOVE_NS, callers=callers, after=kernels, kind=kind, size_bytes=GIB)
    for rank, member in zip(ranks, members, strict=True):
        build.edge(member, build.kernel(rank, "optimizer", 1_000, caller=callers[rank]))
    graph = build.build()
    return replace(graph, tasks=replace(graph.tasks, phase=np.full(graph.n_tasks, phase, np.int8)))


def compress(
    graph: TaskGraph, method: str, where: str = "", bound: Bound = Bound.NOMINAL, **said: object
) -> Applied:
    context = Context(bound=bound, recorded=Recorded(**said))
    return Compress(method=method, where=where).apply(graph, context)


def transfer_ns(graph: TaskGraph) -> int:
    return int(graph.tasks.dur_ns[graph.tasks.kind == TaskKind.TRANSFER].max())


def codec_ns(graph: TaskGraph, word: str) -> list[int]:
    names = [number for number, name in enumerate(graph.names) if name.endswith(word)]
    return graph.tasks.dur_ns[np.isin(graph.tasks.name, names)].tolist()


@pytest.mark.parametrize(("method", "part"), [("bf16", 0.5), ("fp8", 0.25)])
def test_bytes_follow_the_element_type(method: str, part: float) -> None:
    applied = compress(gradients(), method)
    assert transfer_ns(applied.graph) == pytest.approx(part * MOVE_NS, rel=0.1)
    assert applied.graph.collectives.size_bytes.tolist() == [part * GIB]
    assert applied.assumptions[0] == f"1 collectives of 1,074 MB in all are sent as {method}"


def test_the_codec_reads_and_writes_memory_before_and_after() -> None:
    graph = compress(gradients(), "fp8").graph
    expected_ns = 1.25 * GIB / (0.8 * 3.35e12) * 1e9
    assert codec_ns(graph, "encode") == pytest.approx([expected_ns] * 4, rel=0.01)
    assert codec_ns(graph, "decode") == pytest.approx([expected_ns] * 4, rel=0.01)
    schedule = replay(graph)
    end_ns = 10_000 + 1_000_000 + 2 * expected_ns + transfer_ns(graph) + 1_000
    assert schedule.end_ns.max() == pytest.approx(end_ns, rel=0.001)


def test_a_member_of_a_reduce_scatter_decodes_its_own_part_only() -> None:
    graph = compress(gradients(kind=CollectiveKind.REDUCE_SCATTER), "bf16").graph
    encode, decode = codec_ns(graph, "encode")[0], codec_ns(graph, "decode")[0]
    assert decode == pytest.approx(encode / 4, rel=0.01)


def test_a_member_of_an_all_gather_encodes_its_own_part_only() -> None:
    applied = compress(gradients(kind=CollectiveKind.ALL_GATHER), "bf16", "class:collective")
    encode, decode = codec_ns(applied.graph, "encode")[0], codec_ns(applied.graph, "decode")[0]
    assert encode == pytest.approx(decode / 4, rel=0.01)


def test_the_largest_are_gathered_with_their_places() -> None:
    applied = compress(gradients(), "topk:0.01")
    assert applied.graph.collectives.kind.tolist() == [CollectiveKind.ALL_GATHER]
    assert applied.graph.collectives.size_bytes[0] == pytest.approx(4 * 0.02 * GIB, rel=0.001)
    assert transfer_ns(applied.graph) < 0.1 * MOVE_NS
    assert codec_ns(applied.graph, "encode")[0] > codec_ns(applied.graph, "decode")[0]


def test_the_range_of_the_codec_is_from_half_to_twice() -> None:
    low, middle, high = (
        codec_ns(compress(gradients(), "fp8", bound=bound).graph, "encode")[0]
        for bound in (Bound.LOW, Bound.NOMINAL, Bound.HIGH)
    )
    assert low * 2 == pytest.approx(middle, rel=0.01)
    assert high == pytest.approx(middle * 2, rel=0.01)


@pytest.mark.parametrize(
    ("graph", "method", "reason"),
    [
        (gradients(item_bytes=2), "bf16", "these collectives send no wider elements than bf16"),
        (gradients(item_bytes=-1), "bf16", "sizes or element types of these collectives"),
        (gradients(phase=Phase.FORWARD), "fp8", "no collective of this run is known to reduce"),
        (
            gradients(kind=CollectiveKind.REDUCE_SCATTER),
            "topk:0.1",
            "only all-reduces can send the largest gradients",
        ),
    ],
)
def test_what_stays_says_why(graph: TaskGraph, method: str, reason: str) -> None:
    applied = compress(graph, method)
    assert applied.graph is graph
    assert applied.no_effect is not None
    assert applied.no_effect.startswith(reason)


def test_a_selector_chooses_other_collectives() -> None:
    graph = gradients(phase=Phase.FORWARD)
    applied = compress(graph, "bf16", "class:collective")
    assert transfer_ns(applied.graph) < 0.6 * MOVE_NS
    assert Compress(method="bf16", where="name:a").flag == "--compress bf16@name:a"


def test_the_memory_must_be_known() -> None:
    with pytest.raises(ScenarioError, match="memory of Prototype 1") as caught:
        compress(gradients(gpu="Prototype 1"), "fp8")
    assert "--base-gpu" in caught.value.hint
    assert compress(gradients(gpu="Prototype 1"), "fp8", gpu="H100").no_effect is None


@pytest.mark.parametrize("method", ["fp4", "topk", "topk:0", "topk:2", "topk:few", ""])
def test_what_is_no_method_is_refused(method: str) -> None:
    with pytest.raises(UsageError):
        parse_method(method)
