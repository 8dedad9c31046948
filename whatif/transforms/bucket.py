"""Gradient buckets of another size, re-cut from the recorded ones."""

import math
from dataclasses import replace
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from ingest.errors import UsageError
from replay.graph.arrays import TaskGraph
from whatif.models.bound import Bound
from whatif.models.exchanges.state import FIRST_BUCKET_BYTES
from whatif.transforms.base import Applied, Context
from whatif.transforms.cuts import recut
from whatif.transforms.gradients import NO_GRADIENTS, Sequence, gradient_reductions, sequences
from whatif.transforms.machine import known
from whatif.transforms.ready import Ready
from whatif.transforms.rebucket import rebuilt
from whatif.transforms.retime import with_rate_of_hosts

MIB = 1 << 20
MOST_MIB = 1_000_000.0
KNOWN_ERROR = "gradient buckets 1 to 4% on measured runs"
EXACT = (
    "buckets are filled with the recorded gradients, and each closes with the one that fills it, "
    "as DDP does; launching more or fewer of them costs the host nothing"
)
SPREAD = (
    "sizes of gradients are not recorded: recorded buckets are split or joined whole, parts are "
    "ready evenly between them; launching more or fewer of them costs the host nothing"
)


class BucketMb(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="bucket_mb",
):
    """Reduce gradients in buckets of that size: DDP's `bucket_cap_mb`, in MiB."""

    size_mib: Annotated[float, Meta(gt=0)]

    def __post_init__(self) -> None:
        """Hold the same bound for the command line, which builds the struct directly."""
        if not (math.isfinite(self.size_mib) and 0 < self.size_mib <= MOST_MIB):
            raise UsageError(
                f"`{self.size_mib:g}` is no size of a bucket", hint="a number of MiB above 0: 25"
            )

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--bucket-mb {self.size_mib:g}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Cut anew: a bucket is launched when its last gradient is ready, and takes its bytes.

        Raises:
            ScenarioError: far too many buckets.
        """
        label = f"gradient buckets of {self.size_mib:g} MiB"
        now = known(graph, context)
        chosen = gradient_reductions(graph)
        found, left = sequences(graph, chosen)
        cap_bytes = max(round(self.size_mib * MIB), 1)
        ready = Ready.of(graph)
        # The range holds DDP's own way when no size is set: a small bucket comes first.
        first = min(FIRST_BUCKET_BYTES, cap_bytes) if now.bound is Bound.LOW else None
        cuts = [recut(ready, sequence, cap_bytes, first) for sequence in found]
        changed = [
            (sequence, cut)
            for sequence, cut in zip(found, cuts, strict=True)
            if not np.array_equal(cut.ends, sequence.ends)
        ]
        reason = None
        if not chosen.any():
            reason = NO_GRADIENTS
        elif not found:
            reason = "sizes or members of the buckets are not recorded"
        elif not changed:
            reason = "the buckets come out as they are"
        if reason is not None:
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        before, after = (
            sum(len(ends) for ends in each)
            for each in ([one.ends for one in found], [cut.ends for cut in cuts])
        )
        steps = max(len(graph.steps), 1)
        told = [
            f"{before / steps:.3g} buckets per step, of {_typical_mib(found):,.1f} MiB, become "
            f"{after / steps:.3g}"
        ]
        told.append(EXACT if all(cut.pieces.exact for _, cut in changed) else SPREAD)
        if left:
            told.append(f"{left} reductions stay: their size or members are not recorded")
        return Applied(
            graph=rebuilt(ready, now, changed),
            label=label,
            context=replace(with_rate_of_hosts(graph, now), anchor=None),
            assumptions=tuple(told),
            known_errors=(KNOWN_ERROR,),
        )


def _typical_mib(found: list[Sequence]) -> float:
    """Median size of the recorded buckets."""
    return float(np.median(np.concatenate([np.diff(one.ends, prepend=0) for one in found]))) / MIB
