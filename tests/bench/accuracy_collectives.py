"""The collective model against public sweeps of nccl-tests and rccl-tests, pair by pair.

    python -m tests.bench.accuracy_collectives ../shared [--figures docs/img]

The sweep of one system plays the trace: its time of each size is moved to another system, node
count or GPU count and compared with what was measured there. Constants that were fitted on sweeps
(`fit`) are fitted again without the system that is predicted.
"""

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from ingest.pipeline import IngestOptions, open_run
from ingest.vocab import CollectiveKind
from replay.graph.build import build
from tests.bench.collective_plot import ratios_by_size
from tests.bench.collective_rivals import alpha_beta_ns, nccl_ns
from tests.bench.collective_sweeps import (
    AMPERE,
    BLACKWELL,
    HOPPER,
    MI300,
    SWEEPS,
    V100,
    Measured,
    read,
)
from tests.collective_calls import inside_one_node
from whatif.models.bound import Bound
from whatif.models.collectives.algorithms import times_ns
from whatif.models.collectives.calls import Bool, Float64, Int64
from whatif.models.collectives.constants import OTHER, OWN_HOP_NS, SHIPPED, SILICON, Constants
from whatif.models.collectives.curves import Curves, rising
from whatif.models.collectives.links import Tuning, links_of
from whatif.models.collectives.model import model_ns as absolute_ns
from whatif.models.collectives.move import Move, Situation
from whatif.models.fabric import Algorithm

MIB = 1 << 20
WIDEST = 2.0
"""A range wider than this is as good as none."""
UNSEEN = "from one node to several: the network is not in the trace"
GIVEN = "the same, with the network's latency given (solved from its smallest all-reduce)"
SAME = "the same accelerator, another machine (no model: the noise of such comparisons)"
PAIRS: dict[str, tuple[tuple[str, str], ...]] = {
    "another accelerator, one node": (
        ("8xA100-80", "8xH100 p5"),
        ("8xA100-80", "8xH100 DGX"),
        ("8xA100 stas", "8xH200"),
        ("8xA100-40", "8xH100"),
        ("8xA100-40 AG", "8xH100 AG"),
        ("8xA100-40 RS", "8xH100 RS"),
        ("8xA100-40 A2A", "8xH100 A2A"),
        ("8xA100 stas", "8xB200"),
        ("8xH200", "8xB200"),
        ("8xH100 p5", "8xB200"),
        ("8xH100", "8xB200"),
        ("8xV100", "8xA100-40"),
        ("8xV100", "8xA100 stas"),
        ("8xA100-80", "8xMI300X"),
        ("8xMI300X", "8xH100 p5"),
        ("8xB200", "72xGB200"),
    ),
    SAME: (
        ("8xH100 p5", "8xH100 DGX"),
        ("8xH100 p5", "8xH200"),
        ("8xA100-40", "8xA100 stas"),
        ("8xMI300X", "8xMI325X"),
    ),
    "more GPUs of a node": (
        ("2xA100 HDR", "4xA100 HDR"),
        ("4xA100 HDR", "8xA100 HDR"),
        ("2xA100 HDR", "8xA100 HDR"),
        ("2x4090", "4x4090"),
    ),
    "more nodes": (
        ("16xA100 HDR", "32xA100 HDR"),
        ("32xA100 HDR", "64xA100 HDR"),
        ("64xA100 HDR", "128xA100 HDR"),
        ("16xA100 HDR", "128xA100 HDR"),
        ("128xA100 HDR", "16xA100 HDR"),
        ("16xMI325X", "64xMI325X"),
        ("128xGB200", "1440xGB200"),
    ),
    UNSEEN: (
        ("8xA100 HDR", "16xA100 HDR"),
        ("8xA100-80", "16xA100 HDR"),
        ("8xA100-80", "16xA100 EFAv1"),
        ("8xH100 p5", "16xH100 EFA"),
        ("8xH100 p5", "96xH100 SHARP"),
        ("8xB200", "32xB200 EFA"),
        ("8xMI300X", "16xMI300X RoCE"),
        ("8xMI325X", "16xMI325X"),
        ("72xGB200", "128xGB200"),
    ),
    GIVEN: (
        ("8xA100-80", "16xA100 HDR"),
        ("8xA100-80", "16xA100 EFAv1"),
        ("8xH100 p5", "16xH100 EFA"),
        ("8xMI300X", "16xMI300X RoCE"),
    ),
}

