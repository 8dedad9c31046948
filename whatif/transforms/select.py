"""Selector text -> which tasks: `KEY:GLOB[,KEY:GLOB]`, all of which must match."""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

import numpy as np

from ingest.errors import ScenarioError, UsageError, nearest
from ingest.vocab import COMPUTE_CLASSES, HOST_KINDS, KernelClass, LaneKind, Phase, TaskKind
from replay.graph.arrays import Bool, Int64, TaskGraph
from whatif.transforms.host_calls import sync_names

HOST, COMPUTE = "host", "compute"
_NEXT_CLAUSE = re.compile(r",(?=\s*\w+:(?!:))")
_WILD = re.compile(r"[*?\[\]]")


def select(graph: TaskGraph, text: str) -> Bool:
    """Mask over the tasks that take time; names are case-sensitive and matched as a whole.

    Raises:
        UsageError: no selector, or an unknown key.
        ScenarioError: no task matches.
    """
    chosen: Bool = graph.tasks.kind != TaskKind.MEET
    for clause in _NEXT_CLAUSE.split(text.strip()):
        key, colon, glob = clause.strip().partition(":")
        if key not in KEYS or not colon or not glob:
            raise UsageError(
                f"`{text}` is no selector",
                hint=f"write KEY:GLOB with a key of {', '.join(KEYS)}; for example class:gemm",
            )
        found = KEYS[key](graph, glob)
        if not found.any():
            raise ScenarioError(
                f"no task matches `{key}:{glob}`",
                hint=nearest(_plain(glob), _known(graph, key)) or NOTHING_OF[key],
            )
        chosen = np.logical_and(chosen, found)
    if not chosen.any():
        raise ScenarioError(
            f"no task matches all of `{text}`", hint="each part matches some task: drop one"
        )
    return chosen


def matching_class(graph: TaskGraph, glob: str) -> Bool:
    """By class: a kernel class in lower case, `compute` for all that compute, or `host`."""
    kind = graph.tasks.kind
    host = np.isin(kind, [int(code) for code in HOST_KINDS])
    by_class = np.array([fnmatchcase(code.name.lower(), glob) for code in KernelClass])
    member = np.isin(kind, (TaskKind.ARRIVE, TaskKind.TRANSFER, TaskKind.MEET))
    label = np.where(member, int(KernelClass.COLLECTIVE), graph.tasks.kernel_class)
    found: Bool = np.where(host, fnmatchcase(HOST, glob), by_class[label])
    if fnmatchcase(COMPUTE, glob):
        found |= is_compute(graph)
    return found


def is_compute(graph: TaskGraph) -> Bool:
    """Kernels that are no communication."""
    compute = np.isin(graph.tasks.kernel_class, [int(code) for code in COMPUTE_CLASSES])
    found: Bool = compute & (graph.tasks.kind == TaskKind.KERNEL)
    return found


def names_with(graph: TaskGraph, *parts: str) -> Bool:
    """Per name of the graph whether it has one of the parts; false at -1, which is no name."""
    return np.array([*(any(part in name for part in parts) for name in graph.names), False], bool)


def _matching_names(column: Callable[[TaskGraph], Int64]) -> Callable[[TaskGraph, str], Bool]:
    def matching(graph: TaskGraph, glob: str) -> Bool:
        index = column(graph)
        hit = np.zeros(len(graph.names) + 1, bool)
        for name in np.unique(index[index >= 0]):
            hit[name] = fnmatchcase(graph.names[name], glob)
        found: Bool = hit[index]
        return found

    return matching


def _matching_rank(graph: TaskGraph, glob: str) -> Bool:
    ranks = [info.rank for info in graph.ranks if fnmatchcase(str(info.rank), glob)]
    return np.isin(graph.tasks.rank, np.array(ranks, np.int64))


def _matching_stream(graph: TaskGraph, glob: str) -> Bool:
    hit = [
        lane.kind == LaneKind.STREAM and fnmatchcase(str(lane.stream), glob) for lane in graph.lanes
    ]
    found: Bool = np.array([*hit, False], bool)[graph.tasks.lane]
    return found


def _matching_phase(graph: TaskGraph, glob: str) -> Bool:
    hit = np.array([fnmatchcase(phase.name.lower(), glob) for phase in Phase])
    found: Bool = hit[graph.tasks.phase]
    return found


def _name(graph: TaskGraph) -> Int64:
    return graph.tasks.name.astype(np.int64)


def _op(graph: TaskGraph) -> Int64:
    return graph.tasks.op.astype(np.int64)


def _module(graph: TaskGraph) -> Int64:
    return graph.tasks.module.astype(np.int64)


def _matching_sync(graph: TaskGraph, glob: str) -> Bool:
    number, names = sync_names(graph)
    hit = np.array([*(fnmatchcase(name, glob) for name in names), False], bool)
    found: Bool = hit[number]
    return found


NAME_COLUMNS: dict[str, Callable[[TaskGraph], Int64]] = {
    "name": _name,
    "op": _op,
    "module": _module,
}
KEYS: dict[str, Callable[[TaskGraph, str], Bool]] = {
    "name": _matching_names(_name),
    "class": matching_class,
    "stream": _matching_stream,
    "rank": _matching_rank,
    "op": _matching_names(_op),
    "module": _matching_names(_module),
    "phase": _matching_phase,
    "sync": _matching_sync,
}


NOTHING_OF = dict.fromkeys(KEYS, "nothing here has this key") | {
    "sync": "no call waits for the device in this trace"
}
"""What to say where no task has the key at all."""


def names_sync(text: str) -> bool:
    """Whether a selector asks for blocking calls, so that it means their waits as well."""
    return any(clause.strip().startswith("sync:") for clause in _NEXT_CLAUSE.split(text.strip()))


def _known(graph: TaskGraph, key: str) -> list[str]:
    """Values of a key that occur in the graph."""
    if key in NAME_COLUMNS:
        index = NAME_COLUMNS[key](graph)
        return [graph.names[name] for name in np.unique(index[index >= 0])]
    if key == "rank":
        return [str(info.rank) for info in graph.ranks]
    if key == "stream":
        streams = {lane.stream for lane in graph.lanes if lane.kind == LaneKind.STREAM}
        return [str(stream) for stream in sorted(streams)]
    if key == "sync":
        number, names = sync_names(graph)
        return [names[found] for found in np.unique(number[number >= 0])]
    if key == "phase":
        return [Phase(code).name.lower() for code in np.unique(graph.tasks.phase)]
    labels = [HOST, COMPUTE, *(code.name.lower() for code in KernelClass)]
    return [label for label in labels if matching_class(graph, label).any()]


def _plain(glob: str) -> str:
    return _WILD.sub("", glob)
