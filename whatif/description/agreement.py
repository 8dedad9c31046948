"""Labels of ranks and steps that run the same program: those of one, carried to the others.

Ranks of a stage launch the same kernels and collectives in the same order, in every step. What
passes were told apart in one of them is then told of all alike; else members of one collective
would lie in different layers, and another layout would have them wait for one another.
"""

from collections.abc import Mapping
from dataclasses import fields, replace

import numpy as np

from ingest.vocab import HOST_KINDS, TaskKind
from replay.graph.arrays import NONE, Bool, Int64, TaskGraph
from whatif.description.labels import Labels, Part

LEAST_ALIKE_FRAC = 0.9
"""Of the tasks of a rank in a step that are as many, by name, as on the reference: with fewer it
ran another program, and keeps its own labels."""
BODY = (Part.OTHER, Part.EMBEDDING, Part.LAYER, Part.HEAD)
_WORK = (TaskKind.KERNEL, TaskKind.MEMCPY, TaskKind.MEMSET)
_MEMBER = (TaskKind.ARRIVE, TaskKind.TRANSFER)


def agreed(graph: TaskGraph, labels: Labels, stage_of_rank: Mapping[int, int]) -> Labels:
    """The labels, those of one rank and step of each stage carried over to the others."""
    item, name = _items(graph)
    columns = {field.name: getattr(labels, field.name).copy() for field in fields(labels)}
    key = _keys(labels)
    changed = np.zeros(graph.n_tasks, bool)
    tasks = graph.tasks
    for stage in sorted(set(stage_of_rank.values())):
        ranks = [rank for rank, at in stage_of_rank.items() if at == stage]
        mine = np.flatnonzero((item >= 0) & np.isin(tasks.rank, ranks))
        order = np.lexsort((tasks.step[mine], tasks.rank[mine]))
        mine = mine[order]
        differs = (np.diff(tasks.rank[mine]) != 0) | (np.diff(tasks.step[mine]) != 0)
        runs = np.split(mine, np.flatnonzero(differs) + 1)
        if len(runs) > 1:
            _carry(item, name, key, runs, (columns, changed))
    if not changed.any():
        return labels
    _fill(graph, columns, changed)
    return replace(labels, **columns)


def _keys(labels: Labels) -> Int64:
    """A number of each task's part, direction, layer and micro-batch."""
    key = np.zeros(len(labels), np.int64)
    for column in (labels.part, labels.direction, labels.layer, labels.micro_batch):
        key = key * (int(column.max(initial=0)) + 2) + column + 1
    return key


def _carry(
    item: Int64,
    name: Int64,
    key: Int64,
    runs: list[Int64],
    into: tuple[dict[str, np.ndarray], Bool],
) -> None:
    """Give the tasks of the others what their counterparts on the reference have.

    Counterparts have names of which there are as many on both.
    """
    columns, changed = into
    reference = runs[_reference(item, key, runs)]
    order = np.argsort(item[reference], kind="stable")
    known = item[reference[order]]
    n_names = int(name.max(initial=0)) + 1
    counts = np.bincount(name[reference], minlength=n_names)
    for mine in runs:
        at = np.minimum(np.searchsorted(known, item[mine]), len(known) - 1)
        as_many = counts == np.bincount(name[mine], minlength=n_names)
        alike = (known[at] == item[mine]) & as_many[name[mine]]
        if mine is reference or alike.sum() < LEAST_ALIKE_FRAC * max(len(mine), len(reference)):
            continue
        source, target = reference[order[at[alike]]], mine[alike]
        if (key[source] == key[target]).all():
            continue
        for column in columns.values():
            column[target] = column[source]
        changed[target] = True


