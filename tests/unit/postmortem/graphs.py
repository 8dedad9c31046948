"""Small runs as sections see them, made of graphs; times in ns."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ingest.vocab import EdgeKind, KernelClass, TaskKind
from replay.graph.arrays import NONE, TaskGraph
from replay.results.causes import Fetching
from replay.results.cover import cover
from tests.builders import GraphBuilder
from tests.unit.report.findings import findings_of
from whatif.levers import lever_table
from whatif.postmortem.material import Material, Rows, Value
from whatif.postmortem.replays import Replays
from whatif.report.blocks import Query
from whatif.report.findings import Findings
from whatif.report.levers import levers_answer
from whatif.report.reading import read_run
from whatif.report.run_facts import run_facts
from whatif.report.view import answer_of
from whatif.transforms.registry import Transform

MS, US = 1_000_000, 1_000
RANKS = (0, 1)


class Tables:
    """Asks tables: queries with a row that is known, all others have none."""

    def __init__(self, **known: Mapping[str, Value]) -> None:
        self._known = known

    def __call__(self, name: str, /, *, limit: int | None = None, **params: Value) -> Rows:
        del limit
        row = self._known.get(name, {})
        rows = (tuple(row.values()),) if row else ()
        return Rows(names=tuple(row), rows=rows, query=self.query(name, **params))

    def query(self, name: str, /, **params: Value) -> Query:
        del params
        return Query(sql="SELECT 1", command=f"--query {name}")


def material_of(graph: TaskGraph, *transforms: Transform) -> Material:
    """The run of a graph, its what-ifs replayed for real, its tables empty."""
    return material_of_findings(findings_of(graph, *transforms))


def material_of_findings(found: Findings) -> Material:
    """The same of findings."""
    table = lever_table(found.graph, found.baseline)
    told = run_facts(found)
    return Material(
        name="run",
        trace="run",
        command="replay report run",
        findings=found,
        answer=answer_of(found),
        levers=levers_answer(told, table),
        sources=(),
        ask=Tables(),
        replays=Replays(found.graph, found.baseline, table),
    )


def fetching(found: Findings, spans_ns: Mapping[int, tuple[int, int]]) -> Findings:
    """Findings of a run whose ranks are in their data loaders at these times."""
    loader = Fetching(
        {rank: cover(np.array([lo]), np.array([hi])) for rank, (lo, hi) in spans_ns.items()}
    )
    run = read_run(found.graph, found.baseline, found.facts, loader)
    return replace(found, fetching=loader, run=run)


def training(
    *,
    steps: int = 3,
    gemm_ns: int = 20 * MS,
    slow: Mapping[int, float] | None = None,
    transfer_ns: int = 400 * US,
    hidden: bool = True,
    host_ns: int = 10 * US,
) -> TaskGraph:
    """Two ranks that train: a little host work, a long product, an all-reduce; healthy as it is.

    Args:
        steps: of the run.
        gemm_ns: of the product of a step.
        slow: factor on the product, by rank.
        transfer_ns: of the all-reduce.
        hidden: the next step does not wait for the all-reduce, only its stream does.
        host_ns: work of the host before the launch of a step.
    """
    builder = GraphBuilder(ranks=RANKS)
    reduced: tuple[int, ...] = ()
    for step in range(steps):
        callers, gemms = {}, {}
        for rank in RANKS:
            builder.host(rank, "aten::mm", host_ns, step=step)
            launch = builder.call(rank, "cudaLaunchKernel", 5 * US, step=step)
            dur_ns = round(gemm_ns * (slow or {}).get(rank, 1.0))
            gemms[rank] = builder.kernel(rank, "gemm", dur_ns, caller=launch, step=step)
            if reduced and not hidden:
                builder.edge(reduced[rank], gemms[rank])
            callers[rank] = builder.call(rank, "cudaLaunchKernelExC", 5 * US, step=step)
        reduced = builder.collective(transfer_ns, callers=callers, after=gemms, step=step)
    return builder.build()


def one_rank(  # noqa: PLR0913 - each argument is a part of the picture
    *,
    steps: int = 3,
    kernels: int = 1,
    kernel_ns: int = 20 * MS,
    host_ns: int = 10 * US,
    copy_ns: int = 0,
    sync: bool = False,
    long_step: int = NONE,
    call: str = "cudaLaunchKernel",
    call_ns: int = 5 * US,
) -> TaskGraph:
    """One GPU: kernels launched one after another, then perhaps a copy or a wait for all of them.

    Args:
        steps: of the run.
        kernels: of a step.
        kernel_ns: of each.
        host_ns: work of the host before each launch.
        copy_ns: of a copy that the next step waits for; 0 for none.
        sync: the host waits for the device at the end of the step, then goes on.
        long_step: ordinal of a step with four times the work.
        call: name of a call of the host in each step, beside the launches.
        call_ns: of that call.
    """
    builder = GraphBuilder(ranks=(0,))
    for step in range(steps):
        times = 4 if step == long_step else 1
        last = NONE
        builder.call(0, call, call_ns, step=step)
        for _ in range(kernels * times):
            builder.host(0, "aten::mm", host_ns, step=step)
            launch = builder.call(0, "cudaLaunchKernel", 5 * US, step=step)
            last = builder.kernel(0, "gemm", kernel_ns, caller=launch, step=step)
        if copy_ns:
            launch = builder.call(0, "cudaMemcpyAsync", 5 * US, step=step)
            last = builder.kernel(
                0,
                "Memcpy HtoD (Pageable -> Device)",
                copy_ns,
                caller=launch,
                kind=TaskKind.MEMCPY,
                kernel_class=KernelClass.MEMCPY,
                step=step,
            )
        if sync:
            _wait_for(builder, last, step)
    return builder.build()


def _wait_for(builder: GraphBuilder, task: int, step: int) -> None:
    """A synchronising call: the moment at which the device is done, then the call's own end."""
    wait = builder.host(0, "", 0, kind=TaskKind.HOST_WAIT, step=step)
    builder.edge(task, wait, kind=EdgeKind.HOST_SYNC)
    builder.call(0, "cudaStreamSynchronize", 5 * US, step=step)
