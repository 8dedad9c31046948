"""Predictions of really measured runs on other networks, as a section of docs/accuracy.md.

Every setting of `groundtruth` is predicted from every other of the same experiment that differs in
what a what-if can say. Nothing is fitted on them; the constants of the gloo model come from single
collectives timed alone (`calibration.csv`).
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ingest.errors import ScenarioError
from ingest.pipeline import IngestOptions, open_run
from ingest.units import BytesPerSecond, Nanos
from ingest.vocab import CollectiveKind, TaskKind
from replay.graph.arrays import Int64, TaskGraph
from replay.graph.build import build
from replay.results.fidelity import Baseline, baseline
from replay.results.metrics import breakdown
from tests.bench.scatter import scatter
from whatif.models import gloo
from whatif.recorded import Recorded
from whatif.scenario import Scenario
from whatif.study import study
from whatif.transforms.bucket import BucketMb
from whatif.transforms.net import Net, NetLatency
from whatif.transforms.registry import Transform, asks_for_machine
from whatif.transforms.scale import Scale
from whatif.unprofiled import without_profiler

FIGURE = "img/network.svg"
GBIT = 1e9 / 8
NO_LIMIT = BytesPerSecond(100 * GBIT)
"""What is asked for where a link has no limit: more than a core sends."""
LOOPBACK_GBIT = 7.0
"""What a link without limit carried, for the naive model (`groundtruth/README.md`)."""
WORST = 12
"""Rows that are named."""
CHANGES = ("rate", "delay", "rate and delay", "buckets", "host work x2", "batch x2")


ALONE = """### Collectives on the host, alone

Single collectives of 1 to 16 MB timed alone between 2, 4 and 8 ranks, on links of 20 Mbit/s to 10
Gbit/s and delays of 0 to 20 ms: each network predicted from each other one, anchored on its own
measured time. The constants of the model were read off this table, so this shows how well its form
fits, no more.
"""
STEPS = """
### Measured steps over gloo

