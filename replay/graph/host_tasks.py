"""Host threads as chains of tasks, cut at anchors; waiting is a node without length."""

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from ingest.vocab import RuntimeKind, TaskKind
from replay.graph.arrays import Bool, Int64
from replay.graph.blocking import BlockingCalls
from replay.graph.nesting import Segments
from replay.graph.queues import FullQueues
from replay.graph.recorded import ANNOTATION, OP, Recorded
from replay.graph.scans import last_at_or_before, lay_out, outermost
from replay.graph.silence import Stretches

MARK, CALL, WAIT = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTasks:
    """Tasks of all threads by (thread, time): consecutive rows of a thread follow one another."""

    thread: Int64
    kind: Int64
    ts_ns: Int64
    dur_ns: Int64
    row: Int64
    """Host row of a call; for work the innermost row of its longest stretch; -1."""
    unexplained_ns: Int64
    call_task: Int64
    """Per host row: its HOST_CALL (or that of the call that holds it); -1."""
    block_task: Int64
    """Per position in `BlockingCalls.call`: its HOST_WAIT; -1."""
    stretch_task: Int64
    """Per stretch: its HOST_WAIT; -1 when it is work."""
    queue_task: Int64
    """Per position in `FullQueues.call`: its HOST_WAIT; -1."""
    start_task: Int64
    """Per thread: the HOST_WAIT that opens it; -1 when the thread carries no tasks."""

    def __len__(self) -> int:
        return len(self.thread)

    def ending_at(self, thread: Int64, moment_ns: Int64) -> Int64:
        """Last task of each thread that ended at or before the moment; -1 for none."""
        found = np.full(len(thread), -1, np.int64)
        first = np.searchsorted(self.thread, thread, side="left").tolist()
        last = np.searchsorted(self.thread, thread, side="right").tolist()
        for index, (lo, hi) in enumerate(zip(first, last, strict=True)):
            place = bisect_right(range(lo, hi), moment_ns[index], key=self._end_ns)
            found[index] = lo + place - 1 if place else -1
        return found

    def _end_ns(self, task: int) -> int:
        return int(self.ts_ns[task] + self.dur_ns[task])


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Where threads may have waited, numbered through in this order."""

    blocking: BlockingCalls
    stretches: Stretches
    """Long stretches; those with a cause are waits."""
    queues: FullQueues

    @property
    def first(self) -> tuple[int, int, int]:
        """Number of the first wait of each kind."""
        n_blocking = len(self.blocking.call)
        return 0, n_blocking, n_blocking + len(self.stretches.thread)

    @property
    def count(self) -> int:
        """How many there are."""
        return self.first[2] + len(self.queues.call)

    def of_calls(self) -> tuple[Int64, Int64, Int64]:
        """Calls that wait: host row, number of the wait, and when the call goes on, ns."""
        blocking, queues = self.blocking, self.queues
        number = [np.arange(len(blocking.call)), self.first[2] + np.arange(len(queues.call))]
        return (
            np.concatenate([blocking.call, queues.call]),
            np.concatenate(number),
            np.concatenate([blocking.resume_ns, queues.resume_ns]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Items:
    """Anchors of the threads, each with the interval that it takes out of the work."""

    thread: Int64
    lo_ns: Int64
    hi_ns: Int64
    type: Int64
    ref: Int64


def anchor_rows(recorded: Recorded) -> Bool:
    """Host rows that are anchors: calls that launch, copy, record, wait, block or allocate."""
    host = recorded.host
    chosen: Bool = (host.kind != RuntimeKind.OTHER) & (host.kind != RuntimeKind.EVENT_QUERY)
    linked = recorded.device.call[recorded.device.call >= 0]
    chosen[linked] = True
    return chosen


def build_host_tasks(
    recorded: Recorded,
    parts: Segments,
    holder: Int64,
    waits: Waits,
) -> HostTasks:
    """Cut every thread that matters into tasks.

    Args:
        recorded: columns of all ranks.
        parts: stretches between neighbouring rows.
        holder: per host row the outermost anchor that holds it (`nesting.outermost`).
        waits: where threads may have waited.
    """
    host = recorded.host
    stretches = waits.stretches
    items = _items(recorded, holder, waits)
    carries = _carrying(recorded, stretches)
    items = _sorted(items, carries[items.thread])
    n_threads = len(carries)
    first_row = np.searchsorted(host.thread, np.arange(n_threads))
    begin_ns = host.ts_ns[first_row] if n_threads else np.zeros(0, np.int64)
    finish_ns = np.full(n_threads, np.iinfo(np.int64).min)
    np.maximum.at(finish_ns, host.thread, host.end_ns)
    thread, kind, ts_ns, dur_ns, task_of_item, start_task = lay_out(
        carries, begin_ns, finish_ns, items.thread, items.lo_ns, items.hi_ns, items.type
    )
    call_task, wait_task = _maps(items, task_of_item, holder, waits.count)
    block_task, stretch_task, queue_task = np.split(wait_task, waits.first[1:])
    row, unexplained_ns = _contents(parts, stretches, thread, kind, ts_ns, dur_ns)
    is_call = np.flatnonzero(items.type == CALL)
    row[task_of_item[is_call]] = items.ref[is_call]
    return HostTasks(
        thread=thread,
        kind=kind,
        ts_ns=ts_ns,
        dur_ns=dur_ns,
        row=row,
        unexplained_ns=unexplained_ns,
        call_task=call_task,
        block_task=block_task,
        stretch_task=stretch_task,
        queue_task=queue_task,
        start_task=start_task,
    )


def _carrying(recorded: Recorded, stretches: Stretches) -> Bool:
    """Threads that launch work, carry the steps, or wake one that does."""
    host = recorded.host
    carries = np.zeros(int(host.thread.max()) + 1 if len(host) else 0, bool)
    carries[recorded.step.thread] = True
    carries[host.thread[recorded.device.call[recorded.device.call >= 0]]] = True
    records = recorded.member.record_row
    carries[host.thread[records[records >= 0]]] = True
    for _ in range(2):
        helped = (stretches.helper >= 0) & carries[stretches.thread]
        carries[stretches.helper[helped]] = True
    if not carries.any():
        carries[host.thread[host.category != ANNOTATION]] = True
    return carries


def _items(recorded: Recorded, holder: Int64, waits: Waits) -> _Items:
    host, stretches = recorded.host, waits.stretches
    outer = np.flatnonzero(holder == np.arange(len(host)))
    call, call_ref, call_resume_ns = waits.of_calls()
    resume_ns = np.full(len(host), -1, np.int64)
    resume_ns[call] = call_resume_ns
    call_lo_ns = np.maximum(host.ts_ns[outer], resume_ns[outer])
    blocked = np.flatnonzero(holder[call] == call)
    blocked_row = call[blocked]
    silent = np.flatnonzero(stretches.waits)
    marks = _marks(recorded, stretches)
    return _Items(
        thread=np.concatenate(
            [host.thread[outer], host.thread[blocked_row], stretches.thread[silent], marks[0]]
        ),
        lo_ns=np.concatenate(
            [call_lo_ns, host.ts_ns[blocked_row], stretches.lo_ns[silent], marks[1]]
        ),
        hi_ns=np.concatenate(
            [host.end_ns[outer], call_resume_ns[blocked], stretches.hi_ns[silent], marks[1]]
        ),
        type=np.repeat(
            [CALL, WAIT, WAIT, MARK], [len(outer), len(blocked), len(silent), len(marks[0])]
        ),
        ref=np.concatenate(
            [outer, call_ref[blocked], waits.first[1] + silent, np.full(len(marks[0]), -1)]
        ),
    )


def _marks(recorded: Recorded, stretches: Stretches) -> tuple[Int64, Int64]:
    """Moments (thread, ns) at which work is cut without an anchor of its own."""
    host, step = recorded.host, recorded.step
    records = recorded.member.record_row[recorded.member.record_row >= 0]
    helped = stretches.helper >= 0
    wakes = stretches.first_wakes
    begun = _computing(recorded)
    thread = [
        step.thread,
        step.thread,
        host.thread[records],
        stretches.helper[helped],
        wakes.helper,
        host.thread[begun],
    ]
    moment_ns = [
        step.ts_ns,
        step.end_ns,
        host.ts_ns[records],
        stretches.helper_end_ns[helped],
        wakes.helper_end_ns,
        host.ts_ns[begun],
    ]
    return np.concatenate(thread), np.concatenate(moment_ns)


def _computing(recorded: Recorded) -> Int64:
    """Rows of the outermost operators of files without a device: there operators are the work."""
    host = recorded.host
    has_device = np.zeros(len(recorded.ranks), bool)
    has_device[recorded.device.trace] = True
    is_op = (host.category == OP) & ~has_device[host.trace]
    if not is_op.any():
        return np.empty(0, np.int64)
    holder = outermost(host.thread, host.ts_ns, host.end_ns, is_op)
    return np.flatnonzero(holder == np.arange(len(host)))


def _sorted(items: _Items, keep: Bool) -> _Items:
    chosen = np.flatnonzero(keep)
    order = chosen[np.lexsort((items.hi_ns[chosen], items.lo_ns[chosen], items.thread[chosen]))]
    return _Items(
        thread=items.thread[order],
        lo_ns=items.lo_ns[order],
        hi_ns=items.hi_ns[order],
        type=items.type[order],
        ref=items.ref[order],
    )


def _maps(items: _Items, task_of_item: Int64, holder: Int64, n_waits: int) -> tuple[Int64, Int64]:
    """Task of each host row's call, and of each wait; -1 for none."""
    call_task = np.full(len(holder), -1, np.int64)
    is_call = np.flatnonzero(items.type == CALL)
    call_task[items.ref[is_call]] = task_of_item[is_call]
    held = holder >= 0
    call_task[held] = call_task[holder[held]]
    wait_task = np.full(n_waits, -1, np.int64)
    is_wait = np.flatnonzero(items.type == WAIT)
    wait_task[items.ref[is_wait]] = task_of_item[is_wait]
    return call_task, wait_task


