"""Section `kernels`: which device work takes the time, and how near it comes to the hardware."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ingest.vocab import ElementType, KernelClass, Phase
from replay.graph.arrays import TaskGraph
from whatif.couplings.slowdown import slowdown_beside_comm
from whatif.couplings.walks import FULL_SPEED
from whatif.models.kernels.machine import Machine
from whatif.models.overlap import MOVING, WAITING, Slowdown
from whatif.postmortem.contract import Missing, Section
from whatif.postmortem.kernel_rates import (
    NOT_TOLD,
    NS_PER_S,
    KernelRate,
    Reached,
    kernel_rates,
    machine_recorded,
    peak_flops_per_s,
    reached,
    shape_text,
)
from whatif.postmortem.material import Material, Rows
from whatif.postmortem.tabling import MOST_ROWS, column, rows_table, table, time_text, total
from whatif.report.blocks import (
    Block,
    Cell,
    Column,
    DataTable,
    Dot,
    Part,
    Roof,
    Scatter,
    StackedBars,
    Unit,
    details,
)
from whatif.report.columns import NO_NAME, short_name
from whatif.report.rates import flops_text

KEY = "kernels"
TITLE = "Kernels and operators"
MOST_DOTS = 200
MOST_BARS = 64
"""Ranks that a chart shows."""
LEAST_TOLD_FRAC = 0.2
"""Of the matrix time with known FLOPs, for their rate to stand for the run."""
LEAST_KNOWN_FRAC = 0.5
"""Below this share of matrix time with known FLOPs the section says what lacks."""
TINY_NS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """Rates of the run's kernels, and what each reaches on its device."""

    rates: tuple[KernelRate, ...]
    reached: tuple[Reached | None, ...]
    machine: Machine | None
    rows: Rows

    @property
    def matrix_ns(self) -> int:
        """Time of all matrix kernels."""
        return sum(rate.total_ns for rate in self.rates if rate.is_matrix)

    @property
    def counted(self) -> tuple[KernelRate, ...]:
        """Matrix kernels with known FLOPs."""
        return tuple(rate for rate in self.rates if rate.is_matrix and rate.flops is not None)

    @property
    def counted_frac(self) -> float | None:
        """Share of the matrix time with known FLOPs; None without matrix kernels."""
        whole = self.matrix_ns
        return sum(rate.total_ns for rate in self.counted) / whole if whole else None

    @property
    def known_frac(self) -> float | None:
        """Share of all kernel time whose distance from a roof is known."""
        whole = sum(rate.total_ns for rate in self.rates)
        near = zip(self.rates, self.reached, strict=True)
        known = sum(rate.total_ns for rate, found in near if found is not None)
        return known / whole if whole else None


def section(material: Material) -> Section:
    """Time by kernel, class and operator; rates against the roofs; what is slower than need be."""
    times = material.ask("kernel_times")
    if not times.rows:
        return Section(
            key=KEY,
            title=TITLE,
            summary="No device work was recorded in the steps.",
            blocks=tuple(_operators(material, has_device=False)),
            missing=(NO_DEVICE,),
        )
    judged = _judged(material)
    return Section(
        key=KEY,
        title=TITLE,
        summary=_summary(times, judged),
        blocks=(
            _top(times),
            *details(
                *_classes(material),
                *_roofline(judged),
                *_rates(judged),
                *_types(judged),
                _lengths(material),
                *_tails(material),
                *_beside_comm(material),
                *_recomputation(material),
                *_operators(material, has_device=True),
            ),
        ),
        missing=tuple(_missing(material, judged)),
    )


NO_DEVICE = Missing(
    what="Kernels: the recording has no device rows in the steps.",
    how="Record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA].",
)


def _judged(material: Material) -> _Judged:
    rows = material.ask("kernel_rates")
    rates = kernel_rates(rows.dicts())
    machine = machine_recorded(material.findings.graph, material.recorded)
    near = tuple(None if machine is None else reached(rate, machine) for rate in rates)
    return _Judged(rates=rates, reached=near, machine=machine, rows=rows)


