"""How much longer operators take on the host while a collective on the host moves data.

Collectives of gloo or MPI run on threads of the process that computes, and share its cores and
caches. Equal operators (same name, same shapes, same rank) alone and beside a transfer tell by how
much: 1.1 to 1.7 on ranks of one core, whatever the rate of the link. Only what such operators cover
of the host's work slows so; sleep, for one, does not.
"""

import numpy as np

from ingest.store import Store
from ingest.vocab import TaskKind
from replay.graph import thresholds
from replay.graph.arrays import Bool, Float64, Int64
from replay.graph.layout import Parts
from replay.graph.recorded import SQL, Recorded
from replay.graph.scans import outermost

ALONE_FRAC, BESIDE_FRAC = 0.0, 0.9
"""Part of an operator beside transfers: at most the first is alone, at least the second beside."""


def host_slowdowns(store: Store, parts: Parts) -> tuple[float, ...]:
    """Per chosen file, time of its host work beside a transfer over that alone.

    At least 1, and 1 where too few equal operators ran both ways.
    """
    recorded = parts.recorded
    on_host = recorded.member.device_row < 0
    if not on_host.any():
        return (1.0,) * len(recorded.ranks)
    row, shape = _long_operators(store, recorded)
    host = recorded.host
    found = []
    for trace in range(len(recorded.ranks)):
        mine = row[host.trace[row] == trace]
        shapes = shape[host.trace[row] == trace]
        moving = on_host & (recorded.member.trace == trace)
        beside = beside_frac(
            host.ts_ns[mine],
            host.end_ns[mine],
            parts.meetings.go_ns[moving],
            recorded.member.end_ns[moving],
        )
        slowdown = _slowdown(host.end_ns[mine] - host.ts_ns[mine], shapes, beside)
        found.append(1.0 + (slowdown - 1.0) * _covered_frac(parts, mine, trace))
    return tuple(found)


def _covered_frac(parts: Parts, row: Int64, trace: int) -> float:
    """Part of the work of the threads that carry the steps of a file that operators cover."""
    host, host_tasks = parts.recorded.host, parts.host_tasks
    chosen = np.zeros(len(host), bool)
    chosen[row] = True
    holder = outermost(host.thread, host.ts_ns, host.end_ns, chosen)
    outer = row[holder[row] == row]
    threads = np.unique(parts.recorded.step.thread[parts.recorded.step.trace == trace])
    outer = outer[np.isin(host.thread[outer], threads)]
    work = np.isin(host_tasks.thread, threads) & (host_tasks.kind == TaskKind.HOST_WORK)
    work_ns = int(host_tasks.dur_ns[work].sum())
    covered_ns = int((host.end_ns[outer] - host.ts_ns[outer]).sum())
    return min(covered_ns / work_ns, 1.0) if work_ns else 0.0


def beside_frac(lo_ns: Int64, hi_ns: Int64, from_ns: Int64, to_ns: Int64) -> Float64:
    """Part of each stretch during which at least one of the others ran."""
    order = np.argsort(from_ns, kind="stable")
    begin_ns, latest_ns = from_ns[order], np.maximum.accumulate(to_ns[order])
    opens = np.ones(len(begin_ns), bool)
    opens[1:] = begin_ns[1:] > latest_ns[:-1]
    first = np.flatnonzero(opens)
    begin_ns = begin_ns[first]
    finish_ns = latest_ns[np.append(first[1:], len(opens)) - 1] if len(first) else begin_ns

    def covered_ns(until_ns: Int64) -> Float64:
        if not len(begin_ns):
            return np.zeros(len(until_ns))
        corners = np.stack([begin_ns, finish_ns], axis=1).ravel().astype(np.float64)
        sums = np.repeat(np.cumsum(finish_ns - begin_ns), 2).astype(np.float64)
        sums[::2] -= finish_ns - begin_ns
        covered: Float64 = np.interp(until_ns.astype(np.float64), corners, sums)
        return covered

    beside: Float64 = (covered_ns(hi_ns) - covered_ns(lo_ns)) / np.maximum(hi_ns - lo_ns, 1)
    return beside


def _long_operators(store: Store, recorded: Recorded) -> tuple[Int64, Int64]:
    """Long operators of PyTorch itself, and the number of their name and shapes.

    What surrounds them (autograd, modules) may hold collectives and waits.
    """
    host = recorded.host
    columns = store.arrays_from_file(
        SQL / "long_op.sql", {"least_ns": thresholds.TELLING_OPERATOR_NS}
    )
    slice_id = columns["slice_id"].astype(np.int64)
    order = np.argsort(slice_id)
    _, dims = np.unique(columns["dims"].astype(str), return_inverse=True)
    place = np.searchsorted(slice_id[order], host.slice_id)
    place = np.minimum(place, max(len(order) - 1, 0))
    known = np.zeros(len(host), bool)
    if len(order):
        known = slice_id[order][place] == host.slice_id
    plain: Bool = np.array([name.startswith("aten::") for name in recorded.names], bool)
    row = np.flatnonzero(known & plain[host.name]) if len(plain) else np.zeros(0, np.int64)
    pair = np.stack([host.name[row], dims[order][place[row]]], axis=1) if len(row) else None
    if pair is None:
        return row, np.zeros(0, np.int64)
    return row, np.unique(pair, axis=0, return_inverse=True)[1].astype(np.int64)


def _slowdown(dur_ns: Int64, shape: Int64, beside: Float64) -> float:
    """Median over the kinds of operators, each weighted by its time beside transfers."""
    ratios, weights = [], []
    for number in np.unique(shape):
        alone_ns = dur_ns[(shape == number) & (beside <= ALONE_FRAC)]
        beside_ns = dur_ns[(shape == number) & (beside >= BESIDE_FRAC)]
        if min(len(alone_ns), len(beside_ns)) >= thresholds.TWIN_OPERATORS:
            ratios.append(float(np.median(beside_ns) / np.median(alone_ns)))
            weights.append(int(beside_ns.sum()))
    if sum(weights) < thresholds.TELLING_OVERLAP_NS:
        return 1.0
    order = np.argsort(ratios)
    upto = np.cumsum(np.array(weights)[order])
    middle = int(np.searchsorted(upto, upto[-1] / 2))
    return max(float(np.array(ratios)[order][middle]), 1.0)
