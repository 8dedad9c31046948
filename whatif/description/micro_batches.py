"""How many micro-batches a step of a replica has: messages, forward passes, turns to backward."""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from ingest.vocab import LaneKind, Phase, TaskKind
from replay.graph.arrays import Bool, TaskGraph
from whatif.description.described import Finding, Sure

LEAST_FRAC = 0.25
"""A run of forward (or backward) work that is shorter than this share of the longest one of its
step is none: a loss, a metric, an operator that stands in the other phase."""


def alternations(graph: TaskGraph) -> dict[int, int]:
    """By rank, how often forward is followed by backward in a step: the usual count of its steps.

    In kernels, of CPU runs in host work. A rank without both phases is left out.
    """
    tasks = graph.tasks
    forward_or_backward = np.isin(tasks.phase, (Phase.FORWARD, Phase.BACKWARD))
    counted = (_work(graph)) & forward_or_backward & (tasks.step >= 0) & ~tasks.fixed
    found: dict[int, int] = {}
    for info in graph.ranks:
        at = np.flatnonzero(counted & (tasks.rank == info.rank))
        at = at[np.argsort(tasks.ts_ns[at], kind="stable")]
        counts = [
            _count(tasks.phase[mine] == Phase.BACKWARD, tasks.dur_ns[mine].astype(np.float64))
            for mine in (at[tasks.step[at] == step] for step in range(len(graph.steps)))
        ]
        usual = Counter(count for count in counts if count).most_common(1)
        if usual:
            found[info.rank] = usual[0][0]
    return found


def _work(graph: TaskGraph) -> Bool:
    """Tasks in whose order the phases stand."""
    tasks = graph.tasks
    kernels: Bool = tasks.kind == TaskKind.KERNEL
    if kernels.any():
        return kernels
    threads = np.array([lane.kind == LaneKind.THREAD for lane in graph.lanes] + [False])
    host: Bool = (tasks.kind == TaskKind.HOST_WORK) & threads[tasks.lane]
    return host


def _count(backward: Bool, dur_ns: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int:
    """Runs of forward that a run of backward follows, short runs left out."""
    if not len(backward):
        return 0
    run = np.concatenate([[0], np.cumsum(backward[1:] != backward[:-1])])
    length_ns = np.bincount(run, dur_ns)
    kinds = backward[np.concatenate([[True], run[1:] != run[:-1]])]
    long = np.zeros(len(kinds), bool)
    for kind in (False, True):
        mine = kinds == kind
        long |= mine & (length_ns >= LEAST_FRAC * length_ns[mine].max(initial=0.0))
    kept = kinds[long]
    return int((~kept[:-1] & kept[1:]).sum()) if len(kept) else 0


def micro_batches_of(
    labelled: Mapping[int, int], by_messages: Mapping[int, int], by_phases: Mapping[int, int]
) -> tuple[int, Finding, tuple[str, ...]]:
    """The count of a step, and whether the signs agree.

    Args:
        labelled: forward passes of a step by rank, by the labels.
        by_messages: forwards of a step by rank, by the messages between stages, per chunk.
        by_phases: alternations by rank; of a pipeline they are too coarse to compare.
    """
    ways = (
        (by_messages, Sure.MEASURED, "forwards of a step, by the messages between stages"),
        (labelled, Sure.MEASURED, "forward passes of a step"),
        (by_phases, Sure.MEASURED, "changes from forward to backward in a step"),
    )
    told = [(_usual(counts), sure, words) for counts, sure, words in ways if any(counts.values())]
    if not told:
        return 1, _finding(1, Sure.GUESSED, "nothing tells several"), ()
    count, sure, words = told[0]
    comparable = [one for one in told[1:] if not (by_messages and one[2] == ways[2][2])]
    others = [f"{name}: {other}" for other, _, name in comparable if other != count]
    doubts = [f"{words}: {count}, yet {others[0]}"] if others else []
    uneven = set((by_messages or labelled or by_phases).values())
    if len(uneven) > 1:
        doubts.append(f"ranks differ in micro-batches of a step: {sorted(uneven)}")
    return count, _finding(count, sure, f"{words}: {count}"), tuple(doubts)


def _usual(counts: Mapping[int, int]) -> int:
    return Counter(counts.values()).most_common(1)[0][0]


def _finding(count: int, sure: Sure, evidence: str) -> Finding:
    return Finding(what="batch.micro_batches", value=str(count), sure=sure, evidence=evidence)
