"""A report with every kind of block, by hand: 8 ranks, 4 steps, a slow rank, hostile names."""

from whatif.postmortem.contract import Confidence, Finding, Missing, Report, Section, Verdict
from whatif.report.blocks import (
    Change,
    Column,
    DataTable,
    Dot,
    Lines,
    Part,
    Piece,
    Query,
    RangeBar,
    Ranges,
    Roof,
    Scatter,
    StackedBars,
    Timeline,
    Unit,
    Waterfall,
    Words,
    details,
)

MS = 1_000_000
RANKS = tuple(f"rank {rank}" for rank in range(8))
HOSTILE = "</script><img src=x onerror=alert(1)>|`pipe`\n\u202ekernel\x07"
LONG = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_" + "a, b, " * 40 + ">"
QUERY = Query(
    sql="-- Where the time goes, by rank.\nSELECT rank, sum(dur) AS dur FROM kernel GROUP BY rank",
    command="replay sql traces/ --query breakdown --param ranks=0,1",
)


def stacked() -> StackedBars:
    """Four parts of 50 ms for each of 8 ranks; rank 3 does not wait."""
    waits = (9, 8, 9, 0, 10, 9, 8, 9)
    return StackedBars(
        key="breakdown.ranks",
        title="Where a step goes on each rank",
        about="Device time of a step by rank; the four parts add up to the step of 50 ms.",
        unit=Unit.NS,
        categories=RANKS,
        parts=(
            Part(name="compute", role="compute", values=tuple((31 * MS,) * 8)),
            Part(name="waiting", role="wait", values=tuple(wait * MS for wait in waits)),
            Part(name="copies", role="memcpy", values=(None, *(1 * MS,) * 7)),
            Part(
                name="idle",
                role="idle",
                values=(10 * MS, *(18 * MS - wait * MS for wait in waits[1:])),
            ),
        ),
        query=QUERY,
    )


def lines() -> Lines:
    """Steps of eight ranks; step 12 is long."""
    return Lines(
        key="steps.strip",
        title="Each step on each rank",
        about="Step 12 takes 74 ms where the others take about 50 ms.",
        x_name="step",
        x_unit=Unit.COUNT,
        x=(10, 11, 12, 13),
        y_unit=Unit.NS,
        lines=tuple(
            Part(
                name=rank,
                role="compute",
                values=(50.1 * MS + at * 2e5, 50.3 * MS - at * 1e5, 74 * MS - at * 4e5, None),
            )
            for at, rank in enumerate(RANKS)
        ),
        marks=((12, "long step: +24 ms of data loading"),),
        has_points=True,
        query=QUERY,
    )


def memory() -> Lines:
    """A saw of 400 places in two lines."""
    xs = tuple(float(at * 125_000) for at in range(400))
    saw = tuple(20e9 + 40e9 * (at % 100) / 100 for at in range(400))
    return Lines(
        key="memory.curve",
        title="Memory over time",
        about="Allocated memory rises to 59.6 GB in each step; 66 GB are reserved of 80 GB.",
        x_name="time",
        x_unit=Unit.NS,
        x=xs,
        y_unit=Unit.BYTES,
        lines=(
            Part(name="allocated", role="compute", values=saw),
            Part(name="reserved", role="other", values=tuple(66e9 for _ in xs)),
        ),
        marks=((99 * 125_000, "peak, 59.6 GB"),),
    )


def ranges() -> Ranges:
    """Three what-ifs against 50 ms."""
    return Ranges(
        key="what_ifs.ranges",
        title="Steps predicted",
        about="Twice the network gives 42 ms (41 to 46); the replayed step is 50 ms.",
        unit=Unit.NS,
        baseline=50 * MS,
        baseline_name="as recorded",
        bars=(
            RangeBar(name="--network-scale 2", value=42 * MS, low=41 * MS, high=46 * MS),
            RangeBar(name="--no-stragglers", value=44 * MS, low=43 * MS, high=49 * MS),
            RangeBar(
                name="--scale class:gemm=0.5 --host-scale 0.5 --cuda-graphs --fuse elementwise",
                value=31 * MS,
                low=30 * MS,
                high=35 * MS,
            ),
        ),
    )


