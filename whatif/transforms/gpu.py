"""Another accelerator: its kernels, its copies and its scale-up link."""

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import Struct

from ingest.errors import ScenarioError
from ingest.vocab import ElementType, KernelClass, TaskKind
from replay.graph.arrays import Bool, Int8, Int64, TaskGraph
from replay.graph.work import Float64
from whatif.models.bound import Bound
from whatif.models.fabric import Fabric
from whatif.models.hardware import Accelerator, require
from whatif.models.kernels import roofline
from whatif.models.kernels.machine import Machine, machine_of
from whatif.models.kernels.roofline import MATRIX, Kernels
from whatif.models.memory.words import fits
from whatif.topology import BRIDGED, Topology, mesh_links_of, shape_of
from whatif.transforms.base import Applied, ComputeAnchor, Context, free, with_durations
from whatif.transforms.machine import known
from whatif.transforms.pcie import PAGEABLE, copies_over_pcie
from whatif.transforms.retime import retimed
from whatif.transforms.select import names_with

NO_DEVICE_WORK = "no accelerator worked in this trace"
SHOWN_TYPES = (ElementType.BF16, ElementType.FP8, ElementType.FP32)


class Gpu(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="gpu"
):
    """Run on another accelerator: compute, memory, copies and scale-up link; host and NICs stay."""

    name: str
    """As in the catalog: `H200`, `MI300X`, `B200`."""

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--gpu {self.name}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Move kernels by the kernel model and transfers by the collective model.

        Raises:
            ScenarioError: the catalog does not know this accelerator, or the trace does not tell
                which one it was recorded on.
        """
        device = require(self.name)
        label = f"gpu {device.name}"
        now = known(graph, context)
        if not _on_device(graph).any():
            return Applied(graph=graph, label=label, context=context, no_effect=NO_DEVICE_WORK)
        base = present_device(graph, now)
        if base == device:
            reason = f"the run already has {device.name}"
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        # Base, or an earlier what-if, may say another rate of PCIe than the catalog.
        old = replace(machine_of(base), pcie_bytes_per_s=now.links.pcie_bytes_per_s)
        new = machine_of(device)
        anchor = _anchor(graph, base, now.compute)
        known_work = located(graph)
        dur_ns = _from_anchor(graph, known_work, anchor, (old, new), context.bound)
        moved = with_durations(graph, dur_ns)
        fabric, places = _linked(now.links, device), _placed(now.places, device)
        after = replace(now, device=device, fabric=fabric, topology=places, compute=anchor)
        result = retimed(moved, now, after)
        named = tuple(replace(info, gpu=device.name) for info in graph.ranks)
        return Applied(
            graph=replace(result.graph, ranks=named),
            label=label,
            context=result.context,
            assumptions=(
                *_told(graph, known_work, old, new),
                *((places.told, *result.assumptions) if result.moved.any() else ()),
                *_domain_told(now.places, device),
            ),
            known_errors=(*_known_errors(old, new), *result.known_errors),
        )


@dataclass(frozen=True, slots=True)
class Located:
    """Kernels that a scenario may change and that communicate nothing."""

    task: Int64
    kernels: Kernels
    """What is known of their work, row by row."""
    operand_bytes: Float64
    """Of what matrix kernels multiply; NaN where not known."""


def located(graph: TaskGraph) -> Located:
    """The computing kernels of a graph with their work."""
    tasks, work = graph.tasks, graph.work
    own = (tasks.kind == TaskKind.KERNEL) & (tasks.kernel_class != KernelClass.COLLECTIVE)
    task = np.flatnonzero(free(graph, own))
    row = work.rows_of(tasks.slice_id[task])
    seen = row >= 0

    def of(column: Float64 | Int64 | Int8, unknown: float) -> Any:  # noqa: ANN401  (any column)
        if seen.all():
            return column[row]
        found = np.full(len(task), unknown, column.dtype)
        found[seen] = column[row[seen]]
        return found

    kernels = Kernels(
        kernel_class=tasks.kernel_class[task],
        dtype=of(work.dtype, ElementType.UNKNOWN),
        flops=of(work.flops, math.nan),
        bytes=of(work.bytes, math.nan),
        tiles=of(work.tiles, -1),
    )
    return Located(task, kernels, of(work.operand_bytes, math.nan))


def _on_device(graph: TaskGraph) -> Bool:
    on_device: Bool = np.isin(graph.tasks.kind, (TaskKind.KERNEL, TaskKind.MEMCPY, TaskKind.MEMSET))
    return on_device


def present_device(graph: TaskGraph, context: Context) -> Accelerator:
    """The accelerator that the run is on, as the stack has left it.

    Raises:
        ScenarioError: it is not known.
    """
    if context.device is not None:
        return context.device
    names = Counter(info.gpu or "no GPU name" for info in graph.ranks)
    raise ScenarioError(
        f"the accelerator of the recorded run is not known ({', '.join(sorted(names))})",
        hint="give --base-gpu NAME",
    )


def _anchor(graph: TaskGraph, base: Accelerator, set_before: ComputeAnchor | None) -> ComputeAnchor:
    """The measured state; the present one where tasks were added or what they compute changed."""
    holds = set_before is not None and set_before.work is graph.work
    if set_before is not None and holds and len(set_before.dur_ns) == graph.n_tasks:
        return set_before
    return ComputeAnchor(dur_ns=graph.tasks.dur_ns, work=graph.work, device=base)


def _from_anchor(
    graph: TaskGraph,
    known_work: Located,
    anchor: ComputeAnchor,
    machines: tuple[Machine, Machine],
    bound: Bound,
) -> Int64:
    """Present times, by the ratio of the model's on the new device to those on the present one."""
    old, new = machines
    if anchor.dur_ns is graph.tasks.dur_ns:
        return _durations(graph, known_work, old, new, bound)
    measured = with_durations(graph, anchor.dur_ns)
    measured_on = machine_of(anchor.device)
    then_ns = _durations(measured, known_work, measured_on, old, bound)
    now_ns = _durations(measured, known_work, measured_on, new, bound)
    dur_ns = graph.tasks.dur_ns
    ratio = np.divide(now_ns, then_ns, out=np.ones(len(dur_ns)), where=then_ns > 0)
    return np.where(dur_ns == then_ns, now_ns, np.rint(dur_ns * ratio)).astype(np.int64)