SMALL_BYTES = 1 << 16
LARGE_BYTES = 1 << 30
LEAST_HOP_NS, MOST_HOP_NS = 1e3, 1e6
BINDS = 1.9
"""A call takes this much longer with half of the NIC: the NIC binds."""
HOST_NS = 20_000.0
"""What one process that drives eight GPUs, or torch, adds to small calls: on one 8 x A100 machine
nccl-tests takes 40.1 us that way and 20.3 us with a process per GPU."""
HOPS_OF = ("hdr", "p5", "aac14")
"""Networks whose hop is near that of others; EFA v1 and RoCE under ROCm 6.3 take 70 us and more."""
FROM_TRACES = ("volta",)
"""Generations whose only sweep has the host's part in it."""
FILL_GRID = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
LATER_GRID = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
ONE_STEP = replace(
    SHIPPED, silicon={name: replace(one, step_factor=1.0) for name, one in SILICON.items()}
)


def fit(sweeps: Sequence[Measured]) -> Constants:
    """The constants that come from sweeps; those of the system that is predicted are not given."""
    steps = {
        name: replace(one, step_factor=_step_factor(sweeps, name) or OTHER.step_factor)
        for name, one in SILICON.items()
        if name not in FROM_TRACES
    }
    constants = replace(SHIPPED, silicon={**SILICON, **steps})
    hops = [hop_ns(one, constants) for one in sweeps if _tells_hop(one)]
    constants = replace(constants, hop_ns=float(np.exp(np.mean(np.log(hops)))))
    fracs: dict[str, list[float]] = defaultdict(list)
    for measured in sweeps:
        if frac := _net_frac(measured, constants):
            fracs[measured.sweep.family].append(frac)
    middle = np.median([np.median(of_family) for of_family in fracs.values()])
    constants = replace(constants, net_frac=float(middle))
    constants = replace(constants, fill_frac=_fill_frac(sweeps, constants))
    return replace(constants, later_hops=_later_hops(sweeps, constants))


def _absolute_ns(measured: Measured, constants: Constants, tuning: Tuning) -> Float64:
    situation = measured.situation(measured.size_bytes)
    links = links_of(situation.calls, situation.fabric, constants, tuning)
    return times_ns(links, measured.size_bytes.astype(np.float64))


def _step_factor(sweeps: Sequence[Measured], architecture: str) -> float | None:
    """Smallest all-reduces of eight GPUs against those of the model."""
    ratios: dict[bool, list[float]] = {True: [], False: []}
    for measured in sweeps:
        sweep, small = measured.sweep, measured.size_bytes <= SMALL_BYTES
        fits = (sweep.fabric.architecture, sweep.collective) == (architecture, "all_reduce")
        if fits and (sweep.gpus, sweep.nodes) == (8, 1) and small.any():
            plain_ns = _absolute_ns(measured, ONE_STEP, Tuning())[small]
            host_ns = 0.0 if sweep.alone else HOST_NS
            ratio = np.median((measured.time_ns[small] - host_ns) / plain_ns)
            ratios[sweep.alone].append(float(ratio))
    found = ratios[True] or ratios[False]
    return float(np.median(found)) if found else None


def _tells_hop(measured: Measured) -> bool:
    return measured.sweep.family in HOPS_OF and measured.sweep.nodes == len(("two", "nodes"))


def hop_ns(measured: Measured, constants: Constants) -> float:
    """Hop between nodes that explains the smallest undisturbed call of a sweep."""
    first = np.flatnonzero(measured.judged)[:1]
    smallest = replace(
        measured, size_bytes=measured.size_bytes[first], time_ns=measured.time_ns[first]
    )
    low, high = LEAST_HOP_NS, MOST_HOP_NS
    for _ in range(16):
        middle = (low * high) ** 0.5
        time_ns = _absolute_ns(smallest, replace(constants, hop_ns=middle), Tuning())[0]
        low, high = (low, middle) if time_ns > smallest.time_ns[0] else (middle, high)
    return low


