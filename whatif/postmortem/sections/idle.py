"""Section `idle`: why devices do nothing, the longest gaps, and what synchronising costs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ingest.units import format_ms
from replay.graph.thresholds import SHORT_GAP_NS
from whatif.postmortem.contract import Missing, Section
from whatif.postmortem.host_work import OUTSIDE, task_called
from whatif.postmortem.material import Material, Rows
from whatif.postmortem.shares import fitted_ns, whole_ns
from whatif.report.blocks import (
    Block,
    Cell,
    Column,
    DataTable,
    Part,
    StackedBars,
    Unit,
    Words,
    details,
)

KEY = "idle"
TITLE = "Idle gaps"

GAPS_SHOWN = 12
CULPRITS_SHOWN = 12
CALLS_SHOWN = 12
BARS_SHOWN = 32
FRAMES_SHOWN = 4
NOTABLE_FRAC = 0.01
"""Of the step: below this nothing is said to be missing."""
REST = "rest"
NO_ROWS = ("in_graph", "queued")
"""Causes by which the device probably worked without a row."""

Row = Mapping[str, Any]

CAUSES: Mapping[str, tuple[str, str, str]] = {
    "host_late": ("host late", "host", "The host was working up to the launch."),
    "sync_drain": (
        "after a synchronisation",
        "wait",
        "The host had waited for the device, so that nothing stood in its queue.",
    ),
    "launch_overhead": ("launching", "memset", "Time from a launch to its start."),
    "event_wait": ("another stream", "memcpy", "Work of another stream of the rank came first."),
    "comm_wait": ("another rank", "comm", "A collective moved data or waited for another rank."),
    "short": (
        "short gaps",
        "other",
        f"Below {SHORT_GAP_NS // 1000} us each: one kernel after another.",
    ),
    "no_more_work": ("no more work", "idle", "No more work follows until the steps end."),
    "in_graph": (
        "in CUDA graphs",
        "compute",
        "Before a kernel that a graph launched: nodes of the graph without a row probably ran.",
    ),
    "queued": (
        "work in the queue",
        "compute",
        "The next work stood in the queue: probably something ran without a row.",
    ),
    "unknown": ("unknown", "idle", "Nothing recorded explains it."),
}
"""Word, colour and meaning of each cause."""


def section(material: Material) -> Section:
    """Idle time of the devices by cause; of a run without devices that there is none."""
    rows = material.ask("idle_by_rank")
    if not rows.rows:
        return _without_device(material)
    by_cause, rest_ns = _by_cause(material, rows)
    return Section(
        key=KEY,
        title=TITLE,
        summary=_summary(material, by_cause, rest_ns),
        blocks=(
            _bars(rows),
            _causes(material, rows, by_cause, rest_ns),
            *_launch_bound(material),
            *details(*_gaps(material), *_culprits(material), *_syncs(material)),
        ),
        missing=tuple(_missing(material, by_cause)),
    )


def _without_device(material: Material) -> Section:
    waiting_ns = material.answer.breakdown.baseline.idle_ns
    step_ns = max(material.answer.baseline.measured_ns, 1)
    if material.answer.trace.gpu is not None or material.findings.facts.has_device:
        return Section(key=KEY, title=TITLE, summary="No device row lies in the steps.")
    return Section(
        key=KEY,
        title=TITLE,
        summary=(
            f"No device is recorded; the threads that carry the step wait "
            f"{format_ms(waiting_ns)} of it ({waiting_ns / step_ns:.1%}) for something other than "
            "communication."
        ),
        missing=(
            Missing(
                what="idle time of a device",
                how="if the job uses one, record with activities=[ProfilerActivity.CPU, "
                "ProfilerActivity.CUDA]",
            ),
        ),
    )


def _by_cause(material: Material, rows: Rows) -> tuple[dict[str, int], int]:
    """Idle time of a step by cause, ns, the most first; and what the breakdown has beyond it."""
    sums: dict[str, float] = {}
    for row in rows.dicts():
        sums[row["cause"]] = sums.get(row["cause"], 0.0) + row["mean_ns"]
    values, rest_ns = fitted_ns(list(sums.values()), _idle_ns(material, sums))
    found = dict(zip(sums, values, strict=True))
    return dict(sorted(found.items(), key=lambda item: -item[1])), rest_ns


def _idle_ns(material: Material, sums: Mapping[str, float]) -> int:
    """Idle time of a step: of the breakdown where that is as recorded."""
    if material.findings.unprofiled is not None:
        return round(sum(sums.values()))
    return material.answer.breakdown.baseline.idle_ns


def _summary(material: Material, by_cause: Mapping[str, int], rest_ns: int) -> str:
    step_ns = max(material.answer.baseline.measured_ns, 1)
    idle_ns = sum(by_cause.values()) + rest_ns
    if idle_ns <= 0:
        return "The devices are never idle in these steps."
    text = f"The devices do nothing for {format_ms(idle_ns)} of a step ({idle_ns / step_ns:.1%})"
    top = [
        f"{_word(cause)} {format_ms(value)}" for cause, value in list(by_cause.items())[:3] if value
    ]
    text = f"{text}: {', '.join(top)}"
    hidden_ns = sum(by_cause.get(cause, 0) for cause in NO_ROWS)
    if hidden_ns > NOTABLE_FRAC * step_ns:
        text += (
            f"; in {format_ms(hidden_ns)} of it the next work stood in the queue or in a CUDA "
            "graph, so that something without a row probably ran"
        )
    return f"{text}."


def _word(cause: str) -> str:
    return CAUSES[cause][0]


def _bars(rows: Rows) -> StackedBars:
    """Causes of each device, the most idle first where there are many."""
    places: dict[tuple[int, int], dict[str, float]] = {}
    for row in rows.dicts():
        of_place = places.setdefault((row["rank"], row["device"]), {})
        of_place[row["cause"]] = row["idle_ns"]
    shown = sorted(places, key=lambda place: -sum(places[place].values()))[:BARS_SHOWN]
    shown.sort()
    several = len({rank for rank, _ in places}) < len(places)
    causes = [cause for cause in CAUSES if any(cause in places[place] for place in shown)]
    values = [whole_ns([places[place].get(cause, 0.0) for cause in causes]) for place in shown]
    left = len(places) - len(shown)
    return StackedBars(
        key="idle.devices",
        title="Idle time of a step by device and cause",
        about=(
            "What the next work of an idle device waited for; a gap counts for the cause that took "
            f"most of it.{f' The {left} least idle devices are not drawn.' if left else ''}"
        ),
        unit=Unit.NS,
        categories=tuple(
            f"rank {rank} device {device}" if several else f"rank {rank}" for rank, device in shown
        ),
        parts=tuple(
            Part(
                name=_word(cause),
                role=CAUSES[cause][1],
                values=tuple(of_place[number] for of_place in values),
            )
            for number, cause in enumerate(causes)
        ),
        query=rows.query,
    )


def _causes(material: Material, rows: Rows, by_cause: Mapping[str, int], rest_ns: int) -> DataTable:
    step_ns = max(material.answer.baseline.measured_ns, 1)
    idle_ns = max(sum(by_cause.values()) + rest_ns, 1)
    found = rows.dicts()
    told: list[tuple[Cell, ...]] = [
        (
            _word(cause),
            sum(row["gaps"] for row in found if row["cause"] == cause),
            value,
            value / idle_ns,
            value / step_ns,
            max(row["longest_ns"] or 0 for row in found if row["cause"] == cause) or None,
            CAUSES[cause][2],
        )
        for cause, value in by_cause.items()
    ]
    if rest_ns:
        told.append((REST, None, rest_ns, rest_ns / idle_ns, rest_ns / step_ns, None, _REST_IS))
    return DataTable(
        key="idle.causes",
        title="Idle time by cause",
        about=(
            "Per step, mean over devices and ranks: the rows add up to the idle time of the "
            "breakdown. The query has them by rank (mean_ns)."
        ),
        columns=(
            Column(name="cause", unit=Unit.TEXT),
            Column(name="gaps", unit=Unit.COUNT, about="Of all ranks and steps."),
            Column(name="a step", unit=Unit.NS, has_bar=True),
            Column(name="of idle", unit=Unit.FRAC),
            Column(name="of step", unit=Unit.FRAC),
            Column(name="longest", unit=Unit.NS),
            Column(name="meaning", unit=Unit.TEXT),
        ),
        rows=tuple(told),
        query=rows.query,
    )


_REST_IS = "The tables hold the run as recorded on all ranks; the breakdown is of those chosen."


def _launch_bound(material: Material) -> Iterator[Words]:
    """How much of the steps an idle device waits for launches, and how far ahead the host is."""
    reading = material.answer.reading
    if reading is None or reading.idle_launch_frac is None:
        return
    text = f"An idle device waits for its next launch in {reading.idle_launch_frac:.1%} of the step"
    if reading.idle_input_frac:
        text += f", in {reading.idle_input_frac:.1%} while the host is in its data loader"
    if reading.cpu_ahead_steps is not None:
        text += (
            f". The host is {reading.cpu_ahead_steps:.2f} steps ahead of the device in the median"
        )
    yield Words(paragraphs=(f"{text}.",))


def _gaps(material: Material) -> Iterator[DataTable]:
    rows = material.ask("device_gaps", top=GAPS_SHOWN)
    if not rows.rows:
        return
    yield DataTable(
        key="idle.gaps",
        title="Longest gaps",
        about=(
            "Frame: the innermost Python function outside of torch that the host was in. The query "
            "has its stack, and how each gap is shared out over causes."
        ),
        columns=(
            Column(name="next work", unit=Unit.CODE, about="That ended the gap."),
            Column(name="rank", unit=Unit.COUNT),
            Column(name="step", unit=Unit.COUNT),
            Column(name="at", unit=Unit.NS, about="Start, after the begin of the recording."),
            Column(name="idle", unit=Unit.NS, has_bar=True),
            Column(name="cause", unit=Unit.TEXT),
            Column(name="waited for", unit=Unit.CODE, about="The task that took most of it."),
            Column(name="of rank", unit=Unit.COUNT),
            Column(name="operator", unit=Unit.CODE, about="Innermost on the host."),
            Column(name="module", unit=Unit.TEXT, about="Module or annotation around it."),
            Column(name="frame", unit=Unit.CODE),
        ),
        rows=tuple(
            (
                row["next_kernel"] or "nothing more",
                row["rank"],
                row["step"],
                row["ts"],
                row["idle_ns"],
                _word(row["cause"]),
                task_called(row["culprit"]),
                row["culprit_rank"],
                row["op"],
                row["module"] or row["annotation"],
                row["frame"],
            )
            for row in rows.dicts()
        ),
        query=rows.query,
    )


def _culprits(material: Material) -> Iterator[DataTable]:
    rows = material.ask("idle_culprits", top=CULPRITS_SHOWN)
    found = [row for row in rows.dicts() if row["class"] is not None]
    if not found:
        return
    yield DataTable(
        key="idle.culprits",
        title="What idle devices waited for, summed",
        about="By the task that took most of each gap; per step, mean over devices and ranks.",
        columns=(
            Column(name="waited for", unit=Unit.CODE),
            Column(name="kind", unit=Unit.TEXT),
            Column(name="cause", unit=Unit.TEXT),
            Column(name="module", unit=Unit.TEXT, about="Module or annotation around it."),
            Column(name="gaps", unit=Unit.COUNT, about="Of all ranks and steps."),
            Column(name="a step", unit=Unit.NS, has_bar=True),
            Column(name="longest", unit=Unit.NS),
        ),
        rows=tuple(
            (
                task_called(row["name"]) or OUTSIDE,
                row["class"],
                _word(row["cause"]),
                row["module"],
                row["gaps"],
                round(row["idle_ns"]),
                row["longest_ns"],
            )
            for row in found
        ),
        query=rows.query,
    )


def _syncs(material: Material) -> Iterator[Block]:
    """Blocking calls that cost something, and in words those that did not."""
    rows = material.ask("sync_cost", top=1000)
    if not rows.rows:
        yield Words(paragraphs=("No call makes the host wait for a device in these steps.",))
        return
    found = rows.dicts()
    costly = [row for row in found if row["idle_ns"] > 0]
    yield Words(paragraphs=(_free_calls(found),))
    if costly:
        yield _sync_table(costly, rows)


def _free_calls(rows: Sequence[Row]) -> str:
    calls = sum(row["calls"] for row in rows)
    with_idle = sum(row["calls_with_idle"] for row in rows)
    idle_ns = round(sum(row["idle_ns"] for row in rows))
    free = calls - with_idle
    if not with_idle:
        return (
            f"All {calls:,} calls that block the host cost nothing: no device ran out of work "
            "in them."
        )
    return (
        f"Of {calls:,} calls that block the host, {with_idle:,} let the device run out of work: "
        f"{format_ms(idle_ns)} of idle time a step and rank begin in them. The other {free:,} "
        "cost nothing, as the device had work."
    )


def _sync_table(costly: Sequence[Row], rows: Rows) -> DataTable:
    return DataTable(
        key="idle.syncs",
        title="Blocking calls that a device ran idle in",
        about=(
            "Idle time that began inside the call and lasted until the next work started: what "
            "the call costs at most. Per step, mean over ranks; plain and pageable copies and "
            "frees block, too."
        ),
        columns=(
            Column(name="call", unit=Unit.CODE),
            Column(name="operator", unit=Unit.CODE, about="Innermost around it."),
            Column(name="in", unit=Unit.TEXT, about="Annotation around it."),
            Column(name="frame", unit=Unit.CODE, about="Python function outside of torch."),
            Column(name="calls", unit=Unit.COUNT, about="A step."),
            Column(name="with idle", unit=Unit.COUNT, about="Calls, all ranks and steps."),
            Column(name="in the call", unit=Unit.NS, about="A step."),
            Column(name="idle after", unit=Unit.NS, about="A step.", has_bar=True),
            Column(name="longest", unit=Unit.NS),
        ),
        rows=tuple(
            (
                row["api"],
                row["op"],
                row["annotation"],
                row["frame"],
                round(row["calls_per_step"], 2),
                row["calls_with_idle"],
                round(row["call_ns"]),
                round(row["idle_ns"]),
                row["longest_idle_ns"],
            )
            for row in costly[:CALLS_SHOWN]
        ),
        query=rows.query,
        left_out=max(len(costly) - CALLS_SHOWN, 0),
    )


def _missing(material: Material, by_cause: Mapping[str, int]) -> Iterator[Missing]:
    least_ns = NOTABLE_FRAC * material.answer.baseline.measured_ns
    if not any(file.has_stacks for file in material.findings.facts.files):
        yield Missing(
            what="the Python frame that the host was in during each gap",
            how="record with with_stack=True (it slows the host: for one short recording)",
        )
    if by_cause.get("in_graph", 0) > least_ns:
        yield Missing(
            what=(
                f"what ran in {format_ms(by_cause['in_graph'])} of a step before kernels of CUDA "
                "graphs, which has no rows"
            ),
            how="record once with graphs turned off (enforce_eager, no CUDA graphs in "
            "torch.compile), or with a newer PyTorch and driver, whose profiler keeps all nodes",
        )
    if by_cause.get("queued", 0) > least_ns:
        yield Missing(
            what=(
                f"what ran in {format_ms(by_cause['queued'])} of a step while the next work stood "
                "in the queue"
            ),
            how="start the profiler some steps before the recorded ones (schedule with warmup), so "
            "that work launched earlier is recorded",
        )
    if by_cause.get("unknown", 0) > least_ns:
        yield Missing(
            what=f"why devices were idle for {format_ms(by_cause['unknown'])} of a step",
            how="record synchronisation: experimental_config="
            "_ExperimentalConfig(enable_cuda_sync_events=True)",
        )