Each setting predicted from each other one of its experiment that differs in the network alone
(rate, delay), in the size of the gradient buckets, or in the speed of the host. *Scaled*: predicted
ratio times the step timed without the profiler. *--unprofiled-step*: that step is given, and the
prediction starts from there. *Naive*: compute as recorded, exposed communication scaled by latency
+ bytes / rate, no ordering. Links without a limit are asked for as 100 Gbit/s: the model says that
a core sends no faster than 9 Gbit/s. **All** leaves *batch x2* out: there all host work is doubled,
though the optimizer and other fixed work do not grow with the batch, so that it is too long by as
much; one trace cannot tell. The range is that of the answer: where transfers change it holds 4 % of
the step at both ends, the root mean square of how much two runs of one setting differ.
"""


NAMES = ("ranks", "batch x2", "buckets", "host work x2")
"""Of what differs in `Setting.compute`."""
NETWORK = {
    (False, False): "repeat",
    (True, False): "rate",
    (False, True): "delay",
    (True, True): "rate and delay",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One measured setting: what `measured.csv` says, and its trace."""

    experiment: str
    name: str
    rate: BytesPerSecond | None
    """None: no limit."""
    delay_ns: Nanos
    ranks: int
    batch: int
    bucket_mb: float
    step_ms: float
    """Median of the steps timed without the profiler."""
    graph: TaskGraph
    base: Baseline

    @property
    def compute(self) -> tuple[int, int, float, int]:
        """What of a setting is no network; equal ones differ in the network alone."""
        return self.ranks, self.batch, self.bucket_mb, 2 if "slow2x" in self.name else 1

    @property
    def network(self) -> tuple[BytesPerSecond | None, Nanos]:
        """What of it is."""
        return self.rate, self.delay_ns

    @property
    def communicates(self) -> bool:
        """It has collectives."""
        return bool(len(self.graph.collectives.kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One prediction; errors are signed shares of the measured step."""

    name: str
    change: str
    base_ms: float
    true_ms: float
    scaled: float
    """The predicted ratio times the base step timed without the profiler."""
    inside: bool
    """The measured step lies in the printed range, scaled likewise."""
    width: float
    """Of that range, of the prediction."""
    unprofiled: float | None
    """The prediction that starts from that step; None where no speed of the host meets it."""
    naive: float


def section(shared: Path) -> str:
    """Markdown: collectives alone, then whole steps."""
    folder = shared / "groundtruth"
    rows = _measured(folder)
    noise = [row for row in rows if row.change == "repeat"]
    judged = [row for row in rows if row.change != "repeat"]
    lines = [
        ALONE,
        *_alone_table(folder / "calibration.csv"),
        STEPS,
        *_summary(judged, noise),
        "",
        f"![Predicted over measured ratios of steps]({FIGURE})",
        "",
        f"The {WORST} worst:",
        "",
        *_table([*sorted(judged, key=lambda row: -abs(row.scaled))[:WORST]]),
        "",
        "<details><summary>All predictions</summary>",
        "",
        *_table(rows),
        "",
        "</details>",
    ]
    return "\n".join(lines)


def figures(shared: Path, folder: Path) -> None:
    """Write the plot that the section shows into a folder (`docs/img`)."""
    points: dict[str, list[tuple[float, float]]] = {}
    for row in _measured(shared / "groundtruth"):
        if row.change not in ("repeat", "batch x2"):
            ratios = row.true_ms / row.base_ms, (1 + row.scaled) * row.true_ms / row.base_ms
            points.setdefault(row.name.split()[0], []).append(ratios)
    folder.mkdir(parents=True, exist_ok=True)
    drawn = scatter(points, "measured step, new over base", "predicted step, new over base")
    (folder / Path(FIGURE).name).write_text(drawn, encoding="utf-8")


@cache
def _measured(folder: Path) -> tuple[Row, ...]:
    return tuple(predictions(settings(folder)))


def settings(folder: Path) -> list[Setting]:
    """All settings whose traces are there, graphs built."""
    with (folder / "measured.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    return [
        _setting(row, files)
        for row in rows
        if (files := sorted((folder / row["experiment"] / row["setting"]).glob("rank?.json.gz")))
    ]


def _setting(row: dict[str, str], files: Sequence[Path]) -> Setting:
    with open_run(files, options=IngestOptions(cache=False)) as run:
        built = build(run.store)
    limited = row["rate_mbit"] != "unlimited"
    return Setting(
        experiment=row["experiment"],
        name=row["setting"],
        rate=BytesPerSecond(float(row["rate_mbit"]) / 1000 * GBIT) if limited else None,
        delay_ns=Nanos(round(float(row["delay_ms"]) * 1e6)),
        ranks=int(row["ranks"]),
        batch=int(row["batch"]),
        bucket_mb=float(row["bucket_cap_mb"]),
        step_ms=float(row["step_ms_median"]),
        graph=built.graph,
        base=baseline(built.graph, built.facts),
    )


def predictions(found: Sequence[Setting]) -> Iterator[Row]:
    """Every pair that a what-if can say."""
    for base in found:
        for other in found:
            change = _change(base, other)
            if change is not None:
                yield _row(base, other, change)


def _change(base: Setting, other: Setting) -> str | None:
    """What differs; None where no what-if says it, or nothing is to predict."""
    if base.experiment != other.experiment or base.name == other.name:
        return None
    if base.ranks != other.ranks or base.communicates != other.communicates:
        return None
    if base.compute == other.compute:
        network = (base.rate != other.rate, base.delay_ns != other.delay_ns)
        return NETWORK[network]
    differs = [
        name
        for name, before, after in zip(NAMES, base.compute, other.compute, strict=True)
        if before != after
    ]
    return differs[0] if base.network == other.network and len(differs) == 1 else None


def _row(base: Setting, other: Setting, change: str) -> Row:
    answer = study(base.graph, base.base, _scenario(base, other))
    scale = base.step_ms / answer.replayed_ns
    return Row(
        name=f"{base.experiment} {base.name} -> {other.name}",
        change=change,
        base_ms=base.step_ms,
        true_ms=other.step_ms,
        scaled=answer.step_ns * scale / other.step_ms - 1,
        inside=answer.low_ns * scale <= other.step_ms <= answer.high_ns * scale,
        width=(answer.high_ns - answer.low_ns) / answer.step_ns,
        unprofiled=_unprofiled(base, other),
        naive=_naive_ms(base, other) / other.step_ms - 1,
    )


def _unprofiled(base: Setting, other: Setting) -> float | None:
    try:
        graph, start, _ = without_profiler(base.graph, base.base, Nanos(round(base.step_ms * 1e6)))
    except ScenarioError:
        return None
    answer = study(graph, start, _scenario(base, other))
    return answer.step_ns / 1e6 / other.step_ms - 1


def _scenario(base: Setting, other: Setting) -> Scenario:
    """The flags that say what differs."""
    changes: list[Transform] = []
    if base.rate != other.rate:
        changes.append(Net(rate=_gbit(other.rate or NO_LIMIT)))
    if base.delay_ns != other.delay_ns:
        changes.append(NetLatency(time=_ms(other.delay_ns)))
    if base.bucket_mb != other.bucket_mb:
        changes.append(BucketMb(size_mib=other.bucket_mb))
    factor = _host_factor(base, other)
    if factor != 1:
        changes.append(Scale(where="class:host", factor=factor))
    recorded = Recorded(
        net=None if base.rate is None else _gbit(base.rate),
        net_latency=_ms(base.delay_ns) if base.delay_ns else None,
    )
    needs_base = any(asks_for_machine(change) for change in changes)
    return Scenario(base=recorded if needs_base else Recorded(), transforms=tuple(changes))


def _gbit(rate: BytesPerSecond) -> str:
    return f"{rate / GBIT:g}Gbps"


def _ms(time_ns: Nanos) -> str:
    return f"{time_ns / 1e6:g}ms"


def _host_factor(base: Setting, other: Setting) -> float:
    slower = other.compute[3] / base.compute[3]
    return slower * other.batch / base.batch


def _naive_ms(base: Setting, other: Setting) -> float:
    """Compute as recorded, exposed communication by latency + bytes / rate, no ordering."""
    parts = breakdown(base.graph, base.base.schedule)
    exposed = parts.exposed_comm_ns / max(parts.total_ns, 1)
    before, after = _communication_ns(base, base), _communication_ns(base, other)
    ratio = after / before if before else 1.0
    compute_ms = (1 - exposed) * base.step_ms * _host_factor(base, other)
    return compute_ms + exposed * base.step_ms * ratio


def _communication_ns(of: Setting, on: Setting) -> float:
    calls = _calls(of.graph)
    rate = on.rate or LOOPBACK_GBIT * GBIT
    fixed_ns = gloo.STEP_NS * gloo.steps(calls) + gloo.latency_ns(calls, on.delay_ns)
    return float((fixed_ns + gloo.wire_bytes(calls) * 1e9 / rate).sum())


def _calls(graph: TaskGraph) -> gloo.HostCalls:
    calls = graph.collectives
    used = np.unique(graph.tasks.collective[graph.tasks.kind == TaskKind.TRANSFER])
    return gloo.HostCalls(
        kind=calls.kind[used].astype(np.int64),
        size_bytes=calls.size_bytes[used],
        members=calls.members_expected[used].astype(np.int64),
    )


def _summary(judged: Sequence[Row], noise: Sequence[Row]) -> Iterator[str]:
    yield (
        "| experiment | predictions | scaled: median, p90 | inside the range, its median width "
        "| --unprofiled-step | naive |"
    )
    yield "|---|---:|---:|---:|---:|---:|"
    network = [row for row in judged if row.change != "batch x2"]
    names = sorted({row.name.split()[0] for row in network})
    for name in names:
        yield _summary_line(name, [row for row in network if row.name.split()[0] == name])
    yield _summary_line("**all**", network)
    for change in CHANGES:
        rows = [row for row in judged if row.change == change]
        if rows:
            yield _summary_line(f"*{change}*", rows)
    if noise:
        yield _summary_line("*two runs of one setting*", noise)


def _summary_line(name: str, rows: Sequence[Row]) -> str:
    unprofiled = [row.unprofiled for row in rows if row.unprofiled is not None]
    inside = sum(row.inside for row in rows) / len(rows)
    width = float(np.median([row.width for row in rows]))
    cells = (
        name,
        str(len(rows)),
        spread([row.scaled for row in rows]),
        f"{inside:.0%}, {width:.0%}",
        spread(unprofiled),
        spread([row.naive for row in rows]),
    )
    return f"| {' | '.join(cells)} |"


def spread(errors: Sequence[float]) -> str:
    """Median and 90th percentile of the absolute values."""
    if not errors:
        return "-"
    median, p90 = np.percentile(np.abs(errors), [50, 90])
    return f"{median:.1%}, {p90:.1%}"


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| from -> to | what differs | true step, ms | scaled | --unprofiled-step | naive |"
    yield "|---|---|---:|---:|---:|---:|"
    for row in rows:
        unprofiled = "-" if row.unprofiled is None else f"{row.unprofiled:+.1%}"
        yield (
            f"| {row.name} | {row.change} | {row.true_ms:,.1f} | {row.scaled:+.1%} | {unprofiled} "
            f"| {row.naive:+.1%} |"
        )


KINDS = {
    "all_reduce": CollectiveKind.ALL_REDUCE,
    "all_gather": CollectiveKind.ALL_GATHER,
    "reduce_scatter": CollectiveKind.REDUCE_SCATTER,
    "ping_pong": CollectiveKind.SEND_RECV,
}
LEAST_BYTES = 1_000_000


def _alone_table(table: Path) -> Iterator[str]:
    yield "| collective | predictions | median, p90 |"
    yield "|---|---:|---:|"
    for operation in KINDS:
        errors = list(_alone_errors(table, operation))
        yield f"| {operation} | {len(errors)} | {spread(errors)} |"


def _alone_errors(table: Path, operation: str) -> Iterator[float]:
    times = _timed_alone(table)
    for (name, size, ranks), networks in times.items():
        if name != operation or size < LEAST_BYTES:
            continue
        calls = gloo.HostCalls(
            kind=np.array([int(KINDS[name])]),
            size_bytes=np.array([size]),
            members=np.array([ranks]),
        )
        for base, base_ms in networks.items():
            for other, true_ms in networks.items():
                if base != other:
                    yield _alone_ms(calls, base_ms, base, other) / true_ms - 1


@cache
def _timed_alone(table: Path) -> dict[tuple[str, int, int], dict[tuple[float, float], float]]:
    """Milliseconds by (operation, bytes, ranks) and (Mbit/s, delay in ms)."""
    found: dict[tuple[str, int, int], dict[tuple[float, float], float]] = {}
    with table.open(newline="") as stream:
        for row in csv.DictReader(stream):
            if row["rate_mbit"] != "unlimited":
                key = (row["operation"], int(row["bytes"]), int(row["ranks"]))
                network = (float(row["rate_mbit"]), float(row["delay_ms"]))
                found.setdefault(key, {})[network] = float(row["ms_median"])
    return found


def _alone_ms(
    calls: gloo.HostCalls, base_ms: float, base: tuple[float, float], other: tuple[float, float]
) -> float:
    measured: Int64 = np.array([round(base_ms * 1e6)], np.int64)
    new_ns = gloo.scaled_ns(
        measured,
        calls,
        base_rate_bytes_per_s=BytesPerSecond(base[0] / 1000 * GBIT),
        new_rate_bytes_per_s=BytesPerSecond(other[0] / 1000 * GBIT),
        base_delay_ns=Nanos(round(base[1] * 1e6)),
        new_delay_ns=Nanos(round(other[1] * 1e6)),
    )
    return float(new_ns[0]) / 1e6
