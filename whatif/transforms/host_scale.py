"""A faster or slower CPU: all that host threads do, but not what they wait for."""

import math
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from ingest.errors import UsageError
from ingest.vocab import TaskKind
from replay.graph.arrays import TaskGraph
from whatif.models.bound import Bound
from whatif.transforms.base import Applied, Context, free, with_durations

WORKING = (TaskKind.HOST_WORK, TaskKind.HOST_CALL)
MOST = 1_000


KNOWN_ERROR = "another host 0 to 9% on four pairs of measured runs"


class HostScale(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="host_scale",
):
    """Host work and calls take 1/factor of their time; waits follow from what they wait for."""

    factor: Annotated[float, Meta(gt=0)]

    def __post_init__(self) -> None:
        """Hold the same bound for the command line, which builds the struct directly."""
        if not (math.isfinite(self.factor) and 1 / MOST <= self.factor <= MOST):
            raise UsageError(
                f"`--host-scale {self.factor:g}` is no speed of a host",
                hint=f"a number from {1 / MOST:g} to {MOST:,}; 1.5 is a host 1.5 times as fast",
            )

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--host-scale {self.factor:g}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Scale the host tasks; silence without a known cause scales in part of the range only."""
        label = f"host x{self.factor:g}"
        working = np.isin(graph.tasks.kind, [int(kind) for kind in WORKING])
        chosen = free(graph, working) & (graph.tasks.dur_ns > 0)
        reason = None
        if self.factor == 1:
            reason = "the factor is 1"
        elif not chosen.any():
            reason = "no host work in this trace"
        if reason:
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        silent = bool(graph.tasks.unexplained_ns[chosen].any())
        assumptions = ["a host that is faster or slower is so in all it does; device work stays"]
        if silent:
            assumptions.append("the range holds the case that silence without a cause is no work")
        return Applied(
            graph=scaled_host(graph, 1 / self.factor, with_silence=context.bound != _stays(self)),
            label=label,
            context=context,
            assumptions=tuple(assumptions),
            known_errors=(KNOWN_ERROR,),
        )


def _stays(change: HostScale) -> Bound:
    """The bound of the range that unexplained silence makes by staying as it is."""
    return Bound.HIGH if change.factor > 1 else Bound.LOW


def scaled_host(graph: TaskGraph, factor: float, *, with_silence: bool = True) -> TaskGraph:
    """The graph with all host work that a scenario may change taking `factor` of its time.

    Args:
        graph: to change.
        factor: new time / old time.
        with_silence: also silence without a known cause, which may be no work.
    """
    tasks = graph.tasks
    chosen = free(graph, np.isin(tasks.kind, [int(kind) for kind in WORKING]))
    kept_ns = np.zeros_like(tasks.dur_ns) if with_silence else tasks.unexplained_ns
    kept_ns = np.minimum(kept_ns, tasks.dur_ns)
    scaled_ns = kept_ns + np.rint((tasks.dur_ns - kept_ns) * factor).astype(np.int64)
    return with_durations(graph, np.where(chosen, scaled_ns, tasks.dur_ns))
