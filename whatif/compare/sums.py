"""Pieces added up by what they are spent on, in whole nanoseconds that add up to the step."""

import re
from collections.abc import Iterator

import numpy as np

from ingest.vocab import CollectiveKind, KernelClass, Phase, TaskKind
from replay.graph.arrays import NONE, Int64, TaskGraph
from whatif.compare import walks
from whatif.compare.leaves import CPU, IDLE, PARTS, Key, Leaf, RankAccount
from whatif.compare.pieces import COLUMNS, Pieces, Way, all_names
from whatif.compare.side import Side

_STEP = re.compile(r"ProfilerStep#\d+")


def leaves_of(side: Side, pieces: Pieces, weight: int, step_ns: int) -> Iterator[Leaf]:
    """The pieces by key, with whole nanoseconds that add up to the step."""
    graph, names = side.graph, all_names(side)
    rows, leaf = np.unique(pieces.keys, axis=0, return_inverse=True)
    keys = [_key(graph, names, row) for row in rows.tolist()]
    distinct = sorted(set(keys))
    place = {key: number for number, key in enumerate(distinct)}
    leaf = np.array([place[key] for key in keys], np.int64)[leaf.reshape(-1)]
    n_ranks, n_steps = len(graph.ranks), len(graph.steps)
    share = weight * n_ranks
    whole = _exact_sums(leaf, len(distinct), pieces.units)
    spent_ns = whole_numbers(whole, walks.UNITS * share * n_steps, step_ns)
    per_step = np.zeros((len(distinct), n_steps))
    np.add.at(per_step, (leaf, pieces.step), pieces.units / (walks.UNITS * share))
    count = np.bincount(leaf, pieces.count, len(distinct)) / (share * n_steps)
    raw_ns = np.bincount(leaf, pieces.raw_ns, len(distinct)) / (share * n_steps)
    places = _places(graph, pieces, leaf)
    for number, key in enumerate(distinct):
        yield Leaf(
            key=key,
            spent_ns=spent_ns[number],
            per_step_ns=tuple(per_step[number].tolist()),
            count=float(count[number]),
            raw_ns=float(raw_ns[number]),
            places=tuple(places.get(number, ())),
        )


def _places(graph: TaskGraph, pieces: Pieces, leaf: Int64) -> dict[int, list[int]]:
    """Per leaf the ordinals of its kernels among those of their operators and phase."""
    ordinal = _ordinals(graph)
    chosen = np.flatnonzero((pieces.task >= 0) & (ordinal[pieces.task] >= 0))
    pairs = np.unique(np.column_stack([leaf[chosen], ordinal[pieces.task[chosen]]]), axis=0)
    found: dict[int, list[int]] = {}
    for number, place in pairs.tolist():
        found.setdefault(number, []).append(place)
    return found


def _ordinals(graph: TaskGraph) -> Int64:
    """Per task; -1 for all but the kernels of the first rank's first step that have an operator."""
    tasks = graph.tasks
    first = (tasks.kind == TaskKind.KERNEL) & (tasks.op >= 0) & (tasks.rank == graph.ranks[0].rank)
    ids = np.flatnonzero(first & (tasks.step == 0))
    issued_ns = np.where(tasks.caller[ids] >= 0, tasks.ts_ns[tasks.caller[ids]], tasks.ts_ns[ids])
    group = tasks.op[ids].astype(np.int64) * len(Phase) + tasks.phase[ids]
    order = np.lexsort((tasks.ts_ns[ids], issued_ns, group))
    group, ids = group[order], ids[order]
    ordinal = np.full(graph.n_tasks, NONE, np.int64)
    ordinal[ids] = np.arange(len(ids)) - np.searchsorted(group, group)
    return ordinal


def rank_accounts(
    graph: TaskGraph, pieces: Pieces, weight: int, step_ns: int
) -> Iterator[RankAccount]:
    """The parts of each rank, which add up to the step."""
    part = pieces.keys[:, COLUMNS.index("part")]
    whole = _exact_sums(
        pieces.rank * len(PARTS) + part, len(graph.ranks) * len(PARTS), pieces.units
    )
    for position, info in enumerate(graph.ranks):
        mine = whole[position * len(PARTS) : (position + 1) * len(PARTS)]
        parts_ns = whole_numbers(mine, walks.UNITS * weight * len(graph.steps), step_ns)
        yield RankAccount(rank=info.rank, parts_ns=dict(zip(PARTS, parts_ns, strict=True)))


def _exact_sums(group: Int64, n_groups: int, units: Int64) -> list[int]:
    """Sums of units, which together may pass 64 bits."""
    high, low = np.zeros(n_groups, np.int64), np.zeros(n_groups, np.int64)
    np.add.at(high, group, units // walks.UNITS)
    np.add.at(low, group, units % walks.UNITS)
    return [
        above * walks.UNITS + below
        for above, below in zip(high.tolist(), low.tolist(), strict=True)
    ]


def whole_numbers(parts: list[int], divisor: int, total: int) -> list[int]:
    """`parts / divisor` in whole numbers that add up to `total`: largest remainders first.

    `total` is the exact sum, rounded.
    """
    whole = [part // divisor for part in parts]
    left = total - sum(whole)
    order = sorted(range(len(parts)), key=lambda place: (-(parts[place] % divisor), place))
    for place in order[:left]:
        whole[place] += 1
    return whole


def _key(graph: TaskGraph, names: tuple[str, ...], row: list[int]) -> Key:
    column = dict(zip(COLUMNS, row, strict=True))
    name, op, module = (_text(names, column[each]) for each in ("name", "op", "module"))
    return Key(
        part=PARTS[column["part"]],
        cause=_cause(Way(column["way"]), column["cause"], name),
        name=name,
        op="" if op == name else op,
        module=module,
        phase="" if column["phase"] == Phase.UNKNOWN else Phase(column["phase"]).name.lower(),
        shape=column["shape"],
        size_bytes=column["size"],
        group=_group(graph, column["group"]),
    )


def _cause(way: Way, code: int, name: str) -> str:
    if way is Way.CPU:
        return CPU
    if way is Way.IDLE:
        return IDLE[code]
    if way is Way.COLLECTIVE:
        return CollectiveKind(code).name.lower() if code else "collective of unknown kind"
    if way is Way.COPY:
        return name.partition("(")[0].strip() or "copy"
    return KernelClass(code).name.lower()


def _text(names: tuple[str, ...], number: int) -> str:
    """Annotations that only number the step are no name of anything."""
    return "" if number < 0 or _STEP.fullmatch(names[number]) else names[number]


def _group(graph: TaskGraph, number: int) -> str:
    if number < 0:
        return ""
    group = graph.groups[number]
    ranks = f"{group.size} ranks" if group.size else ""
    return ", ".join(filter(None, [group.description, ranks]))
