"""How a run was made parallel: what each communicator is for, told from what it carried.

Gradients are reduced in backward or by the optimizer and never in forward: data parallel. Where
parameters are also gathered, their state is sharded over the replicas. Reductions that forward has
as well lie inside the layers: tensor parallel. Sends and receives alone: pipeline. A name that the
framework gave (`mesh_dp`, `TENSOR_MODEL_PARALLEL_GROUP`) says it before any of that. Where phases
are not recorded the place of the calls in the step stands for them. What stays unclear is said.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from itertools import groupby
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.vocab import CollectiveKind, Phase, TaskKind
from replay.graph.arrays import NONE, Group, Int8, Int64, TaskGraph
from replay.results.fidelity import recorded_schedule
from replay.results.metrics import step_times

FORWARD_FRAC = 0.25
"""Reductions with this share or more in forward lie inside the layers: of tensor-parallel training
half are in forward, a third with recomputation."""
LITTLE_FRAC = 0.1
"""Gradient reductions have less in forward: losses and norms of a few bytes (torchtitan)."""
GATHERED_FRAC = 0.2
"""Parameters are about as many bytes as their gradients, in a type of half or twice the length."""
SCATTERED_FRAC = 0.01
"""Gathered once a step, parameters are few beside gradients that each micro-batch scatters."""
EARLY = 0.2
"""First part of a step, which forward fills: a backward takes about twice as long as its forward,
so no gradient is ready before a third of the step."""
EARLY_FRAC = 0.02
"""Without phases: gradients have less than this in the first part of the step, and reductions
inside the layers about as much as that part is long, at least half of it."""
FLAGS_BYTES = 256
"""Of a named communicator in a step at most, where it carries norms, losses and flags alone."""

_WORDS: tuple[tuple[str, frozenset[str]], ...] = (
    ("tensor", frozenset({"tp", "tensor"})),
    ("pipeline", frozenset({"pp", "pipeline", "pipe"})),
    ("expert", frozenset({"ep", "expert", "moe"})),
    ("context", frozenset({"cp", "context", "ulysses"})),
    ("sharded data", frozenset({"fsdp", "shard", "zero"})),
    ("data", frozenset({"dp", "data", "ddp", "replicate"})),
)
_REDUCTIONS = (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER, CollectiveKind.REDUCE)
_BETWEEN_TWO = frozenset({CollectiveKind.SEND, CollectiveKind.RECV, CollectiveKind.SEND_RECV})
_AFTER_FORWARD = (Phase.BACKWARD, Phase.OPTIMIZER)
_UNITS = {"bytes": ("MB", "GB"), "ns": ("ms", "s")}
_MEGA, _KILO = 1e6, 1e3
_ROUNDS_TO_KILO = 999.5

Float64 = NDArray[np.float64]


class Axis(StrEnum):
    """A way to divide the work over ranks."""

    DATA = "data"
    """Replicas with samples of their own; gradients are reduced over them."""
    SHARDED = "sharded data"
    """Replicas that share parameters, gradients or optimizer state as well (FSDP, ZeRO)."""
    TENSOR = "tensor"
    PIPELINE = "pipeline"
    EXPERT = "expert"
    """Experts or embedding tables lie on different ranks: all-to-all."""
    CONTEXT = "context"
    WORLD = "world"
    """All ranks, across the other axes: norms, losses, flags."""
    UNCLEAR = "unclear"


REPLICATED = (Axis.DATA, Axis.SHARDED)
"""Along these the ranks are replicas: the same work on other samples."""
INNER = (Axis.TENSOR, Axis.PIPELINE, Axis.CONTEXT)
"""Along these the ranks share one replica."""


class Confidence(StrEnum):
    """What a role rests on, the surest first."""

    GIVEN = "given"
    NAMED = "named"
    """By the framework."""
    PHASE = "phase"
    """By the phases in which the communicator works."""
    PLACE = "place"
    """By the place in the step, where phases are not recorded."""
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What a communicator is for."""

    axis: Axis
    size: int
    """Members."""
    confidence: Confidence
    evidence: str
    """In words, for people."""
    parameters_gathered: bool = False
    """All-gathers carry parameters, whose sum does not depend on the number of members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Axes of a run; a degree that is not in `degrees` is 1."""

    world_size: int
    roles: tuple[Role, ...]
    """Parallel to `graph.groups`."""
    degrees: Mapping[Axis, int]
    coordinates: Mapping[int, Mapping[Axis, int]]
    """By rank, its position along each axis whose communicator lists the rank."""

    def degree(self, *axes: Axis) -> int:
        """Product of the degrees."""
        return prod(self.degrees.get(axis, 1) for axis in axes)

    @property
    def replicas(self) -> int:
        """Ranks that do the same work on other samples: the whole data-parallel degree."""
        return self.degree(*REPLICATED)

    def span(self, group: int, axis: Axis) -> int:
        """How many positions along an axis the members of a group have."""
        role = self.roles[group]
        if role.size == 1:
            return 1
        whole = role.axis is Axis.WORLD or (role.size >= self.world_size and role.axis not in INNER)
        if role.axis in REPLICATED and axis in REPLICATED:
            whole |= role.size >= self.replicas
        return self.degree(axis) if whole or self._goes_all_along(role, axis) else 1

    def _goes_all_along(self, role: Role, axis: Axis) -> bool:
        """It joins all positions; a smaller communicator of the axis joins some, or crosses it."""
        return role.axis is axis and role.size >= self.degree(axis)

    @property
    def label(self) -> str:
        """`sharded data 8 x tensor 2`."""
        parts = [f"{axis} {degree}" for axis, degree in self.degrees.items() if degree > 1]
        return " x ".join(parts) or "one rank"


