"""Whether a run trains or infers."""

import numpy as np

from ingest.vocab import COMPUTE_CLASSES, Phase, TaskKind
from replay.graph.arrays import TaskGraph
from whatif.description.described import Finding, Kind, Sure
from whatif.description.words import INFERENCE, TRAINING, mention, told
from whatif.parallelism import REPLICATED, Confidence, Layout


def kind_of(graph: TaskGraph, layout: Layout) -> tuple[Kind, Finding]:
    """What the run does: the first sign that tells."""
    kind, sure, evidence = (
        _by_phases(graph)
        or _by_names(graph)
        or _by_gradients(layout)
        or _by_what_lacks(graph)
        or (Kind.UNKNOWN, Sure.UNKNOWN, "neither forward nor backward work is told")
    )
    return kind, Finding(what="kind", value=str(kind), sure=sure, evidence=evidence)


_Told = tuple[Kind, Sure, str]


def _by_phases(graph: TaskGraph) -> _Told | None:
    tasks = graph.tasks
    for phase, name in ((Phase.BACKWARD, "backward"), (Phase.OPTIMIZER, "the optimizer")):
        count = int(((tasks.phase == phase) & ~tasks.fixed).sum())
        if count:
            return Kind.TRAINING, Sure.MEASURED, f"{count:,} tasks of {name}"
    return None


def _by_names(graph: TaskGraph) -> _Told | None:
    if name := mention(graph, TRAINING):
        return Kind.TRAINING, Sure.NAMED, f"{told(name)} is in it"
    if name := mention(graph, INFERENCE):
        return Kind.INFERENCE, Sure.NAMED, f"{told(name)} is in it, and no backward"
    return None


def _by_gradients(layout: Layout) -> _Told | None:
    found = [role for role in layout.roles if role.axis in REPLICATED]
    for role in found:
        if role.confidence in (Confidence.PHASE, Confidence.PLACE):
            return Kind.TRAINING, Sure.MEASURED, role.evidence
    return None


def _by_what_lacks(graph: TaskGraph) -> _Told | None:
    tasks = graph.tasks
    kernels = (tasks.kind == TaskKind.KERNEL) & np.isin(
        tasks.kernel_class, [int(one) for one in COMPUTE_CLASSES]
    )
    if not kernels.any():
        return None
    return (
        Kind.INFERENCE,
        Sure.GUESSED,
        f"{int(kernels.sum()):,} kernels, none of backward or an optimizer (training of which the "
        "forward alone is in the files would look the same)",
    )