def _net_frac(measured: Measured, constants: Constants) -> float | None:
    """Part of the NIC's rate at the largest size, where the NIC binds."""
    if measured.sweep.nodes == 1 or measured.size_bytes[-1] < LARGE_BYTES:
        return None
    whole = replace(constants, net_frac=1.0)
    whole_ns, half_ns = (
        _absolute_ns(measured, whole, Tuning(net_rate=rate))[-1] for rate in (1.0, 0.5)
    )
    if half_ns < BINDS * whole_ns:
        return None
    return float(whole_ns / measured.time_ns[-1])


def _fill_frac(sweeps: Sequence[Measured], constants: Constants) -> float:
    """That of the grid with the least median error of large calls inside a node."""
    inside = [one for one in sweeps if one.sweep.nodes == 1 and one.sweep.family != "4090"]
    errors = {}
    for frac in FILL_GRID:
        tried = replace(constants, fill_frac=frac)
        errors[frac] = float(np.mean([_log_error(one, tried) for one in inside]))
    return min(errors, key=lambda frac: errors[frac])


def _later_hops(sweeps: Sequence[Measured], constants: Constants) -> float:
    """That of the grid with the least error between nodes, each network with its own hop."""
    between = [one for one in sweeps if one.sweep.nodes > 1 and one.size_bytes[0] < SMALL_BYTES]
    errors = {}
    for hops in LATER_GRID:
        tried = replace(constants, later_hops=hops)
        own = [(one, replace(tried, hop_ns=hop_ns(one, tried))) for one in between]
        errors[hops] = float(np.mean([_log_error(*pair, above=0) for pair in own]))
    return min(errors, key=lambda hops: errors[hops])


