"""More or fewer data-parallel replicas, each with the batch that it has: weak scaling."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from msgspec import Struct
from msgspec.structs import replace as replace_fields

from ingest.errors import ScenarioError, UsageError, nearest
from ingest.units import BytesPerSecond, Rate
from ingest.vocab import TaskKind
from replay.graph.arrays import Bool, TaskGraph
from replay.graph.outside import incomplete
from whatif.models import order_statistics
from whatif.models.bound import Bound
from whatif.models.shape import RunShape
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
from whatif.transforms.base import Applied, BeforeReplicas, BeforeStrong, Context, with_durations
from whatif.transforms.fold import roles_kept, without_ranks
from whatif.transforms.growth import Growth, Spans, resized, spans_of, stride_of
from whatif.transforms.machine import USUAL_NIC_BYTES_PER_S, USUAL_NIC_FACTOR, known
from whatif.transforms.relayout.apply import relayout
from whatif.transforms.remove import taken_out
from whatif.transforms.retime import retimed
from whatif.transforms.shards import with_shards
from whatif.transforms.slowest import (
    OwnSteps,
    own_steps,
    slowest_of_fewer,
    spread_ns,
    with_outside_waits,
    with_slowest,
)

MOST_REPLICAS = 1_000_000
SAME_COUNT = 1e-9
PARTLY_FRAC = 0.5
"""Files are missing where more of the collectives than that lack members."""
KNOWN_ERROR = (
    "more replicas 1% over gloo, 3% (always too fast) of published jobs on fast networks, 40% over "
    "slow TCP"
)
WEAK = "weak scaling: each replica keeps its batch and its kernels, the global batch follows"


class Replicas(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="dp"
):
    """Run with another number of data-parallel replicas, each with its batch as recorded.

    Recorded ranks stand for the new ones. Of sharded runs (FSDP, ZeRO) the shards follow; of hybrid
    ones the groups of shards stay and their number changes. A run of one replica gets the exchange
    of its gradients, and behind other changes of the layout the target of those changes too.
    """

    replicas: int
    groups: str | None = None
    """Glob over the names of the data-parallel communicators, where the run does not tell."""
    strong: bool = False
    """The samples of a step of the whole job stay, instead of those of a replica."""

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        if not 1 <= self.replicas <= MOST_REPLICAS:
            raise UsageError(
                f"{self.replicas:,} replicas", hint=f"a number from 1 to {MOST_REPLICAS:,}"
            )

    @property
    def flag(self) -> str:
        """As typed."""
        kept = ":strong" if self.strong else ""
        return f"--dp {self.replicas}{kept}" + (f"@{self.groups}" if self.groups else "")

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Give the communicators of replicas their new members, sizes, times and waits.

        Raises:
            ScenarioError: the run has no replicas and does not tell enough to have some, or shards
                that the number does not fit.
        """
        earlier = context.before_strong
        again = earlier is not None and earlier.changed is graph and earlier.groups == self.groups
        if earlier is not None and again and not context.relayout_follows:
            return self._strong_again(earlier)
        if self._is_relayout(graph, context):
            return self._in_layout(graph, context)
        if not self.strong:
            return self._weak(graph, context)
        replicas = layout_of(graph, data_groups=self._groups(graph)).replicas
        return self._with_share(graph, context, replicas / self.replicas)

    def _in_layout(self, graph: TaskGraph, context: Context) -> Applied:
        """As part of the target of other what-ifs about the layout."""
        earlier = context.before_relayout
        is_first = earlier is None or earlier.changed is not graph
        factors = (1.0, 1.0) if earlier is None or is_first else earlier.batch_factors
        left = [factors]

        def edit(target: RunShape) -> RunShape:
            before = target.degrees.dp
            degrees = replace_fields(target.degrees, dp=self.replicas)
            changed = replace_fields(target, degrees=degrees)
            if not self.strong:
                return changed
            changed, left[0] = with_samples(changed, before / self.replicas, factors)
            return changed

        done = relayout(graph, context, edit, _label)
        noted = done.context.before_relayout
        assert noted is not None, "a relayout notes where it started"
        noted = replace(noted, batch_factors=left[0])
        return replace(done, context=replace(done.context, before_relayout=noted))

    def _strong_again(self, earlier: BeforeStrong) -> Applied:
        """Another number of replicas right behind one that kept samples: from the run before it."""
        share = earlier.share * (earlier.n_replicas / self.replicas if self.strong else 1.0)
        share = 1.0 if abs(share - 1) < SAME_COUNT else share
        done = self._with_share(earlier.graph, earlier.context, share)
        told = "of several --dp in a row the last counts, from the replicas before the first"
        return replace(
            done,
            label=_replicas_label(earlier.n_replicas, self.replicas, keeps=self.strong),
            assumptions=(told, *done.assumptions),
            no_effect=None,
        )

    def _with_share(self, graph: TaskGraph, context: Context, share: float) -> Applied:
        """The number of replicas, each with a share of the samples that it has."""
        grown = replace_fields(self, strong=False)._weak(graph, context)
        done = grown if share == 1 else self._shared(grown, share)
        noted = BeforeStrong(
            graph=graph,
            context=context,
            groups=self.groups,
            n_replicas=self.replicas,
            share=share,
            changed=done.graph,
        )
        return replace(done, context=replace(done.context, before_strong=noted))

    def _shared(self, grown: Applied, share: float) -> Applied:
        kept = relayout(
            grown.graph,
            grown.context,
            lambda target: with_samples(target, share)[0],
            lambda *_: f"{grown.label}, the samples of a step stay",
        )
        return replace(
            kept,
            assumptions=(
                *(told for told in grown.assumptions if told != WEAK),
                *kept.assumptions,
            ),
            known_errors=(*grown.known_errors, *kept.known_errors),
        )

    def _is_relayout(self, graph: TaskGraph, context: Context) -> bool:
        """Other changes of the layout stand beside it, or there is no exchange to be measured."""
        earlier = context.before_relayout
        if earlier is not None and earlier.changed is graph:
            return earlier.pending or earlier.target != earlier.described.shape
        if context.relayout_follows:
            return True
        layout = layout_of(graph)
        alone = layout.replicas == 1 and not _unclear(graph, layout)
        return alone and self.groups is None

    def _weak(self, graph: TaskGraph, context: Context) -> Applied:
        earlier = context.before_replicas
        if earlier is not None and earlier.changed is graph:
            again = self._weak(earlier.graph, earlier.context)
            told = f"of several --dp in a row the last counts, from the {earlier.n_replicas} before"
            return replace(again, assumptions=(told, *again.assumptions))
        layout = layout_of(graph, data_groups=self._groups(graph))
        growth = _growth(graph, layout, self.replicas)
        label = f"data parallel {layout.replicas} -> {self.replicas}"
        if growth.before == growth.after:
            reason = f"the run has {self.replicas} replicas already"
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        now = known(graph, context)
        spans = spans_of(graph, layout, growth)
        if not spans.chosen.any():
            reason = f"no collective of the {layout.replicas} replicas in the steps"
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        staffed = _staffed(graph, layout, growth, spans.chosen, now)
        waiting = staffed.graph
        target = resized(waiting, layout, growth, spans)
        now, network = _with_network(now, waiting, target)
        moved = retimed(waiting, now, now, changed=target)
        changed = _without_alone(moved.graph, spans)
        changed, uneven = _no_faster(waiting, changed, spans, now)
        if growth.axis is Axis.SHARDED:
            changed = with_shards(changed, growth.before / growth.after, now.bound)
        gone = () if earlier is None or growth.after < growth.before else _gone(earlier)
        return Applied(
            graph=changed,
            label=label,
            context=replace(
                moved.context,
                samples_factor=context.samples_factor * growth.after / growth.before,
                replica_spread_ns=staffed.spread_ns,
                before_replicas=BeforeReplicas(
                    graph=graph,
                    context=context,
                    n_replicas=layout.replicas,
                    changed=changed,
                    n_lost=len(graph.ranks) - len(staffed.graph.ranks),
                ),
            ),
            assumptions=(
                *_told(layout, growth, staffed),
                *_crossing_told(layout, growth),
                *gone,
                *uneven,
                *network,
                *moved.assumptions,
            ),
            known_errors=(KNOWN_ERROR, *moved.known_errors),
        )

    def _groups(self, graph: TaskGraph) -> str | None:
        if self.groups is None or any(is_named(group, self.groups) for group in graph.groups):
            return self.groups
        names = [name for group in graph.groups for name in (group.name, group.description) if name]
        raise ScenarioError(
            f"no communicator is named `{self.groups}`", hint=nearest(self.groups, names)
        )


