"""What sharded data parallelism works beside communicating, where a run does not shard any more.

FSDP gathers parameters into flat buffers and copies gradients out of them, under annotations of
its own (`FSDP::pre_forward`, `FSDP::post_backward_reduce`, …): all under them is its work.
"""

from dataclasses import replace

import numpy as np

from replay.graph.arrays import Bool, TaskGraph
from whatif.models.shape import SHARDS_PARAMETERS
from whatif.tape.segments import Tape
from whatif.transforms.base import free, with_durations
from whatif.transforms.relayout.parts import Ask

OWN = "FSDP::"


def without_own_work(tape: Tape, ask: Ask) -> tuple[Tape, tuple[str, ...]]:
    """The tape in which it takes no time where the target does not shard parameters, and a word."""
    if ask.before.degrees.zero < SHARDS_PARAMETERS or ask.target.degrees.zero >= SHARDS_PARAMETERS:
        return tape, ()
    graph = tape.graph
    own = free(graph, _under(graph)) & (graph.tasks.dur_ns > 0)
    if not own.any():
        return tape, ()
    spent_ms = int(graph.tasks.dur_ns[own].sum()) / 1e6 / max(len(graph.ranks), 1)
    dur_ns = np.where(own, 0, graph.tasks.dur_ns)
    told = (
        f"what FSDP works under its own annotations ({spent_ms / max(len(graph.steps), 1):,.3g} ms "
        "per rank and step) goes with it"
    )
    return replace(tape, graph=with_durations(graph, dur_ns)), (told,)


def _under(graph: TaskGraph) -> Bool:
    """Tasks that have such an annotation around them."""
    scopes = graph.scopes
    named = np.array([name.startswith(OWN) for name in graph.names], np.bool_)
    inside = named[scopes.name] if len(scopes.name) else np.zeros(0, np.bool_)
    # A node follows the one around it, so one pass in order reaches the whole tree.
    for node, around in enumerate(scopes.parent.tolist()):
        if around >= 0 and inside[around]:
            inside[node] = True
    row = scopes.rows_of(graph.tasks.slice_id)
    found: Bool = np.zeros(graph.n_tasks, np.bool_)
    known = row >= 0
    node_of = scopes.node[row[known]]
    found[known] = (node_of >= 0) & np.append(inside, False)[node_of]
    return found