def _reference(item: Int64, key: Int64, tasks: list[Int64]) -> int:
    """What tells most passes apart; of equals the one that most others agree with."""
    told = [len(np.unique(key[mine])) for mine in tasks]
    every = np.concatenate(tasks)
    pairs, place, count = np.unique(
        np.stack([item[every], key[every]]), axis=1, return_inverse=True, return_counts=True
    )
    del pairs
    agree = np.split(count[place.ravel()], np.cumsum([len(mine) for mine in tasks])[:-1])
    return max(range(len(tasks)), key=lambda at: (told[at], float(agree[at].mean())))


def _items(graph: TaskGraph) -> tuple[Int64, Int64]:
    """Per task, a number that its counterparts have too, and one of its name; -1 for none.

    The number is of the name and of how many came before it on its rank in its step. Device work
    and members of collectives count; of runs without devices operators and members.
    """
    tasks = graph.tasks
    work = np.isin(tasks.kind, _WORK)
    name = tasks.name.astype(np.int64)
    if not work.any():
        work = (tasks.kind == TaskKind.HOST_WORK) & (tasks.op != NONE)
        name = np.where(work, tasks.op, name).astype(np.int64)
    for number, kind in enumerate(_MEMBER):
        member = tasks.kind == kind
        name[member] += len(graph.names) * (number + 1)
        work |= member
    task = np.flatnonzero(work & (tasks.step >= 0) & ~tasks.fixed)
    columns = (tasks.rank[task], tasks.step[task], name[task])
    order = np.lexsort((tasks.ts_ns[task], *columns[::-1]))
    task = task[order]
    same = np.ones(len(task), bool)
    for column in columns:
        same[1:] &= column[order][1:] == column[order][:-1]
    same[:1] = False
    start = np.flatnonzero(~same)
    nth = np.arange(len(task)) - np.repeat(start, np.diff(np.append(start, len(task))))
    _, of_name = np.unique(name[task], return_inverse=True)
    item, dense = (np.full(graph.n_tasks, NONE, np.int64) for _ in range(2))
    dense[task] = of_name
    item[task] = of_name * (int(nth.max(initial=0)) + 1) + nth
    return item, dense


def _fill(graph: TaskGraph, columns: dict[str, np.ndarray], changed: Bool) -> None:
    """Host work of the ranks that changed: what it launches next, else launched last.

    Host work of a part around the passes keeps it, as does a thread that launches nothing.
    """
    tasks = graph.tasks
    calls = np.flatnonzero(changed & (tasks.caller != NONE))
    caller = tasks.caller[calls]
    for name, column in columns.items():
        if name != "place":
            column[caller] = column[calls]
    anchor = changed & np.isin(tasks.kind, tuple(HOST_KINDS))
    anchor[caller] = True
    host = np.isin(tasks.kind, tuple(HOST_KINDS)) & (tasks.step >= 0)
    lane = np.zeros(len(graph.lanes), bool)
    lane[tasks.lane[anchor]] = True
    host &= lane[tasks.lane]
    task = np.flatnonzero(host)
    task = task[np.lexsort((tasks.ts_ns[task], tasks.step[task], tasks.lane[task]))]
    loose = ~anchor[task] & np.isin(columns["part"][task], BODY)
    source = _nearest(anchor[task], tasks.lane[task], tasks.step[task])
    filled = loose & (source >= 0)
    for name in ("part", "direction", "layer", "micro_batch"):
        columns[name][task[filled]] = columns[name][task[source[filled]]]


def _nearest(anchor: Bool, lane: np.ndarray, step: np.ndarray) -> Int64:
    """Per row the next anchor of its lane and step, else the last; -1."""
    n_rows = len(anchor)
    at = np.arange(n_rows)
    following = np.minimum.accumulate(np.where(anchor, at, n_rows)[::-1])[::-1]
    before = np.maximum.accumulate(np.where(anchor, at, -1))

    def holds(row: Int64) -> Bool:
        inside = np.clip(row, 0, max(n_rows - 1, 0))
        found: Bool = (row == inside) & (lane[inside] == lane) & (step[inside] == step)
        return found

    return np.where(holds(following), following, np.where(holds(before), before, -1))