def _summary(times: Rows, judged: _Judged) -> str:
    records = times.dicts()
    first = records[0]
    if first["time_frac"] is None:
        return "Device work was recorded, but every row of it with a duration of zero."
    parts = [
        f"{time_text(total(records, 'step_dur'))} of device work per step and device, each row "
        f"counted by itself; the most is {short_name(first['short_name']) or NO_NAME} with "
        f"{first['time_frac']:.1%}"
    ]
    counted_frac = judged.counted_frac
    if counted_frac is not None and counted_frac >= LEAST_TOLD_FRAC:
        spent_ns = sum(rate.total_ns for rate in judged.counted)
        flops = sum(rate.flops or 0.0 for rate in judged.counted)
        parts.append(
            f"matrix kernels whose FLOPs are known ({counted_frac:.0%} of the matrix time) reach "
            f"{flops_text(flops / spent_ns * NS_PER_S)}/s{_of_peak(judged)}"
        )
    return "; ".join(parts) + "."


def _of_peak(judged: _Judged) -> str:
    """Share of the peak of their types, weighed by time."""
    known = [
        (rate.total_ns, found.frac)
        for rate, found in zip(judged.rates, judged.reached, strict=True)
        if rate.is_matrix and found is not None
    ]
    spent_ns = sum(dur_ns for dur_ns, _ in known)
    if not spent_ns:
        return ""
    return f", {sum(dur_ns * frac for dur_ns, frac in known) / spent_ns:.0%} of their roofs"


TOP: dict[str, Column] = {
    "short_name": column("kernel", Unit.CODE, "Name without template and parameters."),
    "class": column("class", Unit.TEXT),
    "step_dur": column("per step", Unit.NS, "Per step, mean of the devices.", has_bar=True),
    "time_frac": column("share", Unit.FRAC, "Of all device work; overlapping rows count each."),
    "instances": column("count", Unit.COUNT, "On all ranks in all steps."),
    "med_dur": column("p50", Unit.NS),
    "p95_dur": column("p95", Unit.NS, "Over all shapes: see the tail for equal kernels."),
    "max_dur": column("longest", Unit.NS),
    "occupancy_frac": column(
        "occupancy",
        Unit.FRAC,
        "Estimated by the profiler, weighed by time; empty where it wrote 0: not known.",
    ),
    "op": column("operator", Unit.CODE, "The one that launches most of it."),
    "input_dims": column(
        "shapes", Unit.CODE, "Tensors of the operator, of the set with the most time."
    ),
    "shapes": column("different", Unit.COUNT, "Different sets of shapes."),
}


def _top(times: Rows) -> DataTable:
    records = [
        {**record, "input_dims": shape_text(record["input_dims"])} for record in times.dicts()
    ]
    shown = total(records[:MOST_ROWS], "time_frac")
    return table(
        key="kernels.top",
        title="Device work by time",
        columns=TOP,
        records=records,
        query=times.query,
        about=f"Device rows that start in the steps; those shown are {shown:.1%} of their time.",
    )


def _classes(material: Material) -> Iterator[Block]:
    rows = material.ask("kernel_classes")
    records = rows.dicts()
    ranks = sorted({record["rank"] for record in records})[:MOST_BARS]
    spent: dict[tuple[int, str], float] = {}
    for record in records:
        place = (record["rank"], record["class"])
        spent[place] = spent.get(place, 0.0) + record["step_dur"]
    names = sorted(
        {record["class"] for record in records},
        key=lambda name: -sum(spent.get((rank, name), 0) for rank in ranks),
    )
    yield StackedBars(
        key="kernels.classes",
        title="Device work of a step by class",
        about=_classes_about(names, ranks, spent, len({record["rank"] for record in records})),
        unit=Unit.NS,
        categories=tuple(f"rank {rank}" for rank in ranks),
        parts=tuple(
            Part(
                name=name,
                role=name,
                values=tuple(float(round(spent.get((rank, name), 0))) for rank in ranks),
            )
            for name in names
        ),
        query=rows.query,
    )


def _classes_about(
    names: Sequence[str],
    ranks: Sequence[int],
    spent: dict[tuple[int, str], float],
    n_ranks: int,
) -> str:
    whole = sum(spent.get((rank, name), 0) for rank in ranks for name in names)
    told = [
        f"{name} {share:.1%}"
        for name in names
        if (share := sum(spent.get((rank, name), 0) for rank in ranks) / max(whole, 1)) > 0
    ]
    cut = f" The first {len(ranks)} of {n_ranks} ranks." if n_ranks > len(ranks) else ""
    return (
        f"Sum of durations per step and device: {', '.join(told[:6])}. What overlaps counts each, "
        f"so that a bar may be longer than the step.{cut}"
    )


