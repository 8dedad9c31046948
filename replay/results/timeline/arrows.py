"""Arrows from launching calls to what they launched, and between members of collectives."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ingest.vocab import TaskKind
from replay.graph.arrays import Int64
from replay.results.critical_path import collective_label
from replay.results.timeline.events import Flow, FlowPoint
from replay.results.timeline.told import Told


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the tasks of a version are drawn; track 0 is nowhere."""

    pid: Int64
    tid: Int64
    ts_ns: Int64


def arrows(told: Told, places: Places, first_number: int) -> Iterator[Flow]:
    """From launching calls to what they launched, and between members of collectives.

    Args:
        told: of the version.
        places: of its slices.
        first_number: of arrows that no other version uses.
    """
    number = first_number
    for category, name, tasks in _ends_of_arrows(told, places):
        points = tuple(
            FlowPoint(
                pid=int(places.pid[task]), tid=int(places.tid[task]), ts_ns=int(places.ts_ns[task])
            )
            for task in tasks
        )
        yield Flow(number=number, category=category, name=name, points=points)
        number += 1


def _ends_of_arrows(told: Told, places: Places) -> Iterator[tuple[str, str, list[int]]]:
    graph = told.version.graph
    tasks = graph.tasks
    shown = places.tid > 0
    launched = np.flatnonzero((tasks.caller >= 0) & shown & (tasks.kind != TaskKind.TRANSFER))
    launched = launched[shown[tasks.caller[launched]]]
    caller = tasks.caller[launched]
    for task, source in zip(launched.tolist(), caller.tolist(), strict=True):
        if places.ts_ns[source] <= places.ts_ns[task]:
            yield "launch", "launch", [source, task]
    members = np.flatnonzero((tasks.kind == TaskKind.ARRIVE) & shown)
    order = np.lexsort((places.ts_ns[members], tasks.collective[members]))
    members = members[order]
    _, first = np.unique(tasks.collective[members], return_index=True)
    for group in np.split(members, first[1:]):
        if len(group) > 1:
            number = int(tasks.collective[group[0]])
            kind, comm = graph.collectives.kind[number], graph.collectives.group[number]
            yield "collective", collective_label(graph, int(kind), int(comm)), group.tolist()