def with_samples(
    target: RunShape, share: float, factors: tuple[float, float] = (1.0, 1.0)
) -> tuple[RunShape, tuple[float, float]]:
    """Micro-batches of each replica for that share of its samples.

    As many fewer (or more) of them where that is a whole number, else smaller ones.

    Args:
        target: to be changed.
        share: of its samples.
        factors: on micro-batches and on samples that are in it from another number of replicas:
            the share is of the batch without these, so that there and back leaves nothing.

    Returns:
        The target and the factors that are in it now.
    """
    batch = target.batch
    count, samples = batch.micro_batches / factors[0], (batch.samples or 1.0) / factors[1]
    share *= factors[0] * factors[1]
    if abs(count - round(count)) > SAME_COUNT:  # another what-if has set micro-batches since
        count, samples = batch.micro_batches, batch.samples or 1.0
        share /= factors[0] * factors[1]
    if abs(share - 1) < SAME_COUNT:
        same = batch.samples if factors[1] == 1 else samples
        back = replace_fields(batch, micro_batches=round(count), samples=same)
        return replace_fields(target, batch=back), (1.0, 1.0)
    whole = count * share
    if whole >= 1 - SAME_COUNT and abs(whole - round(whole)) < SAME_COUNT:
        left, now = (share, 1.0), replace_fields(batch, micro_batches=round(whole), samples=samples)
        if factors[1] == 1:
            now = replace_fields(now, samples=batch.samples)
    else:
        now = replace_fields(batch, micro_batches=round(count), samples=samples * share)
        left = (1.0, share)
    return replace_fields(target, batch=now), left


