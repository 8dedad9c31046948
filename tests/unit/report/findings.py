"""Findings about small graphs, for tests of what is written from them."""

from dataclasses import replace
from pathlib import Path

from ingest.units import Nanos
from replay.graph.arrays import TaskGraph
from replay.graph.facts import FileFacts, GraphFacts
from replay.results.fidelity import baseline
from replay.results.metrics import breakdown
from tests.builders import facts_of
from whatif.levers import Lever
from whatif.report.findings import Findings, Reading
from whatif.report.rates import NOTHING_SAID, Workload
from whatif.report.reading import read_run
from whatif.scenario import Scenario
from whatif.study import study
from whatif.transforms.registry import Transform
from whatif.unprofiled import without_profiler

READING = Reading(
    failed=(), store=Path("runs/a.duckdb"), store_bytes=7_400_000, is_cached=False, seconds=1.23
)


def file_of(rank: int, *, rank_source: str = "distributedInfo", complete: bool = True) -> FileFacts:
    return FileFacts(
        trace_id=rank,
        rank=rank,
        world_size=2,
        rank_source=rank_source,
        host=None,
        gpu="NVIDIA H100 80GB HBM3",
        devices_seen=8,
        events=1_000,
        clock_offset_ns=rank * 7,
        clock_uncertainty_ns=None,
        device_clock_offset_ns=0,
        complete=complete,
        clock_base_rank=0,
        clock_samples=12,
        clock_method="ends" if rank else "reference",
    )


def findings_of(
    graph: TaskGraph,
    *transforms: Transform,
    facts: GraphFacts | None = None,
    levers: tuple[Lever, ...] = (),
    reading: Reading = READING,
    workload: Workload = NOTHING_SAID,
    unprofiled_step_ns: Nanos | None = None,
) -> Findings:
    """What a run with this graph would have been found to be."""
    known = facts or replace(
        facts_of(graph), files=tuple(file_of(info.rank) for info in graph.ranks)
    )
    base, unprofiled = baseline(graph, known), None
    if unprofiled_step_ns is not None:
        graph, base, unprofiled = without_profiler(graph, base, unprofiled_step_ns)
    asked = study(graph, base, Scenario(transforms=transforms)) if transforms else None
    return Findings(
        graph=graph,
        facts=known,
        baseline=base,
        breakdown=breakdown(graph, base.schedule),
        run=read_run(graph, base, known),
        workload=workload,
        study=asked,
        levers=levers,
        reading=reading,
        unprofiled=unprofiled,
    )
