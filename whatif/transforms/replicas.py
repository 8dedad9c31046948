"""More or fewer data-parallel replicas, each with the batch that it has: weak scaling."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from msgspec import Struct

from ingest.errors import ScenarioError, UsageError, nearest
from ingest.units import BytesPerSecond, Rate
from ingest.vocab import CollectiveKind, Phase, TaskKind
from replay.graph.arrays import Bool, Collectives, Group, Int32, Int64, TaskGraph
from replay.graph.outside import incomplete
from whatif.models import order_statistics
from whatif.models.bound import Bound
from whatif.parallelism import (
    INNER,
    REPLICATED,
    Axis,
    Confidence,
    Layout,
    group_label,
    is_named,
    layout_of,
)
from whatif.topology import spread
from whatif.transforms.base import Applied, Context, with_durations
from whatif.transforms.fold import roles_kept, without_ranks
from whatif.transforms.machine import known
from whatif.transforms.remove import taken_out
from whatif.transforms.retime import retimed
from whatif.transforms.shards import with_shards
from whatif.transforms.slowest import (
    OwnSteps,
    own_steps,
    slowest_of_fewer,
    slowest_of_more,
    with_outside_waits,
    with_slowest,
)

MOST_REPLICAS = 1_000_000
PARTLY_FRAC = 0.5
"""Files are missing where more of the collectives than that lack members."""
_GATHERING = (CollectiveKind.ALL_GATHER, CollectiveKind.GATHER, CollectiveKind.SCATTER)
GBPS = 1e9 / 8.0
USUAL_NIC_BYTES_PER_S = {
    "volta": 50 * GBPS,
    "ampere": 200 * GBPS,
    "hopper": 400 * GBPS,
    "blackwell": 400 * GBPS,
    "cdna3": 400 * GBPS,
    "cdna4": 400 * GBPS,
}
"""Share of one accelerator in the network of the usual node of its generation, one direction: DGX-1
has 4 cards of 100 Gb/s for 8 GPUs, DGX A100 8 of 200, DGX H100 and B200 8 of 400 (user guides under
https://docs.nvidia.com/dgx), nodes of MI300X 8 of 400 (https://instinct.docs.amd.com)."""
USUAL_NIC_FACTOR = {Bound.NOMINAL: 1.0, Bound.LOW: 2.0, Bound.HIGH: 0.5}
"""The range of an assumed network: clouds sell half of it, and the next generation has twice."""
WEAK = "weak scaling: each replica keeps its batch and its kernels, the global batch follows"


class Replicas(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="dp"
):
    """Run with another number of data-parallel replicas, each with its batch as recorded.

    Recorded ranks stand for the new ones. Of sharded runs (FSDP, ZeRO) the shards follow; of hybrid
    ones the groups of shards stay and their number changes.
    """

    replicas: int
    groups: str | None = None
    """Glob over the names of the data-parallel communicators, where the run does not tell."""

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        if not 1 <= self.replicas <= MOST_REPLICAS:
            raise UsageError(
                f"{self.replicas:,} replicas", hint=f"a number from 1 to {MOST_REPLICAS:,}"
            )

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--dp {self.replicas}" + (f"@{self.groups}" if self.groups else "")

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Give the communicators of replicas their new members, sizes, times and waits.

        Raises:
            ScenarioError: the run has no replicas, or shards that the number does not fit.
        """
        layout = layout_of(graph, data_groups=self._groups(graph))
        growth = _growth(graph, layout, self.replicas)
        label = f"data parallel {layout.replicas} -> {self.replicas}"
        if growth.before == growth.after:
            reason = f"the run has {self.replicas} replicas already"
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        now = known(graph, context)
        spans = _spans(graph, layout, growth)
        staffed = _staffed(graph, layout, growth, spans.chosen, now.bound)
        waiting = staffed.graph
        target = _resized(waiting, layout, growth, spans)
        now, network = _with_network(now, waiting, target)
        moved = retimed(waiting, now, now, changed=target)
        changed = _without_alone(moved.graph, spans)
        if growth.axis is Axis.SHARDED:
            changed = with_shards(changed, growth.before / growth.after, now.bound)
        return Applied(
            graph=changed,
            label=label,
            context=replace(
                moved.context,
                samples_factor=context.samples_factor * growth.after / growth.before,
            ),
            assumptions=(*_told(layout, growth, staffed), *network, *moved.assumptions),
        )

    def _groups(self, graph: TaskGraph) -> str | None:
        if self.groups is None or any(is_named(group, self.groups) for group in graph.groups):
            return self.groups
        names = [name for group in graph.groups for name in (group.name, group.description) if name]
        raise ScenarioError(
            f"no communicator is named `{self.groups}`", hint=nearest(self.groups, names)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The axis whose degree changes, and how its ranks are numbered."""

    axis: Axis
    before: int
    after: int
    stride: int
    """From a rank to its counterpart in the next replica."""
    world_before: int
    world_after: int

    def moved(self, ranks: Int64) -> Int64:
        """New numbers of ranks at the same places; of replicas that are gone those of the last."""
        low = ranks % self.stride
        place = ranks // self.stride % self.before
        high = ranks // (self.stride * self.before)
        new: Int64 = low + self.stride * (np.minimum(place, self.after - 1) + high * self.after)
        return new

    def members(self, ranks: Int64) -> Int64:
        """New members of a communicator along the axis, whose members were `ranks`."""
        first = int(self.moved(ranks[:1] - ranks[:1] // self.stride % self.before * self.stride)[0])
        return first + self.stride * np.arange(self.after, dtype=np.int64)


def _growth(graph: TaskGraph, layout: Layout, replicas: int) -> Growth:
    """Which degree changes.

    Raises:
        ScenarioError: none can.
    """
    if layout.replicas == 1:
        raise _no_replicas(graph, layout)
    shard = layout.degree(Axis.SHARDED)
    hybrid = layout.degree(Axis.DATA) > 1 and shard > 1
    if hybrid and replicas % shard:
        raise ScenarioError(
            f"{replicas} replicas do not divide into groups of {shard} that share parameters",
            hint=f"a multiple of {shard}, for example --dp {shard * (replicas // shard + 1)}",
        )
    axis = Axis.DATA if layout.degree(Axis.DATA) > 1 else Axis.SHARDED
    before = layout.degree(axis)
    after = replicas // shard if hybrid else replicas
    return Growth(
        axis=axis,
        before=before,
        after=after,
        stride=_stride(graph, layout, axis),
        world_before=layout.world_size,
        world_after=layout.world_size * after // before,
    )


def _no_replicas(graph: TaskGraph, layout: Layout) -> ScenarioError:
    unclear = [
        group_label(group, role.size)
        for group, role in zip(graph.groups, layout.roles, strict=True)
        if role.axis is Axis.UNCLEAR and role.size > 1
    ]
    if unclear:
        return ScenarioError(
            f"cannot tell which communicators join replicas: {', '.join(unclear)}",
            hint="--dp N@NAME says it (N@'*': all of them)",
        )
    return ScenarioError(
        f"no communicator joins replicas in this run ({layout.label}): how long their gradients "
        "would take is not in it",
        hint="record two replicas or more; --dp N@NAME where a communicator was misread",
    )


def _stride(graph: TaskGraph, layout: Layout, axis: Axis) -> int:
    """By a communicator whose ranks are known; else ranks that share a replica are neighbours."""
    for group, role in zip(graph.groups, layout.roles, strict=True):
        if role.axis is axis and len(group.ranks) > 1:
            ranks = sorted(group.ranks)
            return max(ranks[1] - ranks[0], 1)
    outside = layout.degree(Axis.SHARDED) if axis is Axis.DATA else 1
    return outside * prod(layout.degree(inner) for inner in INNER if inner is not Axis.PIPELINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spans:
    """Replicas that the members of each collective belong to, along the axis that changes."""

    chosen: Bool
    """The number changes."""
    before: Int64
    after: Int64


def _spans(graph: TaskGraph, layout: Layout, growth: Growth) -> _Spans:
    of_group = np.array(
        [
            (growth.before, growth.after) if _grows(layout, number, growth) else (1, 1)
            for number in range(len(graph.groups))
        ],
        np.int64,
    ).reshape(-1, 2)
    calls = graph.collectives
    # A send or an exchange between two has them, however many its communicator joins.
    sizes = np.array([role.size for role in layout.roles], np.int64)
    whole = calls.members_expected == sizes[calls.group]
    before, after = of_group[calls.group].T
    return _Spans(
        chosen=whole & (before != after),
        before=np.where(whole, before, 1),
        after=np.where(whole, after, 1),
    )


def _grows(layout: Layout, group: int, growth: Growth) -> bool:
    """The members of a communicator lie in all replicas along the axis."""
    role = layout.roles[group]
    if role.axis in REPLICATED:
        return role.axis is growth.axis
    return layout.replicas_of(group) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Staffed:
    """The run with the recorded ranks that stand for those to be."""

    graph: TaskGraph
    kept: tuple[int, ...]
    """Ranks; empty where all stay."""
    factor: float
    """On the work of the slowest of them, so that it is as slow as expected."""
    waits_scaled: bool
    """Waits for members that are not in the files changed."""


def _staffed(
    graph: TaskGraph, layout: Layout, growth: Growth, chosen: Bool, bound: Bound
) -> _Staffed:
    """All replicas in the files, or of more than shall be those that represent a draw of them."""
    replica_of = _replicas_of_ranks(graph, layout, growth)
    own = own_steps(graph, chosen, replica_of)
    if growth.after < len(own.replica):
        return _fewer(graph, growth, chosen, replica_of, own, bound)
    # A few of a whole set lack members too: those at the edges of the recording.
    if incomplete(graph.collectives)[chosen].mean() > PARTLY_FRAC:
        scaled = with_outside_waits(graph, chosen, growth.before, growth.after, bound)
        return _Staffed(graph=scaled, kept=(), factor=1.0, waits_scaled=True)
    wanted_ns = slowest_of_more(own.step_ns, growth.before, growth.after, bound)
    changed, factor = with_slowest(graph, chosen, replica_of, wanted_ns)
    return _Staffed(graph=changed, kept=(), factor=factor, waits_scaled=False)


def _fewer(
    graph: TaskGraph,
    growth: Growth,
    chosen: Bool,
    replica_of: dict[int, int],
    own: OwnSteps,
    bound: Bound,
) -> _Staffed:
    """With fewer replicas than there are files: those that are waited for are all among them."""
    kept = own.replica[roles_kept(own.step_ns.sum(axis=1), growth.after, bound)]
    staying = {rank: place for rank, place in replica_of.items() if place in kept}
    changed, factor = without_ranks(graph, frozenset(replica_of) - frozenset(staying)), 1.0
    outside = np.append(chosen & incomplete(graph.collectives), False)[graph.tasks.collective]
    outside &= (graph.tasks.kind == TaskKind.ARRIVE) & ~graph.tasks.fixed
    changed = with_durations(changed, np.where(outside, 0, graph.tasks.dur_ns))
    if bound is Bound.NOMINAL:
        wanted_ns = slowest_of_fewer(own.step_ns, growth.after)
        changed, factor = with_slowest(changed, chosen, staying, wanted_ns)
    return _Staffed(graph=changed, kept=tuple(sorted(staying)), factor=factor, waits_scaled=False)


def _replicas_of_ranks(graph: TaskGraph, layout: Layout, growth: Growth) -> dict[int, int]:
    """Position of each rank in the files along the axis that changes; else all are one replica."""
    ranks = [info.rank for info in graph.ranks]
    places = {rank: layout.coordinates.get(rank, {}).get(growth.axis) for rank in ranks}
    if layout.world_size == growth.before:
        return {rank: rank if place is None else place for rank, place in places.items()}
    known_places = {rank: place for rank, place in places.items() if place is not None}
    return known_places if len(known_places) == len(ranks) else dict.fromkeys(ranks, 0)


def _resized(graph: TaskGraph, layout: Layout, growth: Growth, spans: _Spans) -> TaskGraph:
    """The graph with the new members and sizes of its collectives."""
    groups = tuple(
        _moved_group(group, layout, number, growth) for number, group in enumerate(graph.groups)
    )
    return replace(
        graph,
        groups=groups,
        collectives=_moved_calls(graph, layout, spans),
        world_size=growth.world_after,
    )


def _moved_group(group: Group, layout: Layout, number: int, growth: Growth) -> Group:
    role, ranks = layout.roles[number], np.array(sorted(group.ranks), np.int64)
    if not _grows(layout, number, growth):
        return replace(group, ranks=tuple(growth.moved(ranks).tolist()))
    size = role.size * growth.after // growth.before
    if role.size == growth.world_before:
        ranks = np.arange(growth.world_after, dtype=np.int64)
    elif len(ranks) == growth.before:
        ranks = growth.members(ranks)
    else:
        ranks = np.zeros(0, np.int64)
    return replace(group, ranks=tuple(ranks.tolist()), size=size)


def _moved_calls(graph: TaskGraph, layout: Layout, spans: _Spans) -> Collectives:
    """Members by the replicas, sizes by what the bytes are."""
    calls = graph.collectives
    expected: Int32 = (calls.members_expected * spans.after // spans.before).astype(np.int32)
    seen = np.where(incomplete(calls), np.minimum(calls.members_seen, expected), expected)
    grows = spans.chosen & _grows_with_members(graph, layout) & (calls.size_bytes > 0)
    size_bytes = np.where(grows, calls.size_bytes * spans.after // spans.before, calls.size_bytes)
    return replace(
        calls,
        members_expected=np.where(spans.chosen, expected, calls.members_expected),
        members_seen=np.where(spans.chosen, seen, calls.members_seen).astype(np.int32),
        size_bytes=size_bytes,
    )


def _grows_with_members(graph: TaskGraph, layout: Layout) -> Bool:
    """Per collective: each member adds bytes of its own.

    All-gathers of anything but parameters, and reduce-scatters of activations in forward (row-wise
    sharded tables). Gradients and parameters have the same bytes over any number of replicas; an
    all-to-all sends as much from each member, to more of them.
    """
    tasks, calls = graph.tasks, graph.collectives
    phase = np.full(len(calls.kind), Phase.UNKNOWN, np.int8)
    transfer = np.flatnonzero(tasks.kind == TaskKind.TRANSFER)
    phase[tasks.collective[transfer]] = tasks.phase[transfer]
    parameters = np.array([role.parameters_gathered for role in layout.roles], bool)[calls.group]
    gathered = np.isin(calls.kind, [int(kind) for kind in _GATHERING]) & ~parameters
    scattered = (calls.kind == CollectiveKind.REDUCE_SCATTER) & (phase == Phase.FORWARD)
    grows: Bool = gathered | scattered
    return grows


def _with_network(
    context: Context, before: TaskGraph, after: TaskGraph
) -> tuple[Context, tuple[str, ...]]:
    """The machine with a network between nodes, where replicas now reach over several.

    Raises:
        ScenarioError: that network is not known, nor the kind of node.
    """
    domains = [spread(graph, context.places).domains for graph in (before, after)]
    crossing = (domains[0] == 1) & (domains[1] > 1) & ~after.collectives.on_host
    if not crossing.any():
        return context, ()
    nodes = int(domains[1][crossing].max())
    told = f"replicas now reach over {nodes} nodes: {context.places.told}"
    if context.links.nic_bytes_per_s is not None:
        return context, (told,)
    usual = USUAL_NIC_BYTES_PER_S.get(context.device.architecture if context.device else "")
    if usual is None:
        raise ScenarioError(
            f"the replicas reach over {nodes} nodes, and the network between them is not known",
            hint="--base-net RATE tells it (400Gbps), or --gpus-per-node N if they share a node",
        )
    rate = BytesPerSecond(usual * USUAL_NIC_FACTOR[context.bound])
    fabric = replace(context.links, nic_bytes_per_s=rate)
    shown = Rate(BytesPerSecond(usual), None).understood
    assumed = (
        f"network between nodes: {shown} per GPU, one direction (usual; --base-net RATE tells)"
    )
    return replace(context, fabric=fabric), (told, assumed)


def _without_alone(graph: TaskGraph, spans: _Spans) -> TaskGraph:
    """The graph without collectives that have one member left."""
    tasks = graph.tasks
    alone = np.append(spans.chosen & (graph.collectives.members_expected == 1), False)
    chosen = alone[tasks.collective] & (tasks.kind == TaskKind.TRANSFER) & ~tasks.fixed
    return taken_out(graph, chosen) if chosen.any() else graph


def _told(layout: Layout, growth: Growth, staffed: _Staffed) -> Iterator[str]:
    yield WEAK
    sure = {role.confidence for role in layout.roles if role.axis in REPLICATED}
    evidence = [role.evidence for role in layout.roles if role.axis in REPLICATED]
    doubt = " (by place in the step, phases are not recorded)" if Confidence.PLACE in sure else ""
    yield f"layout: {layout.label}{doubt}: {evidence[0] if evidence else 'by elimination'}"
    if staffed.kept:
        shown = ", ".join(map(str, staffed.kept))
        yield f"recorded ranks {shown} stand for the {growth.after} replicas, as a draw would"
    if staffed.factor != 1:
        yield (
            f"the slowest of {growth.after} replicas: work x{staffed.factor:.3f} of the slowest "
            f"here; {order_statistics.SOURCE}"
        )
    elif staffed.waits_scaled:
        yield f"waits for ranks without a file scale; {order_statistics.SOURCE}"
    if growth.axis is Axis.SHARDED:
        yield (
            f"each replica holds 1/{growth.after} of the sharded state instead of "
            f"1/{growth.before}: the optimizer's work follows, whether it fits is not checked"
        )
