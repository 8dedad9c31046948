"""A narrower element type for matrix products and what goes with them."""

from dataclasses import replace

import numpy as np
from msgspec import Struct

from ingest.errors import ScenarioError, UsageError
from ingest.vocab import ElementType
from replay.graph.arrays import Int64, TaskGraph
from replay.graph.work import KernelWork
from whatif.models.kernels.machine import machine_of
from whatif.models.kernels.precision import KNOWN_ERROR, Recast, recast
from whatif.models.kernels.roofline import MATRIX
from whatif.transforms.base import Applied, Context, with_durations
from whatif.transforms.gpu import NO_DEVICE_WORK, Located, located, present_device
from whatif.transforms.machine import known

TYPES = ("bf16", "fp16", "fp8")


class Precision(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="precision"
):
    """Multiply in a narrower type; the collectives keep theirs."""

    dtype: str
    """bf16, fp16 or fp8."""

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        if self.dtype not in TYPES:
            raise UsageError(f"no precision `{self.dtype}`", hint="bf16, fp16 or fp8")

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--precision {self.dtype}"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Move matrix kernels to the peak of the type, and bytes that follow it.

        Raises:
            ScenarioError: the accelerator is not known, or its matrix units do not take the type.
        """
        label = f"precision {self.dtype}"
        now = known(graph, context)
        known_work = located(graph)
        if not len(known_work.task):
            return Applied(graph=graph, label=label, context=context, no_effect=NO_DEVICE_WORK)
        device = present_device(graph, now)
        machine, target = machine_of(device), ElementType[self.dtype.upper()]
        if target not in machine.native:
            raise ScenarioError(
                f"the matrix units of {device.name} do not take {self.dtype}",
                hint=f"put an accelerator that does before it: --gpu H100 --precision {self.dtype}",
            )
        result = recast(
            graph.tasks.dur_ns[known_work.task],
            known_work.kernels,
            known_work.operand_bytes,
            machine,
            target,
            context.bound,
        )
        if not result.changed.any():
            reason = f"no kernel is known to work in a wider type than {self.dtype}"
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        dur_ns = graph.tasks.dur_ns.copy()
        dur_ns[known_work.task] = result.dur_ns
        changed = replace(with_durations(graph, dur_ns), work=_work(graph, known_work.task, result))
        return Applied(
            graph=changed,
            label=label,
            context=now,
            assumptions=_told(graph, known_work, result, self.dtype),
            known_errors=(KNOWN_ERROR[ElementType[self.dtype.upper()]],),
        )


def _work(graph: TaskGraph, task: Int64, result: Recast) -> KernelWork:
    """The work as the next what-if of the stack finds it."""
    work = graph.work
    row = work.rows_of(graph.tasks.slice_id[task])
    seen = row >= 0
    dtype, size, operands = work.dtype.copy(), work.bytes.copy(), work.operand_bytes.copy()
    dtype[row[seen]] = result.dtype[seen]
    size[row[seen]] *= result.bytes_factor[seen]
    operands[row[seen]] *= result.operand_factor[seen]
    return replace(work, dtype=dtype, bytes=size, operand_bytes=operands)


def _told(graph: TaskGraph, known_work: Located, result: Recast, dtype: str) -> tuple[str, ...]:
    kernels, dur_ns = known_work.kernels, graph.tasks.dur_ns[known_work.task]
    matrix = np.isin(kernels.kernel_class, MATRIX)
    total = max(int(dur_ns[matrix].sum()), 1)
    moved = int(dur_ns[matrix & result.changed].sum()) / total
    unknown = int(dur_ns[matrix & (kernels.dtype == ElementType.UNKNOWN)].sum()) / total
    told = [
        f"{moved:.0%} of the time of matrix kernels moves to {dtype}, by its peak and bytes",
    ]
    if unknown >= 0.01:  # noqa: PLR2004  (below, it rounds to nothing)
        told.append(f"{unknown:.0%} of it has a type that the trace does not tell, and stays")
    if dtype == "fp8":
        told.append(
            "attention stays in 16 bits; operands are cast once, by passes of their own (range: "
            "not at all, twice)"
        )
    else:
        told.append(
            "elementwise work, norms and reductions in single precision halve their bytes (range: "
            "they stay); optimizers stay"
        )
    return (*told, "collectives keep their type")
