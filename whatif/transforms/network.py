"""Every transfer takes a share of its time: the plain knob, latency included."""

import math
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from ingest.errors import UsageError
from ingest.vocab import TaskKind
from replay.graph.arrays import TaskGraph
from whatif.transforms.base import Applied, Context, free, with_durations
from whatif.transforms.host_transfers import moving_ns, with_moving
from whatif.transforms.reach import nothing_to_change
from whatif.transforms.scale import MOST


class NetworkScale(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="network_scale",
):
    """Every transfer of every collective takes 1/factor of its time; waits follow."""

    factor: Annotated[float, Meta(gt=0)]
    """How much faster; at least 1/`MOST`."""

    def __post_init__(self) -> None:
        """Hold the same bound for the command line, which builds the struct directly."""
        if not (math.isfinite(self.factor) and self.factor >= 1 / MOST):
            raise UsageError(
                f"`{self.factor:g}` is no speed of a network",
                hint=f"a number from {1 / MOST:g} on: 2 for twice as fast, 0.5 for half as fast",
            )

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--network-scale {self.factor:g}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Scale the transfers; the moment at which members arrive is left to the replay."""
        label = f"network x{self.factor:g}"
        tasks = graph.tasks
        transfer = tasks.kind == TaskKind.TRANSFER
        chosen = free(graph, transfer)
        reason = nothing_to_change(graph)
        if reason is None and self.factor == 1:
            reason = "the factor is 1"
        if reason:
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        task = np.flatnonzero(chosen)
        moving = moving_ns(graph, task)
        scaled_ns = np.rint(moving / self.factor).astype(np.int64)
        dur_ns = tasks.dur_ns.copy()
        dur_ns[task] = with_moving(dur_ns[task], moving, scaled_ns)
        return Applied(
            graph=with_durations(graph, dur_ns),
            label=label,
            context=context,
            assumptions=("every transfer scales as a whole, its latency included",),
        )