def _roofline(judged: _Judged) -> Iterator[Block]:
    """Matrix kernels whose FLOPs and bytes are known, under the roofs of their types."""
    known = [rate for rate in judged.counted if rate.intensity is not None and rate.total_ns]
    if not known:
        return
    shown = sorted(known, key=lambda rate: -rate.total_ns)[:MOST_DOTS]
    roofs = tuple(_roofs(judged.machine, shown)) if judged.machine is not None else ()
    beyond = (
        f"; the {len(known) - len(shown)} shortest are left out" if len(known) > len(shown) else ""
    )
    covered = sum(rate.total_ns for rate in shown) / judged.matrix_ns
    yield Scatter(
        key="kernels.roofline",
        title="Matrix kernels against the roofline",
        about=f"A point is a kernel with one set of shapes, its area the time: {covered:.1%} of "
        f"the time of gemm, attention and convolution{beyond}. FLOPs and bytes are those of the "
        "operator's shapes, each tensor moved once; roofs are dense peaks"
        + (f" of {judged.machine.name}." if judged.machine else "; the device has none known."),
        x_name="FLOPs per byte",
        x_unit=Unit.FLOPS_PER_BYTE,
        y_name="achieved",
        y_unit=Unit.FLOPS_PER_S,
        is_log=True,
        dots=tuple(
            Dot(
                name=" ".join(filter(None, (short_name(rate.short_name), rate.shape))),
                role=rate.kernel_class,
                x=rate.intensity or 0.0,
                y=rate.flops_per_s or 0.0,
                weight=rate.step_ns,
            )
            for rate in shown
        ),
        roofs=roofs,
        query=judged.rows.query,
    )


def _roofs(machine: Machine, shown: Sequence[KernelRate]) -> Iterator[Roof]:
    """One for each type that is multiplied: the memory's slope, then the peak."""
    spread = [rate.intensity for rate in shown if rate.intensity]
    bandwidth = machine.memory_bytes_per_s
    for dtype in sorted({rate.dtype for rate in shown}):
        peak = peak_flops_per_s(machine, dtype)
        if peak is None:
            continue
        ridge = peak / bandwidth
        low, high = min(*spread, ridge) / 2, max(*spread, ridge) * 2
        yield Roof(
            name=f"{dtype.name.lower()} {peak / 1e12:,.0f} TFLOP/s, {bandwidth / 1e9:,.0f} GB/s",
            points=((low, low * bandwidth), (ridge, peak), (high, peak)),
        )


RATES: dict[str, Column] = {
    "kernel": column("kernel", Unit.CODE),
    "class": column("class", Unit.TEXT),
    "op": column("operator", Unit.CODE),
    "shape": column("shapes", Unit.CODE, "Tensors of the operator."),
    "dtype": column("type", Unit.TEXT, "Of what a matrix kernel multiplies."),
    "instances": column("count", Unit.COUNT),
    "step_ns": column("per step", Unit.NS, "Per step, mean of the devices.", has_bar=True),
    "flops_per_s": column("FLOP/s", Unit.FLOPS_PER_S, "By the shapes, over the kernel's time."),
    "bytes_per_s": column("B/s", Unit.BYTES_PER_S, "Each tensor once, over the kernel's time."),
    "frac": column("of roof", Unit.FRAC, "Of the roof that binds; above 100% data was cached."),
    "roof": column("roof", Unit.TEXT, "compute or memory: which of the two binds."),
}


def _rates(judged: _Judged) -> Iterator[Block]:
    known = [
        (rate, found)
        for rate, found in zip(judged.rates, judged.reached, strict=True)
        if rate.flops is not None or rate.bytes is not None
    ]
    if not known:
        return
    share = judged.known_frac
    yield table(
        key="kernels.rates",
        title="Achieved rates by kernel and shapes",
        columns=RATES,
        records=[_rate_record(rate, found) for rate, found in known],
        query=judged.rows.query,
        about="Only kernels whose shapes tell FLOPs or bytes"
        + ("" if share is None else f"; a roof is told for {share:.1%} of the kernel time")
        + ". The query gives time, FLOPs and the operators' sizes and types; bytes are those of "
        "the sizes, each tensor read or written once.",
    )


