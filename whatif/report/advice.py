"""What a recording lacks, and which option of the profiler supplies it."""

from collections.abc import Iterator

import numpy as np

from ingest.vocab import HOST_KINDS, EdgeKind, Evidence
from whatif.report.findings import Findings

MANY = 0.1
"""A share above which something counts as lacking."""
ABSENT_MEMBERS = "the other members of the collectives: give the files of all ranks"
WAITS = (EdgeKind.EVENT_WAIT, EdgeKind.HOST_SYNC)


def advice(findings: Findings) -> Iterator[str]:
    """One sentence per lack: what it is, then what to do; the most telling first."""
    yield from _rows(findings)
    yield from _files(findings)
    yield from _causes(findings)
    yield from _steps(findings)
    yield from _details(findings)


def _rows(findings: Findings) -> Iterator[str]:
    """Whole kinds of rows."""
    host = np.isin(findings.graph.tasks.kind, [int(kind) for kind in HOST_KINDS])
    if not findings.facts.has_device:
        yield (
            "GPU rows, if the run used one: record with "
            "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
        )
    if not host.any():
        yield (
            "CPU rows, so nothing says what the device waited for: record with "
            "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
        )


def _files(findings: Findings) -> Iterator[str]:
    graph, files = findings.graph, findings.facts.files
    ranks = {info.rank for info in graph.ranks}
    members = {rank for group in graph.groups for rank in group.ranks}
    larger = int(graph.collectives.members_expected.max(initial=0)) > len(ranks)
    if members - ranks or larger:
        yield ABSENT_MEMBERS
    if any(not file.complete for file in files):
        yield "the end of a file: export the trace again, it was cut off"


def _causes(findings: Findings) -> Iterator[str]:
    """What started device work, and what it waited for."""
    facts, trust = findings.facts, findings.baseline.trust
    if facts.has_device and trust.unlinked_frac > MANY:
        yield (
            f"the launches of {trust.unlinked_frac:.0%} of the device work: let the profiler warm "
            "up while work is queued, schedule(wait=1, warmup=2, active=2)"
        )
    guessed = sum(
        count
        for (kind, how), count in facts.edges.items()
        if kind in WAITS and how != Evidence.RECORDED
    )
    if facts.has_device and guessed and not all(file.has_sync_events for file in facts.files):
        yield (
            f"which event {guessed:,} waits mean (told by the order of calls or by time): record "
            "with experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True)"
        )
    if trust.explained_frac < 1 - MANY and not all(file.has_stacks for file in facts.files):
        yield "what the host did while it was silent: record with with_stack=True"


def _steps(findings: Findings) -> Iterator[str]:
    graph = findings.graph
    if not graph.steps_recorded:
        yield "steps: call prof.step() once per step"
    elif len(graph.steps) == 1:
        yield "a second step to compare with: record two or more, schedule(active=3)"


def _details(findings: Findings) -> Iterator[str]:
    """What costs no trust, and yet some what-ifs need it."""
    graph, facts = findings.graph, findings.facts
    if not all(file.has_shapes for file in facts.files):
        yield "shapes of operators, from which work follows: record with record_shapes=True"
    unsized = graph.collectives.size_bytes < 0
    if unsized.any():
        yield (
            f"the size of {int(unsized.sum()):,} collectives: newer PyTorch writes it for NCCL, "
            "record_shapes=True for gloo"
        )
