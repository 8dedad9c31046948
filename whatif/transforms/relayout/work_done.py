"""What kernels compute and move where their copies do parts of it."""

from dataclasses import replace

import numpy as np

from ingest.vocab import TaskKind
from replay.graph.arrays import Float64, TaskGraph
from replay.graph.work import UNKNOWN


def with_parts_of_work(graph: TaskGraph, factor: Float64) -> TaskGraph:
    """The graph whose kernels compute and move, all copies together, what their parts add up to.

    Rows of work stand for a recorded kernel, not for one copy: each gets the mean of its copies, so
    that sums over the kernels of a run are right.

    Args:
        graph: as put together.
        factor: per task, the part of its work that it does.
    """
    work = graph.work
    if not len(work.slice_id):
        return graph
    row = work.rows_of(graph.tasks.slice_id)
    kernel = np.flatnonzero((row != UNKNOWN) & (graph.tasks.kind == TaskKind.KERNEL))
    n_rows = len(work.slice_id)
    count = np.bincount(row[kernel], minlength=n_rows)
    parts = np.bincount(row[kernel], factor[kernel], n_rows)
    mean = np.divide(parts, count, out=np.ones(n_rows), where=count > 0)
    changed = replace(
        work,
        flops=work.flops * mean,
        bytes=work.bytes * mean,
        operand_bytes=work.operand_bytes * mean,
    )
    return replace(graph, work=changed)
