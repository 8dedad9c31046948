"""The collective model against public sweeps of nccl-tests and rccl-tests, pair by pair.

    python -m tests.bench.accuracy_collectives ../shared

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
from pathlib import Path

import numpy as np

from ingest.vocab import CollectiveKind
from whatif.models.bound import Bound
from whatif.models.collectives.calls import Calls, Float64, Int64
from whatif.models.collectives.constants import OTHER, SHIPPED, SILICON, Constants
from whatif.models.collectives.curves import Curves
from whatif.models.collectives.links import Tuning, links_of
from whatif.models.collectives.model import Move, Situation, times_ns
from whatif.models.fabric import Fabric, Shape

MIB = 1 << 20
SMALLEST_BYTES = 1024
HOST_NS = 20_000.0
"""What one process that drives eight GPUs, or torch, adds to small calls: on one 8 x A100 machine
nccl-tests takes 40.1 us that way and 20.3 us with a process per GPU."""
ABOVE_HOST = 1.5
"""Such sweeps are judged where a call takes this much more than their smallest: below, the time is
that of launching."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One sweep over sizes: where it is, how it was run, what it ran on."""

    name: str
    table: str
    system: str
    """How the system's name begins in the table."""
    family: str
    """Sweeps of one family are left out together."""
    alone: bool = True
    """One process per GPU and no framework: the time is that of the kernels."""
    collective: str = "all_reduce"
    gpus: int = 8
    nodes: int = 1
    note: str | None = None
    """How its notes begin."""
    fabric: Fabric


AMPERE = Fabric(architecture="ampere", scale_up_bytes_per_s=300e9)
HOPPER = Fabric(architecture="hopper", scale_up_bytes_per_s=450e9)
BLACKWELL = Fabric(architecture="blackwell", scale_up_bytes_per_s=900e9)
MI300 = Fabric(architecture="cdna3", scale_up_bytes_per_s=448e9, scale_up_shape=Shape.MESH)
MI355 = Fabric(architecture="cdna4", scale_up_bytes_per_s=535.5e9, scale_up_shape=Shape.MESH)
V100 = Fabric(architecture="volta", scale_up_bytes_per_s=150e9, scale_up_shape=Shape.CUBE_MESH)
RTX4090 = Fabric(architecture="ada", pcie_bytes_per_s=31e9, scale_up_shape=Shape.NONE)

SIX = "a100_40gb_8gpu_superbench_6colls.csv"
ECHO = "a100_40gb_azure_ndv4_hdr_echo.csv"
BOTH_WAYS = "a100_80gb_8gpu_mpi_vs_singleproc.csv"
AMD = "amd_mi300x_mi325x_mi355x_rccl.csv"
AWS = "aws_p4de_p5_efa.csv"
COREWEAVE = "coreweave_h100_gb200.csv"
SIMUMAX = "h100_8gpu_simumax_4colls_bf16.csv"
DGX = "h100_dgx_single_node_dgxc.csv"
STAS = "stas_ml_engineering_allreduce.csv"
CUBE = "v100_8gpu_nvlink2_nonswitch.csv"
PCIE = "rtx4090_pcie_2_4gpu.csv"
BY_COUNT = "nvls_vs_ring_by_gpu_count.csv"


def _nic(fabric: Fabric, nic_bytes_per_s: float) -> Fabric:
    return replace(fabric, nic_bytes_per_s=nic_bytes_per_s)