def _replicas_label(before: int, after: int, *, keeps: bool) -> str:
    kept = ", the samples of a step stay" if keeps else ""
    return f"data parallel {before} -> {after}{kept}"


def _label(before: RunShape, after: RunShape) -> str:
    keeps = before.batch != after.batch
    return _replicas_label(before.degrees.dp, after.degrees.dp, keeps=keeps)


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
        stride=stride_of(graph, layout, axis),
        world_before=layout.world_size,
        world_after=layout.world_size * after // before,
    )


def _unclear(graph: TaskGraph, layout: Layout) -> list[str]:
    """Communicators that may join replicas, where the world is larger than one."""
    if layout.world_size <= layout.degree(*INNER):
        return []
    return [
        group_label(group, role.size)
        for group, role in zip(graph.groups, layout.roles, strict=True)
        if role.axis is Axis.UNCLEAR and role.size > 1
    ]


def _no_replicas(graph: TaskGraph, layout: Layout) -> ScenarioError:
    unclear = _unclear(graph, layout)
    if unclear:
        return ScenarioError(
            f"cannot tell which communicators join replicas: {', '.join(unclear)}",
            hint="--dp N@NAME says it (N@'*': all of them)",
        )
    return ScenarioError(
        f"no communicator joins replicas in this run ({layout.label})",
        hint="--dp N@NAME where a communicator was misread",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Staffed:
    """The run with the recorded ranks that stand for those to be."""

    graph: TaskGraph
    spread_ns: float
    """Of the replicas as recorded."""
    kept: tuple[int, ...] = ()
    """Ranks that stay; empty where all do."""
    factor: float = 1.0
    """On the work of the slowest of them, so that it is as slow as expected."""
    waits_scaled: bool = False
    """Waits for members that are not in the files changed."""


def _staffed(
    graph: TaskGraph, layout: Layout, growth: Growth, chosen: Bool, context: Context
) -> _Staffed:
    """All replicas in the files, or of more than shall be those that represent a draw of them."""
    here = _Here.of(graph, layout, growth, chosen)
    spread = context.replica_spread_ns
    spread = spread_ns(here.own.step_ns) if spread is None else spread
    bound, files = context.bound, len(here.own.replica)
    # A few collectives of a whole set lack members too: those at the edges of the recording.
    partly = bool(incomplete(graph.collectives)[chosen].mean() > PARTLY_FRAC)
    if growth.after < files:
        return _fewer(here, growth, spread, bound)
    if partly and growth.after == files:
        return _Staffed(graph=_without_outside_waits(graph, chosen), spread_ns=spread)
    if partly:
        return _Staffed(
            graph=_beside_missing(here, growth, bound), waits_scaled=True, spread_ns=spread
        )
    later_ns = order_statistics.later_by(growth.before, growth.after, bound) * spread
    wanted_ns = here.own.step_ns.max(axis=0) + later_ns
    changed, factor = with_slowest(graph, chosen, here.replica_of, wanted_ns)
    return _Staffed(graph=changed, factor=factor, spread_ns=spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Here:
    """The replicas in the files."""

    graph: TaskGraph
    chosen: Bool
    """Collectives that join replicas."""
    replica_of: dict[int, int]
    """By rank."""
    own: OwnSteps

    @classmethod
    def of(cls, graph: TaskGraph, layout: Layout, growth: Growth, chosen: Bool) -> "_Here":
        replica_of = _replicas_of_ranks(graph, layout, growth)
        own = own_steps(graph, chosen, replica_of)
        return cls(graph=graph, chosen=chosen, replica_of=replica_of, own=own)


def _beside_missing(here: _Here, growth: Growth, bound: Bound) -> TaskGraph:
    """Waits for ranks without a file follow their number; one of them may be slow beyond those."""
    waiting = with_outside_waits(here.graph, here.chosen, growth.before, growth.after, bound)
    later = order_statistics.later_by(growth.before, growth.after, bound)
    if bound is not Bound.HIGH or later <= 0:
        return waiting
    slowest_ns = here.own.step_ns.max(axis=0)
    wanted_ns = slowest_ns * (1 + later * order_statistics.ASSUMED_SPREAD_FRAC)
    return with_slowest(waiting, here.chosen, here.replica_of, wanted_ns)[0]


def _fewer(here: _Here, growth: Growth, spread: float, bound: Bound) -> _Staffed:
    """With fewer replicas than there are files: those that are waited for are all among them."""
    own = here.own
    kept = own.replica[roles_kept(own.step_ns.sum(axis=1), growth.after, bound)]
    staying = {rank: place for rank, place in here.replica_of.items() if place in kept}
    changed = without_ranks(here.graph, frozenset(here.replica_of) - frozenset(staying))
    changed, factor = _without_outside_waits(changed, here.chosen), 1.0
    if bound is Bound.NOMINAL:
        wanted_ns = slowest_of_fewer(own.step_ns, growth.after)
        changed, factor = with_slowest(changed, here.chosen, staying, wanted_ns)
    kept_ranks = tuple(sorted(staying))
    return _Staffed(graph=changed, kept=kept_ranks, factor=factor, spread_ns=spread)


def _without_outside_waits(graph: TaskGraph, chosen: Bool) -> TaskGraph:
    tasks = graph.tasks
    outside = np.append(chosen & incomplete(graph.collectives), False)[tasks.collective]
    outside &= (tasks.kind == TaskKind.ARRIVE) & ~tasks.fixed
    return with_durations(graph, np.where(outside, 0, tasks.dur_ns))


def _replicas_of_ranks(graph: TaskGraph, layout: Layout, growth: Growth) -> dict[int, int]:
    """Position of each rank in the files along the axis that changes; else all are one replica."""
    ranks = [info.rank for info in graph.ranks]
    places = {rank: layout.coordinates.get(rank, {}).get(growth.axis) for rank in ranks}
    if layout.world_size == growth.before:
        return {rank: rank if place is None else place for rank, place in places.items()}
    known_places = {rank: place for rank, place in places.items() if place is not None}
    return known_places if len(known_places) == len(ranks) else dict.fromkeys(ranks, 0)


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


def _no_faster(
    before: TaskGraph, after: TaskGraph, spans: Spans, context: Context
) -> tuple[TaskGraph, tuple[str, ...]]:
    """Transfers among more replicas that got shorter: in the upper bound they take what they took.

    The model lets them where the recorded members lay unevenly over nodes, so that one card bound
    them all, and the new ones fill more of the nodes. Whether it did in the recording is not known.
    """
    if after.n_tasks != before.n_tasks:
        return after, ()
    more = spans.chosen & (spans.after > spans.before)
    more &= spread(before, context.places).domains > 1
    more = np.append(more, False)[before.tasks.collective]
    was_ns, is_ns = before.tasks.dur_ns, after.tasks.dur_ns
    shorter = more & (before.tasks.kind == TaskKind.TRANSFER) & (is_ns < was_ns)
    if not shorter.any():
        return after, ()
    told = (
        "more replicas shorten transfers: by the model one card of a node bound the recorded ones, "
        "whose members lie unevenly over nodes; the range holds that it did not, and none is faster"
    )
    if context.bound is Bound.HIGH:
        after = with_durations(after, np.where(shorter, was_ns, is_ns))
    return after, (told,)


def _gone(earlier: BeforeReplicas) -> tuple[str, ...]:
    if not earlier.n_lost:
        return ()
    return (
        f"{earlier.n_lost} recorded ranks that an earlier --dp took out do not come back, the slow "
        "ones among them: with that --dp left out the answer is better founded",
    )


def _crossing_told(layout: Layout, growth: Growth) -> Iterator[str]:
    """Communicators that look like those of replicas, but join fewer ranks."""
    sizes = {
        role.size
        for role in layout.roles
        if role.axis is growth.axis and 1 < role.size < layout.degree(growth.axis)
    }
    if sizes:
        shown = " and ".join(map(str, sorted(sizes)))
        yield (
            f"communicators of {shown} ranks reduce at the same place in the step as those of "
            f"{layout.degree(growth.axis)}: taken to stay as they are (--dp N@NAME says which grow)"
        )


def _without_alone(graph: TaskGraph, spans: Spans) -> TaskGraph:
    """The graph without collectives that have one member left."""
    tasks = graph.tasks
    alone = np.append(spans.chosen & (graph.collectives.members_expected == 1), False)
    chosen = alone[tasks.collective] & (tasks.kind == TaskKind.TRANSFER) & ~tasks.fixed
    return taken_out(graph, chosen) if chosen.any() else graph


def _told(layout: Layout, growth: Growth, staffed: _Staffed) -> Iterator[str]:
    yield WEAK
    yield _layout_told(layout)
    if staffed.kept and growth.after == 1:
        shown = ", ".join(map(str, staffed.kept))
        yield f"rank {shown} stands for the replica, as fast as the mean of those recorded"
    elif staffed.kept:
        shown = ", ".join(map(str, staffed.kept))
        yield (
            f"recorded ranks {shown} stand for the {growth.after} replicas, the slowest as slow as "
            "that of a draw from all"
        )
    elif staffed.factor != 1:
        yield (
            f"the slowest of {growth.after} replicas: work x{staffed.factor:.3f} of the slowest "
            f"recorded; {order_statistics.SOURCE}"
        )
    elif staffed.waits_scaled and growth.after > 1:
        yield f"waits for ranks without a file scale; {order_statistics.SOURCE}"
    if growth.axis is Axis.SHARDED:
        part = "all" if growth.after == 1 else f"1/{growth.after}"
        yield (
            f"each replica holds {part} of the sharded state instead of 1/{growth.before}: the "
            "optimizer's work follows, whether it fits is not checked"
        )


def _layout_told(layout: Layout) -> str:
    """What was taken for the layout, and why."""
    replicated = [role for role in layout.roles if role.axis in REPLICATED]
    if not replicated:
        return f"layout: {layout.label}, by elimination"
    role = max(replicated, key=lambda role: (role.parameters_gathered, role.size))
    doubt = ""
    if role.confidence is Confidence.PLACE:
        doubt = " (phases are not recorded)"
    return f"layout: {layout.label}{doubt}: {role.evidence}"