def _rate_record(rate: KernelRate, found: Reached | None) -> dict[str, Cell]:
    return {
        "kernel": rate.short_name,
        "class": rate.kernel_class,
        "op": rate.op,
        "shape": rate.shape,
        "dtype": _type_name(rate.dtype) if rate.is_matrix else None,
        "instances": rate.instances,
        "step_ns": rate.step_ns,
        "flops_per_s": rate.flops_per_s,
        "bytes_per_s": rate.bytes_per_s,
        "frac": None if found is None else found.frac,
        "roof": None if found is None else found.roof,
    }


def _type_name(dtype: ElementType) -> str | None:
    if dtype is ElementType.UNKNOWN:
        return None
    return "fp32 or tf32" if dtype is ElementType.SINGLE else dtype.name.lower()


TYPES: dict[str, Column] = {
    "class": column("class", Unit.TEXT),
    "dtype": column(
        "type", Unit.TEXT, "Of what is multiplied; empty: neither shapes nor name tell."
    ),
    "units": column(
        "runs on", Unit.TEXT, "Matrix units (tensor cores) or vector units, by name, then by type."
    ),
    "instances": column("count", Unit.COUNT),
    "step_ns": column("per step", Unit.NS, has_bar=True),
    "share": column("share", Unit.FRAC, "Of the time of gemm, attention and convolution."),
    "flops_per_s": column("FLOP/s", Unit.FLOPS_PER_S, "Of those whose FLOPs are known."),
}


def _types(judged: _Judged) -> Iterator[Block]:
    """Matrix time by class, type and the units that it runs on; adds up to all of it."""
    groups: dict[tuple[str, ElementType, str], list[KernelRate]] = {}
    for rate in judged.rates:
        if rate.is_matrix:
            groups.setdefault((rate.kernel_class, rate.dtype, rate.units), []).append(rate)
    if not groups:
        return
    records = [_type_record(key, rates, judged.matrix_ns) for key, rates in groups.items()]
    yield table(
        key="kernels.types",
        title="Matrix kernels by type",
        columns=TYPES,
        records=sorted(records, key=lambda record: -float(record["step_ns"] or 0)),
        query=judged.rows.query,
    )


def _type_record(
    key: tuple[str, ElementType, str], rates: Sequence[KernelRate], matrix_ns: int
) -> dict[str, Cell]:
    name, dtype, units = key
    counted = [rate for rate in rates if rate.flops is not None]
    spent_ns = sum(rate.total_ns for rate in counted)
    return {
        "class": name,
        "dtype": _type_name(dtype),
        "units": units,
        "instances": sum(rate.instances for rate in rates),
        "step_ns": sum(rate.step_ns for rate in rates),
        "share": sum(rate.total_ns for rate in rates) / max(matrix_ns, 1),
        "flops_per_s": sum(rate.flops or 0.0 for rate in counted) / spent_ns * NS_PER_S
        if spent_ns
        else None,
    }


LENGTHS: dict[str, Column] = {
    "length": column("length", Unit.TEXT, "Of one kernel."),
    "instances": column("count", Unit.COUNT),
    "step_instances": column("per step", Unit.COUNT, "Per step, mean of the devices."),
    "instances_frac": column("of all kernels", Unit.FRAC),
    "step_dur": column("time per step", Unit.NS, has_bar=True),
    "time_frac": column("of kernel time", Unit.FRAC),
}
LENGTH_NAMES = {
    0: "below 5 us",
    5_000: "5 to 10 us",
    10_000: "10 to 100 us",
    100_000: "0.1 to 1 ms",
    1_000_000: "1 ms and more",
}


def _lengths(material: Material) -> DataTable:
    rows = material.ask("kernel_lengths")
    records = [
        {**record, "length": LENGTH_NAMES[record["at_least_dur"]]} for record in rows.dicts()
    ]
    tiny = [record for record in records if record["at_least_dur"] < TINY_NS]
    return table(
        key="kernels.lengths",
        title="Kernels by length",
        columns=LENGTHS,
        records=records,
        query=rows.query,
        about=f"Below 10 us are {total(tiny, 'instances_frac'):.1%} of the kernels and "
        f"{total(tiny, 'time_frac'):.1%} of their time: such take about as long to start as to "
        "run (CUDA graphs, fusion). Collectives and copies are left out.",
    )


