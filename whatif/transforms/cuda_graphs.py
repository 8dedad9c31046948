"""Work launched by CUDA or HIP graphs: one call in place of all the launches that it holds."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from msgspec import Struct

from ingest.vocab import DEVICE_KINDS, HOST_KINDS, EdgeKind, RuntimeKind, TaskKind
from replay.engine.run import replay
from replay.graph.arrays import NONE, Bool, Int64, TaskGraph
from replay.graph.csr import destinations
from whatif.models.bound import Bound
from whatif.models.graph_launch import LaunchCost, launch_cost
from whatif.transforms.base import Applied, Context
from whatif.transforms.host_calls import SYNCHRONISE, call_kinds, device_waits
from whatif.transforms.rewire import rewired
from whatif.transforms.select import names_with

SHUT_OUT = (*SYNCHRONISE, RuntimeKind.MALLOC, RuntimeKind.FREE)
"""Calls that a graph cannot hold: they wait for the device or change its memory."""
LOADER, PAGEABLE = "the data loader", "copies of pageable memory"
LEAST_LAUNCHES = 2
"""A graph of one launch saves nothing."""
TOLD = 4
"""Kinds of obstacles that are named."""


class CudaGraphs(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag="cuda_graphs",
):
    """Each run of launches without an obstacle between them becomes one graph, step by step.

    Of the host nothing is left between the first and the last launch of a graph, as the host code
    there ran when the graph was captured; the device keeps its order, streams and events.
    """

    @property
    def flag(self) -> str:
        """As typed."""
        return "--cuda-graphs"

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Take the host work inside the graphs away and charge their launches."""
        label = "CUDA graphs"
        scene = _scene(graph)
        if not scene.launch.any():
            reason = (
                "all device work is launched by graphs already"
                if scene.graph_launch.any()
                else "no launch of device work is recorded in the steps"
            )
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        cost = _cost(graph, scene, context.bound)
        captured = _captured(graph, scene, cost)
        if not captured.inside.any():
            reason = (
                f"no run of launches is worth a graph: between them stand {_told(graph, scene)}"
            )
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        return Applied(
            graph=_changed(graph, captured, cost),
            label=label,
            context=context,
            known_errors=(
                "launches by graphs not judged: no public pair of runs differs in this alone",
            ),
            assumptions=(_summary(graph, captured, cost), *_obstacles(graph, scene), FIXED_SHAPES),
        )


