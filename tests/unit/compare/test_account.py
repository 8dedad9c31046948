"""Where the time of small runs goes, known by hand."""

from dataclasses import replace

import numpy as np

from ingest.vocab import KernelClass, TaskKind
from tests.builders import GraphBuilder
from tests.sides import ALL_REDUCE, COPY, Work, graph_of, run_of, side_of
from whatif.compare.account import account
from whatif.compare.leaves import Account, Idle, Part
from whatif.compare.sums import whole_numbers


def spent(found: Account) -> dict[tuple[Part, str], int]:
    """By part and cause, without what takes no time."""
    total: dict[tuple[Part, str], int] = {}
    for leaf in found.leaves:
        key = (leaf.key.part, str(leaf.key.cause))
        total[key] = total.get(key, 0) + leaf.spent_ns
    return {key: ns for key, ns in total.items() if ns}


def test_host_bound_steps_are_host_work_by_operator() -> None:
    """Host 1,000 + call 500, then the kernel of 300 while the next host work begins."""
    step = [Work(host="aten::a", dur_ns=300), Work(host="aten::b", dur_ns=300)]
    found = account(run_of(step))
    assert found.step_ns == 3_300
    idle = {leaf.key.name: leaf.spent_ns for leaf in found.leaves if leaf.key.part is Part.IDLE}
    assert idle == {"aten::a": 1_000, "aten::b": 700, "cudaLaunchKernel": 1_000}
    assert spent(found)[Part.COMPUTE, "gemm"] == 600


def test_kernels_that_run_at_once_share_the_instant() -> None:
    builder = GraphBuilder()
    call = builder.call(0, "cudaLaunchKernel", 100)
    builder.kernel(0, "long", 900, caller=call, stream=7, kernel_class=KernelClass.GEMM)
    builder.kernel(0, "short", 300, caller=call, stream=8, kernel_class=KernelClass.REDUCTION)
    found = account(side_of(builder.build()))
    by_name = {leaf.key.name: (leaf.spent_ns, leaf.raw_ns) for leaf in found.leaves}
    assert by_name == {"cudaLaunchKernel": (100, 100), "long": (750, 900), "short": (150, 300)}


def test_compute_hides_transfers_and_transfers_hide_waits_and_copies() -> None:
    builder = GraphBuilder()
    call = builder.call(0, "launch", 100)
    builder.kernel(0, "gemm", 400, caller=call, stream=7)
    builder.kernel(
        0,
        COPY,
        1_000,
        caller=call,
        stream=9,
        kind=TaskKind.MEMCPY,
        kernel_class=KernelClass.MEMCPY,
    )
    builder.collective(600, callers={0: call})
    found = account(side_of(builder.build()))
    assert spent(found) == {
        (Part.COMPUTE, "gemm"): 400,
        (Part.TRANSFER, "all_reduce"): 200,
        (Part.MEMCPY, "Memcpy DtoH"): 400,
        (Part.IDLE, "host work"): 100,
    }


def test_a_rank_that_is_early_waits_for_the_late_one() -> None:
    found = account(run_of([Work(what=ALL_REDUCE, dur_ns=2_000)], ranks=(0, 1), slow={1: 5_000}))
    first, second = found.ranks
    assert (first.parts_ns[Part.WAIT], second.parts_ns[Part.WAIT]) == (5_000, 0)
    assert (first.parts_ns[Part.IDLE], second.parts_ns[Part.IDLE]) == (1_500, 6_500)
    assert first.parts_ns[Part.TRANSFER] == second.parts_ns[Part.TRANSFER] == 2_000


def test_a_rank_that_ends_early_waits_for_the_last_at_the_end() -> None:
    found = account(run_of([Work(dur_ns=1_000)], ranks=(0, 1), slow={1: 600}))
    assert spent(found)[Part.IDLE, Idle.LAST] == 300


def test_time_that_nothing_recorded_explains_is_said_to_have_no_cause() -> None:
    builder = GraphBuilder()
    call = builder.call(0, "cudaLaunchKernel", 1_000)
    builder.kernel(0, "gemm", 1_000, caller=call, residual_ns=90_000)
    found = account(side_of(builder.build()))
    assert spent(found)[Part.IDLE, Idle.UNKNOWN] == 90_000


def test_a_short_residual_is_latency() -> None:
    builder = GraphBuilder()
    call = builder.call(0, "cudaLaunchKernel", 1_000)
    builder.kernel(0, "gemm", 1_000, caller=call, residual_ns=9_000)
    found = account(side_of(builder.build()))
    assert spent(found)[Part.IDLE, Idle.LAUNCH] == 9_000


def silent_graph(op: str) -> GraphBuilder:
    builder = GraphBuilder()
    builder.host(0, op or "ProfilerStep#3", 5_000_000, op=op)
    call = builder.call(0, "cudaLaunchKernel", 1_000)
    builder.kernel(0, "gemm", 1_000, caller=call)
    return builder


def test_silence_inside_an_operator_or_a_frame_is_told_by_its_place() -> None:
    for op, frames, cause, name in (
        ("jit::compile", {}, Idle.SILENT, "jit::compile"),
        ("", {0: "resize.py(7): resize"}, Idle.SILENT, "resize.py(7): resize"),
        ("", {}, Idle.UNKNOWN, ""),
    ):
        graph = silent_graph(op).build()
        unexplained_ns = np.where(np.arange(graph.n_tasks) == 0, 4_000_000, 0)
        graph = replace(graph, tasks=replace(graph.tasks, unexplained_ns=unexplained_ns))
        found = account(replace(side_of(graph), frames=frames))
        silent = [leaf for leaf in found.leaves if leaf.key.cause == cause]
        assert [(leaf.key.name, leaf.spent_ns) for leaf in silent] == [(name, 4_000_000)]


def test_ranks_without_a_device_are_told_by_the_work_of_their_threads() -> None:
    builder = GraphBuilder(ranks=(0, 1), gpu=None)
    callers = {}
    for rank, ns in ((0, 1_000), (1, 4_000)):
        callers[rank] = builder.host(rank, "aten::mm", ns, op="aten::mm")
    transfers = builder.collective(2_000, callers=callers, on_host=True)
    for rank, transfer in enumerate(transfers):
        task = builder.host(rank, "aten::add", 500, op="aten::add")
        builder.edge(transfer, task)
    found = account(side_of(builder.build()))
    assert spent(found) == {
        (Part.COMPUTE, "CPU work"): 3_000,
        (Part.TRANSFER, "all_reduce"): 2_000,
        (Part.WAIT, "all_reduce"): 1_500,
    }


def test_the_mean_is_over_ranks_and_steps() -> None:
    steps = [[Work(dur_ns=1_000)], [Work(dur_ns=3_000)]]
    found = account(run_of(*steps, ranks=(0, 1, 2)))
    (leaf,) = [leaf for leaf in found.leaves if leaf.key.name == "gemm"]
    assert (leaf.spent_ns, leaf.count, leaf.raw_ns) == (2_000, 1.0, 2_000)
    assert leaf.per_step_ns == (1_000, 3_000)


def test_whole_numbers_add_up_and_the_largest_remainders_are_rounded_up() -> None:
    assert whole_numbers([5, 5, 5], 10, 2) == [1, 1, 0]
    assert whole_numbers([1, 9, 10], 10, 2) == [0, 1, 1]
    assert whole_numbers([], 10, 0) == []


def test_equal_graphs_have_equal_accounts_whatever_task_comes_first() -> None:
    graph = graph_of([[Work(), Work(what="relu", stream=9)]])
    assert account(side_of(graph)) == account(side_of(graph))