def _durations(
    graph: TaskGraph, known_work: Located, old: Machine, new: Machine, bound: Bound
) -> Int64:
    """Times of kernels, copies and memsets on the new device, ns."""
    tasks, task = graph.tasks, known_work.task
    dur_ns = tasks.dur_ns.copy()
    dur_ns[task] = roofline.scaled_ns(tasks.dur_ns[task], known_work.kernels, old, new, bound=bound)
    copies = np.flatnonzero(free(graph, np.isin(tasks.kind, (TaskKind.MEMCPY, TaskKind.MEMSET))))
    ratio = _copy_ratios(graph, copies, old, new, bound)
    overhead = np.minimum(tasks.dur_ns[copies], old.floor_ns)
    dur_ns[copies] = np.rint(overhead + (tasks.dur_ns[copies] - overhead) * ratio)
    return dur_ns


def _copy_ratios(
    graph: TaskGraph, copies: Int64, old: Machine, new: Machine, bound: Bound
) -> Float64:
    """Time of each copy and memset, new over old.

    Copies within the device follow its memory. Those from and to the host follow PCIe, where the
    memory is pinned; the host sets the pace of the others, PCIe at most. Copies between devices
    stay.
    """
    name = graph.tasks.name[copies]
    over_pcie = copies_over_pcie(graph)[copies]
    inside = names_with(graph, "DtoD", "DeviceToDevice", "Memset")[name]
    paged = names_with(graph, PAGEABLE)[name]
    ratio = np.where(inside, old.memory_bytes_per_s / new.memory_bytes_per_s, 1.0)
    if old.pcie_bytes_per_s and new.pcie_bytes_per_s:
        pcie = old.pcie_bytes_per_s / new.pcie_bytes_per_s
        ends = {Bound.NOMINAL: 1.0, Bound.LOW: min(pcie, 1.0), Bound.HIGH: max(pcie, 1.0)}
        ratio = np.where(over_pcie, np.where(paged, ends[bound], pcie), ratio)
    return ratio


