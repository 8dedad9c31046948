"""What is told of the ranks together: clocks that were apart, members that do not fit."""

from collections.abc import Iterator

from ingest.units import format_ms
from ingest.vocab import TaskKind
from whatif.report.findings import Findings

NOTABLE_CLOCK_NS = 100_000
"""Clocks nearer than this are corrected without a word; `replay check` has all."""
CLOCKS_SHOWN = 3
DESYNCS_SHOWN = 3
RANKS_NAMED = 8


def clock_lines(findings: Findings) -> Iterator[str]:
    """A sentence for each clock that was far off, the farthest first."""
    files = [file for file in findings.facts.files if abs(file.clock_offset_ns) >= NOTABLE_CLOCK_NS]
    files.sort(key=lambda file: -abs(file.clock_offset_ns))
    for file in files[:CLOCKS_SHOWN]:
        apart = f"{abs(file.clock_offset_ns) / 1e6:,.3f} ms"
        side = "ahead of" if file.clock_offset_ns > 0 else "behind"
        drift = f" and drifts by {file.clock_drift_ppm:+.1f} ppm" if file.clock_drift_ppm else ""
        yield (
            f"clock of rank {file.rank} is {apart} {side} rank {file.clock_base_rank}'s{drift}: "
            "corrected"
        )
    if len(files) > CLOCKS_SHOWN:
        yield f"clocks of {len(files) - CLOCKS_SHOWN} more ranks were apart and corrected"


def skew_lines(findings: Findings) -> Iterator[str]:
    """How far device work began before its call, where any did."""
    worst = max(findings.facts.files, key=lambda file: file.launch_skew_ns, default=None)
    if worst is not None and worst.launch_skew_ns:
        yield (
            f"device work that began before its launch (by up to {worst.launch_skew_ns / 1e3:,.1f} "
            f"us, rank {worst.rank}) was moved to the call"
        )


def desync_lines(findings: Findings) -> Iterator[str]:
    """The first collectives that are another operation on another rank."""
    told = findings.facts.out_of_step
    for sentence in told[:DESYNCS_SHOWN]:
        yield f"ranks out of step: {sentence}"
    if len(told) > DESYNCS_SHOWN:
        yield f"{len(told) - DESYNCS_SHOWN} more are out of step: import_log has them"


def absent_lines(findings: Findings) -> Iterator[str]:
    """Which ranks have no file, what was taken for granted of them, and what waiting that makes."""
    graph = findings.graph
    lacking = graph.collectives.members_seen < graph.collectives.members_expected
    if not lacking.any():
        return
    here = {info.rank for info in graph.ranks}
    world = graph.world_size or 0
    absent = [rank for rank in range(world) if rank not in here]
    who = "not recorded there, or lost"
    if 0 < len(absent) <= RANKS_NAMED:
        who = f"ranks {', '.join(map(str, absent))}"
    elif absent:
        who = f"{len(absent)} of {world} ranks"
    arrive = (graph.tasks.kind == TaskKind.ARRIVE) & (graph.tasks.collective >= 0)
    outside = arrive & lacking[graph.tasks.collective]
    waited_ns = int(graph.tasks.dur_ns[outside].sum()) / (len(here) * len(graph.steps))
    yield (
        f"{int(lacking.sum())} of {len(lacking)} collectives lack members here ({who}): "
        "transfers are those of the fastest equal calls or of the collective model, the rest "
        f"({format_ms(round(waited_ns))} per rank and step) waits for those members"
    )