FIXED_SHAPES = (
    "a graph runs the same kernels on the same memory each time, so that shapes may not change; no "
    "public pair of traces judges this what-if"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """Calls of the host in the steps: what could be in a graph, and what stands in between."""

    nodes: Int64
    """Per task: device tasks that it launched."""
    launch: Bool
    graph_launch: Bool
    obstacle: Bool
    names: Counter[str]
    """Obstacles by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Captured:
    first: Int64
    """First launching call of each graph."""
    nodes: Int64
    launches: int
    """Calls that the graphs stand for."""
    inside: Bool
    """Tasks of the host that are gone, the first calls among them."""


def _scene(graph: TaskGraph) -> _Scene:
    tasks = graph.tasks
    kinds = call_kinds(graph)
    on_device = np.isin(tasks.kind, [int(kind) for kind in DEVICE_KINDS - {TaskKind.TRANSFER}])
    launched = on_device & (tasks.caller != NONE)
    nodes = np.bincount(tasks.caller[launched], minlength=graph.n_tasks)
    in_steps = (tasks.step >= 0) & ~tasks.fixed
    graph_launch = in_steps & (kinds == RuntimeKind.GRAPH_LAUNCH)
    obstacle, names = _find_obstacles(graph, kinds, in_steps)
    launch = in_steps & (nodes > 0) & (kinds >= 0) & ~graph_launch & ~obstacle
    return _Scene(
        nodes=nodes, launch=launch, graph_launch=graph_launch, obstacle=obstacle, names=names
    )


def _find_obstacles(graph: TaskGraph, kinds: Int64, in_steps: Bool) -> tuple[Bool, Counter[str]]:
    tasks = graph.tasks
    obstacle = np.zeros(graph.n_tasks, bool)
    names: Counter[str] = Counter()
    shut_out = in_steps & np.isin(kinds, [int(kind) for kind in SHUT_OUT])
    copies = in_steps & (kinds == RuntimeKind.MEMCPY)
    blocking = copies & ~names_with(graph, "Async")[tasks.name]
    for mask in (shut_out, blocking):
        names.update(graph.names[name] for name in tasks.name[mask])
    pageable = np.zeros(graph.n_tasks, bool)
    moved = (tasks.kind == TaskKind.MEMCPY) & names_with(graph, "Pageable")[tasks.name]
    pageable[tasks.caller[moved & (tasks.caller != NONE)]] = True
    pageable &= copies & ~blocking
    waits = in_steps & device_waits(graph)
    loader = in_steps & np.isin(tasks.kind, [int(kind) for kind in HOST_KINDS])
    fetching = names_with(
        graph, "enumerate(DataLoader", "DataLoader.__next__", "DataLoaderIter.__next__"
    )
    loader &= fetching[tasks.name] | fetching[tasks.module]
    names[PAGEABLE] += int(pageable.sum())
    names[LOADER] += int(loader.sum())
    for mask in (shut_out, blocking, pageable, waits, loader):
        obstacle |= mask
    return obstacle, +names


def _cost(graph: TaskGraph, scene: _Scene, bound: Bound) -> LaunchCost:
    recorded = np.flatnonzero(scene.graph_launch & (scene.nodes > 0))
    return launch_cost(graph.tasks.dur_ns[recorded], scene.nodes[recorded], bound)


def _captured(graph: TaskGraph, scene: _Scene, cost: LaunchCost) -> _Captured:
    """The graphs that are shorter to launch than the host work that they replace."""
    tasks = graph.tasks
    threads = _Threads(graph)
    inside = np.zeros(graph.n_tasks, bool)
    firsts, nodes, launches = [], [], 0
    for calls in _runs(graph, scene):
        held = threads.between(calls)
        held = held[~scene.obstacle[held] & ~tasks.fixed[held]]
        count = int(scene.nodes[calls].sum())
        if cost.ns(np.array([count]))[0] < tasks.dur_ns[held].sum():
            inside[held] = True
            firsts.append(int(calls[0]))
            nodes.append(count)
            launches += len(calls)
    return _Captured(
        first=np.array(firsts, np.int64),
        nodes=np.array(nodes, np.int64),
        launches=launches,
        inside=inside,
    )


def _runs(graph: TaskGraph, scene: _Scene) -> Iterator[Int64]:
    """Launching calls of a rank and step with nothing between them that a graph cannot hold."""
    tasks = graph.tasks
    ids = np.flatnonzero(scene.launch | scene.obstacle | scene.graph_launch)
    ids = ids[np.lexsort((ids, tasks.ts_ns[ids], tasks.step[ids], tasks.rank[ids]))]
    cut = ~scene.launch[ids]
    cut[1:] |= (np.diff(tasks.rank[ids]) != 0) | (np.diff(tasks.step[ids]) != 0)
    run = np.cumsum(cut)
    ids, run = ids[scene.launch[ids]], run[scene.launch[ids]]
    for calls in np.split(ids, np.flatnonzero(np.diff(run)) + 1):
        if len(calls) >= LEAST_LAUNCHES:
            yield calls


class _Threads:
    """Tasks of each host thread in the order of time."""

    def __init__(self, graph: TaskGraph) -> None:
        self._tasks = graph.tasks
        host = np.isin(graph.tasks.kind, [int(kind) for kind in HOST_KINDS])
        ids = np.flatnonzero(host)
        lane = graph.tasks.lane[ids]
        order = np.lexsort((ids, graph.tasks.ts_ns[ids], lane))
        self._ids, self._lane = ids[order], lane[order]
        self._ts_ns = graph.tasks.ts_ns[self._ids]

    def between(self, calls: Int64) -> Int64:
        """Tasks of the threads of the calls, from the first call's start to the last one's end."""
        tasks = self._tasks
        lo_ns, hi_ns = tasks.ts_ns[calls].min(), (tasks.ts_ns[calls] + tasks.dur_ns[calls]).max()
        found = []
        for lane in np.unique(tasks.lane[calls]):
            mine = slice(*np.searchsorted(self._lane, [lane, lane + 1]))
            within = slice(*np.searchsorted(self._ts_ns[mine], [lo_ns, hi_ns + 1]))
            ids = self._ids[mine][within]
            found.append(ids[tasks.ts_ns[ids] + tasks.dur_ns[ids] <= hi_ns])
        return np.concatenate(found)


def _changed(graph: TaskGraph, captured: _Captured, cost: LaunchCost) -> TaskGraph:
    tasks, edges, inside = graph.tasks, graph.edges, captured.inside
    dur_ns = np.where(inside, 0, tasks.dur_ns)
    dur_ns[captured.first] = cost.ns(captured.nodes)
    dst = destinations(graph)
    # Threads of one graph hand over in no time, and its launches need no place in a queue.
    at_once = inside[dst] & inside[edges.src] & (edges.kind == EdgeKind.HAND_OVER)
    queued = inside[dst] & (edges.kind == EdgeKind.QUEUE_FULL)
    gone = inside | _launch_bound(graph, inside)
    changed = replace(
        graph,
        tasks=replace(tasks, dur_ns=dur_ns, residual_ns=np.where(gone, 0, tasks.residual_ns)),
        edges=replace(edges, lag_ns=np.where(at_once, 0, edges.lag_ns)),
    )
    return rewired(changed, ~queued)


def _launch_bound(graph: TaskGraph, inside: Bool) -> Bool:
    """Device tasks that began when their launch let them: its odd delays go with the launch."""
    blocked_by = replay(graph).blocked_by
    caller = graph.tasks.caller
    bound = (blocked_by >= 0) & (graph.edges.kind[blocked_by] == EdgeKind.LAUNCH)
    launched: Bool = bound & (caller != NONE) & inside[caller]
    return launched


def _summary(graph: TaskGraph, captured: _Captured, cost: LaunchCost) -> str:
    share = len(graph.ranks) * len(graph.steps)
    largest = int(captured.nodes.max())
    micros = cost.ns(np.array([largest]))[0] / 1e3
    noun = "launch" if len(captured.first) == share else "launches"
    return (
        f"{len(captured.first) / share:.3g} graph {noun} per rank and step for "
        f"{captured.launches / share:,.0f} launches; the largest, of {largest:,} nodes, takes "
        f"{micros:,.0f} us of its host thread, {cost.source}"
    )


def _obstacles(graph: TaskGraph, scene: _Scene) -> Iterator[str]:
    if scene.names:
        yield f"outside of the graphs stays what they cannot hold: {_told(graph, scene)}"


def _told(graph: TaskGraph, scene: _Scene) -> str:
    """The obstacles with their number per rank and step."""
    share = len(graph.ranks) * len(graph.steps)
    shown = [
        name if name == LOADER else f"{name} ({count / share:.3g})"
        for name, count in scene.names.most_common(TOLD)
    ]
    return f"per rank and step {', '.join(shown)}" if shown else "no launches of device work"
