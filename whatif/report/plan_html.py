"""A plan as one page that needs no network: step against memory, what layouts lose, the tables."""

from collections.abc import Iterator

from ingest.units import format_ms
from whatif.report.blocks import (
    Block,
    Column,
    DataTable,
    Dot,
    RangeBar,
    Ranges,
    Scatter,
    Unit,
)
from whatif.report.page.single import SinglePage, single_page
from whatif.report.plan import PlanAnswer
from whatif.report.run_facts import head


def plan_page(answer: PlanAnswer, title: str) -> str:
    """The page."""
    return single_page(
        SinglePage(
            program="trace-replay",
            what="Layouts of one run",
            title=title,
            facts=(
                f"{head(answer.run)}, recorded as {answer.recorded}, "
                f"replayed {format_ms(answer.run.replayed_ns)}",
            ),
            verdict=_verdict(answer),
            shown=(_steps(answer), *_front(answer), _table(answer), _losses(answer), _out(answer)),
            assumptions=answer.notes,
        )
    )


def _verdict(answer: PlanAnswer) -> str:
    best = answer.best[0]
    how = "by its replay" if best.is_replayed else "by the closed form"
    gain = "" if best.speedup is None else f", {best.speedup:.2f} times the samples per second"
    return (
        f"Of {answer.tried:,} layouts the best is {best.words} on {best.gpus:,} {answer.gpu}: a "
        f"step of {format_ms(best.step_ns)} {how}{gain}."
    )


def _steps(answer: PlanAnswer) -> Block:
    return Ranges(
        key="plan.best",
        title="Steps of the best layouts",
        about="Predicted steps with their ranges, by replay where there is one.",
        unit=Unit.NS,
        baseline=answer.run.replayed_ns,
        baseline_name="replayed as recorded",
        bars=tuple(
            RangeBar(name=one.words, value=one.step_ns, low=one.low_ns, high=one.high_ns)
            for one in answer.best
        ),
    )


def _front(answer: PlanAnswer) -> Iterator[Block]:
    """Time, GPUs and memory of the layouts that none beats in all three."""
    if not answer.front:
        return
    yield Scatter(
        key="plan.front",
        title="Step, GPUs and memory",
        about="Layouts that no other beats in all three, by replay or closed form; area by GPUs.",
        x_name="step",
        x_unit=Unit.NS,
        y_name="memory of the fullest rank",
        y_unit=Unit.BYTES,
        is_log=False,
        dots=tuple(
            Dot(
                name=f"{one.gpus:,} GPUs, {one.words}",
                role=f"{one.gpus:,} GPUs",
                x=float(one.step_ns),
                y=float(one.memory_bytes),
                weight=float(one.gpus),
            )
            for one in answer.front
        ),
    )


def _table(answer: PlanAnswer) -> Block:
    return DataTable(
        key="plan.layouts",
        title="The best layouts",
        columns=(
            Column(name="layout", unit=Unit.TEXT),
            Column(name="GPUs", unit=Unit.COUNT),
            *(Column(name=name, unit=Unit.NS) for name in ("step", "low", "high", "closed form")),
            Column(name="samples per s", unit=Unit.COUNT),
            Column(name="memory", unit=Unit.BYTES),
            Column(name="remark", unit=Unit.TEXT),
            Column(name="to type", unit=Unit.CODE),
        ),
        rows=tuple(
            (
                one.words,
                one.gpus,
                one.step_ns,
                one.low_ns,
                one.high_ns,
                one.closed_form_ns,
                one.samples_per_s,
                one.memory_bytes,
                one.refused or ("" if one.fits else "may not fit"),
                one.flags,
            )
            for one in answer.best
        ),
    )


def _losses(answer: PlanAnswer) -> Block:
    names = [loss.name for loss in answer.best[0].losses]
    return DataTable(
        key="plan.losses",
        title="What they lose against the ideal",
        about="By the closed form; with the ideal the parts of a row add up to its step.",
        columns=(
            Column(name="layout", unit=Unit.TEXT),
            Column(name="ideal", unit=Unit.NS),
            *(Column(name=name, unit=Unit.NS) for name in names),
        ),
        rows=tuple(
            (
                one.words,
                one.ideal_ns,
                *({loss.name: loss.time_ns for loss in one.losses}[name] for name in names),
            )
            for one in answer.best
        ),
    )


def _out(answer: PlanAnswer) -> Block:
    rows = [(one.reason, ", ".join(one.values), one.count) for one in answer.excluded]
    if answer.too_large:
        rows.insert(0, ("does not fit the memory of a device", "", answer.too_large))
    return DataTable(
        key="plan.excluded",
        title="What was left out, and why",
        columns=(
            Column(name="reason", unit=Unit.TEXT),
            Column(name="of", unit=Unit.TEXT),
            Column(name="count", unit=Unit.COUNT),
        ),
        rows=tuple(rows),
        is_detail=True,
    )