def _sweeps() -> Iterable[Sweep]:
    short = {"all_gather": "AG", "reduce_scatter": "RS", "alltoall": "A2A"}
    kinds = (*short, "broadcast", "reduce")
    yield Sweep(
        name="8xA100-40", table=SIX, system="A100", family="superbench", alone=False, fabric=AMPERE
    )
    for kind in kinds:
        yield Sweep(
            name=f"8xA100-40 {short.get(kind, kind)}",
            table=SIX,
            system="A100",
            family="superbench",
            alone=False,
            collective=kind,
            fabric=AMPERE,
        )
    for gpus, nodes in ((2, 1), (4, 1), (8, 1), (16, 2), (32, 4), (64, 8), (128, 16)):
        yield Sweep(
            name=f"{gpus}xA100 HDR",
            table=ECHO,
            system="Azure",
            family="echo",
            alone=nodes > 1,
            gpus=gpus,
            nodes=nodes,
            fabric=_nic(AMPERE, 25e9),
        )
    yield Sweep(
        name="8xA100-80",
        table=BOTH_WAYS,
        system="8x",
        note="MPI",
        family="a100-80",
        fabric=AMPERE,
    )
    yield Sweep(
        name="8xA100 stas",
        table=STAS,
        system="8x A100",
        family="a100-stas",
        alone=False,
        fabric=AMPERE,
    )
    yield Sweep(
        name="8xH200", table=STAS, system="8x H200", family="h200-stas", alone=False, fabric=HOPPER
    )
    yield Sweep(
        name="8xB200",
        table=STAS,
        system="8x B200",
        family="b200-stas",
        alone=False,
        fabric=BLACKWELL,
    )
    yield Sweep(
        name="32xB200 EFA",
        table=STAS,
        system="AWS p6",
        family="b200-stas",
        alone=False,
        gpus=32,
        nodes=4,
        fabric=_nic(BLACKWELL, 50e9),
    )
    yield Sweep(name="8xH100 p5", table=AWS, system="AWS p5", family="p5", fabric=HOPPER)
    yield Sweep(
        name="16xH100 EFA",
        table=AWS,
        system="AWS p5",
        family="p5",
        gpus=16,
        nodes=2,
        note="",
        fabric=_nic(HOPPER, 50e9),
    )
    yield Sweep(
        name="16xA100 EFAv1",
        table=AWS,
        system="AWS p4de",
        family="p4de",
        gpus=16,
        nodes=2,
        fabric=_nic(AMPERE, 6.25e9),
    )
    yield Sweep(name="8xH100 DGX", table=DGX, system="DGX", family="dgx", fabric=HOPPER)
    yield Sweep(
        name="8xH100", table=SIMUMAX, system="8x", family="simumax", alone=False, fabric=HOPPER
    )
    for kind, word in short.items():
        yield Sweep(
            name=f"8xH100 {word}",
            table=SIMUMAX,
            system="8x",
            family="simumax",
            alone=False,
            collective=kind,
            fabric=HOPPER,
        )
    yield Sweep(name="8xMI300X", table=AMD, system="8x MI300X xGMI", family="aac8", fabric=MI300)
    yield Sweep(
        name="16xMI300X RoCE",
        table=AMD,
        system="8x MI300X + RoCE",
        family="aac10",
        gpus=16,
        nodes=2,
        fabric=_nic(MI300, 50e9),
    )
    yield Sweep(
        name="16xMI355X",
        table=AMD,
        system="8x MI355X",
        family="aac14",
        gpus=16,
        nodes=2,
        fabric=_nic(MI355, 50e9),
    )
    for gpus, nodes in ((8, 1), (16, 2), (32, 4), (64, 8)):
        yield Sweep(
            name=f"{gpus}xMI325X",
            table=AMD,
            system="8x MI325X",
            family="aac11",
            gpus=gpus,
            nodes=nodes,
            fabric=_nic(MI300, 50e9),
        )
    yield Sweep(name="8xV100", table=CUBE, system="8x", family="v100", alone=False, fabric=V100)
    yield Sweep(
        name="96xH100 SHARP",
        table=COREWEAVE,
        system="CoreWeave H100",
        family="coreweave-h100",
        gpus=96,
        nodes=12,
        fabric=replace(_nic(HOPPER, 50e9), in_network=True),
    )
    for gpus, nodes in ((72, 1), (128, 2), (1440, 20)):
        yield Sweep(
            name=f"{gpus}xGB200",
            table=COREWEAVE,
            system="CoreWeave GB200",
            family="coreweave-gb",
            gpus=gpus,
            nodes=nodes,
            fabric=_nic(BLACKWELL, 50e9),
        )
    yield Sweep(
        name="2x4090", table=PCIE, system="2x RTX 4090 same", family="4090", gpus=2, fabric=RTX4090
    )
    yield Sweep(name="4x4090", table=PCIE, system="4x RTX", family="4090", gpus=4, fabric=RTX4090)


