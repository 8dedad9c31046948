"""Matrix products in the wrong type or far from the roof, slow links, uneven ranks."""

from dataclasses import replace

import numpy as np
import pytest

from ingest.vocab import ElementType, TaskKind
from replay.graph.arrays import TaskGraph
from replay.graph.work import KernelWork
from replay.results.flops import RecordedFlops
from tests.builders import GraphBuilder
from tests.unit.postmortem.graphs import MS, US, Tables, material_of_findings, one_rank, training
from tests.unit.report.findings import findings_of
from whatif.postmortem.contract import Confidence
from whatif.postmortem.findings import (
    matrix_below_roof,
    matrix_precision,
    slow_links,
    unbalanced_ranks,
)
from whatif.postmortem.findings.rules import findings
from whatif.postmortem.material import Material

FP32_PEAK = 67e12
"""Of the vector units of an H100, FLOP/s; its bf16 peak is 990e12."""


def with_work(graph: TaskGraph, *, flops: float, dtype: ElementType) -> TaskGraph:
    """Every kernel is a product of so many FLOPs that reads and writes little."""
    tasks = np.flatnonzero(graph.tasks.kind == TaskKind.KERNEL)
    many = np.full(len(tasks), 1.0)
    return replace(
        graph,
        work=KernelWork(
            slice_id=graph.tasks.slice_id[tasks],
            flops=many * flops,
            bytes=many * 1e8,
            operand_bytes=many * 5e7,
            dtype=np.full(len(tasks), dtype, np.int8),
            tiles=np.full(len(tasks), -1, np.int64),
        ),
    )


def products(*, flops: float, dtype: ElementType, recorded: str, steps: int = 3) -> Material:
    """One GPU, one product of 20 ms a step, with the FLOPs that its shape tells."""
    found = findings_of(with_work(one_rank(steps=steps), flops=flops, dtype=dtype))
    told = RecordedFlops(
        per_step=flops,
        by_dtype={recorded: 1.0},
        matrix_ns=steps * 20 * MS,
        counted_ns=steps * 20 * MS,
        devices=1,
    )
    return material_of_findings(replace(found, flops=told))


def test_products_in_single_precision_are_told_with_what_bf16_would_save() -> None:
    material = products(flops=0.8 * FP32_PEAK * 0.02, dtype=ElementType.FP32, recorded="float")
    found = matrix_precision.rule(material)
    assert found is not None
    assert found.flag == "--precision bf16"
    assert found.insight.startswith("100% of the FLOPs of matrix products are in single precision")
    assert found.saving_ns is not None
    assert found.saving_ns > 10 * MS
    assert found.confidence is not Confidence.HIGH


def test_products_in_bf16_near_the_roof_are_no_finding() -> None:
    material = products(flops=0.6 * 990e12 * 0.02, dtype=ElementType.BF16, recorded="c10::BFloat16")
    assert matrix_precision.rule(material) is None
    assert matrix_below_roof.rule(material) is None
    assert findings(material) == ()


def test_products_far_below_the_roof_are_told_with_their_share_of_it() -> None:
    material = products(flops=0.2 * 990e12 * 0.02, dtype=ElementType.BF16, recorded="c10::BFloat16")
    found = matrix_below_roof.rule(material)
    assert found is not None
    assert found.insight.startswith("matrix kernels reach 20% of the device's bf16 peak")
    assert found.flag == "--scale class:gemm=0.5"
    assert found.confidence is Confidence.LOW


def collectives(busbw_gbps: float, size_mb: float = 1_000.0, group_size: int = 2) -> Tables:
    """Tables in which there is one all-reduce of this bus bandwidth."""
    row = {
        "kind": "all_reduce",
        "members": group_size,
        "bytes": size_mb * 1e6,
        "operations": 3,
        "transfer_p50_ns": 9 * MS,
        "busbw_p50_bytes_per_s": busbw_gbps * 1e9,
    }
    return Tables(comm_by_size=row)


def linked() -> Material:
    """Two ranks that wait for an all-reduce of 1 GB and 9 ms in each step."""
    builder = GraphBuilder(ranks=(0, 1), item_bytes=2)
    for step in range(3):
        callers, gemms = {}, {}
        for rank in (0, 1):
            launch = builder.call(rank, "cudaLaunchKernel", 5 * US, step=step)
            gemms[rank] = builder.kernel(rank, "gemm", 10 * MS, caller=launch, step=step, stream=20)
            callers[rank] = builder.call(rank, "cudaLaunchKernelExC", 5 * US, step=step)
        builder.collective(
            9 * MS, callers=callers, after=gemms, step=step, size_bytes=1_000_000_000
        )
    return material_of_findings(findings_of(builder.build()))


def test_a_link_far_below_its_roof_is_told_with_what_its_usual_rate_saves() -> None:
    found = slow_links.rule(replace(linked(), ask=collectives(111.0)))
    assert found is not None
    assert found.insight == "all_reduce of 1,000 MB runs at 111 GB/s, 25% of the link"
    # 450 GB/s one way: three quarters of it are 3.04 times as much.
    assert found.flag == "--nvlink x3.04"
    assert found.saving_ns is not None
    assert 0.5 * 9 * MS < found.saving_ns < 9 * MS


@pytest.mark.parametrize(
    "ask",
    [collectives(340.0), collectives(111.0, size_mb=1.0), collectives(111.0, group_size=16)],
    ids=["as fast as elsewhere", "small", "between nodes"],
)
def test_a_link_that_does_what_it_can_is_no_finding(ask: Tables) -> None:
    assert slow_links.rule(replace(linked(), ask=ask)) is None


def test_uneven_compute_is_told_where_no_rank_is_the_straggler() -> None:
    graph = training(slow={1: 1.5})
    found = findings_of(graph)
    assert unbalanced_ranks.rule(material_of_findings(found)) is None  # the straggler tells it
    late = replace(found.run, late=replace(found.run.late, ranks=()))
    told = unbalanced_ranks.rule(material_of_findings(replace(found, run=late)))
    assert told is not None
    assert told.insight == "rank 1 computes 30.00 ms a step, the median rank 25.00 ms"


def test_even_compute_is_no_finding() -> None:
    assert unbalanced_ranks.rule(material_of_findings(findings_of(training()))) is None
