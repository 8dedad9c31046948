"""Runs to compare, from descriptions that fit on a screen."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ingest.vocab import CollectiveKind, KernelClass, TaskKind
from replay.graph.arrays import TaskGraph
from replay.results.fidelity import baseline
from tests.builders import GraphBuilder, facts_of
from whatif.compare.side import Side
from whatif.report.reading import read_run

COPY, ALL_REDUCE = "Memcpy DtoH (Device -> Pinned)", "all_reduce"
CLASSES = {"gemm": KernelClass.GEMM, "relu": KernelClass.ELEMENTWISE, "norm": KernelClass.REDUCTION}


@dataclass(frozen=True, kw_only=True)
class Work:
    """One piece of a step: host work before it, then what the host launches."""

    host: str = "aten::linear"
    host_ns: int = 1_000
    what: str = "gemm"
    """A kernel of `CLASSES`, COPY or ALL_REDUCE."""
    dur_ns: int = 10_000
    stream: int = 7
    shape: int = 1
    op: str = "aten::mm"


Step = Sequence[Work]
OTHER_STREAM = 20


def graph_of(
    steps: Sequence[Step], *, ranks: Sequence[int] = (0,), slow: dict[int, int] | None = None
) -> TaskGraph:
    """Every rank does the same; `slow` adds host work (ns) to each piece on some ranks."""
    builder = GraphBuilder(ranks=ranks)
    late = slow or {}
    for number, step in enumerate(steps):
        for work in step:
            callers = {}
            for rank in ranks:
                host_ns = work.host_ns + late.get(rank, 0)
                builder.host(rank, work.host, host_ns, op=work.host, step=number)
                callers[rank] = builder.call(rank, "cudaLaunchKernel", 500, step=number)
            _launch(builder, work, callers, number)
    return builder.build()


def _launch(builder: GraphBuilder, work: Work, callers: dict[int, int], step: int) -> None:
    if work.what == ALL_REDUCE:
        builder.collective(
            work.dur_ns,
            callers=callers,
            kind=CollectiveKind.ALL_REDUCE,
            size_bytes=4_000,
            stream=OTHER_STREAM,
            step=step,
        )
        return
    kinds = {True: TaskKind.MEMCPY, False: TaskKind.KERNEL}
    for rank, caller in callers.items():
        builder.kernel(
            rank,
            work.what,
            work.dur_ns,
            caller=caller,
            stream=work.stream,
            kind=kinds[work.what == COPY],
            kernel_class=CLASSES.get(work.what, KernelClass.MEMCPY),
            op=work.op,
            geometry=work.shape,
            step=step,
        )


def side_of(graph: TaskGraph, name: str = "run") -> Side:
    """A run without oddities."""
    facts = facts_of(graph)
    base = baseline(graph, facts)
    return Side(
        name=name, graph=graph, facts=facts, baseline=base, reading=read_run(graph, base, facts)
    )


def run_of(*steps: Step, ranks: Sequence[int] = (0,), slow: dict[int, int] | None = None) -> Side:
    """A run from its steps."""
    return side_of(graph_of(steps, ranks=ranks, slow=slow))


def scaled(step: Step, what: str, factor: int) -> list[Work]:
    """A step in which one kind of work takes so many times as long."""
    return [
        replace(work, dur_ns=work.dur_ns * factor) if work.what == what else work for work in step
    ]
