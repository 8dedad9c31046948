"""Tasks of hosts, and runs that compute on them."""

import numpy as np

from ingest.vocab import HOST_KINDS, TaskKind
from replay.graph.arrays import Bool, TaskGraph


def host_tasks(graph: TaskGraph) -> Bool:
    """Work, calls and waits of threads."""
    return np.isin(graph.tasks.kind, [int(kind) for kind in HOST_KINDS])


def computes_on_hosts(graph: TaskGraph) -> bool:
    """No kernel was recorded: what threads do is the computation."""
    return not bool((graph.tasks.kind == TaskKind.KERNEL).any())
