"""Public sweeps of nccl-tests and rccl-tests: where each is, how it was run, what it ran on."""

import csv
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ingest.vocab import CollectiveKind
from whatif.models.collectives.calls import Bool, Calls, Float64, Int64
from whatif.models.collectives.move import Situation
from whatif.models.fabric import Fabric, Shape

SMALLEST_BYTES = 1024
ABOVE_HOST = 1.5
"""Sweeps by one process for all GPUs, or by torch, are judged where a call takes this much more
than their smallest: below, the time is that of launching."""


HICCUP = 2.0
"""A call that takes this much more than a larger one was disturbed: on 128 GPUs 1,242 us for 1 KiB
and 103 us for 2 KiB."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """One sweep over sizes."""

    name: str
    table: str
    system: str
    """How the system's name begins in the table."""
    family: str
    """Sweeps of one family are left out together."""
    fabric: Fabric
    alone: bool = True
    """One process per GPU and no framework: the time is that of the kernels."""
    collective: str = "all_reduce"
    gpus: int = 8
    nodes: int = 1
    note: str | None = None
    """How its notes begin."""


AMPERE = Fabric(architecture="ampere", scale_up_bytes_per_s=300e9)
HOPPER = Fabric(architecture="hopper", scale_up_bytes_per_s=450e9)
BLACKWELL = Fabric(architecture="blackwell", scale_up_bytes_per_s=900e9)
MI300 = Fabric(architecture="cdna3", scale_up_bytes_per_s=448e9, scale_up_shape=Shape.MESH)
MI355 = Fabric(architecture="cdna4", scale_up_bytes_per_s=535.5e9, scale_up_shape=Shape.MESH)
V100 = Fabric(architecture="volta", scale_up_bytes_per_s=150e9, scale_up_shape=Shape.CUBE_MESH)
RTX4090 = Fabric(architecture="ada", pcie_bytes_per_s=31e9, scale_up_shape=Shape.NONE)

SIX = "a100_40gb_8gpu_superbench_6colls.csv"
HDR = "a100_40gb_azure_ndv4_hdr_echo.csv"
BOTH_WAYS = "a100_80gb_8gpu_mpi_vs_singleproc.csv"
AMD = "amd_mi300x_mi325x_mi355x_rccl.csv"
AWS = "aws_p4de_p5_efa.csv"
COREWEAVE = "coreweave_h100_gb200.csv"
SIMUMAX = "h100_8gpu_simumax_4colls_bf16.csv"
DGX = "h100_dgx_single_node_dgxc.csv"
STAS = "stas_ml_engineering_allreduce.csv"
CUBE = "v100_8gpu_nvlink2_nonswitch.csv"
PCIE = "rtx4090_pcie_2_4gpu.csv"

KINDS = {
    "all_reduce": CollectiveKind.ALL_REDUCE,
    "all_gather": CollectiveKind.ALL_GATHER,
    "reduce_scatter": CollectiveKind.REDUCE_SCATTER,
    "alltoall": CollectiveKind.ALL_TO_ALL,
    "broadcast": CollectiveKind.BROADCAST,
    "reduce": CollectiveKind.REDUCE,
}
SHORT = {"all_gather": "AG", "reduce_scatter": "RS", "alltoall": "A2A"}


def _with_nic(fabric: Fabric, nic_bytes_per_s: float) -> Fabric:
    return replace(fabric, nic_bytes_per_s=nic_bytes_per_s)


def _nvidia_node() -> Iterable[Sweep]:
    yield Sweep("8xV100", CUBE, "8x", "v100", V100, alone=False)
    yield Sweep("8xA100-80", BOTH_WAYS, "8x", "a100-80", AMPERE, note="MPI")
    yield Sweep("8xA100-40", SIX, "A100", "superbench", AMPERE, alone=False)
    yield Sweep("8xA100 stas", STAS, "8x A100", "a100-stas", AMPERE, alone=False)
    yield Sweep("8xH100 p5", AWS, "AWS p5", "p5", HOPPER)
    yield Sweep("8xH100 DGX", DGX, "DGX", "dgx", HOPPER)
    yield Sweep("8xH100", SIMUMAX, "8x", "simumax", HOPPER, alone=False)
    yield Sweep("8xH200", STAS, "8x H200", "h200-stas", HOPPER, alone=False)
    yield Sweep("8xB200", STAS, "8x B200", "b200-stas", BLACKWELL, alone=False)
    for kind, word in SHORT.items():
        old, new = f"8xA100-40 {word}", f"8xH100 {word}"
        yield Sweep(old, SIX, "A100", "superbench", AMPERE, alone=False, collective=kind)
        yield Sweep(new, SIMUMAX, "8x", "simumax", HOPPER, alone=False, collective=kind)


