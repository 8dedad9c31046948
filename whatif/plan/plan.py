"""The best layouts of a run on given machines: searched in closed form, the best ones replayed."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ingest.errors import ScenarioError, UserError
from replay.graph.arrays import TaskGraph
from replay.results.fidelity import Baseline
from whatif.description.described import Described
from whatif.models.bound import Bound
from whatif.models.hardware import require
from whatif.models.kernels.machine import Machine, machine_of
from whatif.models.shape import RunShape
from whatif.plan.anchor import Anchor, anchored
from whatif.plan.front import Point, front_of, kind_of
from whatif.plan.passes import Levels, Times
from whatif.plan.refuse import none_fits, require_model, require_training
from whatif.plan.score import losses_of
from whatif.plan.search import Found, Scored, ideal_of, search, why
from whatif.plan.space import Space
from whatif.plan.steps import what_ifs
from whatif.recorded import Recorded
from whatif.scenario import Scenario
from whatif.study import Studies, Study
from whatif.transforms.base import Context
from whatif.transforms.gpu import Gpu
from whatif.transforms.machine import USUAL_NIC_BYTES_PER_S, known

MOST_ALIKE = 3
"""Layouts of the same degrees that are replayed: others may do better than the closed form says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What shall be planned for."""

    gpus: tuple[int, ...]
    """Numbers of GPUs, each planned for."""
    gpu: str | None = None
    """Another accelerator than the recorded one."""
    node: int | None = None
    """GPUs that the scale-up link joins; None: as recorded, or as the accelerator has it."""
    samples: int | None = None
    """Of a step of the whole job; None: as recorded."""
    most_tp: int | None = None
    most_pp: int | None = None
    most_cp: int | None = None
    top: int = 10
    """Layouts that are replayed, of each number of GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A layout that is among the best."""

    scored: Scored
    low_ns: float
    """By the closed form, at the ends of what its models may be off."""
    high_ns: float
    scenario: Scenario
    study: Study | None
    """Its replay; None where it was not replayed."""
    refused: str = ""
    """Why it could not be."""

    @property
    def step_ns(self) -> float:
        """By the replay, where there is one."""
        return self.scored.step_ns if self.study is None else float(self.study.step_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What was found."""

    base: RunShape
    spaces: tuple[Space, ...]
    found: Found
    best: tuple[Candidate, ...]
    """The replayed ones by their replay, then those that could not be replayed."""
    front: tuple[Point, ...]
    """No other layout is better in step, GPUs and memory."""
    machine: Machine
    notes: tuple[str, ...]


def plan(
    graph: TaskGraph,
    baseline: Baseline,
    described: Described,
    asked: Asked,
    recorded: Recorded,
    progress: Callable[[str, float], None] = lambda _text, _share: None,
) -> Plan:
    """Search the layouts of a run on other machines.

    Raises:
        ScenarioError: model, batch or machine are not known, or no layout fits.
    """
    base = described.shape
    require_training(graph, described)
    require_model(base)
    context = known(graph, Context(recorded=recorded))
    anchor, machine, now, notes = _machines(graph, baseline, described, asked, context)
    node = asked.node or now.places.domain_gpus
    now, told = _with_network(now, node, max(asked.gpus))
    times = Times(machine, now.links, node, anchor.levels)
    spaces = tuple(_space(base, asked, gpus, node) for gpus in asked.gpus)
    found = search(
        base,
        spaces,
        times,
        anchor,
        machine.memory_bytes,
        lambda tried: progress(f"scoring layouts, {tried:,} so far", 0.0),
    )
    if not found.ranked:
        raise none_fits(found, machine)
    judge = _Judge(
        base=base,
        rest_ns=anchor.rest_ns,
        ends=tuple(
            Times(machine, now.links, node, anchor.levels, bound)
            for bound in (Bound.LOW, Bound.HIGH)
        ),
        gpu=asked.gpu,
        recorded=recorded,
        studies=Studies(graph, baseline),
    )
    chosen = _chosen(found, base, asked)
    best = []
    for number, one in enumerate(chosen):
        progress(f"replaying {len(chosen)} layouts", number / len(chosen))
        best.append(judge.candidate(one))
    return Plan(
        base=base,
        spaces=spaces,
        found=found,
        best=tuple(sorted(best, key=_rank)),
        front=tuple(front_of(found.ranked, _replayed(best))),
        machine=machine,
        notes=(*notes, *told),
    )


def _rank(one: Candidate) -> tuple[bool, float, int, float]:
    """Replayed ones first, the shortest step first."""
    return one.study is None, one.step_ns, one.scored.gpus, one.scored.memory_bytes


def _replayed(best: Sequence[Candidate]) -> list[tuple[Scored, float]]:
    return [(one.scored, one.step_ns) for one in best if one.study is not None]


