"""Which steps count, and where their boundaries lie for a CPU that runs ahead."""

from dataclasses import dataclass

import numpy as np

from ingest.errors import UsageError
from ingest.vocab import RuntimeKind
from replay.graph.arrays import NEVER_RELEASED_NS, Boundaries, Int64
from replay.graph.layout import Parts
from replay.graph.recorded import Recorded, StepRows


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Host windows of the steps that count, per file; one row per file, one column per step."""

    steps: tuple[int, ...]
    recorded: bool
    ts_ns: Int64
    end_ns: Int64
    left_out: int = 0
    """Whole recorded steps that are not in the longest run that all files share."""


def choose_windows(recorded: Recorded, chosen: range | None) -> Windows:
    """The longest run of consecutive steps that every file holds, or the chosen part of it.

    Raises:
        UsageError: no chosen step is complete on all ranks.
    """
    step = recorded.step
    per_file = [_windows_of(step, position) for position in range(len(recorded.ranks))]
    common = sorted(set.intersection(*(set(windows) for windows in per_file)))
    run = _longest_run(common, per_file)
    left_out = len(set[int]().union(*per_file)) - len(run)
    steps = [number for number in run if chosen is None or number in chosen]
    if chosen is not None and not steps:
        known = f"{run[0]} to {run[-1]}" if run else "none"
        raise UsageError(
            f"no step of {chosen.start}:{chosen.stop} is complete on all ranks",
            hint=f"steps in this trace: {known}; A:B means A up to but not including B",
        )
    if not steps:
        first_ns, last_ns = _span(recorded)
        return Windows(
            steps=(0,),
            recorded=False,
            ts_ns=first_ns[:, None],
            end_ns=last_ns[:, None],
            left_out=left_out,
        )
    return Windows(
        steps=tuple(steps),
        recorded=True,
        ts_ns=np.array([[windows[n][0] for n in steps] for windows in per_file], np.int64),
        end_ns=np.array([[windows[n][1] for n in steps] for windows in per_file], np.int64),
        left_out=left_out,
    )


def _windows_of(step: StepRows, position: int) -> dict[int, tuple[int, int]]:
    mine = np.flatnonzero(step.trace == position)
    return {
        int(step.step[row]): (int(step.ts_ns[row]), int(step.end_ns[row])) for row in mine[::-1]
    }


def _longest_run(numbers: list[int], per_file: list[dict[int, tuple[int, int]]]) -> list[int]:
    """Consecutive numbers whose windows come one after the other in every file."""
    best: list[int] = []
    run: list[int] = []
    for number in numbers:
        goes_on = bool(run) and number == run[-1] + 1
        goes_on = goes_on and all(
            windows[run[-1]][0] <= windows[number][0] and windows[run[-1]][1] < windows[number][1]
            for windows in per_file
        )
        run = [*run, number] if goes_on else [number]
        if len(run) > len(best):
            best = run
    return best


def _span(recorded: Recorded) -> tuple[Int64, Int64]:
    """First and last recorded work of each file, without the profiler's own last synchronise."""
    host, device = recorded.host, recorded.device
    n_files = len(recorded.ranks)
    first_ns = np.full(n_files, np.iinfo(np.int64).max)
    last_ns = np.full(n_files, np.iinfo(np.int64).min)
    counts = np.ones(len(host), bool)
    for position in range(n_files):
        rows = np.flatnonzero(host.trace == position)
        calls = rows[host.kind[rows] != RuntimeKind.OTHER]
        if len(calls):
            final = calls[np.argmax(host.ts_ns[calls])]
            counts[final] = host.kind[final] != RuntimeKind.DEVICE_SYNC
    for trace, ts_ns, end_ns in (
        (host.trace[counts], host.ts_ns[counts], host.end_ns[counts]),
        (device.trace, device.ts_ns, device.end_ns),
    ):
        np.minimum.at(first_ns, trace, ts_ns)
        np.maximum.at(last_ns, trace, end_ns)
    empty = first_ns > last_ns
    return np.where(empty, 0, first_ns), np.where(empty, 0, last_ns)


def find_boundaries(parts: Parts, windows: Windows) -> Boundaries:
    """For each file and boundary the tasks whose latest end it is."""
    n_steps = len(windows.steps)
    start = [0]
    tasks: list[Int64] = []
    floor_ns: list[int] = []
    for position in range(len(parts.recorded.ranks)):
        lane = np.flatnonzero(parts.streams.trace == position)
        thread = _closing_threads(parts.recorded, windows, position)
        for boundary in range(n_steps + 1):
            opening = boundary == 0
            moment_ns = (
                windows.ts_ns[position, 0] if opening else windows.end_ns[position, boundary - 1]
            )
            if opening and not windows.recorded:
                found = np.zeros(0, np.int64)
            else:
                found = _tasks_at(parts, lane, thread[:0] if opening else thread, int(moment_ns))
            if not opening and not windows.recorded:
                found = np.union1d(found, _not_launched(parts, lane, position))
            tasks.append(found)
            start.append(start[-1] + len(found))
            floor_ns.append(int(moment_ns) if opening else NEVER_RELEASED_NS)
    return Boundaries(
        n_steps=n_steps,
        ranks=parts.recorded.ranks,
        start=np.array(start, np.int64),
        task=np.concatenate([np.zeros(0, np.int64), *tasks]).astype(np.int32),
        floor_ns=np.array(floor_ns, np.int64),
    )


def _tasks_at(parts: Parts, lane: Int64, thread: Int64, moment_ns: int) -> Int64:
    """Last tasks that the streams had been given, and the threads had ended, by the moment."""
    row = parts.streams.last_before(lane, np.full(len(lane), moment_ns))
    host_tasks = parts.host_tasks.ending_at(thread, np.full(len(thread), moment_ns))
    found = [parts.layout.last_of_device[row[row >= 0]], host_tasks[host_tasks >= 0]]
    return np.unique(np.concatenate(found))


def _not_launched(parts: Parts, lane: Int64, position: int) -> Int64:
    """Last task of each stream, whoever launched it, and the transfers between hosts."""
    recorded, layout, streams = parts.recorded, parts.layout, parts.streams
    last = layout.last_of_device[streams.first_row[lane + 1] - 1]
    on_host = (recorded.member.trace == position) & (recorded.member.device_row < 0)
    return np.concatenate([last, layout.transfer_of_member[on_host]])


def _closing_threads(recorded: Recorded, windows: Windows, position: int) -> Int64:
    """The thread that carries the steps; all threads where no step is recorded."""
    step, host = recorded.step, recorded.host
    if windows.recorded:
        return np.unique(step.thread[step.trace == position])
    return np.unique(host.thread[host.trace == position])
