"""Section `host`: what the CPU does, and how far it is ahead of the devices."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ingest.vocab import HOST_KINDS
from replay.results.causes import Cause
from whatif.postmortem.contract import Missing, Section
from whatif.postmortem.material import Material, Rows
from whatif.postmortem.tabling import column, rows_table, table, time_text, total
from whatif.report.blocks import Block, Column, Lines, Part, StackedBars, Unit, details

KEY = "host"
TITLE = "Host"
MOST_BARS = 64
MOST_LINES = 8
SHORT_LEAD_NS = 20_000
"""Work that starts so soon after its call found the device waiting for it."""
LEAST_OVERHEAD_FRAC = 0.01
"""Less than this of the steps is told without a hint."""
PARTS: Mapping[str, str] = {
    "operators": "host",
    "runtime calls": "runtime",
    "Python frames": "python",
    "data loader": "input",
    "waiting for the device": "wait",
    "nothing, while the backward works": "backward",
    "nothing recorded": "idle",
    "other rows": "other",
}
"""What the thread of the step does -> role in charts, in the order of the bar."""


def section(material: Material) -> Section:
    """Time of the host by what it does, thread, call and frame; its lead on the devices."""
    if not _has_host(material):
        return Section(
            key=KEY,
            title=TITLE,
            summary="No CPU rows were recorded.",
            missing=(
                Missing(
                    what="The host: the recording has no CPU rows.",
                    how="Record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA].",
                ),
            ),
        )
    lead, loading = material.ask("launch_lead"), material.ask("data_loading")
    frames, overhead = material.ask("python_times"), material.ask("profiler_overhead")
    waits = material.ask("host_waits")
    return Section(
        key=KEY,
        title=TITLE,
        summary=_summary(material, lead, loading, waits),
        blocks=(
            *_time(material),
            *details(
                *_waits(waits),
                *_lead(material, lead),
                *_loading(loading),
                *_threads(material),
                *_calls(material),
                *_frames(frames),
                *_overhead(overhead),
            ),
        ),
        missing=tuple(_missing(material, frames, overhead)),
    )


def _has_host(material: Material) -> bool:
    return bool(np.isin(material.findings.graph.tasks.kind, [int(one) for one in HOST_KINDS]).any())


def _summary(material: Material, lead: Rows, loading: Rows, waits: Rows) -> str:
    share = material.findings.run.bound.path_frac
    on_path = share.get(Cause.HOST, 0.0) + share.get(Cause.INPUT, 0.0)
    parts = [f"Host work is {on_path:.1%} of the critical path"]
    if lead.rows:
        least = min(lead.dicts(), key=_waited_for)
        whose = f" of rank {least['rank']}" if len(lead.rows) > 1 else ""
        parts.append(
            f"{least['short_lead_frac']:.0%} of the launches{whose} are less than "
            f"{time_text(SHORT_LEAD_NS)} ahead of their work"
            + ("" if len(lead.rows) == 1 else ", on no other rank more")
            + f"; half are less than {time_text(least['med_lead_dur'])} ahead"
        )
    if loading.rows:
        worst = max(loading.dicts(), key=lambda record: record["step_dur"])
        parts.append(
            f"the data loader takes up to {time_text(worst['step_dur'])} of a step "
            f"(rank {worst['rank']})"
        )
    if waits.rows and not material.findings.facts.has_device:
        longest = max(waits.dicts(), key=lambda record: record["step_dur"])
        parts.append(
            f"a thread waits up to {time_text(longest['step_dur'])} of a step for "
            f"{longest['awaited']} (rank {longest['rank']})"
        )
    return "; ".join(parts) + "."


def _waited_for(record: Mapping[str, Any]) -> tuple[float, float]:
    """Order of ranks: first those whose devices waited for most of their launches.

    The median does not tell: a host that is far ahead half of the time may be late for the rest.
    """
    return -record["short_lead_frac"], record["med_lead_dur"]


def _time(material: Material) -> Iterator[Block]:
    rows = material.ask("host_time")
    records = rows.dicts()
    if not records:
        return
    every = sorted({record["rank"] for record in records})
    ranks = every[:MOST_BARS]
    spent = {(record["rank"], record["what"]): record["step_dur"] for record in records}
    told = [name for name in PARTS if any((rank, name) in spent for rank in ranks)]
    yield StackedBars(
        key="host.time",
        title="What the thread of the step does",
        about=_time_about(records, len(ranks), len(every)),
        unit=Unit.NS,
        categories=tuple(f"rank {rank}" for rank in ranks),
        parts=tuple(
            Part(
                name=name,
                role=PARTS[name],
                values=tuple(float(round(spent.get((rank, name), 0))) for rank in ranks),
            )
            for name in told
        ),
        query=rows.query,
    )


def _time_about(records: Sequence[Mapping[str, Any]], shown: int, ranks: int) -> str:
    whole = total(records, "step_dur")
    shares = [
        f"{name} {share:.1%}"
        for name in PARTS
        if (share := total((r for r in records if r["what"] == name), "step_dur") / max(whole, 1))
    ]
    cut = f" The first {shown} of {ranks} ranks are shown." if ranks > shown else ""
    return (
        f"The thread that carries the steps, by its innermost row at each moment: "
        f"{', '.join(shares)}. Where nothing is recorded it is in Python (frames need with_stack) "
        f"or waits. Copies that block count as runtime calls.{cut}"
    )


WAITS: dict[str, Column] = {
    "rank": column("rank", Unit.COUNT),
    "lane": column("thread", Unit.TEXT),
    "awaited": column("waits for", Unit.TEXT, "What ended the wait, by the edges of the graph."),
    "waits": column("count", Unit.COUNT, "In all steps."),
    "step_dur": column("per step", Unit.NS, has_bar=True),
    "max_dur": column("longest", Unit.NS),
}


def _waits(waits: Rows) -> Iterator[Block]:
    if waits.rows:
        yield rows_table(
            waits,
            key="host.waits",
            title="What threads wait for",
            columns=WAITS,
            about="By the dependency graph, also where no call says that it waits. A backward "
            "thread waits for another one while there is no backward.",
        )


LEAD: dict[str, Column] = {
    "rank": column("rank", Unit.COUNT),
    "launches": column("launches", Unit.COUNT),
    "p5_lead_dur": column("lead p5", Unit.NS, "From the end of the call to the start of its work."),
    "med_lead_dur": column("lead p50", Unit.NS, has_bar=True),
    "p95_lead_dur": column("lead p95", Unit.NS),
    "short_lead_frac": column(
        "below 20 us", Unit.FRAC, "Share of launches whose work starts at once: the host is late."
    ),
    "med_depth": column("queued p50", Unit.COUNT, "Launches that have not started."),
    "max_depth": column("queued most", Unit.COUNT),
    "full_launches": column("queue full", Unit.COUNT, "Launches that met a full queue."),
}


def _lead(material: Material, lead: Rows) -> Iterator[Block]:
    if not lead.rows:
        return
    yield rows_table(
        lead,
        key="host.lead",
        title="How far the host is ahead of its device",
        columns=LEAD,
        about="A host that is ahead costs nothing; where work starts less than 20 us after its "
        "call, the device has waited for the host.",
    )
    yield from _lead_curve(material, lead)


def _lead_curve(material: Material, lead: Rows) -> Iterator[Block]:
    """Of the ranks whose devices wait most often."""
    rows = material.ask("launch_lead_curve")
    order = sorted(lead.dicts(), key=_waited_for)
    ranks = sorted(record["rank"] for record in order[:MOST_LINES])
    at_ns = {record["stretch"]: record["after_dur"] for record in rows.dicts()}
    found = {(one["rank"], one["stretch"]): one["med_lead_dur"] for one in rows.dicts()}
    if len(at_ns) <= 1:
        return
    cut = "" if len(order) <= MOST_LINES else f" The {MOST_LINES} ranks that wait most often."
    yield Lines(
        key="host.lead_curve",
        title="Lead of the host over the steps",
        about="Median time from a launch to the start of its work, over stretches of the steps of "
        f"the host; where a line nears zero the device waits for that host.{cut}",
        x_name="after the start of the first step",
        x_unit=Unit.NS,
        x=tuple(float(at_ns[stretch]) for stretch in sorted(at_ns)),
        y_unit=Unit.NS,
        lines=tuple(
            Part(
                name=f"rank {rank}",
                role="host",
                values=tuple(found.get((rank, stretch)) for stretch in sorted(at_ns)),
            )
            for rank in ranks
        ),
        query=rows.query,
    )


LOADING: dict[str, Column] = {
    "rank": column("rank", Unit.COUNT),
    "name": column("row", Unit.CODE),
    "calls": column("calls", Unit.COUNT),
    "step_dur": column("per step", Unit.NS, has_bar=True),
    "time_frac": column("share", Unit.FRAC, "Of the steps of the host."),
    "med_dur": column("p50", Unit.NS),
    "max_dur": column("longest", Unit.NS),
}


def _loading(loading: Rows) -> Iterator[Block]:
    if loading.rows:
        yield rows_table(
            loading,
            key="host.data_loader",
            title="Data loader",
            columns=LOADING,
            about="Time that the loop spends fetching the next batch. It costs a step only as far "
            "as the device runs out of work meanwhile: see idle gaps.",
        )


THREADS: dict[str, Column] = {
    "rank": column("rank", Unit.COUNT),
    "role": column("thread", Unit.TEXT, "What it does."),
    "thread": column("name", Unit.CODE),
    "tid": column("id", Unit.TEXT),
    "ops": column("operators", Unit.COUNT),
    "step_op_dur": column("in operators", Unit.NS, "Own time per step.", has_bar=True),
    "step_call_dur": column("in calls", Unit.NS, "Of the runtime, waits left out.", has_bar=True),
    "step_sync_dur": column("waiting", Unit.NS, "In calls that wait for the device.", has_bar=True),
    "step_python_dur": column("in Python", Unit.NS, "Frames without what they call.", has_bar=True),
    "step_annotation_dur": column("in annotations", Unit.NS, "With no other row inside."),
    "step_dur": column("step", Unit.NS, "Mean step of the host; a thread is silent for the rest."),
}


def _threads(material: Material) -> Iterator[Block]:
    rows = material.ask("host_threads")
    if not rows.rows:
        return
    has_frames = any(rows.column("step_python_dur"))
    shown = {name: one for name, one in THREADS.items() if has_frames or name != "step_python_dur"}
    yield rows_table(rows, key="host.threads", title="Threads", columns=shown)


CALLS: dict[str, Column] = {
    "api": column("call", Unit.CODE),
    "kind": column("kind", Unit.TEXT),
    "calls": column("count", Unit.COUNT),
    "step_calls": column("per step", Unit.COUNT, "Per step and rank."),
    "step_dur": column("time per step", Unit.NS, "Per step and rank.", has_bar=True),
    "med_dur": column("p50", Unit.NS),
    "p95_dur": column("p95", Unit.NS),
    "max_dur": column("longest", Unit.NS),
    "slow_calls": column("slow", Unit.COUNT, "Longer than 100 us."),
    "step_slow_dur": column("in slow ones", Unit.NS, "Per step and rank."),
}


def _calls(material: Material) -> Iterator[Block]:
    rows = material.ask("runtime_calls")
    if rows.rows:
        yield rows_table(
            rows,
            key="host.calls",
            title="Calls of the runtime",
            columns=CALLS,
            about=_calls_about(rows.dicts()),
        )


def _calls_about(records: Sequence[Mapping[str, Any]]) -> str:
    """What launching costs, and what waiting and memory do."""
    told = [
        f"{word} take {time_text(spent)} per step and rank in "
        f"{round(total(found, 'step_calls')):,} calls"
        for word, kinds in (
            ("launches", ("launch", "graph_launch")),
            ("waits for the device", ("device_sync", "stream_sync", "event_sync")),
            ("allocating and freeing", ("malloc", "free")),
        )
        if (found := [record for record in records if record["kind"] in kinds])
        and (spent := total(found, "step_dur"))
    ]
    return "; ".join(told).capitalize() + "." if told else ""


FRAMES: dict[str, Column] = {
    "frame": column("frame", Unit.CODE),
    "calls": column("calls", Unit.COUNT),
    "step_self_dur": column("own time", Unit.NS, "Per step and rank.", has_bar=True),
    "self_frac": column("share", Unit.FRAC, "Of the own time of all frames."),
    "max_dur": column("longest", Unit.NS, "With all inside."),
    "is_wait": column("waits", Unit.TEXT, "For a lock, a queue, a process or the clock, by name."),
}


def _frames(frames: Rows) -> Iterator[Block]:
    if not frames.rows:
        return
    records = [
        {**record, "is_wait": "yes" if record["is_wait"] else ""} for record in frames.dicts()
    ]
    waits = [record for record in records if record["is_wait"]]
    yield table(
        key="host.python",
        title="Python frames by own time",
        columns=FRAMES,
        records=records,
        query=frames.query,
        about=f"{time_text(total(records, 'step_self_dur'))} of own time per step and rank in "
        f"Python, {time_text(total(waits, 'step_self_dur'))} of it in frames that wait. Recording "
        "frames makes Python itself slower.",
    )


OVERHEAD: dict[str, Column] = {
    "name": column("row", Unit.TEXT),
    "n": column("count", Unit.COUNT),
    "step_dur": column("per step", Unit.NS, "Per step and rank.", has_bar=True),
    "time_frac": column("share", Unit.FRAC, "Of the steps of the host."),
    "max_dur": column("longest", Unit.NS),
}


def _overhead(overhead: Rows) -> Iterator[Block]:
    if overhead.rows:
        yield rows_table(
            overhead,
            key="host.profiler",
            title="What the profiler wrote down of itself",
            columns=OVERHEAD,
            about="Rows of category `overhead`, on whatever thread. What it costs each operator "
            "and call stands nowhere.",
        )


def _missing(material: Material, frames: Rows, overhead: Rows) -> Iterator[Missing]:
    if not frames.rows:
        yield Missing(
            what="Python frames: what runs between operators.",
            how="Record with with_stack=True (it makes Python slower).",
        )
    yield Missing(
        what="Waits for the GIL: a trace does not have them.",
        how="Look at the running job: py-spy dump --pid PID, or py-spy record --gil.",
    )
    if material.findings.unprofiled is None:
        share = total(overhead.dicts(), "time_frac")
        seen = f" (it wrote down {share:.1%} of the steps)" if share > LEAST_OVERHEAD_FRAC else ""
        yield Missing(
            what=f"How much longer the host takes because of the profiler{seen}.",
            how="Measure a step without the profiler and give it: --unprofiled-step TIME.",
        )