def _linked(links: Fabric, device: Accelerator) -> Fabric:
    """The fabric with the links that come with the accelerator; NICs stay."""
    pcie = device.pcie
    return replace(
        links,
        architecture=device.architecture,
        scale_up_bytes_per_s=device.scale_up_one_way_bytes_per_s,
        scale_up_shape=shape_of(device),
        mesh_links=mesh_links_of(device),
        pcie_bytes_per_s=links.pcie_bytes_per_s if pcie is None else pcie.one_way_bytes_per_s.value,
    )


def _placed(places: Topology, device: Accelerator) -> Topology:
    """Ranks stay in their nodes; a link that joins no racks ends with the node."""
    if _joins(device) is not None:
        return places
    return replace(places, domain_gpus=min(places.domain_gpus, places.gpus_per_node))


def _domain_told(places: Topology, device: Accelerator) -> tuple[str, ...]:
    joins = _joins(device)
    if joins is None or joins <= places.domain_gpus:
        return ()
    return (
        f"ranks stay in domains of {places.domain_gpus}, though the link of {device.name} joins "
        f"{joins}: --topology FILE puts them in one",
    )


def _joins(device: Accelerator) -> int | None:
    """GPUs of a domain that is wider than a node."""
    joins = device.scale_up.joins if device.scale_up is not None else None
    return joins if joins is not None and joins > BRIDGED else None


def _told(graph: TaskGraph, known_work: Located, old: Machine, new: Machine) -> tuple[str, ...]:
    told = [
        fits(graph.work.peak_bytes, _recorded_memory(graph, old), new.memory_bytes, new.name),
        f"{old.name} to {new.name} (catalog): {_rates(old, new)}",
        f"utilisation is carried over; {_coverage(graph, known_work)}",
        "host and NICs stay; its scale-up link and PCIe come with the accelerator",
    ]
    if roofline.gains_tf32(old, new):
        told.append(
            "fp32 products stay fp32 and convolutions become TF32, as by PyTorch's defaults"
        )
    return tuple(told)


def _known_errors(old: Machine, new: Machine) -> tuple[str, ...]:
    errors = [roofline.KNOWN_ERROR]
    if min(old.power_share, new.power_share) < 1:
        errors.append(roofline.LOW_POWER_ERROR)
    if old.maker != new.maker:
        errors.append(roofline.OTHER_MAKER_ERROR)
    return tuple(errors)


def _recorded_memory(graph: TaskGraph, old: Machine) -> float | None:
    """Memory of the recorded device, as the trace lists it, else as the catalog does."""
    return float(graph.work.memory_bytes) if graph.work.memory_bytes > 0 else old.memory_bytes


def _rates(old: Machine, new: Machine) -> str:
    rates = [
        f"{dtype.name.lower()} {before / 1e12:.4g} to {after / 1e12:.4g} TFLOP/s"
        f"{'' if dtype in new.native else ' (in the next wider type: it has none)'}"
        for dtype in SHOWN_TYPES
        if dtype in old.native and dtype in new.flops_per_s
        for before, after in [(old.flops_per_s[dtype], new.flops_per_s[dtype])]
        if before != after
    ]
    before, after = (machine.memory_bytes_per_s / 1e12 for machine in (old, new))
    memory = f"memory {before:.3g} to {after:.3g} TB/s"
    return ", ".join((*rates, memory))


def _coverage(graph: TaskGraph, known_work: Located) -> str:
    """For how much of the time the roofs are known."""
    kernels, dur_ns = known_work.kernels, graph.tasks.dur_ns[known_work.task]
    matrix = np.isin(kernels.kernel_class, MATRIX)
    flops = _part(dur_ns, matrix, ~np.isnan(kernels.flops))
    moved = _part(dur_ns, ~matrix, ~np.isnan(kernels.bytes))
    return f"FLOPs known of {flops} of the time of matrix kernels, bytes of {moved} of the others"


def _part(dur_ns: Int64, among: Bool, known_: Bool) -> str:
    total = int(dur_ns[among].sum())
    return f"{dur_ns[among & known_].sum() / total:.0%}" if total else "none"
