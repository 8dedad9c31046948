"""How a run reads: what binds it, whom it waits for, which steps stand out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ingest.units import format_ms
from ingest.vocab import CollectiveKind
from replay.graph import thresholds
from replay.graph.arrays import TaskGraph
from replay.graph.facts import GraphFacts
from replay.results.bound import BoundBy, RunBound, run_bound
from replay.results.causes import NOT_FETCHING, WORDS, Cause, Fetching
from replay.results.fidelity import Baseline
from replay.results.outliers import LongStep, long_steps, told
from replay.results.stragglers import NOT_RESOLVED, RankLateness, Stragglers, stragglers

COLLECTIVES_SHOWN = 8
"""The collectives that cost most, in `replay check`."""
CAUSES_SHOWN = 2
NAME_WIDTH = 40
LEAST_FRAC = 0.005
"""Shares below round to nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReading:
    """What a performance engineer would say of the unchanged run."""

    bound: RunBound
    late: Stragglers
    long_steps: tuple[LongStep, ...]


def read_run(
    graph: TaskGraph, baseline: Baseline, facts: GraphFacts, fetching: Fetching = NOT_FETCHING
) -> RunReading:
    """Read the calibrated replay."""
    late = stragglers(graph, baseline.schedule, facts, fetching)
    return RunReading(
        bound=run_bound(graph, baseline, late, fetching),
        late=late,
        long_steps=long_steps(graph, baseline),
    )


def bound_sentence(reading: RunReading, *, has_device: bool) -> str:
    """What binds the run and by how much, in one sentence."""
    bound = reading.bound
    parts = [_verdict(reading, has_device=has_device), *_of_the_device(bound)]
    return " | ".join(parts)


def _verdict(reading: RunReading, *, has_device: bool) -> str:
    bound, path = reading.bound, reading.bound.path_frac
    host_frac = path[Cause.HOST] + path[Cause.INPUT]
    work = "host work" if has_device else "CPU work"
    if bound.by is BoundBy.STRAGGLER:
        assert reading.late.worst is not None, "a straggler makes others wait"
        return f"bound by a straggler, rank {reading.late.worst.rank}"
    if bound.by is BoundBy.INPUT:
        return f"input-bound{_where(bound)}: {_path(path[Cause.INPUT])} is the data loader"
    if bound.by is BoundBy.HOST:
        word = "host-bound" if has_device else "CPU-bound"
        return f"{word}{_where(bound)}: {_path(host_frac)} is {work}"
    cause = next(cause for cause, by in OF_VERDICT.items() if by is bound.by)
    return f"{VERDICTS[bound.by]}{_where(bound)}: {_path(path[cause])} is {WORDS[cause]}"


OF_VERDICT: Mapping[Cause, BoundBy] = {
    Cause.COMPUTE: BoundBy.DEVICE,
    Cause.COPIES: BoundBy.COPIES,
    Cause.TRANSFER: BoundBy.COMMUNICATION,
    Cause.WAIT: BoundBy.ABSENT,
    Cause.UNKNOWN: BoundBy.UNKNOWN,
}
VERDICTS: Mapping[BoundBy, str] = {
    BoundBy.DEVICE: "GPU-bound",
    BoundBy.COPIES: "bound by copies",
    BoundBy.COMMUNICATION: "communication-bound",
    BoundBy.ABSENT: "bound by ranks that are not in these files",
    BoundBy.UNKNOWN: "not known what binds it",
}


def _where(bound: RunBound) -> str:
    return "" if bound.rank is None else f" on rank {bound.rank}"


def _path(share: float) -> str:
    return f"{share:.0%} of the critical path"


def _of_the_device(bound: RunBound) -> Iterator[str]:
    """How far the CPU is ahead where that matters; else how long devices idle, and why."""
    if bound.idle_frac is None:
        return
    if bound.by is BoundBy.DEVICE and bound.ahead_steps is not None:
        yield f"CPU {bound.ahead_steps:.1f} steps ahead"
    assert bound.idle_launch_frac is not None, "known with the idle share"
    assert bound.idle_input_frac is not None, "known with the idle share"
    if bound.idle_frac <= LEAST_FRAC:
        return
    text = f"device idle {bound.idle_frac:.0%}"
    if bound.idle_launch_frac > bound.idle_frac - LEAST_FRAC:
        text += " waiting for launches"
    elif bound.idle_launch_frac > LEAST_FRAC:
        text += f", {bound.idle_launch_frac:.0%} waiting for launches"
    if bound.idle_input_frac > LEAST_FRAC:
        text += f" ({bound.idle_input_frac:.0%} for the data loader)"
    yield text