SWEEPS = {sweep.name: sweep for sweep in _sweeps()}
PAIRS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "another accelerator, one node",
        (
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
            ("8xMI300X", "8xMI325X"),
        ),
    ),
    (
        "the same accelerator, another machine",
        (("8xH100 p5", "8xH100 DGX"), ("8xH100 DGX", "8xH100 p5"), ("8xH100 p5", "8xH200")),
    ),
    (
        "more GPUs of a node",
        (
            ("2xA100 HDR", "4xA100 HDR"),
            ("4xA100 HDR", "8xA100 HDR"),
            ("2xA100 HDR", "8xA100 HDR"),
            ("2x4090", "4x4090"),
        ),
    ),
    (
        "more nodes",
        (
            ("16xA100 HDR", "32xA100 HDR"),
            ("32xA100 HDR", "64xA100 HDR"),
            ("64xA100 HDR", "128xA100 HDR"),
            ("16xA100 HDR", "128xA100 HDR"),
            ("16xMI325X", "64xMI325X"),
            ("72xGB200", "128xGB200"),
            ("128xGB200", "1440xGB200"),
        ),
    ),
    (
        "from one node to several, network not seen",
        (
            ("8xA100 HDR", "16xA100 HDR"),
            ("8xA100-80", "16xA100 EFAv1"),
            ("8xH100 p5", "16xH100 EFA"),
            ("8xH100 p5", "96xH100 SHARP"),
            ("8xB200", "32xB200 EFA"),
            ("8xMI300X", "16xMI300X RoCE"),
            ("8xMI325X", "16xMI325X"),
        ),
    ),
    (
        "another accelerator and another network",
        (
            ("16xMI300X RoCE", "16xMI355X"),
            ("16xA100 HDR", "16xH100 EFA"),
            ("16xH100 EFA", "16xA100 HDR"),
            ("16xA100 EFAv1", "16xA100 HDR"),
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A sweep as it was read."""

    sweep: Sweep
    size_bytes: Int64
    time_ns: Float64
    judged: np.ndarray
    """Sizes whose time is that of the kernels."""

    def calls(self, size_bytes: Int64) -> Calls:
        """Calls of these sizes on the system of the sweep."""
        ones, sweep = np.ones(len(size_bytes), np.int64), self.sweep
        return Calls(
            kind=ones * int(KINDS[sweep.collective]),
            size_bytes=size_bytes,
            members=ones * sweep.gpus,
            nodes=ones * sweep.nodes,
            largest_node=ones * -(-sweep.gpus // sweep.nodes),
            sites=ones,
        )

    def situation(self, size_bytes: Int64) -> Situation:
        """The same, with what carries them."""
        return Situation(calls=self.calls(size_bytes), fabric=self.sweep.fabric)


KINDS = {
    "all_reduce": CollectiveKind.ALL_REDUCE,
    "all_gather": CollectiveKind.ALL_GATHER,
    "reduce_scatter": CollectiveKind.REDUCE_SCATTER,
    "alltoall": CollectiveKind.ALL_TO_ALL,
    "broadcast": CollectiveKind.BROADCAST,
    "reduce": CollectiveKind.REDUCE,
}


def read(sweep: Sweep, tables: Path) -> Measured:
    """Mean of the two placements of each size."""
    times: dict[int, list[float]] = defaultdict(list)
    with (tables / sweep.table).open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if _is_of(sweep, row) and int(row["bytes"]) >= SMALLEST_BYTES:
                times[int(row["bytes"])].append(float(row["time_us"]) * 1e3)
    assert times, f"no row of {sweep.name} in {sweep.table}"
    size_bytes = np.array(sorted(times), np.int64)
    time_ns = np.array([np.mean(times[size]) for size in sorted(times)])
    judged = np.ones(len(time_ns), bool)
    if not sweep.alone:
        judged = time_ns > ABOVE_HOST * time_ns.min()
    return Measured(sweep=sweep, size_bytes=size_bytes, time_ns=time_ns, judged=judged)


def _is_of(sweep: Sweep, row: dict[str, str]) -> bool:
    noted = sweep.note is None or row["notes"].startswith(sweep.note)
    exact = sweep.note != "" or not row["notes"]
    return bool(
        row["system"].startswith(sweep.system)
        and row["collective"] == sweep.collective
        and int(row["gpus"]) == sweep.gpus
        and noted
        and exact
        and row["bytes"]
        and row["time_us"]
    )


def model_ns(measured: Measured, constants: Constants, tuning: Tuning) -> Float64:
    """Time of the sweep by the model."""
    situation = measured.situation(measured.size_bytes)
    links = links_of(situation.calls, situation.fabric, constants, tuning)
    return times_ns(links, measured.size_bytes.astype(np.float64))


SMALL_BYTES = 1 << 16
HOPS_OF = ("echo", "p5", "aac14")
"""Networks whose hop is near that of others; EFA v1 and RoCE under ROCm 6.3 take 70 us and more."""


def fit(sweeps: Sequence[Measured]) -> Constants:
    """Constants from sweeps, those of the system that is predicted not among them."""
    steps = {
        name: replace(one, step_factor=_step_factor(sweeps, name) or OTHER.step_factor)
        for name, one in SILICON.items()
    }
    constants = replace(SHIPPED, silicon=steps)
    hops = [hop for measured in sweeps if (hop := _hop_ns(measured, constants))]
    if hops:
        constants = replace(constants, hop_ns=float(np.exp(np.mean(np.log(hops)))))
    fracs: dict[str, list[float]] = defaultdict(list)
    for measured in sweeps:
        if frac := _net_frac(measured, constants):
            fracs[measured.sweep.family].append(frac)
    if fracs:
        middle = np.median([np.median(of_family) for of_family in fracs.values()])
        constants = replace(constants, net_frac=float(middle))
    return replace(constants, fill_frac=_fill_frac(sweeps, constants))


def _step_factor(sweeps: Sequence[Measured], architecture: str) -> float | None:
    """Smallest all-reduces of one node against those of the model; else less the host's part."""
    ratios: dict[bool, list[float]] = {True: [], False: []}
    for measured in sweeps:
        sweep = measured.sweep
        fits = sweep.fabric.architecture == architecture and sweep.collective == "all_reduce"
        small = measured.size_bytes <= SMALL_BYTES
        if fits and sweep.nodes == 1 and sweep.gpus == len(EIGHT) and small.any():
            plain = model_ns(measured, ONE_STEP, Tuning())[small]
            host = 0.0 if sweep.alone else HOST_NS
            ratios[sweep.alone].append(float(np.median((measured.time_ns[small] - host) / plain)))
    found = ratios[True] or ratios[False]
    return float(np.median(found)) if found else None


EIGHT = range(8)
ONE_STEP = replace(
    SHIPPED, silicon={name: replace(one, step_factor=1.0) for name, one in SILICON.items()}
)


def _hop_ns(measured: Measured, constants: Constants) -> float | None:
    """Hop that explains the smallest all-reduces of a sweep over two nodes."""
    sweep = measured.sweep
    if sweep.family not in HOPS_OF or sweep.nodes != len(("two", "nodes")):
        return None
    return hop_of(measured, constants)


def hop_of(measured: Measured, constants: Constants) -> float:
    """Hop that explains the smallest call of a sweep over nodes, in ns."""
    first = np.arange(1)
    least = replace(
        measured, size_bytes=measured.size_bytes[first], time_ns=measured.time_ns[first]
    )
    without, once = (
        model_ns(least, replace(constants, hop_ns=hop), Tuning())[0] for hop in (1e3, 2e3)
    )
    return float(1e3 + (least.time_ns[0] - without) / (once - without) * 1e3)


def _net_frac(measured: Measured, constants: Constants) -> float | None:
    """Part of the NIC's rate at the largest size, where the NIC binds."""
    if measured.sweep.nodes == 1 or measured.size_bytes[-1] < LARGE_BYTES:
        return None
    whole = replace(constants, net_frac=1.0)
    time_ns, half_ns = (model_ns(measured, whole, Tuning(net_rate=rate))[-1] for rate in (1.0, 0.5))
    if half_ns < BINDS * time_ns:
        return None
    return float(time_ns / measured.time_ns[-1])


LARGE_BYTES = 1 << 30
BINDS = 1.9


def _fill_frac(sweeps: Sequence[Measured], constants: Constants) -> float:
    """That of the grid with the least median error of large calls inside a node."""
    inside = [
        one for one in sweeps if one.sweep.nodes == 1 and one.sweep.fabric.scale_up_bytes_per_s
    ]
    errors = {}
    for frac in FILL_GRID:
        tried = replace(constants, fill_frac=frac)
        errors[frac] = np.mean([_median_error(one, tried) for one in inside])
    return min(errors, key=lambda frac: float(errors[frac]))


FILL_GRID = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def _median_error(measured: Measured, constants: Constants) -> float:
    rows = measured.judged & (measured.size_bytes >= MIB)
    ratio = model_ns(measured, constants, Tuning()) / measured.time_ns
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
    def inside(self) -> Float64:
        """Truths within the printed range; a range wider than a factor of two is none."""
        held = (self.low <= 1.0) & (self.high >= 1.0) & (self.high <= WIDEST * self.low)
        return held.astype(np.float64)


WIDEST = 2.0


def outcome(base: Measured, target: Measured, constants: Constants) -> Outcome:
    """The sweep of `base` moved to the system of `target`, at the sizes that both judge."""
    sizes = np.intersect1d(
        base.size_bytes[base.judged], target.size_bytes[target.judged], assume_unique=True
    )
    assert len(sizes), f"{base.sweep.name} and {target.sweep.name} share no size"
    was = base.time_ns[np.searchsorted(base.size_bytes, sizes)]
    truth = target.time_ns[np.searchsorted(target.size_bytes, sizes)]
    move = Move(
        measured_ns=was,
        before=base.situation(sizes),
        after=target.situation(sizes),
        curves=_curves(base, len(sizes)),
        constants=constants,
    )
    nominal, low, high = (was * move.ratio(bound) / truth for bound in NOMINAL_LOW_HIGH)
    return Outcome(
        base=base.sweep.name,
        target=target.sweep.name,
        size_bytes=sizes,
        model=nominal,
        low=low,
        high=high,
        alpha_beta=alpha_beta_ns(base, target, sizes) / truth,
        nccl=was * nccl_ns(target, sizes) / nccl_ns(base, sizes) / truth,
    )


NOMINAL_LOW_HIGH = (Bound.NOMINAL, Bound.LOW, Bound.HIGH)


def _curves(base: Measured, rows: int) -> Curves:
    """The judged part of a sweep as the calls of a trace would give it."""
    sizes, times = base.size_bytes[base.judged], base.time_ns[base.judged]
    return Curves(
        curve=np.zeros(rows, np.int64),
        first=np.array([0, len(sizes)]),
        size_bytes=sizes.astype(np.float64),
        time_ns=np.maximum.accumulate(times),
    )


def alpha_beta_ns(base: Measured, target: Measured, sizes: Int64) -> Float64:
    """Latency and bytes fitted on the base; the bytes moved by the ratio of the links."""
    size, time_ns = base.size_bytes[base.judged].astype(np.float64), base.time_ns[base.judged]
    columns = np.stack([np.ones(len(size)), size], 1) / time_ns[:, None]
    (alpha, beta), *_ = np.linalg.lstsq(columns, np.ones(len(size)), rcond=None)
    moved = beta * _wire(target) / _wire(base)
    times: Float64 = max(alpha, 0.0) + moved * sizes
    return times


def _wire(measured: Measured) -> float:
    """Bytes over the signalled rate of a ring, per byte of the call."""
    sweep = measured.sweep
    part = (sweep.gpus - 1) / sweep.gpus
    part = {"all_reduce": 2 * part, "broadcast": 1.0, "reduce": 1.0}.get(sweep.collective, part)
    fabric, in_node = sweep.fabric, sweep.gpus // sweep.nodes
    inside = fabric.scale_up_bytes_per_s or fabric.pcie_bytes_per_s or np.inf
    between = in_node * (fabric.nic_bytes_per_s or np.inf) if sweep.nodes > 1 else np.inf
    return part / min(inside, between)


NCCL_PROTOCOLS = (
    # Latencies of base, hop and hop over the network, in us, of tree and ring; LL, LL128, Simple.
    ((6.8, 0.6, 5.0), (6.6, 0.6, 2.7)),
    ((14.0, 1.25, 8.5), (14.0, 1.9, 4.0)),
    ((8.4, 4.0, 14.0), (8.4, 3.4, 14.0)),
)
NCCL_TREE = (
    "1 1 1 1 .9 .8 .7 .7 .7 .7 .6 .5 .4 .4 .5 .6 .7 .8 .9 1 1 1 1",
    "1 1 1 1 1 .9 .8 .8 .8 .7 .6 .6 .6 .6 .6 .6 .8 .9 .9 .9 .9 1 1",
    ".9 .9 .9 .9 .9 .9 .9 .8 .7 .6 .6 .5 .5 .5 .5 .6 .7 .8 .7 .7 .8 .9 .9",
)
"""Of a tree's bandwidth, by the logarithm of the size in units of 64 bytes."""


def nccl_ns(measured: Measured, sizes: Int64) -> Float64:
    """NCCL's own formula (tuning.cc of 2.30), with bandwidths that its search finds.

    Ring and tree in three protocols, and NVLS; what the library takes to be fastest.
    """
    sweep = measured.sweep
    in_node, nodes = sweep.gpus // sweep.nodes, sweep.nodes
    inside, between = nccl_plan(sweep.fabric, in_node)
    bus = min(inside, between) if nodes > 1 else inside
    size = sizes.astype(np.float64) / 1e3
    if sweep.collective != "all_reduce":
        steps = in_node * nodes - 1 if sweep.collective in SHARDING else 1
        hops = nodes - 1
        rings = [
            base + (steps - hops) * hop + hops * net + size * _part(sweep) / (share * bus)
            for (_, (base, hop, net)), share in zip(NCCL_PROTOCOLS, (0.5, 0.92, 1.0), strict=True)
        ]
        return np.minimum.reduce(rings) * 1e3
    times = []
    levels, hops = np.floor(np.log2(nodes)), 2 * (nodes - 1)
    index = np.clip(np.floor(np.log2(np.maximum(sizes, 64) / 64)), 0, 22).astype(int)
    for number, (tree, ring) in enumerate(NCCL_PROTOCOLS):
        share = (0.5, 0.92, 1.0)[number]
        steps = 2 * (sweep.gpus - 1) - hops
        latency = ring[0] + steps * ring[1] + hops * ring[2]
        times.append(latency + size * _part(sweep) / (share * bus))
        rate = 0.46 * bus * (1 / 3.8, 7 / 9 if nodes == 1 else 120 / 128, 1.0)[number]
        rate = rate * np.array([float(word) for word in NCCL_TREE[number].split()])[index]
        latency = tree[0] + 2 * ((in_node - 1) * tree[1] + levels * tree[2])
        times.append(latency + size / rate)
    efficiency = {"hopper": 0.85, "blackwell": 0.74}.get(sweep.fabric.architecture or "")
    if efficiency is not None:
        rate = inside * 8 / 9 * efficiency
        net = between * (2 if nodes == len(("two", "nodes")) else 1) / 2
        rate = min(rate, net) if nodes > 1 else rate
        times.append(25.0 + 2 * levels * 18.0 + size / rate)
    return np.minimum.reduce(times) * 1e3


SHARDING = ("all_gather", "reduce_scatter")


def _part(sweep: Sweep) -> float:
    part = (sweep.gpus - 1) / sweep.gpus
    return {"all_reduce": 2 * part, "broadcast": 1.0, "reduce": 1.0}.get(sweep.collective, part)


def nccl_plan(fabric: Fabric, in_node: int) -> tuple[float, float]:
    """What NCCL (and RCCL) plan with, GB/s: rings inside a node, NICs of a node."""
    per_link = {"volta": 20 / 25, "ampere": 20 / 25, "hopper": 20.6 / 25, "blackwell": 40.1 / 50}
    share = per_link.get(fabric.architecture or "", 48 / 64)
    scale_up = (fabric.scale_up_bytes_per_s or 0.0) * share
    pcie = (fabric.pcie_bytes_per_s or 0.0) * 24 / 31
    return (scale_up or pcie) / 1e9, in_node * (fabric.nic_bytes_per_s or 0.0) * 0.96 / 1e9


def outcomes(tables: Path) -> dict[str, list[Outcome]]:
    """All pairs, by group; constants fitted without the family of the target."""
    measured = {name: read(sweep, tables) for name, sweep in SWEEPS.items()}
    fits: dict[str, Constants] = {}
    found: dict[str, list[Outcome]] = {}
    for group, pairs in PAIRS:
        for base, target in pairs:
            family = SWEEPS[target].family
            if family not in fits:
                others = [one for one in measured.values() if one.sweep.family != family]
                fits[family] = fit(others)
            result = outcome(measured[base], measured[target], fits[family])
            found.setdefault(group, []).append(result)
    return found


def _error(ratio: Float64, rows: np.ndarray) -> str:
    return f"{100 * np.median(np.abs(ratio[rows] - 1)):.0f} %" if rows.any() else "-"


def table(results: Sequence[Outcome]) -> Iterable[str]:
    """Markdown, one row per pair."""
    yield (
        "| from | to | sizes | >= 1 MiB: model | alpha-beta | NCCL | < 1 MiB: model | alpha-beta "
        "| NCCL | inside the range | width |"
    )
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for one in results:
        large = one.size_bytes >= MIB
        cells = [
            _error(ratio, rows)
            for rows in (large, ~large)
            for ratio in (one.model, one.alpha_beta, one.nccl)
        ]
        inside = f"{100 * one.inside.mean():.0f} %"
        width = f"{np.median(one.high / one.low):.2f}x"
        cells = [one.base, one.target, str(len(large)), *cells, inside, width]
        yield f"| {' | '.join(cells)} |"


def section(shared: Path) -> str:
    """Markdown for docs/accuracy.md."""
    lines = []
    for group, results in outcomes(shared / "facts/nccl_tables").items():
        lines += ["", f"### {group[0].upper()}{group[1:]}", "", *table(results)]
    return "\n".join(lines)


def main() -> None:
    """Print the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shared", type=Path)
    sys.stdout.write(section(parser.parse_args().shared) + "\n")


if __name__ == "__main__":
    main()
