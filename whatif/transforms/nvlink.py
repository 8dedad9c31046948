"""Another rate of the link between the accelerators of a node."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from msgspec import Struct

from ingest.errors import ScenarioError, UsageError
from ingest.units import BytesPerSecond, Rate, parse_rate
from ingest.vocab import TaskKind
from replay.graph.arrays import Bool, Int64, TaskGraph
from whatif.models.bound import Bound
from whatif.models.collectives import model
from whatif.models.collectives.calls import inside_one_node
from whatif.models.fabric import Fabric, Factors
from whatif.models.hardware import Accelerator, find, require
from whatif.transforms.base import Applied, Context, free, with_durations
from whatif.transforms.network import ALL_FIXED, NO_COLLECTIVE

USUAL_NODE = 8


class Nvlink(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="nvlink"
):
    """Give the scale-up link (NVLink, xGMI) another rate; collectives across nodes stay."""

    rate: str
    """`900GBps` as vendors print it (both directions), or a factor like `x2`."""
    base_gpu: str | None = None
    """Name in the catalog, where the trace does not tell."""
    base_nvlink: str | None = None
    """Rate of the recorded run, where the catalog does not tell."""
    gpus_per_node: int | None = None

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        parse_rate(self.rate)
        if self.base_nvlink is not None and parse_rate(self.base_nvlink).bytes_per_s is None:
            raise UsageError(
                f"`{self.base_nvlink}` is no rate of the recorded run",
                hint="the base is absolute, for example 900GBps",
            )
        if self.gpus_per_node is not None and self.gpus_per_node < 1:
            raise UsageError(f"{self.gpus_per_node} GPUs per node", hint="a number of 1 or more")

    @property
    def flag(self) -> str:
        """As typed."""
        options = (
            ("--nvlink", self.rate),
            ("--base-gpu", self.base_gpu),
            ("--base-nvlink", self.base_nvlink),
            ("--gpus-per-node", self.gpus_per_node),
        )
        return " ".join(f"{option} {value}" for option, value in options if value is not None)

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Scale the transfers that the link carries by the collective model.

        Raises:
            ScenarioError: an absolute rate, and the base is not known.
        """
        rate = parse_rate(self.rate)
        label = f"nvlink {rate.understood}"
        device = self._device(graph)
        domain = link_domain(graph, device, given=self.gpus_per_node)
        reach = _reach(graph, domain.gpus)
        carried = reach.inside
        if context.bound is Bound.LOW:
            carried = reach.inside | reach.across
        if not carried.any():
            return Applied(graph=graph, label=label, context=context, no_effect=reach.reason)
        base = self._base(graph, device, context)
        if rate.factor and base.bytes_per_s is None and device is not None:
            reason = f"{base.owner} has no NVLink or xGMI: its collectives take another way"
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        factor = _factor(rate, base, graph)
        new = BytesPerSecond(base.bytes_per_s * factor) if base.bytes_per_s else None
        if factor == 1:
            reason = "the factor is 1"
            if rate.factor is None:
                reason = f"{base.owner} already has {rate.understood}"
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        return Applied(
            graph=with_durations(graph, _scaled(graph, carried, base, factor, context)),
            label=label,
            context=replace(context, link_bytes_per_s=new),
            assumptions=(base.told, domain.told, *reach.told, model.SOURCE, *_unsized(graph)),
        )

    def _device(self, graph: TaskGraph) -> Accelerator | None:
        """The one device of the recorded run, where it is known."""
        if self.base_gpu is not None:
            return require(self.base_gpu)
        devices = [find(name) for name in {info.gpu for info in graph.ranks if info.gpu}]
        same = bool(devices) and all(device is devices[0] for device in devices)
        return devices[0] if same else None

    def _base(self, graph: TaskGraph, device: Accelerator | None, context: Context) -> "_Base":
        owner = self.base_gpu or next((info.gpu for info in graph.ranks if info.gpu), None)
        if context.link_bytes_per_s is not None:
            set_before = context.link_bytes_per_s
            return _Base("the link", set_before, f"base: {_shown(set_before)}, set before")
        if self.base_nvlink is not None:
            given = parse_rate(self.base_nvlink).bytes_per_s
            assert given is not None, "the base was checked to be absolute"
            return _Base(owner or "the link", given, f"base: {_shown(given)} (given)")
        if device and device.scale_up:
            number = device.scale_up.bytes_per_s
            told = f"base: {device.name}, {device.scale_up.link} {_shown(number.value)} (catalog)"
            if device.scale_up.note:
                told = f"{told}. {device.scale_up.note}"
            return _Base(owner or device.name, BytesPerSecond(number.value), told)
        return _Base(owner or "the recorded GPU", None, "base: not known, a factor needs none")


def link_domain(
    graph: TaskGraph, device: Accelerator | None, *, given: int | None = None
) -> "Domain":
    """How many GPUs the scale-up link joins, and how that is known."""
    if given is not None:
        return Domain(given, f"{given} GPUs per node (given)")
    if device and device.scale_up and device.scale_up.joins:
        joins = device.scale_up.joins
        return Domain(joins, f"the link joins {joins} GPUs ({device.name}, catalog)")
    seen = max((info.devices_seen for info in graph.ranks), default=0)
    if seen > 1:
        return Domain(seen, f"{seen} GPUs per node (devices that the trace lists)")
    world = graph.world_size or max((info.rank + 1 for info in graph.ranks), default=1)
    gpus = min(USUAL_NODE, world)
    return Domain(gpus, f"{gpus} GPUs per node (assumed; --gpus-per-node says otherwise)")