def layout_of(graph: TaskGraph, *, data_groups: str | None = None) -> Layout:
    """Infer the layout of a run.

    Args:
        graph: of the run.
        data_groups: glob over the names of communicators (or `*`) that are data parallel, whatever
            they look like.
    """
    uses = uses_of(graph)
    ranks = world_size(graph)
    roles = [
        _role(group, use, given=data_groups is not None and is_named(group, data_groups))
        for group, use in zip(graph.groups, uses, strict=True)
    ]
    if any(role.confidence is Confidence.GIVEN for role in roles):
        roles = [_unless_guessed(role) for role in roles]
    roles = [
        _unless_alone(group, role, roles) for group, role in zip(graph.groups, roles, strict=True)
    ]
    inner = prod(_largest(roles, axis) for axis in INNER)
    roles = [_across_all(role, ranks, inner) for role in roles]
    coordinates = _coordinates(graph.groups, roles)
    return Layout(
        world_size=ranks,
        roles=tuple(roles),
        degrees=_degrees(graph.groups, roles, ranks),
        coordinates=coordinates,
    )


def world_size(graph: TaskGraph) -> int:
    """Ranks of the job: as recorded; else the ranks and communicators seen tell the least."""
    if graph.world_size:
        return graph.world_size
    seen = [info.rank + 1 for info in graph.ranks]
    for group in graph.groups:
        seen += [group.size, 1 + max(group.ranks, default=0)]
    return max([1, *seen, int(graph.collectives.members_expected.max(initial=0))])


def is_named(group: Group, glob: str) -> bool:
    """The name or description of a communicator matches, as a whole."""
    return any(fnmatchcase(name, glob) for name in (group.name, group.description))


def amount_told(amount: float, unit: str) -> str:
    """`36.3 MB` of bytes, `1.2 s` of ns."""
    small, large = _UNITS[unit]
    value = amount / _MEGA
    return f"{value / _KILO:.3g} {large}" if value >= _ROUNDS_TO_KILO else f"{value:.3g} {small}"