def waterfall() -> Waterfall:
    """From 412 to 424 ms."""
    return Waterfall(
        key="comparison.waterfall",
        title="From the baseline to this run",
        about="All-to-all transfers make the step 9.8 ms longer, optimizers 1.8 ms shorter.",
        unit=Unit.NS,
        start=412 * MS,
        start_name="baseline",
        end=424 * MS,
        end_name="this run",
        changes=(
            Change(name="all-to-all", role="comm", change=9.8 * MS),
            Change(name="optimizer", role="optimizer", change=-1.8 * MS),
            Change(name="idle, host late", role="idle", change=4 * MS),
        ),
        query=QUERY,
    )


def scatter() -> Scatter:
    """Seven kernels under two roofs."""
    names = ("gemm", "attention", "elementwise", "normalisation", "reduction", "optimizer", "gemm")
    return Scatter(
        key="kernels.roofline",
        title="Kernels under the roofs of the card",
        about="Matrix products reach 61 % of the bf16 peak; the rest is bound by memory.",
        x_name="intensity",
        x_unit=Unit.FLOPS_PER_BYTE,
        y_name="FLOP/s",
        y_unit=Unit.FLOPS_PER_S,
        is_log=True,
        dots=tuple(
            Dot(
                name=f"{role}_{at}" if at else HOSTILE,
                role=role,
                x=300.0 / (at * at + 1) ** 1.5,
                y=6e14 / (at * at + 1) ** 1.6,
                weight=8.0 - at,
            )
            for at, role in enumerate(names)
        ),
        roofs=(
            Roof(name="memory 3.35 TB/s", points=((0.01, 3.35e10), (295, 9.89e14))),
            Roof(name="bf16 989 TFLOP/s", points=((295, 9.89e14), (1e5, 9.89e14))),
        ),
    )


def timeline() -> Timeline:
    """The path goes from rank 3 to rank 0 and back, 120 pieces."""
    roles = ("compute", "comm", "host")
    return Timeline(
        key="critical_path.timeline",
        title="The critical path over the ranks",
        about="It runs over rank 3 until 38 ms, then over rank 0.",
        lanes=RANKS[:4],
        pieces=tuple(
            Piece(
                lane=RANKS[3 if at < 80 else 0],
                name=f"piece {at}",
                role=roles[at % 3],
                ts_ns=at * 400_000,
                dur_ns=380_000 if at % 7 else 40_000,
            )
            for at in range(120)
        ),
        query=QUERY,
    )


def kernels() -> DataTable:
    """24 of 340 kernels, two with names that nobody should trust."""
    names = [HOSTILE, LONG, *(f"ampere_bf16_s16816gemm_{at}" for at in range(22))]
    return DataTable(
        key="kernels.top",
        title="Kernels by device time",
        about="Over all ranks, in a step.",
        columns=(
            Column(name="kernel", unit=Unit.CODE),
            Column(name="class", unit=Unit.TEXT),
            Column(name="calls", unit=Unit.COUNT, about="Launches in a step, over all ranks."),
            Column(name="time", unit=Unit.NS, about="Sum of durations.", has_bar=True),
            Column(name="share", unit=Unit.FRAC),
            Column(name="reached", unit=Unit.FLOPS_PER_S, about="Empty where shapes are missing."),
        ),
        rows=tuple(
            (
                name,
                "gemm",
                1200 - at,
                9_000_000 // (at + 1),
                0.4 / (at + 1),
                None if at % 3 else 6.1e14,
            )
            for at, name in enumerate(names)
        ),
        query=QUERY,
        left_out=316,
    )