def _unsized(graph: TaskGraph) -> tuple[str, ...]:
    """Said where the model has no size to go by (kernels without NCCL metadata)."""
    sizes = graph.collectives.size_bytes
    unknown = int((sizes < 0).sum())
    if not unknown:
        return ()
    return (f"{unknown} of {len(sizes)} collectives have no size: measured time stands for bytes",)


@dataclass(frozen=True, slots=True)
class Domain:
    """The GPUs that a scale-up link joins."""

    gpus: int
    """Ranks of one link domain are neighbours: rank // gpus is equal."""
    told: str


@dataclass(frozen=True, slots=True)
class _Base:
    owner: str
    bytes_per_s: BytesPerSecond | None
    told: str


def _shown(bytes_per_s: float) -> str:
    return Rate(BytesPerSecond(bytes_per_s), None).understood


def _factor(rate: Rate, base: _Base, graph: TaskGraph) -> float:
    if rate.factor is not None:
        return rate.factor
    assert rate.bytes_per_s is not None, "a rate is absolute or a factor"
    if base.bytes_per_s is None:
        names = Counter(info.gpu or "no GPU name" for info in graph.ranks)
        raise ScenarioError(
            f"the link of the recorded run is not known ({', '.join(sorted(names))})",
            hint="give --base-gpu NAME or --base-nvlink RATE, or a factor like x2",
        )
    return rate.bytes_per_s / base.bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reach:
    """Which collectives the link carries, per collective."""

    inside: Bool
    """All its members share a node."""
    across: Bool
    """Members in several nodes: the network bounds it, the link may carry a part."""
    reason: str
    """Why `inside` is empty; meaningless else."""
    told: tuple[str, ...]


def _reach(graph: TaskGraph, gpus: int) -> _Reach:
    transfer = graph.tasks.kind == TaskKind.TRANSFER
    on_host = graph.collectives.on_host
    changeable = np.zeros(len(on_host), bool)
    changeable[graph.tasks.collective[free(graph, transfer)]] = True
    neighbours = inside_node(graph, gpus)
    inside = neighbours & ~on_host & changeable
    across = ~neighbours & ~on_host & changeable
    told = []
    if across.any():
        told.append(
            f"{int(across.sum())} of {len(on_host)} collectives cross nodes and stay: the network "
            "bounds them; the range also holds the case that they scale like the others"
        )
    if on_host.any():
        told.append(f"{int(on_host.sum())} collectives run on the host and stay")
    return _Reach(
        inside=inside, across=across, reason=_why_none(graph, changeable, gpus), told=tuple(told)
    )


def _why_none(graph: TaskGraph, changeable: Bool, gpus: int) -> str:
    on_host = graph.collectives.on_host
    if not len(on_host):
        return NO_COLLECTIVE
    if on_host.all():
        return f"the collectives run on the host{_backends(graph)}: NVLink does not carry them"
    if not changeable.any():
        return ALL_FIXED
    return f"no collective stays inside a node of {gpus} GPUs: the network bounds them"


def _backends(graph: TaskGraph) -> str:
    names = {graph.groups[group].backend for group in np.unique(graph.collectives.group)}
    known = sorted({name.rsplit(":", 1)[-1] for name in names if name})
    return f" ({', '.join(known)})" if known else ""


def inside_node(graph: TaskGraph, gpus: int) -> Bool:
    """Per collective: its members share a node, as far as their ranks are known."""
    tasks, calls = graph.tasks, graph.collectives
    transfer = np.flatnonzero(tasks.kind == TaskKind.TRANSFER)
    node = tasks.rank[transfer] // gpus
    low = np.full(len(calls.kind), np.iinfo(np.int64).max)
    high = np.full(len(calls.kind), -1, np.int64)
    np.minimum.at(low, tasks.collective[transfer], node)
    np.maximum.at(high, tasks.collective[transfer], node)
    group_fits = np.array([_group_fits(group.ranks, gpus) for group in graph.groups], object)
    inside: Bool = low >= high
    partial = calls.members_seen < calls.members_expected
    for group in np.unique(calls.group[partial]):
        mine = partial & (calls.group == group)
        fits = group_fits[group]
        inside[mine] &= calls.members_expected[mine] <= gpus if fits is None else fits
    return inside


def _group_fits(ranks: tuple[int, ...], gpus: int) -> bool | None:
    return len({rank // gpus for rank in ranks}) == 1 if ranks else None


def _scaled(graph: TaskGraph, carried: Bool, base: _Base, factor: float, context: Context) -> Int64:
    tasks, calls = graph.tasks, graph.collectives
    ids = np.flatnonzero(free(graph, tasks.kind == TaskKind.TRANSFER))
    ids = ids[carried[tasks.collective[ids]]]
    number = tasks.collective[ids]
    one_way = base.bytes_per_s / 2.0 if base.bytes_per_s else None
    rows = inside_one_node(
        calls.kind[number].astype(np.int64),
        calls.size_bytes[number],
        calls.members_expected[number].astype(np.int64),
    )
    dur_ns = tasks.dur_ns.copy()
    dur_ns[ids] = model.scaled_ns(
        tasks.dur_ns[ids],
        before=rows,
        base=Fabric(scale_up_bytes_per_s=one_way),
        after=rows,
        new=Fabric(
            scale_up_bytes_per_s=one_way * factor if one_way else None,
            factors=Factors(scale_up=factor),
        ),
        bound=context.bound,
    )
    return dur_ns