def group_label(group: Group, size: int) -> str:
    """What to call a communicator: `mesh_dp (8 ranks)`."""
    name = group.description if group.description not in ("", "undefined") else group.name
    return f"{name or 'without a name'} ({size} ranks)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What communicators of the same members carried, as weights: bytes, or ns where sizes lack."""

    size: int
    weight: Mapping[tuple[CollectiveKind, Phase], float]
    early: float
    """Of the reductions, what began in the first part of a step."""
    unit: str
    steps: int
    items: Mapping[CollectiveKind, float] = field(default_factory=dict)
    """Elements by kind; bytes (or ns) where their type is not recorded."""

    def elements(self, kinds: tuple[CollectiveKind, ...]) -> float:
        """Elements of some kinds."""
        return sum(self.items.get(kind, 0.0) for kind in kinds)

    def sum(self, kinds: tuple[CollectiveKind, ...], phases: tuple[Phase, ...] = ()) -> float:
        """Weight of some kinds, in some phases (in all where none is named)."""
        return sum(
            value
            for (kind, phase), value in self.weight.items()
            if kind in kinds and (not phases or phase in phases)
        )

    def told(self, weight: float) -> str:
        """`36.3 MB per step`."""
        return f"{amount_told(weight / self.steps, self.unit)} per step"


def uses_of(graph: TaskGraph) -> list[Use]:
    """Of every communicator what it, and others of the same members, carried in the steps."""
    calls, tasks = graph.collectives, graph.tasks
    transfer = np.flatnonzero(tasks.kind == TaskKind.TRANSFER)[::-1]
    task = np.full(len(calls.kind), NONE, np.int64)
    task[tasks.collective[transfer]] = transfer
    counted = (task >= 0) & (tasks.step[task] >= 0) & ~tasks.fixed[task]
    place_frac = _places(graph, task)
    sizes = [_size(graph, number) for number in range(len(graph.groups))]
    members = [
        (size, group.ranks if len(group.ranks) == size else ())
        for group, size in zip(graph.groups, sizes, strict=True)
    ]
    first = {key: number for number, key in reversed(list(enumerate(members)))}
    like = np.array([first[key] for key in members], np.int64)[calls.group]
    found: dict[int, Use] = {}
    for number in first.values():
        mine = np.flatnonzero((like == number) & counted)
        phase = tasks.phase[task[mine]]
        found[number] = _use(graph, mine, phase, place_frac[mine], sizes[number])
    return [found[first[key]] for key in members]


def _size(graph: TaskGraph, group: int) -> int:
    """Members of a communicator: as recorded, or as many as take part in one of its calls."""
    calls = graph.collectives
    most = int(calls.members_expected[calls.group == group].max(initial=0))
    return max(graph.groups[group].size, most)


def _use(graph: TaskGraph, mine: Int64, phase: Int8, place_frac: Float64, size: int) -> Use:
    calls = graph.collectives
    sized = bool((calls.size_bytes[mine] >= 0).all())
    value = (calls.size_bytes if sized else calls.transfer_ns)[mine].astype(np.float64)
    pairs, place = np.unique(np.stack([calls.kind[mine], phase]), axis=1, return_inverse=True)
    summed = np.bincount(place.ravel(), value, minlength=pairs.shape[1])
    weight = {
        (CollectiveKind(kind), Phase(when)): amount
        for (kind, when), amount in zip(pairs.T.tolist(), summed.tolist(), strict=True)
    }
    reduction = np.isin(calls.kind[mine], [int(kind) for kind in _REDUCTIONS])
    items = value / np.maximum(calls.item_bytes[mine], 1)
    of_kind = np.bincount(calls.kind[mine], items, minlength=len(CollectiveKind))
    return Use(
        size=size,
        weight=weight,
        early=float(value[reduction & (place_frac < EARLY)].sum()),
        unit="bytes" if sized else "ns",
        steps=len(graph.steps),
        items={kind: float(of_kind[kind]) for kind in CollectiveKind if of_kind[kind]},
    )


def _places(graph: TaskGraph, task: Int64) -> Float64:
    """Per collective: what part of its step had passed before it; shape (collectives,).

    Measured in compute kernels of its rank: waiting takes no place, nor a host that runs ahead.
    Where the rank has none, in time from the step's begin to the last call: calls are issued as
    the gradients come, however long the transfers queue.
    """
    place = np.ones(len(task), np.float64)
    bounds_ns = step_times(graph, recorded_schedule(graph)).boundary_ns
    for info in graph.ranks:
        of_rank = (task >= 0) & (graph.tasks.rank[task] == info.rank)
        mine = np.flatnonzero(of_rank & (graph.tasks.step[task] >= 0))
        kernels = np.flatnonzero(
            (graph.tasks.rank == info.rank) & (graph.tasks.kind == TaskKind.KERNEL)
        )
        if len(kernels):
            place[mine] = _places_by_work(graph, task[mine], kernels, bounds_ns)
        elif len(mine):
            place[mine] = _places_by_issue(graph, task[mine], bounds_ns[:-1])
    return place


