"""Facts about steps far above the median and what grew in them."""

from ingest.vocab import KernelClass
from replay.graph.arrays import TaskGraph
from replay.results.causes import Cause
from replay.results.outliers import LongStep, long_steps, told
from tests.builders import GraphBuilder, baseline_of

US = 1_000
CALL = "cudaLaunchKernel"


def _long(graph: TaskGraph) -> tuple[LongStep, ...]:
    return long_steps(graph, baseline_of(graph))


def _steps(free_us: tuple[int, ...], gemm_us: tuple[int, ...]) -> TaskGraph:
    """Each step: a `cudaFree`, then a kernel that the next step's host waits for."""
    made = GraphBuilder()
    for step, (free, gemm) in enumerate(zip(free_us, gemm_us, strict=True)):
        if free:
            made.call(0, "cudaFree", free * US, step=step)
        launch = made.call(0, CALL, 10 * US, step=step)
        kernel = made.kernel(
            0, "g", gemm * US, caller=launch, kernel_class=KernelClass.GEMM, step=step
        )
        made.edge(kernel, made.host(0, "item", 1 * US, step=step))
    return made.build()


def test_a_call_that_only_the_long_step_holds_is_named_with_its_rank() -> None:
    (long,) = _long(_steps((0, 900, 0), (100, 100, 100)))
    assert (long.step, long.step_ns, long.median_ns) == (1, 1_011 * US, 111 * US)
    (grown,) = long.grown
    assert (grown.cause, grown.name, grown.rank) == (Cause.HOST, "cudaFree", 0)
    assert (grown.spent_ns, grown.usual_ns, grown.grown_ns) == (900 * US, 0, 900 * US)
    assert told(grown) == "cudaFree"


def test_device_work_that_grew_is_named_by_class() -> None:
    (long,) = _long(_steps((0, 0, 0), (100, 100, 700)))
    (grown,) = long.grown
    assert (grown.cause, grown.name, grown.usual_ns) == (Cause.COMPUTE, "gemm", 100 * US)
    assert told(grown) == "gemm kernels"


def test_what_grew_most_comes_first_and_trifles_are_left_out() -> None:
    (long,) = _long(_steps((5, 405, 5), (100, 900, 100)))
    assert [part.name for part in long.grown] == ["gemm", "cudaFree"]
    (alone,) = _long(_steps((5, 55, 5), (100, 900, 100)))
    assert [part.name for part in alone.grown] == ["gemm"]


def test_the_rank_that_the_path_lies_on_is_named() -> None:
    made = GraphBuilder(ranks=(0, 1))
    for step in range(3):
        callers = {}
        for rank in made.ranks:
            made.host(rank, "aten::mm", (600 if (rank, step) == (1, 2) else 50) * US, step=step)
            callers[rank] = made.call(rank, CALL, 10 * US, step=step)
        joined = made.collective(20 * US, callers=callers, step=step)
        for rank, transfer in zip(made.ranks, joined, strict=True):
            made.edge(transfer, made.host(rank, "item", 1 * US, step=step))
    (long,) = _long(made.build())
    (grown,) = long.grown
    assert (long.step, grown.name, grown.rank) == (2, "aten::mm", 1)
    assert (grown.spent_ns, grown.usual_ns) == (600 * US, 50 * US)


def test_the_long_step_itself_is_not_among_what_is_usual() -> None:
    (long,) = _long(_steps((5, 905), (100, 100)))
    (grown,) = long.grown
    assert (grown.spent_ns, grown.usual_ns) == (905 * US, 5 * US)


def test_steps_alike_are_no_outliers() -> None:
    assert _long(_steps((0, 40, 0), (100, 100, 100))) == ()
    assert _long(_steps((0,), (100,))) == ()
