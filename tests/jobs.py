"""Jobs of one recorded rank for tests: kernels, and calls of several communicators between them."""

from dataclasses import replace

import numpy as np

from ingest.vocab import CollectiveKind, Phase
from replay.graph.arrays import TaskGraph
from tests.builders import GraphBuilder

MB = 1_000_000
AR, AG, RS = CollectiveKind.ALL_REDUCE, CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER
A2A, P2P = CollectiveKind.ALL_TO_ALL, CollectiveKind.SEND_RECV
FWD, BWD, OPT, NO = Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER, Phase.UNKNOWN

Call = tuple[CollectiveKind, Phase, int]


def run(
    calls: list[tuple[tuple[int, ...], list[Call]]],
    *,
    world: int | None = None,
    names: dict[int, str] | None = None,
) -> TaskGraph:
    """Rank 0 of a job: kernels of 1 ms with the calls of each communicator between them."""
    build = GraphBuilder(world_size=world or max(max(ranks) for ranks, _ in calls) + 1)
    phases: list[Phase] = []
    ordered = sorted(
        ((place, number, call) for number, (_, of_group) in enumerate(calls)
         for place, call in enumerate(of_group)),
        key=lambda item: (item[2][1] or Phase.BACKWARD, item[0], item[1]),
    )  # fmt: skip
    for _, number, (kind, phase, size_bytes) in ordered:
        caller = build.call(0, "launch", 10_000)
        build.kernel(0, "gemm", 1_000_000, caller=caller)
        build.collective(
            100_000, callers={0: caller}, kind=kind, size_bytes=size_bytes, group=calls[number][0]
        )
        phases.append(phase)
    graph = build.build()
    return _in_groups(graph, [number for _, number, _ in ordered], phases, calls, names or {})


def _in_groups(
    graph: TaskGraph,
    group: list[int],
    phases: list[Phase],
    calls: list[tuple[tuple[int, ...], list[Call]]],
    names: dict[int, str],
) -> TaskGraph:
    groups = tuple(
        replace(graph.groups[0], ranks=ranks, size=len(ranks), description=names.get(number, ""))
        for number, (ranks, _) in enumerate(calls)
    )
    member = graph.tasks.collective
    phase = np.where(member >= 0, np.array([*phases, NO], np.int8)[member], NO).astype(np.int8)
    return replace(
        graph,
        groups=groups,
        tasks=replace(graph.tasks, phase=phase),
        collectives=replace(graph.collectives, group=np.array(group, np.int32)),
    )
