"""Degrees of each axis, from what the communicators are for and from what they carried."""

from dataclasses import dataclass
from math import prod

from ingest.vocab import CollectiveKind, Phase
from replay.graph.arrays import TaskGraph
from whatif.description.described import Finding, Kind, Sure
from whatif.description.micro_batches import alternations
from whatif.description.words import EXPERTS, FULLY_SHARDED, TABLES, mention, told
from whatif.models.shape import ContextKind, Degrees
from whatif.parallelism import (
    REPLICATED,
    Axis,
    Confidence,
    Layout,
    Role,
    Use,
    uses_of,
)

TWICE_FRAC = 1.3
"""Gathered over reduced elements: 1 where parameters are gathered once, almost 2 where backward
gathers them again (the layer computed last is often kept)."""
ONCE_FRAC = 0.75
"""Gathered over reduced elements: 1 where gradients are reduced once a step, 1/N or less where they
are after each of N micro-batches."""
_OF_MEGATRON = "DATA_PARALLEL_GROUP"

_GATHER = (CollectiveKind.ALL_GATHER,)
_SCATTER = (CollectiveKind.REDUCE_SCATTER,)
_REDUCE = (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER, CollectiveKind.REDUCE)
_WAYS = {
    Confidence.GIVEN: Sure.GIVEN,
    Confidence.NAMED: Sure.NAMED,
    Confidence.PHASE: Sure.MEASURED,
    Confidence.PLACE: Sure.MEASURED,
    Confidence.NONE: Sure.UNKNOWN,
}
_WITHOUT_EXPERTS = (Axis.CONTEXT, Axis.TENSOR, Axis.PIPELINE)
_FIELDS = ((Axis.TENSOR, "tp"), (Axis.CONTEXT, "cp"), (Axis.PIPELINE, "pp"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDegrees:
    """Degrees with what they rest on."""

    degrees: Degrees
    findings: tuple[Finding, ...]
    doubts: tuple[str, ...] = ()


def degrees_of(graph: TaskGraph, layout: Layout, kind: Kind) -> FoundDegrees:
    """The degrees of a run; their product is its world size wherever that can be."""
    uses = uses_of(graph)
    findings: list[Finding] = []
    found = {}
    for axis, name in _FIELDS:
        found[name] = layout.degree(axis)
        if found[name] > 1:
            findings.append(_axis_finding(name, axis, layout, kind))
    sp = _sequence_parallel(layout, uses)
    if sp:
        findings.append(_finding("degrees.sp", "true", Sure.MEASURED, sp))
    dp, told_dp, doubts = _replicas(layout, prod(found.values()), found["cp"])
    if dp > 1:
        findings.append(told_dp)
    zero, shard, told_zero = _sharding(graph, layout, uses)
    findings += told_zero
    ep, told_ep, doubts_ep = _experts(graph, layout, uses)
    findings += told_ep
    degrees = Degrees(
        tp=found["tp"],
        sp=bool(sp),
        cp=found["cp"],
        cp_kind=_context_kind(layout, uses),
        pp=found["pp"],
        dp=dp,
        zero=zero if dp > 1 else 0,
        shard=shard if dp > 1 and shard != dp else None,
        ep=ep,
    )
    return FoundDegrees(
        degrees=degrees,
        findings=tuple(findings),
        doubts=(*doubts, *doubts_ep, *_unclear(graph, layout)),
    )


def _finding(what: str, value: object, sure: Sure, evidence: str) -> Finding:
    return Finding(what=what, value=str(value), sure=sure, evidence=evidence)


def _widest(layout: Layout, *axes: Axis) -> Role | None:
    """The largest communicator of some axes, the surest of those."""
    order = list(Confidence)
    roles = [role for role in layout.roles if role.axis in axes]
    return max(roles, key=lambda role: (role.size, -order.index(role.confidence)), default=None)


def _axis_finding(name: str, axis: Axis, layout: Layout, kind: Kind) -> Finding:
    role = _widest(layout, axis)
    assert role is not None, "a degree has a communicator"
    evidence = role.evidence
    if kind is Kind.INFERENCE and axis is Axis.TENSOR:
        evidence += "; nothing but activations is there to reduce without backward"
    value = layout.degree(axis)
    return _finding(f"degrees.{name}", value, _WAYS[role.confidence], evidence)


def _sequence_parallel(layout: Layout, uses: list[Use]) -> str:
    """How tensor-parallel ranks exchange activations, where they scatter and gather them."""
    for role, use in zip(layout.roles, uses, strict=True):
        if role.axis is Axis.TENSOR:
            divided = use.sum(_SCATTER) + use.sum(_GATHER)
            whole = use.sum((CollectiveKind.ALL_REDUCE,))
            if use.sum(_SCATTER) and divided > whole:
                return f"activations scattered and gathered, {use.told(divided)}, not all-reduced"
    return ""


def _replicas(layout: Layout, inner: int, context: int) -> tuple[int, Finding, tuple[str, ...]]:
    """The ranks that the other axes leave, and whether the communicators say the same."""
    world = layout.world_size
    seen = layout.replicas
    role = _widest(layout, *REPLICATED) or _widest(layout, Axis.WORLD)
    sure = Sure.GUESSED if role is None else _WAYS[role.confidence]
    evidence = "" if role is None else role.evidence
    if inner * seen == world:
        return seen, _finding("degrees.dp", seen, sure, evidence), ()
    dp = max(world // inner, 1)
    if context > 1 and world % inner == 0 and seen == dp * context:
        told = f"{evidence}; over replicas and the {context} context ranks of each"
        return dp, _finding("degrees.dp", dp, sure, told), ()
    if world % inner:
        doubt = f"the axes found make {inner * seen:,} ranks, the run has {world:,}"
        return dp, _finding("degrees.dp", dp, Sure.GUESSED, doubt), (doubt,)
    if seen == 1:
        evidence = f"{world:,} ranks, {inner:,} to a replica; no communicator joins replicas"
        return dp, _finding("degrees.dp", dp, Sure.GUESSED, evidence), ()
    doubt = (
        f"communicators of replicas join {seen:,} at most, the world of {world:,} ranks has room "
        f"for {dp:,}"
    )
    return dp, _finding("degrees.dp", dp, Sure.GUESSED, doubt), (doubt,)


def _sharding(
    graph: TaskGraph, layout: Layout, uses: list[Use]
) -> tuple[int, int | None, list[Finding]]:
    """ZeRO stage, replicas that share state (None: all), and why."""
    pairs = [
        (role, use)
        for role, use in zip(layout.roles, uses, strict=True)
        if role.axis is Axis.SHARDED or (role.axis is Axis.WORLD and role.parameters_gathered)
    ]
    shards = layout.degree(Axis.SHARDED)
    if not pairs or shards == 1:
        return 0, None, []
    role, use = max(pairs, key=lambda pair: pair[1].sum(_GATHER))
    stage, sure, evidence = _stage(graph, role, use)
    findings = [_finding("degrees.zero", stage, sure, evidence)]
    if layout.degree(Axis.DATA) > 1:
        text = f"{layout.degree(Axis.DATA)} groups of {shards} ranks that share state"
        findings.append(_finding("degrees.shard", shards, _WAYS[role.confidence], text))
    return stage, shards, findings


def _stage(graph: TaskGraph, role: Role, use: Use) -> tuple[int, Sure, str]:
    gathered = use.sum(_GATHER)
    by_optimizer = use.sum(_GATHER, (Phase.OPTIMIZER,))
    if by_optimizer >= gathered / 2 > 0:
        return _optimizer_stage(use, by_optimizer)
    ratio = use.elements(_GATHER) / max(use.elements(_REDUCE), 1.0)
    times = f"parameters gathered {ratio:.2g} times for each reduction of their gradients"
    if use.sum(_GATHER, (Phase.FORWARD,)) and use.sum(_GATHER, (Phase.BACKWARD,)):
        return 3, Sure.MEASURED, "parameters gathered in forward and again in backward"
    if name := mention(graph, FULLY_SHARDED):
        return 3, Sure.NAMED, f"{told(name)}; {times}"
    if not gathered:
        return 3, _WAYS[role.confidence], f"{role.evidence}; no gathering seen in the steps"
    if ratio >= TWICE_FRAC:
        return 3, Sure.MEASURED, times
    return _kept_stage(graph, role, ratio, times)


def _kept_stage(graph: TaskGraph, role: Role, ratio: float, times: str) -> tuple[int, Sure, str]:
    """Of parameters that forward gathers and backward finds: are gradients whole for a while?"""
    passes = max(alternations(graph).values(), default=1)
    if passes > 1 and ratio >= ONCE_FRAC:
        words = f"gradients of {passes} micro-batches reduced once, whole until then"
        return 1, Sure.MEASURED, f"{times}; {words}"
    if passes == 1 and role.confidence is Confidence.NAMED and _OF_MEGATRON in role.evidence:
        words = "Megatron-LM's distributed optimizer, as its communicators are named"
        return 1, Sure.NAMED, f"{times}; {words}"
    return 2, Sure.MEASURED, f"{times}: kept from forward to backward"


def _optimizer_stage(use: Use, gathered: float) -> tuple[int, Sure, str]:
    """Parameters are whole but for the step of the optimizer: gradients may be or not."""
    words = f"parameters gathered by the optimizer, {use.told(gathered)}"
    if use.sum(_SCATTER, (Phase.BACKWARD,)) > use.sum(_SCATTER, (Phase.OPTIMIZER,)):
        return 2, Sure.GUESSED, f"{words}; gradients scattered in backward, as they come"
    if use.sum(_SCATTER):
        return 1, Sure.MEASURED, f"{words}; gradients scattered after backward, whole until then"
    return 1, Sure.MEASURED, f"{words}; gradients reduced, not scattered"


def _context_kind(layout: Layout, uses: list[Use]) -> ContextKind:
    for role, use in zip(layout.roles, uses, strict=True):
        if role.axis is Axis.CONTEXT and use.sum((CollectiveKind.ALL_TO_ALL,)):
            return ContextKind.ALL_TO_ALL
    return ContextKind.RING


def _experts(
    graph: TaskGraph, layout: Layout, uses: list[Use]
) -> tuple[int, list[Finding], tuple[str, ...]]:
    """Ranks over which experts, or tables of embeddings, lie: those that exchange all to all.

    What is known of communicators of the same ranks is their traffic together: that of heads
    against sequence is none of experts.
    """
    members = [group.ranks for group in graph.groups]
    of_others = {
        ranks
        for role, ranks in zip(layout.roles, members, strict=True)
        if role.axis in _WITHOUT_EXPERTS
    }
    pairs = [
        (role, use)
        for role, use, ranks in zip(layout.roles, uses, members, strict=True)
        if role.size > 1
        and role.axis not in _WITHOUT_EXPERTS
        and (
            role.axis is Axis.EXPERT
            or (use.sum((CollectiveKind.ALL_TO_ALL,)) and ranks not in of_others)
        )
    ]
    if not pairs:
        return 1, [], ()
    role, use = max(pairs, key=lambda pair: pair[0].size)
    exchanged = use.sum((CollectiveKind.ALL_TO_ALL,))
    words = f"exchanged all to all, {use.told(exchanged)}" if exchanged else role.evidence
    experts, tables = mention(graph, EXPERTS), mention(graph, TABLES)
    if tables and not experts:
        text = f"tables of embeddings ({told(tables)}) {words}"
        return role.size, [_finding("degrees.ep", role.size, Sure.NAMED, text)], ()
    if experts or role.confidence is Confidence.NAMED:
        named = told(experts) if experts else role.evidence
        text = f"experts ({named}) {words}"
        return role.size, [_finding("degrees.ep", role.size, Sure.NAMED, text)], ()
    doubt = (
        "what is exchanged all to all may be experts, tables of embeddings, or heads against "
        "sequence: taken as experts"
    )
    return role.size, [_finding("degrees.ep", role.size, Sure.GUESSED, words)], (doubt,)


def _unclear(graph: TaskGraph, layout: Layout) -> tuple[str, ...]:
    """Communicators that carried something and were not understood."""
    called = set(graph.collectives.group.tolist())
    unclear = [
        role.evidence
        for number, role in enumerate(layout.roles)
        if role.axis is Axis.UNCLEAR and role.size > 1 and number in called
    ]
    if not unclear:
        return ()
    noun = "communicator is" if len(unclear) == 1 else "communicators are"
    return (f"{len(unclear):,} {noun} not understood: {unclear[0]}",)
