"""A host task follows the previous one of its thread."""

import numpy as np

from ingest.vocab import EdgeKind
from replay.graph.layout import Parts
from replay.graph.rules.base import Found, edge_list


def program_order(parts: Parts) -> Found:
    """Edges between neighbouring host tasks of a thread, without lag."""
    thread = parts.host_tasks.thread
    src = np.flatnonzero(thread[1:] == thread[:-1])
    return Found(edges=edge_list(src, src + 1, lag_ns=0, kind=EdgeKind.PROGRAM_ORDER))