def trust() -> DataTable:
    """Text, factors and unknown values."""
    return DataTable(
        key="trust.checks",
        title="What the numbers rest on",
        columns=(
            Column(name="check", unit=Unit.TEXT),
            Column(name="found", unit=Unit.TEXT),
            Column(name="share", unit=Unit.FRAC),
            Column(name="replay", unit=Unit.FACTOR),
            Column(name="held", unit=Unit.TEXT),
        ),
        rows=(
            ("ranks", "8 of 8", 1.0, None, True),
            ("kernels without launch", "20 of rank 3", 0.0042, None, True),
            ("replay of the unchanged run", "+1.8 %", 0.018, 1.018, None),
        ),
    )


def finding(key: str, saving_ms: int | None, confidence: Confidence) -> Finding:
    """A finding about communication."""
    saving = None if saving_ms is None else saving_ms * MS
    return Finding(
        key=key,
        section="communication",
        insight=f"All-to-all on 8 ranks waits for rank 3: 9 ms of a step of 50 ms ({key}).",
        evidence="18 % of the step is exposed waiting; rank 3 arrives last in 92 % of 76 calls. "
        f"Seen in {HOSTILE}.",
        query=QUERY,
        action="Look why rank 3 starts late: its host is 11 ms behind from step 10 on.",
        confidence=confidence,
        why_confidence="Clocks agree within 3 us, and the replay is off by 1.8 %.",
        saving_ns=saving,
        saving_low_ns=None if saving is None else saving - 2 * MS,
        saving_high_ns=None if saving is None else saving + 3 * MS,
        flag="" if saving is None else "--no-stragglers",
        what_if="" if saving is None else "every rank as fast as the median rank",
    )


def sample_report() -> Report:
    """All of it."""
    sections = (
        Section(key="verdict", title="Verdict", summary="", blocks=(stacked(),)),
        Section(
            key="trust",
            title="Can this be trusted",
            summary="Grade B: the replay of the unchanged run is 1.8 % off.",
            blocks=(trust(), Words(paragraphs=("Eight ranks of one node.", f"Named {HOSTILE}."))),
            missing=(
                Missing(what="FLOPs of matrix products", how="record with `record_shapes=True`"),
            ),
        ),
        Section(key="steps", title="Steps", summary="Step 12 is long.", blocks=(lines(),)),
        Section(
            key="critical_path",
            title="Critical path",
            summary="62 % of the path is compute on rank 3.",
            blocks=(timeline(),),
        ),
        Section(
            key="communication",
            title="Communication",
            summary="All-to-all reaches 61 % of the link.",
            missing=(Missing(what="Who talks to whom", how="newer PyTorch, which records `Seq`"),),
        ),
        Section(
            key="kernels",
            title="Kernels and operators",
            summary="Matrix products take 40 % of device time.",
            blocks=(kernels(), *details(scatter())),
        ),
        Section(key="memory", title="Memory", summary="59.6 of 80 GB.", blocks=(memory(),)),
        Section(key="what_ifs", title="What-ifs", summary="Network first.", blocks=(ranges(),)),
        Section(key="comparison", title="Comparison", summary="+12 ms.", blocks=(waterfall(),)),
    )
    return Report(
        title="runs/nanogpt <8 ranks>",
        program="trace-replay 0.1.0",
        command="replay report 'runs/nanogpt <8 ranks>' -o report.html",
        verdict=Verdict(
            sentence="Step 50.23 ms (p95 74.00). 62 % compute, 18 % exposed communication, 18 % "
            "idle (host late), 2 % copies. To act on: no stragglers, predicted 43.00-49.00 ms "
            "(1.02-1.16x).",
            not_fixed="It would not mend the long step 12, which waits for its data loader.",
            is_healthy=False,
        ),
        findings=(
            finding("exposed_communication", 8, Confidence.HIGH),
            finding("straggler", 6, Confidence.MEDIUM),
            finding("data_loader", None, Confidence.LOW),
        ),
        sections=sections,
    )
