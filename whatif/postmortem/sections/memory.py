"""Section `memory`: how much each device holds, what holds it, and what getting it costs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from whatif.models.hardware import Accelerator
from whatif.postmortem.contract import Missing, Section
from whatif.postmortem.material import Material, Rows
from whatif.postmortem.tabling import column, rows_table, size_text, table, time_text, total
from whatif.recorded import NOTHING_SAID
from whatif.report.blocks import Block, Column, Lines, Part, Unit, details
from whatif.transforms.machine import recorded_device

KEY = "memory"
TITLE = "Memory"
STRETCHES = 240
MALLOC_KINDS = ("malloc", "free")
Record = Mapping[str, Any]


def section(material: Material) -> Section:
    """Peaks against the card, the curve, what is held at the peak, allocations, their cost."""
    peaks = material.ask("memory_peaks")
    calls = _allocation_cost(material)
    on_device = [record for record in peaks.dicts() if record["device_type"] != 0]
    device = recorded_device(material.findings.graph, NOTHING_SAID)
    return Section(
        key=KEY,
        title=TITLE,
        summary=_summary(material, on_device, calls, device),
        blocks=(
            *_peaks(peaks, device),
            *_curve(material, on_device),
            *details(
                *_held(material, on_device),
                *_allocations(material, on_device),
                *_calls(calls),
            ),
        ),
        missing=tuple(_missing(material, on_device)),
    )


def _allocation_cost(material: Material) -> Rows | None:
    """None where no call of the runtime allocates or frees: then the replay need not be asked."""
    kinds = {row["kind"] for row in material.ask("runtime_calls").dicts()}
    return material.ask("allocation_cost") if kinds & set(MALLOC_KINDS) else None


def _summary(
    material: Material, on_device: Sequence[Record], calls: Rows | None, device: Accelerator | None
) -> str:
    parts = []
    worst = _worst(on_device)
    if worst is not None:
        parts.append(_peak_text(worst))
    elif material.findings.facts.has_device:
        card_bytes = _card_bytes(material, device)
        card = "" if card_bytes is None else f" of {size_text(card_bytes)} per device"
        parts.append(f"How much{card} the run held is not recorded")
    else:
        parts.append("No device, and no device memory, is recorded")
    if calls is not None:
        spent = _by_rank(calls.dicts(), "step_dur")
        rank = max(spent, key=spent.__getitem__)
        parts.append(
            f"allocating and freeing in the steps takes up to {time_text(spent[rank])} of a step "
            f"(rank {rank})"
        )
    return "; ".join(parts) + "."


def _card_bytes(material: Material, device: Accelerator | None) -> float | None:
    """As recorded, else as the catalog has it; None where neither tells."""
    recorded_bytes = material.findings.graph.work.memory_bytes
    if recorded_bytes > 0:
        return recorded_bytes
    known = None if device is None else device.memory_bytes
    return None if known is None else known.value


def _worst(on_device: Sequence[Record]) -> Record | None:
    """The device that holds most; None without any."""
    return max(
        on_device, key=lambda record: record["peak_bytes"] or record["rise_bytes"], default=None
    )


def _peak_text(worst: Record) -> str:
    where = f"(rank {worst['rank']}, {worst['place']})"
    if worst["peak_bytes"] is None:
        return (
            f"At most {size_text(worst['rise_bytes'])} above what was held before the recording "
            f"{where}"
        )
    text = f"At most {size_text(worst['peak_bytes'])} allocated {where}"
    if worst["reserved_bytes"] is not None:
        text += f" and {size_text(worst['reserved_bytes'])} reserved"
    if worst["card_bytes"]:
        used = (worst["reserved_bytes"] or worst["peak_bytes"]) / worst["card_bytes"]
        text += f", {used:.0%} of the card's {size_text(worst['card_bytes'])}"
    return text


def _by_rank(records: Sequence[Record], name: str) -> dict[int, float]:
    spent: dict[int, float] = {}
    for record in records:
        spent[record["rank"]] = spent.get(record["rank"], 0.0) + (record[name] or 0.0)
    return spent


PEAKS: dict[str, Column] = {
    "rank": column("rank", Unit.COUNT),
    "place": column("where", Unit.TEXT),
    "peak_bytes": column("allocated", Unit.BYTES, "Most at once, in tensors.", has_bar=True),
    "reserved_bytes": column("reserved", Unit.BYTES, "Most that the allocator held."),
    "unused_bytes": column(
        "not in use", Unit.BYTES, "Reserved less allocated, both at most: cached or fragmented."
    ),
    "card_bytes": column("card", Unit.BYTES, "Memory of the device, as recorded."),
    "headroom_bytes": column(
        "headroom", Unit.BYTES, "Card less reserved; contexts and libraries take some of it."
    ),
    "least_bytes": column("least", Unit.BYTES, "Least allocated in the steps."),
    "rise_bytes": column("rise", Unit.BYTES, "Most above what was held when the recording began."),
    "after_dur": column("peak at", Unit.NS, "After the start of the first step."),
    "op": column("operator", Unit.CODE, "That allocated at the peak."),
    "allocations": column("allocations", Unit.COUNT),
    "frees": column("frees", Unit.COUNT),
}


def _peaks(peaks: Rows, device: Accelerator | None) -> Iterator[Block]:
    if not peaks.rows:
        return
    known = None if device is None else device.memory_bytes
    catalog = (
        ""
        if device is None or known is None
        else f"The catalog has {size_text(known.value)} for {device.name}."
    )
    shown = {
        name: one
        for name, one in PEAKS.items()
        if any(value is not None for value in peaks.column(name))
    }
    yield rows_table(
        peaks, key="memory.peaks", title="Memory at most", columns=shown, about=catalog
    )


def _curve(material: Material, on_device: Sequence[Record]) -> Iterator[Block]:
    """Of the device that holds most."""
    worst = _worst(on_device)
    if worst is None:
        return
    rows = material.ask("memory_curve", stretches=STRETCHES)
    here = [
        record
        for record in rows.dicts()
        if (record["rank"], record["place"]) == (worst["rank"], worst["place"])
    ]
    is_total = worst["peak_bytes"] is not None
    names = ("allocated_bytes", "reserved_bytes") if is_total else ("rise_bytes",)
    words = {"allocated_bytes": "allocated", "reserved_bytes": "reserved", "rise_bytes": "rise"}
    yield Lines(
        key="memory.curve",
        title=f"Memory over the steps: rank {worst['rank']}, {worst['place']}",
        about=_curve_about(worst, len({(one["rank"], one["place"]) for one in on_device})),
        x_name="after the start of the first step",
        x_unit=Unit.NS,
        x=tuple(float(record["after_dur"]) for record in here),
        y_unit=Unit.BYTES,
        lines=tuple(
            Part(
                name=words[name],
                role=words[name],
                values=tuple(
                    None if record[name] is None else float(record[name]) for record in here
                ),
            )
            for name in names
            if any(record[name] is not None for record in here)
        ),
        marks=((float(worst["after_dur"]), "peak"),),
        query=rows.query,
    )


def _curve_about(worst: Record, devices: int) -> str:
    text = f"{_peak_text(worst)}, after {time_text(worst['after_dur'])}"
    if worst["op"]:
        text += f" in {worst['op']}"
    which = " The device that holds most." if devices > 1 else ""
    return f"{text}. Points are the most of a stretch, so that no peak is lost.{which}"


HELD: dict[str, Column] = {
    "op": column("allocated by", Unit.CODE),
    "phase": column("phase", Unit.TEXT),
    "blocks": column("blocks", Unit.COUNT),
    "bytes": column("held", Unit.BYTES, has_bar=True),
    "peak_frac": column("share", Unit.FRAC, "Of what is allocated at the peak."),
    "largest_bytes": column("largest", Unit.BYTES),
}


def _held(material: Material, on_device: Sequence[Record]) -> Iterator[Block]:
    if not any(record["peak_bytes"] is not None for record in on_device):
        return
    rows = material.ask("memory_at_peak")
    if not rows.rows:
        return
    first = rows.dicts()[0]
    yield rows_table(
        rows,
        key="memory.held",
        title=f"What holds the peak: rank {first['rank']}, device {first['device']}",
        columns=HELD,
        about="Blocks that are allocated and not yet freed when most is; together they are the "
        "peak. Before the recording come parameters, optimizer state and what else was there.",
    )


ALLOCATIONS: dict[str, Column] = {
    "op": column("operator", Unit.CODE),
    "phase": column("phase", Unit.TEXT),
    "bytes": column("size", Unit.BYTES, "Of one.", has_bar=True),
    "allocations": column("times", Unit.COUNT, "On all ranks in all steps."),
    "module": column("module", Unit.CODE, "nn.Module or annotation around most of them."),
}


def _allocations(material: Material, on_device: Sequence[Record]) -> Iterator[Block]:
    if on_device:
        yield rows_table(
            material.ask("memory_allocations"),
            key="memory.allocations",
            title="Largest allocations",
            columns=ALLOCATIONS,
            most=15,
        )


CALLS: dict[str, Column] = {
    "rank": column("rank", Unit.COUNT),
    "api": column("call", Unit.CODE),
    "calls": column("count", Unit.COUNT, "In all steps."),
    "step_dur": column("per step", Unit.NS, has_bar=True),
    "max_dur": column("longest", Unit.NS),
    "calls_on_path": column("on the path", Unit.COUNT, "Calls on the critical path of the run."),
    "step_path_dur": column("path per step", Unit.NS, "Time of the path in them, lags included."),
    "inside": column("inside", Unit.CODE, "Operator or frame around most of them."),
}


def _calls(calls: Rows | None) -> Iterator[Block]:
    if calls is None or not calls.rows:
        return
    records = calls.dicts()
    on_path = total(records, "step_path_dur")
    yield table(
        key="memory.calls",
        title="Taking memory from the device in the steps",
        columns=CALLS,
        records=records,
        query=calls.query,
        about=f"{time_text(on_path)} of a step of the critical path. In a steady state the "
        "allocator of PyTorch makes no such calls: it grows, or frees its cache to try again "
        "(expandable_segments:True, less memory in use, or no empty_cache() in the loop).",
    )


def _missing(material: Material, on_device: Sequence[Record]) -> Iterator[Missing]:
    if not material.findings.facts.has_device:
        return
    if not on_device:
        yield Missing(
            what="What the devices hold: peak, headroom, largest allocations.",
            how="Record with profile_memory=True.",
        )
    elif all(record["peak_bytes"] is None for record in on_device):
        yield Missing(
            what="Totals of the allocator: this profiler wrote allocations only.",
            how="Record with PyTorch 1.12 or newer, profile_memory=True.",
        )
