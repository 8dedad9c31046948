"""Which changes would save most: a few what-ifs, each replayed."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ingest.units import Nanos
from ingest.vocab import COMPUTE_CLASSES, DEVICE_KINDS, KernelClass, TaskKind
from replay.graph.arrays import TaskGraph
from replay.results.fidelity import Baseline
from whatif.answers import Answers
from whatif.transforms.base import Context
from whatif.transforms.network import NetworkScale
from whatif.transforms.registry import Transform
from whatif.transforms.scale import Scale
from whatif.transforms.stragglers import NoStragglers

SHOWN = 3
LEAST_SHARE = 0.02
"""A class of kernels with less of the device time is no lever."""
LEAST_SAVING = 0.005
"""A saving of less of the step is noise: two runs of one job differ by about 1 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """One change and what it would save per step."""

    why: str
    """The change in words."""
    flag_text: str
    """Command-line option that reproduces it."""
    step_ns: Nanos
    saving_ns: Nanos


def levers(graph: TaskGraph, baseline: Baseline, *, shown: int = SHOWN) -> tuple[Lever, ...]:
    """The changes that save most, biggest first; none where nothing saves anything."""
    least_ns = LEAST_SAVING * baseline.replayed.mean_ns
    found = _replayed(graph, baseline, list(_candidates(graph)))
    worth = [lever for lever in found if lever.saving_ns > 0 and lever.saving_ns >= least_ns]
    return tuple(sorted(worth, key=lambda lever: -lever.saving_ns)[:shown])


def _candidates(graph: TaskGraph) -> Iterator[tuple[str, Transform]]:
    kinds = graph.tasks.kind
    if len(graph.ranks) > 1:
        yield "no stragglers: every rank as fast as the median rank", NoStragglers()
    if (kinds == TaskKind.TRANSFER).any():
        yield "network twice as fast", NetworkScale(factor=2.0)
        yield "transfers free (waiting for others stays)", Scale(where="class:collective", factor=0)
    busy = _classes(graph)
    for name in busy:
        yield f"{name} kernels twice as fast", Scale(where=f"class:{name}", factor=0.5)
    if len(busy) > 1:
        yield "all compute kernels twice as fast", Scale(where="class:compute", factor=0.5)
    if np.isin(kinds, (TaskKind.HOST_WORK, TaskKind.HOST_CALL)).any():
        yield "host twice as fast", Scale(where="class:host", factor=0.5)
    if (kinds == TaskKind.MEMCPY).any():
        yield "copies free", Scale(where="class:memcpy", factor=0)


def _classes(graph: TaskGraph) -> list[str]:
    """Compute classes with more than LEAST_SHARE of the device time."""
    tasks = graph.tasks
    device = np.isin(tasks.kind, [int(kind) for kind in DEVICE_KINDS]) & ~tasks.fixed
    time_ns = np.bincount(
        tasks.kernel_class[device], weights=tasks.dur_ns[device], minlength=max(KernelClass) + 1
    )
    return [
        code.name.lower()
        for code in sorted(COMPUTE_CLASSES)
        if time_ns[code] > LEAST_SHARE * time_ns.sum()
    ]


def _replayed(
    graph: TaskGraph, baseline: Baseline, candidates: list[tuple[str, Transform]]
) -> list[Lever]:
    """What each candidate would save, all replayed at once."""
    before_ns = baseline.replayed.mean_ns
    changed = [change.apply(graph, Context()).graph for _, change in candidates]
    answers = Answers.of(graph, baseline.schedule)
    found = []
    for (why, change), times in zip(candidates, answers.step_times_of_all(changed), strict=True):
        step_ns = times.mean_ns
        saving_ns = Nanos(before_ns - step_ns)
        found.append(Lever(why=why, flag_text=change.flag, step_ns=step_ns, saving_ns=saving_ns))
    return found