TAILS: dict[str, Column] = {
    "short_name": column("kernel", Unit.CODE),
    "class": column("class", Unit.TEXT),
    "op": column("operator", Unit.CODE),
    "instances": column("count", Unit.COUNT),
    "slow_instances": column("slow", Unit.COUNT, "Above 1.2 times the median of their equals."),
    "p95_factor": column("p95 / p50", Unit.FACTOR, "Of kernels against their equals' median."),
    "max_factor": column("longest / p50", Unit.FACTOR),
    "step_above_dur": column(
        "above the median", Unit.NS, "Per step, mean of the devices.", has_bar=True
    ),
    "slowest_rank": column("rank", Unit.COUNT, "Of the slowest one."),
}


def _tails(material: Material) -> Iterator[Block]:
    rows = material.ask("kernel_tails")
    if rows.rows:
        yield rows_table(
            rows,
            key="kernels.tails",
            title="Kernels slower than their equals",
            columns=TAILS,
            about="Equals have the same name, launch geometry and shapes, and are at least 8; time "
            f"above their median is {time_text(total(rows.dicts(), 'step_above_dur'))} per step "
            "and device in all rows.",
            most=10,
        )


BESIDE: dict[str, Column] = {
    "class": column("class", Unit.TEXT),
    "step_dur": column("per step", Unit.NS, "Per step, mean of the devices.", has_bar=True),
    "step_beside_dur": column("beside communication", Unit.NS, "The part that ran beside any."),
    "beside_frac": column("share", Unit.FRAC),
    "moving": column("beside transfers", Unit.FACTOR, "Time of a kernel there over that alone."),
    "moving_pairs": column("kernels", Unit.COUNT, "That tell the factor."),
    "waiting": column("beside waiting", Unit.FACTOR, "The same while the collective only waits."),
    "waiting_pairs": column("kernels", Unit.COUNT, "That tell the factor."),
    "lost_ns": column("slower by", Unit.NS, "Per step, mean of the devices, by these factors."),
}


def _beside_comm(material: Material) -> Iterator[Block]:
    rows = material.ask("kernels_beside_comm")
    records = rows.dicts()
    if not total(records, "step_beside_dur"):
        return
    graph = material.findings.graph
    slowdown = slowdown_beside_comm(graph, material.findings.baseline.schedule)
    lost = (
        {} if slowdown is None else _lost(material, slowdown.task, slowdown.dur_ns, slowdown.work)
    )
    factors = {} if slowdown is None else _factors(slowdown.found)
    told = [
        {
            **record,
            **_factor_record(factors, record["class"]),
            "lost_ns": lost.get(record["class"]),
        }
        for record in records
    ]
    yield table(
        key="kernels.beside_comm",
        title="Kernels beside communication",
        columns=BESIDE,
        records=told,
        query=rows.query,
        about="The query gives what ran beside communication. Factors compare equal kernels alone "
        "and beside; they are empty where too few tell or none is significantly slower. Slower "
        f"by {time_text(sum(lost.values()))} per step and device in all.",
    )


def _factors(found: Slowdown) -> dict[tuple[str, int], tuple[float, int]]:
    return {
        (KernelClass(one.kernel_class).name.lower(), one.state): (one.factor, one.pairs)
        for one in found.classes
    }


def _factor_record(
    factors: dict[tuple[str, int], tuple[float, int]], name: str
) -> dict[str, float | None]:
    moving = factors.get((name, MOVING), (None, None))
    waiting = factors.get((name, WAITING), (None, None))
    return {
        "moving": moving[0],
        "moving_pairs": moving[1],
        "waiting": waiting[0],
        "waiting_pairs": waiting[1],
    }


