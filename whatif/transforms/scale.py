"""Multiply durations: a faster or slower kernel, host, copy or transfer."""

import math
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from ingest.errors import UsageError
from ingest.vocab import TaskKind
from replay.graph.arrays import TaskGraph
from whatif.transforms.base import Applied, Context, free, with_durations
from whatif.transforms.select import select

MOST = 1_000_000
"""A second becomes eleven days; nanoseconds of a longer schedule would run over."""


class Scale(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="scale"
):
    """Multiply the duration of the selected tasks; of a collective only the transfer."""

    where: str
    factor: Annotated[float, Meta(ge=0)]

    def __post_init__(self) -> None:
        """Hold the same bound for the command line, which builds the struct directly."""
        if not (math.isfinite(self.factor) and 0 <= self.factor <= MOST):
            raise UsageError(
                f"`{self.factor:g}` is no factor for `{self.where}`",
                hint=f"a number from 0 to {MOST:,}, for example class:gemm=0.5",
            )

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--scale {self.where}={self.factor:g}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Scale what a scenario may change; residuals and waits stay."""
        selected = select(graph, self.where)
        label = f"{self.where} x{self.factor:g}"
        tasks = graph.tasks
        chosen = free(graph, selected) & (tasks.kind != TaskKind.ARRIVE) & (tasks.dur_ns > 0)
        reason = None
        if self.factor == 1:
            reason = "the factor is 1"
        elif not (selected & ~tasks.fixed).any():
            reason = "all selected tasks were launched before the first step"
        elif not chosen.any():
            reason = "the selected tasks take no time"
        if reason:
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        scaled_ns = np.rint(tasks.dur_ns * self.factor).astype(np.int64)
        dur_ns = np.where(chosen, scaled_ns, tasks.dur_ns)
        return Applied(graph=with_durations(graph, dur_ns), label=label, context=context)