def _places_by_work(
    graph: TaskGraph, transfers: Int64, kernels: Int64, bounds_ns: Int64
) -> Float64:
    tasks = graph.tasks
    kernels = kernels[np.argsort(tasks.ts_ns[kernels], kind="stable")]
    done_ns = np.concatenate([np.zeros(1), np.cumsum(tasks.dur_ns[kernels])])
    at_bounds_ns = done_ns[np.searchsorted(tasks.ts_ns[kernels], bounds_ns)]
    at_calls_ns = done_ns[np.searchsorted(tasks.ts_ns[kernels], tasks.ts_ns[transfers])]
    step = tasks.step[transfers]
    place: Float64 = at_calls_ns - at_bounds_ns[step]
    return place / np.maximum(np.diff(at_bounds_ns), 1.0)[step]


def _places_by_issue(graph: TaskGraph, transfers: Int64, begin_ns: Int64) -> Float64:
    tasks = graph.tasks
    caller = tasks.caller[transfers]
    issued_ns = tasks.ts_ns[caller] + tasks.dur_ns[caller]
    issued_ns = np.where(caller == NONE, tasks.ts_ns[transfers - 1], issued_ns)
    step = tasks.step[transfers]
    after_ns = (issued_ns - begin_ns[step]).astype(np.float64)
    last_ns = np.ones(len(begin_ns), np.float64)
    np.maximum.at(last_ns, step, after_ns)
    place: Float64 = after_ns / last_ns[step]
    return place


def _role(group: Group, use: Use, *, given: bool) -> Role:
    """Decide what a communicator is for: the first rule that knows it."""
    sharded, gathered = _gathers_parameters(use)
    found = _Told(Axis.DATA, Confidence.GIVEN, "said to be data parallel") if given else None
    for rule in _RULES:
        found = found or rule(group, use)
    axis, confidence, evidence = found or _Told(
        Axis.UNCLEAR, Confidence.NONE, "neither gradients nor parameters seen"
    )
    if axis is Axis.DATA and sharded:
        axis = Axis.SHARDED
    return Role(
        axis=axis,
        size=use.size,
        confidence=confidence,
        evidence=evidence + (gathered if axis in REPLICATED else ""),
        parameters_gathered=sharded,
    )


class _Told(NamedTuple):
    """What a rule makes of a communicator."""

    axis: Axis
    confidence: Confidence
    evidence: str


def _by_name(group: Group, _: Use) -> _Told | None:
    axis = _axis_by_name(group)
    if axis is None:
        return None
    return _Told(axis, Confidence.NAMED, f"named {group.description or group.name}")


def _unless_alone(group: Group, role: Role, roles: list[Role]) -> Role:
    """Replicas with an axis that the run does not have are replicas alone.

    Megatron-LM reduces over `DATA_PARALLEL_GROUP_WITH_CP` without context parallelism too.
    """
    if role.axis is not Axis.WORLD or role.confidence is not Confidence.NAMED:
        return role
    named = _axes_named(group)
    if any(_largest(roles, axis) > 1 for axis in named if axis in INNER):
        return role
    sharded = role.parameters_gathered or Axis.SHARDED in named
    return replace(role, axis=Axis.SHARDED if sharded else Axis.DATA)


def _axes_named(group: Group) -> list[Axis]:
    """Axes in the name of a communicator, the first of its names that has any."""
    for name in (group.description, group.name):
        words = set(re.split(r"[^a-z]+", name.lower()))
        found = [Axis(axis) for axis, known in _WORDS if words & known]
        if found:
            return found
    return []