def _lost(
    material: Material, task: np.ndarray, dur_ns: np.ndarray, work: np.ndarray
) -> dict[str, float]:
    """Time per step and device, by class, that kernels in the steps took more than alone."""
    graph = material.findings.graph
    boundary_ns = material.findings.recorded.measured.boundary_ns
    ts_ns = graph.tasks.ts_ns[task]
    inside = (ts_ns >= boundary_ns[0]) & (ts_ns < boundary_ns[-1])
    above_ns = np.where(inside, dur_ns - work / FULL_SPEED, 0.0)
    classes = graph.tasks.kernel_class[task]
    whole = (len(boundary_ns) - 1) * max(_devices(graph), 1)
    return {
        KernelClass(number).name.lower(): float(above_ns[classes == number].sum()) / whole
        for number in np.unique(classes).tolist()
    }


def _devices(graph: TaskGraph) -> int:
    return len({(lane.rank, lane.device) for lane in graph.lanes if lane.stream >= 0})


AGAIN: dict[str, Column] = {
    "class": column("class", Unit.TEXT),
    "instances": column("count", Unit.COUNT),
    "step_dur": column("per step", Unit.NS, "Per step, mean of the devices.", has_bar=True),
    "inside": column("launched inside", Unit.CODE),
}


def _recomputation(material: Material) -> Iterator[Block]:
    rows = material.ask("recomputation")
    if rows.rows:
        yield rows_table(
            rows,
            key="kernels.recomputation",
            title="Recomputed in the backward",
            columns=AGAIN,
            about="Activation checkpointing computes "
            f"{time_text(total(rows.dicts(), 'step_dur'))} of device work per step and device "
            "again, by the rows that name it.",
        )


OPS: dict[str, Column] = {
    "op": column("operator", Unit.CODE),
    "calls": column("calls", Unit.COUNT, "On all ranks in all steps."),
    "step_self_dur": column(
        "own host time",
        Unit.NS,
        "Per step and rank, without operators and calls inside.",
        has_bar=True,
    ),
    "step_device_dur": column(
        "launched device time", Unit.NS, "Per step and rank, launched by itself.", has_bar=True
    ),
    "avg_self_dur": column("own per call", Unit.NS),
    "max_dur": column("longest", Unit.NS, "Host time with all inside."),
    "module": column("module", Unit.CODE, "nn.Module or annotation around most of it."),
}


def _operators(material: Material, *, has_device: bool) -> Iterator[Block]:
    rows = material.ask("op_times")
    if not rows.rows:
        return
    shown = {name: one for name, one in OPS.items() if has_device or name != "step_device_dur"}
    yield rows_table(
        rows,
        key="kernels.ops",
        title="Operators",
        columns=shown,
        about=f"{time_text(total(rows.dicts(), 'step_self_dur'))} of own host time per step and "
        "rank over all threads and operators, between the recorded steps of the host.",
    )


def _missing(material: Material, judged: _Judged) -> Iterator[Missing]:
    share = judged.counted_frac
    if share is not None and share < LEAST_KNOWN_FRAC:
        has_shapes = any(file.has_shapes for file in material.findings.facts.files)
        yield Missing(
            what=f"FLOPs of {1 - share:.0%} of the time of matrix kernels.",
            how="They come of compiled code or custom operators, whose shapes tell nothing."
            if has_shapes
            else "Record with record_shapes=True.",
        )
    if judged.machine is None:
        yield Missing(
            what="Roofs: the catalog does not know the device, or the ranks have several.",
            how="Give it in a file of your own: replay hardware tells how.",
        )
    untold_ns = sum(rate.total_ns for rate in judged.rates if rate.units == NOT_TOLD)
    if judged.matrix_ns and untold_ns > LEAST_KNOWN_FRAC * judged.matrix_ns:
        yield Missing(
            what=f"Whether {untold_ns / judged.matrix_ns:.0%} of the matrix time runs on matrix "
            "units: neither names nor types tell.",
            how="Record with record_shapes=True.",
        )
    if _may_hide_recomputation(material):
        yield Missing(
            what="Whether the backward computes activations again: no row names it.",
            how="Record with with_stack=True, or name it: record_function('recompute').",
        )


def _may_hide_recomputation(material: Material) -> bool:
    """There is a backward, and neither frames nor names that tell what it computes again."""
    has_stacks = any(file.has_stacks for file in material.findings.facts.files)
    has_backward = bool((material.findings.graph.tasks.phase == Phase.BACKWARD).any())
    return has_backward and not has_stacks and not material.ask("recomputation").rows