def _contents(
    parts: Segments,
    stretches: Stretches,
    thread: Int64,
    kind: Int64,
    ts_ns: Int64,
    dur_ns: Int64,
) -> tuple[Int64, Int64]:
    """For work: the innermost row of its longest stretch, and its unexplained silence."""
    row = np.full(len(thread), -1, np.int64)
    unexplained_ns = np.zeros(len(thread), np.int64)
    work = np.flatnonzero((kind == TaskKind.HOST_WORK) & (dur_ns > 0))
    if not len(work):
        return row, unexplained_ns
    task = work[last_at_or_before(thread[work], ts_ns[work], parts.thread, parts.lo_ns)]
    inside = (thread[task] == parts.thread) & (ts_ns[task] <= parts.lo_ns)
    inside &= parts.lo_ns < ts_ns[task] + dur_ns[task]
    part = np.flatnonzero(inside)
    length_ns = (parts.hi_ns - parts.lo_ns)[part]
    first = np.flatnonzero(np.diff(task[part], prepend=-1))
    count = np.diff(first, append=len(part))
    longest = np.repeat(np.maximum.reduceat(length_ns, first), count) if len(part) else length_ns
    longest = part[length_ns == longest]
    row[task[longest]] = parts.row[longest]
    silent = np.flatnonzero(stretches.unexplained_ns > 0)
    holder = work[
        last_at_or_before(
            thread[work], ts_ns[work], stretches.thread[silent], stretches.lo_ns[silent]
        )
    ]
    np.add.at(unexplained_ns, holder, stretches.unexplained_ns[silent])
    return row, np.minimum(unexplained_ns, dur_ns)
