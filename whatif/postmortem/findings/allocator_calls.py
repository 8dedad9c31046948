"""cudaMalloc and cudaFree inside the steps: the caching allocator runs out of memory, or is new."""

from fnmatch import fnmatchcase

import numpy as np

from ingest.units import format_ms
from ingest.vocab import TaskKind
from replay.graph.arrays import Bool, TaskGraph
from whatif.postmortem.contract import Finding
from whatif.postmortem.findings.saving import Told, asked, finding, is_worth
from whatif.postmortem.material import Material
from whatif.postmortem.wording import percent
from whatif.transforms.host_calls import sync_names
from whatif.transforms.registry import Transform
from whatif.transforms.remove import Remove
from whatif.transforms.scale import Scale

CALLS = ("cudaMalloc*", "cudaFree*", "hipMalloc*", "hipFree*", "cuMem*")
"""Names of the runtime's allocation calls, and of the driver's for expandable segments."""
LEAST_FRAC = 0.01
"""Of the critical path: what two runs of one job differ by."""


def rule(material: Material) -> Finding | None:
    """Allocation calls on the critical path that a replay without them shows to cost time."""
    graph, path = material.findings.graph, material.findings.baseline.path
    calls = is_allocation(graph)
    on_path_ns = int(path.span_ns[calls[path.task]].sum())
    if not on_path_ns or on_path_ns < LEAST_FRAC * path.length_ns:
        return None
    changes = _without(graph, set(_names(graph, calls)))
    moved = asked(material, "no allocation calls", *changes)
    if moved is None or not is_worth(material, moved):
        return None
    share = on_path_ns / path.length_ns
    per_step_ns = round(on_path_ns / len(graph.steps))
    query = material.ask.query("allocation_cost")
    told = Told(
        key="allocator_calls",
        section="memory",
        insight=f"cudaMalloc and cudaFree take {format_ms(per_step_ns)} a step "
        f"({percent(share)} of the critical path): the allocator has to ask the driver",
        evidence=f"calls {', '.join(CALLS)} are {share:.1%} of the critical path, told from "
        f"{LEAST_FRAC:.0%} on; replayed without their time and waits: "
        f"{format_ms(moved.saving_ns)} less",
        query=query,
        action="record later (the first steps fill the cache); keep memory below the limit (smaller"
        " batch, checkpointing); PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; no "
        "torch.cuda.empty_cache() in the step",
    )
    return finding(material, told, moved)


def is_allocation(graph: TaskGraph) -> Bool:
    """Calls of the host that get memory from the driver or give it back; shape (tasks,)."""
    named = [any(fnmatchcase(name, glob) for glob in CALLS) for name in graph.names]
    found: Bool = np.array([*named, False], bool)[graph.tasks.name]
    found &= graph.tasks.kind == TaskKind.HOST_CALL
    return found


def _names(graph: TaskGraph, calls: Bool) -> list[str]:
    return [graph.names[number] for number in np.unique(graph.tasks.name[calls]).tolist()]


def _without(graph: TaskGraph, names: set[str]) -> list[Transform]:
    """Their waits taken out, then their own time."""
    waiting = sync_names(graph)[1]
    changes: list[Transform] = [
        Remove(where=f"sync:{glob}")
        for glob in CALLS
        if any(fnmatchcase(name, glob) for name in waiting)
    ]
    changes += [
        Scale(where=f"name:{glob}", factor=0)
        for glob in CALLS
        if any(fnmatchcase(name, glob) for name in names)
    ]
    return changes