def _log_error(measured: Measured, constants: Constants, *, above: int = MIB) -> float:
    rows = measured.judged & (measured.size_bytes >= above)
    ratio = _absolute_ns(measured, constants, Tuning()) / measured.time_ns
    return float(np.median(np.abs(np.log(ratio[rows]))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One pair: predicted over measured time of each size, by each way."""

    base: str
    target: str
    size_bytes: Int64
    model: Float64
    low: Float64
    high: Float64
    alpha_beta: Float64
    nccl: Float64

    @property
    def inside(self) -> Bool:
        """Truths within the printed range."""
        held: Bool = (self.low <= 1.0) & (self.high >= 1.0)
        return held

    @property
    def narrow(self) -> Bool:
        """Ranges that say something."""
        narrow: Bool = self.high <= WIDEST * self.low
        return narrow

    @property
    def width(self) -> float:
        """Median of the range's upper over its lower end."""
        return float(np.median(self.high / self.low))


def outcome(base: Measured, target: Measured, constants: Constants) -> Outcome:
    """The sweep of `base` moved to the system of `target`, at the sizes that both judge."""
    sizes = np.intersect1d(base.size_bytes[base.judged], target.size_bytes[target.judged])
    was_ns = base.time_ns[np.searchsorted(base.size_bytes, sizes)]
    truth_ns = target.time_ns[np.searchsorted(target.size_bytes, sizes)]
    move = Move(
        measured_ns=was_ns,
        before=base.situation(sizes),
        after=target.situation(sizes),
        curves=_curve(base, len(sizes)),
        constants=constants,
    )
    return Outcome(
        base=base.sweep.name,
        target=target.sweep.name,
        size_bytes=sizes,
        model=was_ns * move.ratio() / truth_ns,
        low=was_ns * move.ratio(Bound.LOW) / truth_ns,
        high=was_ns * move.ratio(Bound.HIGH) / truth_ns,
        alpha_beta=alpha_beta_ns(base, target, sizes) / truth_ns,
        nccl=was_ns * nccl_ns(target, sizes) / nccl_ns(base, sizes) / truth_ns,
    )


def _curve(base: Measured, rows: int) -> Curves:
    """The judged part of a sweep as the calls of a trace would give it."""
    sizes, times = base.size_bytes[base.judged], base.time_ns[base.judged]
    return Curves(
        curve=np.zeros(rows, np.int64),
        first=np.array([0, len(sizes)]),
        size_bytes=sizes.astype(np.float64),
        time_ns=rising(times, np.ones(len(times))),
    )


@cache
def outcomes(tables: Path) -> dict[str, list[Outcome]]:
    """All pairs, by group; constants fitted without the family of the target."""
    measured = {name: read(sweep, tables) for name, sweep in SWEEPS.items()}
    fits = {
        family: fit([one for one in measured.values() if one.sweep.family != family])
        for family in {SWEEPS[target].family for pairs in PAIRS.values() for _, target in pairs}
    }
    found: dict[str, list[Outcome]] = {}
    for group, pairs in PAIRS.items():
        for base, target in pairs:
            constants, truth = fits[SWEEPS[target].family], measured[target]
            if group == GIVEN:
                truth = _with_latency(truth, constants)
            found.setdefault(group, []).append(outcome(measured[base], truth, constants))
    return found


def _with_latency(measured: Measured, constants: Constants) -> Measured:
    latency_ns = hop_ns(measured, constants) - OWN_HOP_NS
    fabric = replace(measured.sweep.fabric, net_latency_ns=latency_ns)
    return replace(measured, sweep=replace(measured.sweep, fabric=fabric))


BY_COUNT = "nvls_vs_ring_by_gpu_count.csv"
ON = {
    "8x H200": HOPPER,
    "8x B200": BLACKWELL,
    "8x MI300X": MI300,
}
"""By how the system's name begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One large all-reduce of a subset of eight GPUs."""

    system: str
    gpus: int
    ring: bool
    size_bytes: int
    time_ns: float

    @property
    def name(self) -> str:
        """As the table shows it."""
        return f"{self.gpus} GPUs, {'ring' if self.ring else 'as the library likes'}"

    def situation(self) -> Situation:
        """As the model takes it."""
        calls = inside_one_node(
            np.array([int(CollectiveKind.ALL_REDUCE)]),
            np.array([self.size_bytes]),
            np.array([self.gpus]),
        )
        fabric = ON[self.system]
        if self.ring:
            fabric = replace(fabric, algorithm=Algorithm.RING, in_network=False)
        return Situation(calls=calls, fabric=fabric)


def points(tables: Path) -> list[Point]:
    """Rows of the table of subsets with 4 and 8 GiB."""
    found = []
    with (tables / BY_COUNT).open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            system = next((name for name in ON if row["system"].startswith(name)), None)
            if system is None or row["collective"] != "all_reduce" or int(row["nodes"]) > 1:
                continue
            point = Point(
                system=system,
                gpus=int(row["gpus"]),
                ring="ing" in row["notes"] and "default" not in row["notes"],
                size_bytes=int(row["bytes"]),
                time_ns=float(row["time_us"]) * 1e3,
            )
            if point not in found and "16GiB" not in row["notes"]:
                found.append(point)
    return found


def moved(base: Point, target: Point) -> float:
    """Predicted over measured time."""
    move = Move(
        measured_ns=np.array([base.time_ns]), before=base.situation(), after=target.situation()
    )
    return float(base.time_ns * move.ratio()[0] / target.time_ns)


def count_table(tables: Path) -> Iterable[str]:
    """Ring to in-switch reduction and back, and fewer or more GPUs, at 4 or 8 GiB."""
    yield "| system | from | predictions | median error | worst |"
    yield "|---|---|--:|--:|---|"
    every = points(tables)
    for system in ON:
        mine = [point for point in every if point.system == system]
        for base in (mine[0], mine[-1]):
            errors = {one.name: moved(base, one) - 1 for one in mine if one is not base}
            worst = max(errors, key=lambda name: abs(errors[name]))
            middle = np.median(np.abs(list(errors.values())))
            told = f"{worst}: {100 * errors[worst]:+.0f} %"
            yield f"| {system} | {base.name} | {len(errors)} | {100 * middle:.0f} % | {told} |"


def _error(ratio: Float64, rows: Bool) -> str:
    return f"{100 * np.median(np.abs(ratio[rows] - 1)):.0f} %" if rows.any() else ""


def pair_table(results: Sequence[Outcome], *, ranged: bool) -> Iterable[str]:
    """One row per pair: median errors, and how often the range held the truth."""
    yield (
        "| from | to | sizes | model, >= 1 MiB | alpha-beta | NCCL | model, below | alpha-beta "
        "| NCCL | in range | and it < 2x | width |"
    )
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for one in results:
        large = one.size_bytes >= MIB
        cells = [
            _error(ratio, rows)
            for rows in (large, ~large)
            for ratio in (one.model, one.alpha_beta, one.nccl)
        ]
        shares = [one.inside.mean(), (one.inside & one.narrow).mean()]
        ends = [f"{100 * share:.0f} %" for share in shares]
        ends = [*ends, f"{one.width:.2f}x"] if ranged else [""] * 3
        yield f"| {' | '.join([one.base, one.target, str(len(large)), *cells, *ends])} |"


def summary(found: dict[str, list[Outcome]]) -> Iterable[str]:
    """One row per group: pairs that meet the aim, the median pair, the worst by name."""
    yield (
        "| pairs | >= 1 MiB: within 10 % | median pair | worst | below: within 20 % | worst "
        "| in range | and it < 2x | median width |"
    )
    yield "|---|--:|--:|---|--:|---|--:|--:|--:|"
    for group, results in found.items():
        cells = []
        for aim, is_large in ((0.10, True), (0.20, False)):
            errors = {
                f"{one.base} to {one.target}": float(np.median(np.abs(one.model[rows] - 1)))
                for one in results
                if (rows := (one.size_bytes >= MIB) == is_large).any()
            }
            if not errors:
                cells += ["", "", ""] if is_large else ["", ""]
                continue
            worst = max(errors, key=lambda name: errors[name])
            cells.append(f"{sum(error <= aim for error in errors.values())} of {len(errors)}")
            if is_large:
                cells.append(f"{100 * np.median(list(errors.values())):.0f} %")
            cells.append(f"{worst}: {100 * errors[worst]:.0f} %")
        cells += _ranges(results) if group != SAME else [""] * 3
        yield f"| {group} | {' | '.join(cells)} |"


def _ranges(results: Sequence[Outcome]) -> list[str]:
    inside = np.concatenate([one.inside for one in results])
    narrow = np.concatenate([one.narrow for one in results])
    width = np.median(np.concatenate([one.high / one.low for one in results]))
    shares = [f"{100 * held.mean():.0f} %" for held in (inside, inside & narrow)]
    return [*shares, f"{width:.2f}x"]


TRACES = {
    "h100x8_nanogpt_12-11": HOPPER,
    "h100x4_torchtitan_fsdp_A": HOPPER,
    "a100x8_megatron_tp8": AMPERE,
    "v100x8_dlrm": V100,
}
"""Sets of traces with all members of collectives of recorded size."""


def trace_table(shared: Path) -> Iterable[str]:
    """What the model says without any measured time, against kernels in traces."""
    yield "| traces | collective | calls | median | measured / model: median | middle half |"
    yield "|---|---|--:|--:|--:|--:|"
    for name, fabric in TRACES.items():
        with open_run(
            sorted((shared / "traces" / name).glob("*.gz")), options=IngestOptions(cache=False)
        ) as run:
            graph = build(run.store).graph
        calls = graph.collectives
        kind = calls.kind.astype(np.int64)
        members = calls.members_expected.astype(np.int64)
        model_ns = absolute_ns(inside_one_node(kind, calls.size_bytes, members), fabric)
        judged = (calls.members_seen >= members) & (calls.size_bytes > 0) & (members > 1)
        for key in np.unique(kind[judged]):
            for large in (True, False):
                rows = judged & (kind == key) & ((calls.size_bytes >= MIB) == large)
                if not rows.any():
                    continue
                ratio = calls.transfer_ns[rows] / model_ns[rows]
                first, middle, third = np.quantile(ratio, [0.25, 0.5, 0.75])
                word = CollectiveKind(key).name.lower()
                cells = [
                    name,
                    f"{word}, {'>=' if large else '<'} 1 MiB",
                    str(int(rows.sum())),
                    f"{np.median(calls.transfer_ns[rows]) / 1e3:.0f} us",
                    f"{middle:.2f}",
                    f"{first:.2f} to {third:.2f}",
                ]
                yield f"| {' | '.join(cells)} |"


FIGURE = "img/collectives.svg"
DRAWN = (
    ("8xA100-80", "8xH100 p5"),
    ("8xA100-40 AG", "8xH100 AG"),
    ("8xH200", "8xB200"),
    ("16xA100 HDR", "32xA100 HDR"),
    ("16xA100 HDR", "128xA100 HDR"),
    ("8xMI300X", "8xH100 p5"),
    ("8xH100 p5", "16xH100 EFA"),
)


def figures(shared: Path, folder: Path) -> None:
    """Write the plot that the section shows into a folder (`docs/img`)."""
    found = outcomes(shared / "facts/nccl_tables")
    every = {
        (one.base, one.target): one for group in found if group != GIVEN for one in found[group]
    }
    lines = {
        f"{base} to {target}": list(
            zip(every[base, target].size_bytes, every[base, target].model, strict=True)
        )
        for base, target in DRAWN
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / Path(FIGURE).name).write_text(ratios_by_size(lines), encoding="utf-8")


def section(shared: Path) -> str:
    """Markdown for docs/accuracy.md."""
    tables = shared / "facts/nccl_tables"
    found = outcomes(tables)
    figure = f"![predicted over measured time by size]({FIGURE})"
    lines = [*WORDS, "", *summary(found), "", figure, "", *WORDS_OF_PAIRS]
    for group, results in found.items():
        lines += ["", f"**{group[0].upper()}{group[1:]}**", ""]
        lines += pair_table(results, ranged=group != SAME)
    lines += ["", *WORDS_OF_COUNTS, "", *count_table(tables)]
    lines += ["", *WORDS_OF_TRACES, "", *trace_table(shared)]
    return "\n".join(lines)


WORDS = (
    "Public sweeps of nccl-tests and rccl-tests; the sweep of one system plays the trace and is "
    "moved to another system, GPU count or node count at the same size. Constants that come from "
    "sweeps (latency factor of a generation, hop between nodes, part of the NIC's rate, weight of "
    "the pipeline term, longer steps of large messages) are fitted again without all sweeps of the "
    "predicted machine.",
)
WORDS_OF_PAIRS = (
    "Median of |predicted / measured - 1| over the sizes of a pair, from 1 KiB on. *alpha-beta*: "
    "latency and bandwidth fitted on the base, bytes moved by the ratio of the links' rates. "
    "*NCCL*: the measured time times the ratio of NCCL's own formula. *In range*: truths inside "
    "low..high; a range wider than 2x says little; the widths were set by hand on these pairs. "
    "Sweeps by one process for all GPUs or by torch "
    "(A100-40, A100 stas, A100 HDR up to 8, H100, H200, B200 and V100) have the host's launches in "
    "their small times: they are judged only where a call takes 1.5 times their smallest. Three "
    "times of more than twice that of a larger call are not judged either.",
)
WORDS_OF_COUNTS = (
    "Large all-reduces of 2 to 8 GPUs of a node, by ring and as the library likes (with more than "
    "4 H200 or 5 B200 in the switch); from the first and from the last row of each machine to all "
    "others. No constant was fitted on them.",
)


WORDS_OF_TRACES = (
    "Kernels of traces, which no constant but V100's latency was fitted on, against the model "
    "without any measured time (transfers, from the moment when the last member has come).",
)


def main() -> None:
    """Print the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shared", type=Path)
    parser.add_argument("--figures", type=Path, help="also write the plot into this folder")
    given = parser.parse_args()
    if given.figures is not None:
        figures(given.shared, given.figures)
    sys.stdout.write(section(given.shared) + "\n")


if __name__ == "__main__":
    main()
