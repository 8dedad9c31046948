"""The optimizer on the host: its kernels leave the device, copies over PCIe and host work come.

ZeRO-Offload (arXiv:2101.06840): gradients go to the host beside backward, Adam runs on the
processors of the node, and parameters come back.
"""

from dataclasses import dataclass, replace

import numpy as np

from ingest.errors import ScenarioError, UsageError
from ingest.vocab import TaskKind
from replay.graph.arrays import NONE, Int64
from whatif.models.bound import Bound
from whatif.models.places import Part
from whatif.models.transformer.parameters import state_parameters
from whatif.tape.segments import Tape
from whatif.transforms.relayout.parts import Ask

ADAM_NS = {Bound.NOMINAL: 0.25, Bound.LOW: 0.125, Bound.HIGH: 0.5}
"""Per parameter, on all processors of a node: assumed. Adam reads and writes 28 bytes of each (copy
and moments in single precision there and back, the gradient and the new parameter in two bytes),
here at 112, 224 and 56 GB/s: of servers with six to twelve channels of memory on each socket."""
NS_PER_S = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Offloaded:
    """A tape whose optimizer works on the host."""

    tape: Tape
    assumptions: tuple[str, ...] = ()


def offloaded(tape: Tape, ask: Ask) -> Offloaded:
    """Put the optimizer's work where the target has it.

    Raises:
        ScenarioError: the optimizer, its parameters or the link to the host are not known; or it
            was on the host and shall leave it.
    """
    if ask.before.options.offload == ask.target.options.offload:
        return Offloaded(tape=tape)
    tasks = tape.graph.tasks
    kernels = np.flatnonzero(
        (tape.labels.part == Part.OPTIMIZER)
        & (tasks.kind == TaskKind.KERNEL)
        & (tasks.collective == NONE)
        & ~tasks.fixed
    )
    if not len(kernels):
        raise ScenarioError(
            "no optimizer was found on the devices of this run",
            hint="`replay describe` shows what was found",
        )
    whole_ns, told = _update_ns(ask)
    dur_ns = tasks.dur_ns.copy()
    dur_ns[kernels] = 0
    last = kernels[_last_of_steps(tape, kernels)]
    dur_ns[last] = whole_ns
    graph = replace(tape.graph, tasks=replace(tasks, dur_ns=dur_ns))
    return Offloaded(tape=replace(tape, graph=graph), assumptions=(told,))


def _update_ns(ask: Ask) -> tuple[int, str]:
    """Time of an update as the device waits for it, and how it comes about."""
    try:
        parameters = state_parameters(ask.target)
    except UsageError as error:
        raise ScenarioError(str(error), hint=error.hint) from error
    pcie = ask.context.links.pcie_bytes_per_s
    if pcie is None:
        raise ScenarioError(
            "the link between device and host is not known",
            hint="--base-gpu NAME or --base-pcie RATE says it",
        )
    bound, elements = ask.context.bound, ask.target.elements
    ranks = min(ask.context.places.gpus_per_node, ask.target.degrees.world)
    adam_ns = parameters * ranks * ADAM_NS[bound]
    back_ns = parameters * elements.parameter * NS_PER_S / pcie
    there_ns = parameters * elements.gradient * NS_PER_S / pcie
    seen_ns = adam_ns + back_ns + (there_ns if bound is Bound.HIGH else 0.0)
    told = (
        f"the optimizer's kernels give way to {adam_ns / 1e6:,.3g} ms on the host "
        f"({ranks} ranks share the processors of a node) and {back_ns / 1e6:,.3g} ms of copies of "
        f"parameters; those of gradients ({there_ns / 1e6:,.3g} ms) run beside backward "
        "(ZeRO-Offload); {ADAM_NS[bound]:g} ns of it per parameter are assumed"
    )
    return round(seen_ns), told


def _last_of_steps(tape: Tape, kernels: Int64) -> Int64:
    """Positions of the last kernel of each rank and step."""
    tasks = tape.graph.tasks
    order = np.lexsort((tasks.ts_ns[kernels], tasks.step[kernels], tasks.rank[kernels]))
    rank, step = tasks.rank[kernels][order], tasks.step[kernels][order]
    ends = np.append((rank[1:] != rank[:-1]) | (step[1:] != step[:-1]), True)
    found: Int64 = order[ends]
    return found
