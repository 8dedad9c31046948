"""The one way in which a change of links, places or sizes becomes other transfer times.

Every transfer takes `measured * model(new) / model(measured on)`: the model's level cancels, and
only how its parts change counts. Both times are of the same measured ones, however many what-ifs
stand between, so that a change and its reverse leave nothing behind.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from ingest.units import BytesPerSecond, Nanos
from ingest.vocab import TaskKind
from replay.graph.arrays import NONE, Bool, Float64, Int64, TaskGraph
from replay.graph.outside import incomplete
from whatif.models import gloo
from whatif.models.bound import Bound
from whatif.models.collectives import model
from whatif.models.collectives.calls import Calls
from whatif.models.collectives.curves import Curves, curves_of
from whatif.models.fabric import Fabric
from whatif.topology import Topology, spread
from whatif.transforms.base import Anchor, Context, free, with_durations
from whatif.transforms.host_network import HostNetwork, Moved, over_network, recorded_rate
from whatif.transforms.reach import levels
from whatif.transforms.views import View, seen, views


@dataclass(frozen=True, slots=True, kw_only=True)
class Retimed:
    """A graph on other links."""

    graph: TaskGraph
    context: Context
    moved: Bool
    """Per collective: a transfer of it takes another time than before."""
    assumptions: tuple[str, ...] = ()
    known_errors: tuple[str, ...] = ()


def retimed(
    graph: TaskGraph, before: Context, after: Context, *, changed: TaskGraph | None = None
) -> Retimed:
    """Transfers as they are on the links and in the places of `after`.

    Args:
        graph: as the stack has left it.
        before: the machine that its transfers take place on; `machine.known` has filled it.
        after: the machine to be.
        changed: the same tasks with other collectives or groups (sizes, members), where a what-if
            changes those too; it gets the new times.
    """
    target = graph if changed is None else changed
    anchor = _anchor(graph, before)
    ids = np.flatnonzero(free(graph, graph.tasks.kind == TaskKind.TRANSFER))
    number = graph.tasks.collective[ids].astype(np.int64)
    then_ns, _ = _on(anchor, ids, graph, before)
    now_ns, host = _on(anchor, ids, target, after)
    old_ns = graph.tasks.dur_ns[ids]
    ratio = np.divide(now_ns, then_ns, out=np.ones(len(ids)), where=then_ns > 0)
    new_ns = np.where(old_ns == then_ns, now_ns, np.rint(old_ns * ratio)).astype(np.int64)
    moved = np.zeros(len(graph.collectives.kind), bool)
    moved[number[new_ns != old_ns]] = True
    if not moved.any():
        return Retimed(
            graph=target,
            context=replace(after, anchor=anchor),
            moved=moved,
            assumptions=() if host is None else host.doubts,
        )
    dur_ns = graph.tasks.dur_ns.copy()
    dur_ns[ids] = new_ns
    on_host = moved & graph.collectives.on_host
    told: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    if host is not None and on_host.any():
        told, errors = host.assumptions, (gloo.KNOWN_ERROR,)
    if (moved & ~on_host).any():
        numbers = np.flatnonzero(moved & ~on_host).astype(np.int64)
        measured_on = calls_of(anchor.graph, anchor.topology, numbers)
        error = model.known_error(
            measured_on,
            anchor.fabric,
            calls_of(target, after.places, numbers),
            after.links,
        )
        slow = _slow_told(anchor, measured_on, numbers)
        told, errors = (*slow, model.SOURCE, *told), (error, *errors)
    result, context = with_durations(target, dur_ns), replace(after, anchor=anchor)
    if host is not None:
        latency_ns = host.graph.collectives.latency_ns
        result = replace(result, collectives=replace(target.collectives, latency_ns=latency_ns))
        context = replace(context, recorded_latency_ns=host.recorded_latency_ns)
    return Retimed(
        graph=result, context=context, moved=moved, assumptions=told, known_errors=errors
    )


SLOW_FACTOR = 3.0
"""The model is within a factor of two on public sweeps: beyond, something else took the time."""


def _slow_told(anchor: Anchor, calls: Calls, number: Int64) -> tuple[str, ...]:
    """Said where the recorded links were far from what they can."""
    model_ns = model.model_ns(calls, anchor.fabric)
    known_ = np.isfinite(model_ns) & (model_ns > 0)
    if not known_.any():
        return ()
    measured_ns = anchor.graph.collectives.transfer_ns[number][known_].sum()
    factor = float(measured_ns / model_ns[known_].sum())
    if factor < SLOW_FACTOR:
        return ()
    return (
        f"transfers took {factor:.2g} times what this link needs by the model: late members "
        "without a file, or work beside them, may bind them rather than the link",
    )


def with_rate_of_hosts(graph: TaskGraph, context: Context) -> Context:
    """The machine with the rate between hosts that the transfers of the run show, where not said.

    For what-ifs after which the transfers are no longer the recorded ones.
    """
    fabric = context.links
    if fabric.nic_bytes_per_s is not None or not graph.collectives.on_host.any():
        return context
    return replace(context, fabric=replace(fabric, nic_bytes_per_s=recorded_rate(graph)))


def resized_ns(graph: TaskGraph, context: Context, ids: Int64, size_bytes: Int64) -> Int64:
    """Times that transfers would take with as many bytes each, on the same links, ns.

    Args:
        graph: with the transfers as they are.
        context: the machine that they take place on; `machine.known` has filled it.
        ids: transfers; one may stand several times.
        size_bytes: row by row, as nccl-tests counts it.
    """
    number = graph.tasks.collective[ids].astype(np.int64)
    on_host = graph.collectives.on_host[number]
    new_ns = graph.tasks.dur_ns[ids].copy()
    mine, bytes_there = ~on_host, size_bytes[~on_host]
    if mine.any():
        before = calls_of(graph, context.places, number[mine])
        new_ns[mine] = model.scaled_ns(
            new_ns[mine],
            before=before,
            base=context.links,
            after=replace(before, size_bytes=bytes_there),
            new=context.links,
            bound=context.bound,
            curves=_curves(graph, context).rows(number[mine]),
        )
    host = _host_calls(graph, number[on_host])
    new_ns[on_host] = gloo.resized_ns(
        new_ns[on_host],
        host,
        replace(host, size_bytes=size_bytes[on_host]),
        delay_ns=_delay_ns(context.links),
        bound=context.bound,
    )
    return new_ns


def _anchor(graph: TaskGraph, context: Context) -> Anchor:
    """The measured state; the present one where tasks or collectives were added or taken away."""
    anchor = context.anchor
    if (
        anchor is not None
        and anchor.graph.n_tasks == graph.n_tasks
        and len(anchor.graph.collectives.kind) == len(graph.collectives.kind)
    ):
        return anchor
    return Anchor(
        graph=graph,
        fabric=context.links,
        topology=context.places,
        curves=_curves(graph, context),
    )


def _curves(graph: TaskGraph, context: Context) -> Curves:
    """What the calls measured, per kind, communicator and level; rows are collectives.

    Calls on the host and those that lack members in the files teach nothing.
    """
    calls = graph.collectives
    teaches = ~calls.on_host & ~incomplete(calls)
    return curves_of(
        calls.kind.astype(np.int64),
        calls.group.astype(np.int64),
        levels(graph, context.links, context.places).astype(np.int64),
        calls.size_bytes,
        np.where(teaches, calls.transfer_ns, 0),
    )


def _on(
    anchor: Anchor, ids: Int64, graph: TaskGraph, context: Context
) -> tuple[Int64, Moved | None]:
    """Time of transfers in another situation than the one that they were measured in, ns.

    Also what became of the transfers between hosts, where these change.
    """
    new_ns = anchor.graph.tasks.dur_ns[ids].copy()
    if _same(anchor, graph, context):
        return new_ns, None
    number = graph.tasks.collective[ids].astype(np.int64)
    on_host = graph.collectives.on_host[number]
    host = None
    if on_host.any():
        host = over_network(anchor.graph, _host_network(anchor.fabric, context), context.bound)
        moved_ns = host.graph.tasks.dur_ns[ids[on_host]]
        new_ns[on_host] = _resized(moved_ns, anchor.graph, graph, number[on_host], context)
    for rows, base, new in _by_link(anchor, graph, context, number):
        rows &= ~on_host
        before = calls_of(anchor.graph, anchor.topology, number[rows])
        after = calls_of(graph, context.places, number[rows])
        measured_ns = anchor.graph.tasks.dur_ns[ids[rows]]
        scaled_ns = _scaled(
            measured_ns,
            (before, base),
            (after, new),
            context.bound,
            anchor.curves.rows(number[rows]),
        )
        added_ns = _with_another_link(measured_ns, (before, base), (after, new), context.bound)
        new_ns[rows] = np.where(added_ns >= 0, added_ns, scaled_ns)
    return new_ns, host


def _scaled(
    measured_ns: Int64,
    before: tuple[Calls, Fabric],
    after: tuple[Calls, Fabric],
    bound: Bound,
    curves: Curves,
) -> Int64:
    """Measured times of calls on other links, or of other calls.

    What a transfer inside a node took beyond the model (beside other work, on few channels) says
    nothing of the network. Where calls now leave their node, only the part inside it scales, and
    what the model adds for the network comes on top.
    """
    (calls, base), (new_calls, new) = before, after
    target, added_ns = _inside(calls, new_calls, new, bound)
    scaled_ns = model.scaled_ns(
        measured_ns,
        before=calls,
        base=base,
        after=target,
        new=new,
        bound=bound,
        curves=curves,
    )
    return scaled_ns + np.rint(added_ns).astype(np.int64)


def _inside(before: Calls, after: Calls, new: Fabric, bound: Bound) -> tuple[Calls, Float64]:
    """Calls that leave their node as they would be inside one, and what the network adds, ns."""
    nothing_ns = np.zeros(len(after.kind))
    leaving = (before.nodes == 1) & (after.nodes > 1)
    if not leaving.any():
        return after, nothing_ns
    inside = replace(
        after,
        members=np.where(after.nodes > 1, np.maximum(after.largest_node, 2), after.members),
        nodes=np.ones_like(after.nodes),
        sites=np.ones_like(after.sites),
    )
    added_ns = model.model_ns(after, new, bound) - model.model_ns(inside, new, bound)
    leaving &= np.isfinite(added_ns)
    added_ns = np.where(leaving, np.maximum(added_ns, 0.0), nothing_ns)
    return _chosen(leaving, inside, after), added_ns


def _chosen(rows: Bool, one: Calls, other: Calls) -> Calls:
    """Rows of `one`, for the rest those of `other`."""
    return Calls(
        **{
            field.name: np.where(rows, getattr(one, field.name), getattr(other, field.name))
            for field in fields(Calls)
        }
    )


def _with_another_link(
    measured_ns: Int64, before: tuple[Calls, Fabric], after: tuple[Calls, Fabric], bound: Bound
) -> Int64:
    """Times of calls that come to cross sites: what was measured, and what the model adds.

    What the machine lost against the model on its own links it does not lose on another: a ratio
    would carry it over a thousandfold. -1 where no site is added or a size is not known.
    """
    calls, fabric = after
    crosses = calls.sites > before[0].sites
    if not crosses.any():
        return np.full(len(measured_ns), NONE, np.int64)
    base_ns, new_ns = model.model_ns(*before), model.model_ns(calls, fabric)
    at_once = replace(fabric, wan_latency_ns=0.0)
    way_ns = new_ns - model.model_ns(calls, at_once)
    if bound is not Bound.NOMINAL:
        # How far apart the sites are is given: only the rest is in doubt.
        new_ns = way_ns + model.model_ns(calls, at_once, bound)
    told = crosses & np.isfinite(base_ns) & np.isfinite(new_ns)
    added_ns = np.where(told, np.maximum(new_ns - base_ns, 0), 0)
    return np.where(told, measured_ns + np.rint(added_ns).astype(np.int64), NONE)


def _same(anchor: Anchor, graph: TaskGraph, context: Context) -> bool:
    """The situation is the measured one."""
    links = context.links == anchor.fabric and context.places == anchor.topology
    return (
        links
        and graph.groups is anchor.graph.groups
        and np.array_equal(graph.collectives.kind, anchor.graph.collectives.kind)
        and np.array_equal(graph.collectives.size_bytes, anchor.graph.collectives.size_bytes)
        and np.array_equal(
            graph.collectives.members_expected, anchor.graph.collectives.members_expected
        )
    )


def _by_link(
    anchor: Anchor, graph: TaskGraph, context: Context, number: Int64
) -> list[tuple[Bool, Fabric, Fabric]]:
    """Rows of `number` with the links that they see before and after."""
    before = views(anchor.graph, anchor.fabric, anchor.topology)[number]
    after = views(graph, context.links, context.places)[number]
    return [
        (
            (before == old) & (after == new),
            seen(anchor.fabric, anchor.topology, old),
            seen(context.links, context.places, new),
        )
        for old in View
        for new in View
        if ((before == old) & (after == new)).any()
    ]


def _host_network(base: Fabric, context: Context) -> HostNetwork:
    """The network between hosts, measured and new."""
    new = context.links
    rate, factor = new.nic_bytes_per_s, new.factors.nic / base.factors.nic
    return HostNetwork(
        base_bytes_per_s=_rate(base.nic_bytes_per_s),
        new_bytes_per_s=None if rate == base.nic_bytes_per_s else _rate(rate),
        factor=None if factor == 1 else factor,
        base_delay_ns=_delay_ns(base),
        new_delay_ns=_delay_ns(new),
    )


def _resized(
    moved_ns: Int64, before: TaskGraph, after: TaskGraph, number: Int64, context: Context
) -> Int64:
    """Times between hosts for the sizes and members that the calls have in `after`."""
    return gloo.resized_ns(
        moved_ns,
        _host_calls(before, number),
        _host_calls(after, number),
        delay_ns=_delay_ns(context.links),
        bound=context.bound,
    )


def _delay_ns(fabric: Fabric) -> Nanos:
    return Nanos(round(fabric.net_latency_ns or 0))


def _host_calls(graph: TaskGraph, number: Int64) -> gloo.HostCalls:
    calls = graph.collectives
    return gloo.HostCalls(
        kind=calls.kind[number].astype(np.int64),
        size_bytes=calls.size_bytes[number],
        members=calls.members_expected[number].astype(np.int64),
    )


def _rate(bytes_per_s: float | None) -> BytesPerSecond | None:
    return None if bytes_per_s is None else BytesPerSecond(bytes_per_s)


def calls_of(graph: TaskGraph, topology: Topology, number: Int64) -> Calls:
    """Collectives as the model describes them, one row per entry of `number`."""
    calls, over = graph.collectives, spread(graph, topology)
    return Calls(
        kind=calls.kind[number].astype(np.int64),
        size_bytes=calls.size_bytes[number],
        members=calls.members_expected[number].astype(np.int64),
        nodes=over.domains[number],
        largest_node=over.largest[number],
        sites=over.sites[number],
    )