def late_sentences(reading: RunReading, step_ns: int, n_ranks: int) -> Iterator[str]:
    """Whom the run waits for, where that costs more than 1 % of the step."""
    worst = reading.late.worst
    if worst is not None and worst.cost_ns > thresholds.STRAGGLER_FRAC * step_ns:
        alone = worst.others == n_ranks - 1
        whom = "each other rank" if alone else f"each of the {worst.others} ranks that it meets"
        yield (
            f"rank {worst.rank} makes {whom} wait {format_ms(worst.cost_ns)} a step "
            f"({worst.cost_ns / step_ns:.1%}), last in {worst.times_last} of {worst.meetings} "
            f"collectives: {why_late(worst)}{_held_by(worst)}"
        )
    outside_ns, most_ns = reading.late.outside_wait_ns, reading.late.outside_wait_high_ns
    if most_ns > thresholds.STRAGGLER_FRAC * step_ns:
        text = (
            f"{format_ms(outside_ns)} a step ({outside_ns / step_ns:.1%}) for ranks that are not "
            "in these files, told by the fastest of equal calls"
        )
        if most_ns - outside_ns > thresholds.STRAGGLER_FRAC * step_ns:
            text += f"; up to {format_ms(most_ns)}, as some calls have too few equals to tell"
        yield text


def why_late(late: RankLateness) -> str:
    """Causes of its lateness with their share of the waiting that they caused."""
    total_ns = sum(late.causes.values())
    if not total_ns:
        return "-"
    told_causes = [
        f"{late_by(cause)} {ns / total_ns:.0%}"
        for cause, ns in list(late.causes.items())[:CAUSES_SHOWN]
        if ns / total_ns > LEAST_FRAC
    ]
    return ", ".join(told_causes)


def _held_by(late: RankLateness) -> str:
    """The call or operator that the host of a late rank was longest in.

    No kernel is told: a slow device slows all of them.
    """
    name = late.task_name
    if not name or next(iter(late.causes)) is not Cause.HOST:
        return ""
    cut = name if len(name) <= NAME_WIDTH else f"{name[: NAME_WIDTH - 3]}..."
    return f" (longest in {cut})"


def late_by(cause: Cause) -> str:
    """A cause in the words of lateness."""
    if cause is Cause.WAIT:
        return "waiting in other groups"
    return "no cause in this recording" if cause is Cause.UNKNOWN else WORDS[cause]


def long_step_sentences(reading: RunReading) -> Iterator[str]:
    """Each outlier step with what grew in it."""
    for long in reading.long_steps:
        text = (
            f"step {long.step} took {format_ms(long.step_ns)}, "
            f"{long.step_ns / long.median_ns:.1f}x the median"
        )
        grown = []
        for more in long.grown:
            where = "" if more.rank is None else f" on rank {more.rank}"
            usual = f" (usually {format_ms(more.usual_ns)})" if more.usual_ns else ""
            grown.append(f"{format_ms(more.spent_ns)} of {told(more)}{where}{usual}")
        yield text + (f": {', '.join(grown)}" if grown else ": no kind of work stands out")


def straggler_table(reading: RunReading, graph: TaskGraph) -> Iterator[str]:
    """Per rank who waits for whom and why, then the collectives that cost most."""
    late = reading.late
    if len(late.meetings.collective):
        yield (
            f"{'rank':>6}{'calls':>7}{'last':>7}{'resolved':>10}{'late by':>12}"
            f"{'others wait':>13}{'own wait':>13}{'a step':>12}  why"
        )
        for row in late.ranks:
            yield (
                f"{row.rank:>6}{row.meetings:>7,}{row.times_last:>7,}{row.times_resolved:>10,}"
                f"{format_ms(row.late_ns):>12}{format_ms(row.caused_wait_ns):>13}"
                f"{format_ms(row.own_wait_ns):>13}{format_ms(row.cost_ns):>12}  {why_late(row)}"
            )
        yield from _costly_collectives(late, graph)
        yield "a step: what a rank that meets it waits for it, exposed; why: share of that waiting"
    if late.outside_wait_high_ns:
        yield (
            f"waiting for ranks that are not in these files, a step and rank: "
            f"{format_ms(late.outside_wait_ns)} by the fastest of equal calls, up to "
            f"{format_ms(late.outside_wait_high_ns)} where calls with too few equals only waited"
        )


def _costly_collectives(late: Stragglers, graph: TaskGraph) -> Iterator[str]:
    meetings = late.meetings
    order = (-meetings.caused_wait_ns).argsort(kind="stable")[:COLLECTIVES_SHOWN]
    shown = [place for place in order.tolist() if meetings.exposed_wait_ns[place] > 0]
    if not shown:
        return
    yield (
        f"{'costliest collectives':<28}{'step':>6}{'last':>6}{'late by':>12}{'others wait':>13}"
        "  why"
    )
    for place in shown:
        number = int(meetings.collective[place])
        kind = CollectiveKind(graph.collectives.kind[number]).name.lower()
        size_bytes = int(graph.collectives.size_bytes[number])
        size = f" {size_bytes / 1e6:,.2f} MB" if size_bytes >= 0 else ""
        cause = int(meetings.cause[place])
        why = "below the clocks" if cause == NOT_RESOLVED else late_by(Cause(cause))
        yield (
            f"{f'{kind}{size}':<28}{_step(graph, int(meetings.step[place])):>6}"
            f"{meetings.last_rank[place]:>6}"
            f"{format_ms(int(meetings.late_ns[place])):>12}"
            f"{format_ms(int(meetings.caused_wait_ns[place])):>13}  {why}"
        )


def _step(graph: TaskGraph, place: int) -> str:
    """Number of a step as recorded; a dash outside of the steps."""
    return str(graph.steps[place]) if graph.steps_recorded and place >= 0 else "-"
