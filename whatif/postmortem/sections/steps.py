"""Section `steps`: how long each step took on each rank, which stand out, and what grew in them."""

from collections.abc import Iterator

import numpy as np

from ingest.units import format_ms
from replay.graph.arrays import Float64
from replay.graph.thresholds import LONG_STEP
from replay.results.causes import WORDS, Cause
from whatif.postmortem.contract import Missing, Section
from whatif.postmortem.material import Material
from whatif.postmortem.steps_told import ENOUGH_FOR_P95
from whatif.postmortem.wording import counted
from whatif.report.answer import GrownPart, LongStepFacts
from whatif.report.blocks import Block, Cell, Column, DataTable, Lines, Part, Unit, Words, details
from whatif.report.reading import long_step_sentences
from whatif.report.text import numbers

KEY = "steps"
TITLE = "Steps"
LINES = 16
"""Ranks drawn; of more the slowest and the fastest."""
ROWS = 64
RUN_ROLE, RANK_ROLE = "compute", "other"


def section(material: Material) -> Section:
    """A strip of steps, their spread, and the outliers."""
    blocks: list[Block] = [_strip(material)]
    notes = tuple(_notes(material))
    if notes:
        blocks.append(Words(paragraphs=notes))
    blocks += details(*(table for table in (_table(material), _grown(material)) if table.rows))
    return Section(
        key=KEY,
        title=TITLE,
        summary=_summary(material),
        blocks=tuple(blocks),
        missing=tuple(_missing(material)),
    )


def _summary(material: Material) -> str:
    graph, steps_ns = material.findings.graph, material.findings.baseline.measured.per_step_ns
    mean = format_ms(int(material.findings.baseline.measured.mean_ns))
    if not graph.steps_recorded:
        return f"No steps on all ranks: the whole recording, {mean}, counts as one."
    if len(steps_ns) == 1:
        return f"One step of {mean}: nothing to compare it with."
    median, longest = format_ms(round(float(np.median(steps_ns)))), format_ms(int(steps_ns.max()))
    long = len(material.findings.run.long_steps)
    outliers = "no outlier" if not long else counted(long, "outlier")
    return (
        f"{counted(len(steps_ns), 'step')}, mean {mean}, median {median}, {_p95(material)}longest "
        f"{longest}; {outliers}."
    )


def _p95(material: Material) -> str:
    steps_ns = material.findings.baseline.measured.per_step_ns
    if len(steps_ns) < ENOUGH_FOR_P95:
        return ""
    return f"p95 {format_ms(round(float(np.percentile(steps_ns, 95))))}, "


def _strip(material: Material) -> Lines:
    graph, measured = material.findings.graph, material.findings.baseline.measured
    run_ns = measured.per_step_ns
    per_rank_ns = np.diff(measured.rank_boundary_ns, axis=1)
    chosen = _drawn(per_rank_ns.mean(axis=1))
    parts = [Part(name="run", role=RUN_ROLE, values=tuple(map(float, run_ns.tolist())))]
    if len(graph.ranks) > 1:
        parts += [
            Part(
                name=f"rank {graph.ranks[place].rank}",
                role=RANK_ROLE,
                values=tuple(map(float, per_rank_ns[place].tolist())),
            )
            for place in chosen
        ]
    left = len(graph.ranks) - len(chosen)
    return Lines(
        key=f"{KEY}.strip",
        title="Step time by rank",
        about=f"{_summary(material)} A rank's step ends with its own device work or "
        "its ProfilerStep, whichever is later, the run's with the last rank's."
        + (f" {left} ranks between the fastest and slowest left out." * (left > 0)),
        x_name="step",
        x_unit=Unit.COUNT,
        x=tuple(map(float, graph.steps)),
        y_unit=Unit.NS,
        lines=tuple(parts),
        marks=tuple(
            (float(long.step), f"{long.step_ns / max(long.median_ns, 1):.1f}x the median")
            for long in material.findings.run.long_steps
        ),
        has_points=True,
        query=material.ask.query("steps"),
    )