def _by_kinds(_: Group, use: Use) -> _Told | None:
    """What sends, receives and exchanges alone say."""
    kinds = {kind for kind, _ in use.weight} - {CollectiveKind.UNKNOWN, CollectiveKind.BARRIER}
    if not use.weight:
        return _Told(Axis.UNCLEAR, Confidence.NONE, "no call of it in the steps")
    if kinds and kinds <= _BETWEEN_TWO:
        return _Told(Axis.PIPELINE, Confidence.PHASE, "only sends and receives")
    if kinds == {CollectiveKind.ALL_TO_ALL}:
        return _Told(Axis.EXPERT, Confidence.PHASE, "only all-to-all")
    return None


def _axis_by_name(group: Group) -> Axis | None:
    """What the framework calls the group; None for the default group and for numbers.

    Replicas together with what they are divided into (`DATA_PARALLEL_GROUP_WITH_CP`) lie across
    several axes; those of experts (`EXPERT_DATA_PARALLEL_GROUP`) are replicas.
    """
    found = _axes_named(group)
    if Axis.DATA in found and any(axis in found for axis in INNER):
        return Axis.WORLD
    if Axis.DATA in found:
        found = [axis for axis in found if axis in REPLICATED]
    return found[0] if found else None


def _gathers_parameters(use: Use) -> tuple[bool, str]:
    """Whether all-gathers carry parameters, and the words for it.

    By the optimizer, or in forward where gradients are scattered, not gathered in backward alone:
    that is the way back of a reduce-scatter of activations (row-wise sharded embeddings).
    """
    gather = (CollectiveKind.ALL_GATHER,)
    by_optimizer = use.sum(gather, (Phase.OPTIMIZER,))
    in_forward = use.sum(gather, (Phase.FORWARD,)) or use.sum(gather, (Phase.UNKNOWN,))
    scattered = (CollectiveKind.REDUCE_SCATTER,)
    forward_scatter = use.sum(scattered, (Phase.FORWARD,))
    if by_optimizer:
        return True, f"; parameters gathered by the optimizer, {use.told(by_optimizer)}"
    # Scattered gradients say it already, however often in a step they are.
    mostly_scattered = 2 * use.sum(scattered) > use.sum(_REDUCTIONS)
    least_frac = SCATTERED_FRAC if mostly_scattered else GATHERED_FRAC
    as_many = use.sum(gather) >= least_frac * use.sum(_REDUCTIONS) > 0
    if in_forward and as_many and not forward_scatter:
        return True, f"; parameters gathered, {use.told(use.sum(gather))}"
    return False, ""


def _by_size(group: Group, use: Use) -> _Told | None:
    """What carries a few numbers of a step alone joins ranks for norms, losses and flags."""
    apart = {key: value for key, value in use.weight.items() if key[0] not in _BETWEEN_TWO}
    carried = sum(apart.values())
    if use.unit != "bytes" or not 0 < carried <= FLAGS_BYTES * use.steps:
        return None
    if group.description in ("", "undefined"):
        return None
    return _Told(Axis.WORLD, Confidence.PHASE, f"{carried / use.steps:,.0f} bytes per step: flags")


def _by_phase(_: Group, use: Use) -> _Told | None:
    """In which phases it reduces."""
    after = use.sum(_REDUCTIONS, _AFTER_FORWARD)
    if not use.sum(_REDUCTIONS, (Phase.FORWARD, *_AFTER_FORWARD)):
        return None
    ahead = use.sum((CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE), (Phase.FORWARD,))
    if use.sum((CollectiveKind.ALL_GATHER,), (Phase.FORWARD,)):
        ahead += use.sum((CollectiveKind.REDUCE_SCATTER,), (Phase.FORWARD,))
    share = ahead / (ahead + after) if ahead + after else 0.0
    if share < LITTLE_FRAC and after:
        told = f"gradients reduced after forward, {use.told(after)}"
        return _Told(Axis.DATA, Confidence.PHASE, told)
    told = f"{share:.0%} of the reductions lie in forward"
    if share >= FORWARD_FRAC:
        return _Told(Axis.TENSOR, Confidence.PHASE, f"{told}, {use.told(ahead)}")
    return _Told(Axis.UNCLEAR, Confidence.NONE, told)