def _amd() -> Iterable[Sweep]:
    yield Sweep("8xMI300X", AMD, "8x MI300X xGMI", "aac8", MI300)
    roce, pollara = _with_nic(MI300, 50e9), _with_nic(MI355, 50e9)
    yield Sweep("16xMI300X RoCE", AMD, "8x MI300X + RoCE", "aac10", roce, gpus=16, nodes=2)
    yield Sweep("16xMI355X", AMD, "8x MI355X", "aac14", pollara, gpus=16, nodes=2)
    for gpus in (8, 16, 32, 64):
        name = f"{gpus}xMI325X"
        yield Sweep(name, AMD, "8x MI325X", "aac11", roce, gpus=gpus, nodes=gpus // 8)


def _pcie() -> Iterable[Sweep]:
    yield Sweep("2x4090", PCIE, "2x RTX 4090 same", "4090", RTX4090, gpus=2)
    yield Sweep("4x4090", PCIE, "4x RTX", "4090", RTX4090, gpus=4)


def _nvidia_nodes() -> Iterable[Sweep]:
    for gpus in (2, 4, 8):
        fabric = _with_nic(AMPERE, 25e9)
        yield Sweep(f"{gpus}xA100 HDR", HDR, "Azure", "hdr", fabric, alone=False, gpus=gpus)
    for gpus in (16, 32, 64, 128):
        name = f"{gpus}xA100 HDR"
        yield Sweep(name, HDR, "Azure", "hdr", fabric, gpus=gpus, nodes=gpus // 8)
    slow, fast = _with_nic(AMPERE, 6.25e9), _with_nic(HOPPER, 50e9)
    yield Sweep("16xA100 EFAv1", AWS, "AWS p4de", "p4de", slow, gpus=16, nodes=2)
    yield Sweep("16xH100 EFA", AWS, "AWS p5", "p5", fast, gpus=16, nodes=2, note="")
    sharp = replace(fast, in_network=True)
    family = "coreweave-h100"
    yield Sweep("96xH100 SHARP", COREWEAVE, "CoreWeave H100", family, sharp, gpus=96, nodes=12)
    fabric = _with_nic(BLACKWELL, 50e9)
    name = "32xB200 EFA"
    yield Sweep(name, STAS, "AWS p6", "b200-stas", fabric, alone=False, gpus=32, nodes=4)
    for gpus, racks in ((72, 1), (128, 2), (1440, 20)):
        name, system = f"{gpus}xGB200", "CoreWeave GB200"
        yield Sweep(name, COREWEAVE, system, "coreweave-gb", fabric, gpus=gpus, nodes=racks)


SWEEPS = {
    sweep.name: sweep for part in (_nvidia_node, _nvidia_nodes, _amd, _pcie) for sweep in part()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A sweep as it was read."""

    sweep: Sweep
    size_bytes: Int64
    time_ns: Float64
    judged: Bool
    """Sizes whose time is that of the kernels."""

    def situation(self, size_bytes: Int64) -> Situation:
        """Calls of these sizes on the system of the sweep."""
        ones, sweep = np.ones(len(size_bytes), np.int64), self.sweep
        calls = Calls(
            kind=ones * int(KINDS[sweep.collective]),
            size_bytes=size_bytes,
            members=ones * sweep.gpus,
            nodes=ones * sweep.nodes,
            largest_node=ones * (sweep.gpus // sweep.nodes),
            sites=ones,
        )
        return Situation(calls=calls, fabric=sweep.fabric)


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
    larger_ns = np.minimum.accumulate(time_ns[::-1])[::-1]
    judged &= time_ns <= HICCUP * larger_ns
    return Measured(sweep=sweep, size_bytes=size_bytes, time_ns=time_ns, judged=judged)


def _is_of(sweep: Sweep, row: dict[str, str]) -> bool:
    begins = sweep.note is None or row["notes"].startswith(sweep.note)
    none_wanted = sweep.note == "" and bool(row["notes"])
    return bool(
        row["system"].startswith(sweep.system)
        and row["collective"] == sweep.collective
        and int(row["gpus"]) == sweep.gpus
        and begins
        and not none_wanted
        and row["bytes"]
        and row["time_us"]
    )
