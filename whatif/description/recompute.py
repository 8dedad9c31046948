"""Whether backward computes activations again, and how much of them."""

import numpy as np

from ingest.vocab import DEVICE_KINDS, TaskKind
from replay.graph.arrays import TaskGraph
from whatif.description.described import Finding, Sure
from whatif.description.labels import Labels
from whatif.models.places import Pass
from whatif.models.shape import Recompute

LEAST_FRAC, FULL_FRAC = 0.05, 0.6
"""Of forward's work: less is none (an operator that stands on the other side of a border); of a
layer that is computed again from its input almost all is, of the core of attention a part."""


def recompute_of(graph: TaskGraph, labels: Labels) -> tuple[Recompute, tuple[Finding, ...]]:
    """What backward computes again, by the share of forward's work that it repeats."""
    tasks = graph.tasks
    on_device = np.isin(tasks.kind, [int(kind) for kind in DEVICE_KINDS])
    work = on_device if on_device.any() else tasks.kind == TaskKind.HOST_WORK
    work = work & (tasks.collective < 0) & (tasks.step >= 0) & ~tasks.fixed

    def sum_ns(direction: Pass) -> float:
        return float(tasks.dur_ns[work & (labels.direction == direction)].sum())

    again, once = sum_ns(Pass.RECOMPUTE), sum_ns(Pass.FORWARD)
    share = again / once if once else 0.0
    if share < LEAST_FRAC:
        return Recompute.NONE, ()
    found = Recompute.FULL if share >= FULL_FRAC else Recompute.SELECTIVE
    evidence = f"{share:.0%} of the work of forward runs again inside backward"
    finding = Finding(
        what="options.recompute", value=str(found), sure=Sure.MEASURED, evidence=evidence
    )
    return found, (finding,)
