"""Other links or places: which collectives they concern, and the answer with its words."""

from dataclasses import dataclass, replace

from replay.graph.arrays import Bool, TaskGraph
from whatif.models.bound import Bound
from whatif.transforms.base import Applied, Context
from whatif.transforms.reach import Level, changeable, levels, nothing_to_change
from whatif.transforms.retime import retimed

UNMOVED = "by the collective model another link, or latency, binds these transfers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relinking:
    """A change of links or places, before it is made."""

    label: str
    """As it was understood."""
    before: Context
    """As the stack has left the machine."""
    after: Context
    concerned: Bool
    """Per collective: it may become faster or slower."""
    why_none: str
    """Why nothing is concerned; meaningless where something is."""
    why_same: str
    """Why the links are the same as before; meaningless where they are not."""
    why_unmoved: str = UNMOVED
    """Why no transfer takes another time on the new links."""
    only_library: bool = False
    """No link changes: where the model sees no difference, it has no doubt about one either."""
    why_others_stay: str = "another link, or latency, binds them"
    told: tuple[str, ...] = ()
    """What was taken for granted."""


def relinked(graph: TaskGraph, context: Context, change: Relinking) -> Applied:
    """Make the change; where it moves nothing, say why.

    Args:
        graph: as the stack has left it.
        context: what the next what-if gets where nothing changes.
        change: to be made.
    """
    reason = nothing_to_change(graph)
    before, after = change.before, change.after
    if reason is None and not (change.concerned & changeable(graph)).any():
        reason = change.why_none
    if reason is None and before.links == after.links and before.places == after.places:
        reason = change.why_same
    if reason is not None:
        return Applied(graph=graph, label=change.label, context=context, no_effect=reason)
    result = retimed(graph, before, after)
    if not result.moved.any() or (change.only_library and _is_same(graph, before, after)):
        reason = change.why_unmoved
        result = replace(result, graph=graph)
    return Applied(
        graph=result.graph,
        label=change.label,
        context=result.context,
        assumptions=(
            *change.told,
            after.places.told,
            *_others_told(graph, change, result.moved),
            *result.assumptions,
            *_unsized(graph),
        ),
        known_errors=result.known_errors,
        no_effect=reason,
    )


def _is_same(graph: TaskGraph, before: Context, after: Context) -> bool:
    """Without its doubts the model moves nothing."""
    if before.bound is Bound.NOMINAL:
        return False
    plain = retimed(
        graph, replace(before, bound=Bound.NOMINAL), replace(after, bound=Bound.NOMINAL)
    )
    return not plain.moved.any()


def _others_told(graph: TaskGraph, change: Relinking, moved: Bool) -> tuple[str, ...]:
    """Collectives that another link binds."""
    level = levels(graph, change.after.links, change.after.places)
    others = ~moved & changeable(graph)
    on_host = others & (level == Level.HOST)
    elsewhere = int((others & ~on_host).sum())
    told = []
    if elsewhere and moved.any():
        told.append(f"{elsewhere} of {len(level)} collectives stay: {change.why_others_stay}")
    if on_host.any():
        told.append(f"{int(on_host.sum())} collectives run on the host and stay")
    return tuple(told)


def _unsized(graph: TaskGraph) -> tuple[str, ...]:
    """Said where the model has no size to go by (kernels without NCCL metadata)."""
    sizes = graph.collectives.size_bytes
    unknown = int((sizes < 0).sum())
    if not unknown:
        return ()
    return (f"{unknown} of {len(sizes)} collectives have no size: measured time stands for bytes",)