def _drawn(mean_ns: Float64) -> list[int]:
    """Places of the ranks that are drawn, in their order."""
    if len(mean_ns) <= LINES:
        return list(range(len(mean_ns)))
    order = np.argsort(mean_ns, kind="stable")
    return sorted([*order[: LINES // 2].tolist(), *order[-LINES // 2 :].tolist()])


def _notes(material: Material) -> Iterator[str]:
    """What does not count, and each outlier in a sentence."""
    facts, graph = material.findings.facts, material.findings.graph
    if facts.steps_left_out:
        yield (
            f"{counted(facts.steps_left_out, 'recorded step')} not whole on all ranks, or apart "
            "from the longest run of steps: left out (warm-up, the profiler's start and its stop)."
        )
    if graph.steps_recorded:
        yield (
            "The first step begins when the device work launched before it has ended, so the "
            "profiler's start is no part of it; neither is its synchronisation at the stop."
        )
    for sentence in long_step_sentences(material.findings.run):
        yield sentence[0].upper() + sentence[1:] + "."


def _table(material: Material) -> DataTable:
    graph, base = material.findings.graph, material.findings.baseline
    steps_ns = base.measured.per_step_ns
    median_ns = max(float(np.median(steps_ns)), 1.0)
    shown = list(range(len(steps_ns)))
    if len(shown) > ROWS:
        shown = sorted(np.argsort(-steps_ns, kind="stable")[:ROWS].tolist())
    per_rank_ns = np.diff(base.measured.rank_boundary_ns, axis=1)

    def row(place: int) -> tuple[Cell, ...]:
        slowest = int(per_rank_ns[:, place].argmax())
        return (
            str(graph.steps[place]) if graph.steps_recorded else "whole recording",
            int(steps_ns[place]),
            float(steps_ns[place] / median_ns),
            int(per_rank_ns[:, place].min()),
            int(per_rank_ns[:, place].max()),
            str(graph.ranks[slowest].rank),
        )

    return DataTable(
        key=f"{KEY}.table",
        title="Each step",
        columns=(
            Column(name="step", unit=Unit.TEXT),
            Column(name="run", unit=Unit.NS, has_bar=True),
            Column(name="against the median", unit=Unit.FACTOR),
            Column(name="fastest rank", unit=Unit.NS),
            Column(name="slowest rank", unit=Unit.NS),
            Column(name="which", unit=Unit.TEXT, about="the slowest rank by its own boundaries"),
        ),
        rows=tuple(map(row, shown)),
        left_out=len(steps_ns) - len(shown),
        query=material.ask.query("steps"),
    )


def _grown(material: Material) -> DataTable:
    long = () if material.answer.reading is None else material.answer.reading.long_steps
    return DataTable(
        key=f"{KEY}.grown",
        title=f"What grew in steps above {LONG_STEP}x the median",
        about="Work of one kind on the critical path of the step; usually: median of the others.",
        columns=(
            Column(name="step", unit=Unit.TEXT),
            Column(name="what", unit=Unit.TEXT),
            Column(name="rank", unit=Unit.TEXT),
            Column(name="took", unit=Unit.NS, has_bar=True),
            Column(name="usually", unit=Unit.NS),
        ),
        rows=tuple(_grown_row(step, part) for step in long for part in step.grown),
    )


def _grown_row(step: LongStepFacts, part: GrownPart) -> tuple[Cell, ...]:
    return (
        str(step.step),
        part.name or WORDS[Cause[part.cause.upper()]],
        None if part.rank is None else str(part.rank),
        part.spent_ns,
        part.usual_ns,
    )


def _missing(material: Material) -> Iterator[Missing]:
    graph = material.findings.graph
    if not graph.steps_recorded:
        yield Missing(what="the length of a step", how="call prof.step() once per step")
    elif len(graph.steps) == 1:
        yield Missing(
            what="whether this step is usual",
            how="record several: schedule(wait=1, warmup=2, active=5)",
        )
    elif len(graph.steps) < ENOUGH_FOR_P95:
        yield Missing(
            what=f"a 95th percentile: steps {numbers(list(graph.steps))} are too few",
            how=f"record {ENOUGH_FOR_P95} or more: schedule(active={ENOUGH_FOR_P95})",
        )