def _machines(
    graph: TaskGraph,
    baseline: Baseline,
    described: Described,
    asked: Asked,
    context: Context,
) -> tuple[Anchor, Machine, Context, tuple[str, ...]]:
    """Levels of the recorded machine, the machine that is planned for, and its links.

    Raises:
        ScenarioError: neither is known.
    """
    step_ns = float(baseline.replayed.mean_ns)
    if context.device is None:
        if asked.gpu is None:
            raise ScenarioError(
                "the accelerator of the recorded run is not known", hint="--base-gpu NAME tells it"
            )
        device = require(asked.gpu)
        note = "the recorded accelerator is not known: times by models alone"
        bare = Anchor(levels=Levels(), rest_ns=0.0)
        moved = known(graph, Context(recorded=Recorded(gpu=device.name)))
        return bare, machine_of(device), moved, (note,)
    here = machine_of(context.device)
    times = Times(here, context.links, context.places.domain_gpus, Levels())
    anchor = anchored(graph, described, times, context.places, step_ns)
    if asked.gpu is None:
        return anchor, here, context, ()
    applied = Gpu(name=asked.gpu).apply(graph, context)
    now = applied.context
    return anchor, machine_of(require(asked.gpu)), known(graph, now), ()


def _with_network(context: Context, node: int, most: int) -> tuple[Context, tuple[str, ...]]:
    """The links with the usual network of such nodes, where none is known and one is needed.

    Raises:
        ScenarioError: it is not known.
    """
    links = context.links
    if most <= node or links.nic_bytes_per_s is not None:
        return context, ()
    usual = USUAL_NIC_BYTES_PER_S.get(links.architecture or "")
    if usual is None:
        raise ScenarioError(
            f"{most:,} GPUs reach over several nodes, and the network between them is not known",
            hint="--base-net RATE tells it (400Gbps), or --nodes-of N if they share a node",
        )
    told = f"network between nodes: {usual / 1e9:g} GB/s per GPU, one direction (usual; --base-net)"
    return replace(context, fabric=replace(links, nic_bytes_per_s=usual)), (told,)


def _space(base: RunShape, asked: Asked, gpus: int, node: int) -> Space:
    recorded = base.degrees.dp * base.batch.micro_batches * (base.batch.samples or 1.0)
    usual = Space(gpus=gpus, samples=asked.samples or max(round(recorded), 1), node=node)
    return replace(
        usual,
        most_tp=asked.most_tp,
        most_pp=asked.most_pp or usual.most_pp,
        most_cp=asked.most_cp,
    )


def _chosen(found: Found, base: RunShape, asked: Asked) -> list[Scored]:
    """Those that are replayed, number by number of GPUs."""
    by_gpus = ([one for one in found.ranked if one.gpus == gpus] for gpus in asked.gpus)
    return [one for ranked in by_gpus for one in _varied(ranked, base, asked.top)]


def _varied(ranked: Sequence[Scored], recorded: RunShape, most: int) -> list[Scored]:
    """The best, few of the same degrees, and the recorded layout wherever it is one of them.

    Left out are those that recompute more than a better one and save no memory by it.
    """
    chosen: list[Scored] = []
    alike: Counter[tuple[int, ...]] = Counter()
    for one in ranked:
        if len(chosen) == most:
            break
        kind = kind_of(one)
        worse = any(_same_but_recomputed(one, other) for other in chosen)
        if alike[kind] < MOST_ALIKE and not worse:
            chosen.append(one)
            alike[kind] += 1
    own = next((one for one in ranked if one.shape == recorded), None)
    return chosen if own is None or own in chosen else [*chosen, own]


def _same_but_recomputed(one: Scored, other: Scored) -> bool:
    mine, theirs = one.shape, other.shape
    same = (mine.degrees, mine.batch, mine.options.schedule)
    return same == (theirs.degrees, theirs.batch, theirs.options.schedule) and (
        one.memory_bytes >= other.memory_bytes
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judge:
    """What the best layouts are replayed with."""

    base: RunShape
    rest_ns: float
    ends: tuple[Times, ...]
    """At either end of what the models may be off."""
    gpu: str | None
    recorded: Recorded
    studies: Studies

    def candidate(self, one: Scored) -> Candidate:
        """The layout with its range, and its replay where the run allows one."""
        ends_ns = [
            losses_of(one.shape, times, ideal_of(self.base, times), self.rest_ns).step_ns
            for times in self.ends
        ]
        scenario = Scenario(base=self.recorded, transforms=what_ifs(self.base, one.shape, self.gpu))
        study, refused = None, ""
        try:
            study = self.studies.of(scenario)
        except (UserError, AssertionError) as error:
            refused = why(error)
        return Candidate(
            scored=one,
            low_ns=min(*ends_ns, one.step_ns),
            high_ns=max(*ends_ns, one.step_ns),
            scenario=scenario,
            study=study,
            refused=refused,
        )