def _by_place(_: Group, use: Use) -> _Told | None:
    """Where in the step it reduces, of phases that are not recorded."""
    total = use.sum(_REDUCTIONS)
    if not total:
        return None
    share = use.early / total
    told = f"{share:.0%} of the reductions begin in the first {EARLY:.0%} of the step"
    if share < EARLY_FRAC:
        return _Told(Axis.DATA, Confidence.PLACE, f"{told} ({use.told(total)} in all)")
    if share >= EARLY / 2:
        return _Told(Axis.TENSOR, Confidence.PLACE, told)
    return _Told(Axis.UNCLEAR, Confidence.NONE, told)


def _by_parameters(_: Group, use: Use) -> _Told | None:
    sharded, _told = _gathers_parameters(use)
    return _Told(Axis.DATA, Confidence.PHASE, "no gradients seen") if sharded else None


_RULES = (_by_name, _by_kinds, _by_size, _by_phase, _by_place, _by_parameters)


def _largest(roles: list[Role], axis: Axis) -> int:
    return max((role.size for role in roles if role.axis is axis), default=1)


def _unless_guessed(role: Role) -> Role:
    """Where others were said to join replicas, the place in the step alone makes no axis."""
    if role.axis not in REPLICATED or role.confidence is not Confidence.PLACE:
        return role
    return replace(role, axis=Axis.UNCLEAR, confidence=Confidence.NONE)


def _across_all(role: Role, world_size: int, inner: int) -> Role:
    """A communicator of all ranks is none of replicas where ranks share a replica."""
    if role.axis not in REPLICATED or role.size < world_size or inner == 1:
        return role
    if role.confidence in (Confidence.GIVEN, Confidence.NAMED):
        return role
    return Role(
        axis=Axis.WORLD,
        size=role.size,
        confidence=role.confidence,
        evidence=f"all ranks, of which {inner} share a replica",
    )


def _degrees(groups: tuple[Group, ...], roles: list[Role], world_size: int) -> dict[Axis, int]:
    """Degree of each axis, by its largest communicator.

    Replicas and shards multiply where a communicator of the one crosses one of the other (HSDP);
    where one holds the other, the replicas are counted with the shards taken out.
    """
    degrees = {
        axis: _largest(roles, axis)
        for axis in (*REPLICATED, *INNER, Axis.EXPERT)
        if _largest(roles, axis) > 1
    }
    if all(axis in degrees for axis in REPLICATED):
        whole, shard = degrees[Axis.DATA], degrees[Axis.SHARDED]
        if not _cross(groups, roles):
            degrees[Axis.DATA] = max(whole // shard, 1)
    if Axis.EXPERT in degrees and degrees[Axis.EXPERT] >= world_size > 1:
        del degrees[Axis.EXPERT]
    if not any(axis in degrees for axis in REPLICATED) and any(
        role.axis is Axis.WORLD for role in roles
    ):
        inner = prod(degrees.get(axis, 1) for axis in INNER)
        shares = any(role.axis is Axis.WORLD and role.parameters_gathered for role in roles)
        degrees[Axis.SHARDED if shares else Axis.DATA] = max(world_size // inner, 1)
    return {axis: degree for axis, degree in degrees.items() if degree > 1}


def _cross(groups: tuple[Group, ...], roles: list[Role]) -> bool:
    """A group of replicas and one of shards have one rank in common."""
    by_axis = {
        axis: [
            set(group.ranks)
            for group, role in zip(groups, roles, strict=True)
            if role.axis is axis and group.ranks
        ]
        for axis in REPLICATED
    }
    return any(
        len(one & other) == 1 for one in by_axis[Axis.DATA] for other in by_axis[Axis.SHARDED]
    )


def _coordinates(groups: tuple[Group, ...], roles: list[Role]) -> dict[int, dict[Axis, int]]:
    coordinates: dict[int, dict[Axis, int]] = {}
    by_size = sorted(zip(roles, groups, strict=True), key=lambda pair: (pair[0].axis, pair[0].size))
    for axis, pairs in groupby(by_size, key=lambda pair: pair[0].axis):
        for _, group in pairs:
            for place, rank in enumerate(sorted(group.ranks)):
                coordinates.setdefault(rank, {})[axis] = place
    return coordinates
