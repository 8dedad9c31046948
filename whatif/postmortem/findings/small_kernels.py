"""Many short kernels that take longer to launch than to run."""

import numpy as np

from ingest.units import format_ms
from ingest.vocab import TaskKind
from replay.graph.arrays import Int64, TaskGraph
from replay.graph.thresholds import LONE_LAUNCH_ROWS
from whatif.postmortem.contract import Finding
from whatif.postmortem.findings.saving import Told, finding, is_worth, twice
from whatif.postmortem.material import Material
from whatif.postmortem.wording import percent

LEVER = "CUDA graphs"
SHORT_NS = 20_000
"""A kernel that PyTorch launches eagerly costs the host 5 to 20 us of Python, dispatch and driver:
a device whose typical kernel is shorter runs out of work."""
ALONE_FRAC = 0.5
"""Of the kernels that are launched one by one: the others are in CUDA graphs already."""
LEAST_IDLE_FRAC = 0.05
"""Of the steps in which devices wait for launches; less is within what two runs differ by."""


def rule(material: Material) -> Finding | None:
    """Short kernels, devices that wait for launches, and a replay with CUDA graphs that helps."""
    reading, moved = material.answer.reading, twice(material, LEVER)
    if reading is None or moved is None or not is_worth(material, moved):
        return None
    graph = material.findings.graph
    kernels, alone = _kernels(graph)
    idle = reading.idle_launch_frac or 0.0
    if not len(alone) or len(alone) < ALONE_FRAC * len(kernels) or idle < LEAST_IDLE_FRAC:
        return None
    median_ns = int(np.median(graph.tasks.dur_ns[alone]))
    if median_ns >= SHORT_NS:
        return None
    per_step = round(len(kernels) / len(graph.steps) / len(graph.ranks))
    told = Told(
        key="small_kernels",
        section="kernels",
        insight=f"{per_step:,} kernels per step and rank, half of them shorter than "
        f"{median_ns / 1e3:,.1f} us: devices wait for launches {percent(idle)} of the time",
        evidence=f"median kernel {median_ns / 1e3:,.1f} us (told below {SHORT_NS / 1e3:,.0f} us), "
        f"idle for launches {idle:.1%} (told from {LEAST_IDLE_FRAC:.0%} on); the kernels launched "
        f"as CUDA graphs save {format_ms(moved.saving_ns)}",
        query=material.ask.query("kernel_lengths"),
        action='CUDA graphs (torch.compile(mode="reduce-overhead"), torch.cuda.graph), fused '
        "kernels, a larger batch per step",
    )
    return finding(material, told, moved)


def _kernels(graph: TaskGraph) -> tuple[Int64, Int64]:
    """Tasks of all kernels in the steps, and of those that a call of their own launched."""
    tasks = graph.tasks
    kernels = np.flatnonzero((tasks.kind == TaskKind.KERNEL) & (tasks.step >= 0))
    launched = kernels[tasks.caller[kernels] >= 0]
    of_caller = np.bincount(tasks.caller[launched], minlength=graph.n_tasks)
    return kernels, launched[of_caller[tasks.caller[launched]] <= LONE_LAUNCH_ROWS]
