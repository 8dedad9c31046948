"""Kernels take longer beside communication: the slowdown of the recording where overlap changes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ingest.vocab import KernelClass, TaskKind
from replay.engine.schedule import Schedule
from replay.graph.arrays import NONE, Bool, Int64, TaskGraph
from replay.results.cover import Cover, cover
from whatif.couplings.copies import found_in
from whatif.couplings.walks import FULL_SPEED, time_taken, work_done
from whatif.models.overlap import (
    MOVING,
    STATES,
    WAITING,
    ClassFactor,
    Float64,
    Observed,
    Slowdown,
    fit,
)
from whatif.transforms.devices import communication, computing, device_of_lane

NOTHING = STATES
"""State of a device on which no collective runs."""
KNOWN_ERROR = "held-out halves of public traces: total time of such kernels 3 % off, 14 % at worst"
WORDS = {MOVING: "transfers", WAITING: "collectives that wait"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowdownBesideComm:
    """A coupling: durations of kernels that are slower beside communication."""

    task: Int64
    """The kernels that are."""
    device: Int64
    """Dense number of the device of each of them."""
    speed: Int64
    """Of each kernel in each state and in NOTHING, FULL_SPEED alone."""
    dur_ns: Int64
    """As recorded."""
    work: Int64
    """Of each kernel as recorded; FULL_SPEED x duration where it ran alone."""
    found: Slowdown

    def watched(self, plain: TaskGraph) -> Int64:
        """The kernels, and the communication of all devices."""
        return np.concatenate([found_in(plain, self.task).task, communication(plain)])

    def durations(self, plain: TaskGraph, schedule: Schedule) -> Int64:
        """Duration of every task when communication runs beside it as in `schedule`, ns."""
        task, row = found_in(plain, self.task)
        plain_ns, was_ns = plain.tasks.dur_ns[task], self.dur_ns[row]
        resized = plain_ns / np.maximum(was_ns, 1)
        work = self.work[row]
        work = np.where(plain_ns == was_ns, work, np.rint(work * resized).astype(np.int64))
        devices = device_of_lane(plain)
        device = self.device[row] if plain.origin is None else devices[plain.tasks.lane[task]]
        timeline = _timeline(plain, schedule, devices)
        taken_ns = time_taken(
            timeline.first[device],
            timeline.first[device + 1],
            timeline.begin_ns,
            timeline.state,
            self.speed[row],
            schedule.start_ns[task],
            work,
        )
        dur_ns = plain.tasks.dur_ns.copy()
        dur_ns[task] = taken_ns
        return dur_ns

    @property
    def assumption(self) -> str:
        """In words: the classes that are slower, those with most evidence first."""
        shown = sorted(self.found.classes, key=lambda one: -one.pairs)
        return (
            f"{', '.join(map(_told, shown))}, re-applied where the overlap changes; {KNOWN_ERROR}"
        )


def _told(factor: ClassFactor) -> str:
    name = KernelClass(factor.kernel_class).name.lower()
    return (
        f"{name} {factor.factor:.2f}x slower beside {WORDS[factor.state]} ({factor.pairs:,} pairs)"
    )


def slowdown_beside_comm(graph: TaskGraph, schedule: Schedule) -> SlowdownBesideComm | None:
    """The coupling of a run, from its unchanged graph and that graph's replay.

    The factors are those of the recording; what overlapped so far is as in `schedule`, which may be
    a strict replay. None where no class of kernels is significantly slower beside communication.
    """
    devices = device_of_lane(graph)
    task = computing(graph, devices)
    observed = observe(graph, as_recorded(graph), task)
    found = fit(observed)
    speed = _speeds(found.of_kernel[observed.kernel])
    slower = (speed < FULL_SPEED).any(axis=1) & ~graph.tasks.fixed[task]
    if not slower.any():
        return None
    task, speed = task[slower], speed[slower]
    timeline = _timeline(graph, schedule, devices)
    device = devices[graph.tasks.lane[task]]
    dur_ns = graph.tasks.dur_ns[task]
    work = work_done(
        timeline.first[device],
        timeline.first[device + 1],
        timeline.begin_ns,
        timeline.state,
        speed,
        schedule.start_ns[task],
        dur_ns,
    )
    return SlowdownBesideComm(
        task=task,
        device=device,
        speed=speed,
        dur_ns=dur_ns,
        work=work,
        found=found,
    )


def as_recorded(graph: TaskGraph) -> Schedule:
    """The times of the recording, which factors are read from whatever replay they are used in."""
    start_ns = graph.tasks.ts_ns.copy()
    return Schedule(
        start_ns=start_ns,
        end_ns=start_ns + graph.tasks.dur_ns,
        blocked_by=np.full(graph.n_tasks, NONE, np.int64),
    )


def observe(graph: TaskGraph, schedule: Schedule, task: Int64) -> Observed:
    """Which kernels are equal, and what part of each lay beside communication."""
    tasks = graph.tasks
    devices = device_of_lane(graph)
    beside_ns = np.zeros((len(task), STATES))
    device = devices[tasks.lane[task]]
    start_ns, end_ns = schedule.start_ns[task], schedule.end_ns[task]
    for number, waiting, moving in _communication(graph, schedule, devices):
        mine = np.flatnonzero(device == number)
        moving_ns = moving.within(start_ns[mine], end_ns[mine])
        beside_ns[mine, MOVING] = moving_ns
        beside_ns[mine, WAITING] = waiting.within(start_ns[mine], end_ns[mine]) - moving_ns
    return Observed(
        kernel=_equal_kernels(graph, task),
        kernel_class=tasks.kernel_class[task].astype(np.int64),
        dur_ns=tasks.dur_ns[task],
        beside_frac=beside_ns / np.maximum(tasks.dur_ns[task], 1)[:, None],
    )


def _equal_kernels(graph: TaskGraph, task: Int64) -> Int64:
    """Dense number of kernels with equal name, operator and geometry; one of its own without."""
    tasks = graph.tasks
    geometry = tasks.geometry[task]
    alone = np.where(geometry == NONE, np.arange(len(task)), NONE)
    columns = (tasks.name[task], tasks.op[task], geometry, alone)
    order = np.lexsort(columns)
    differs = np.zeros(len(task), bool)
    for column in columns:
        differs[1:] |= np.diff(column[order]) != 0
    number = np.empty(len(task), np.int64)
    number[order] = np.cumsum(differs)
    return number


def _speeds(factor: Float64) -> Int64:
    speed = np.rint(FULL_SPEED / factor).astype(np.int64)
    return np.concatenate([speed, np.full((len(speed), 1), FULL_SPEED)], axis=1)


def _communication(
    graph: TaskGraph, schedule: Schedule, devices: Int64
) -> Iterator[tuple[int, Cover, Cover]]:
    """Per device: when a collective was there at all (a member waits or moves), and when moving."""
    tasks = graph.tasks
    ids = communication(graph)
    kind, device = tasks.kind[ids], devices[tasks.lane[ids]]
    start_ns, end_ns = schedule.start_ns[ids], schedule.end_ns[ids].copy()
    arrive = kind == TaskKind.ARRIVE
    end_ns[arrive] = np.maximum(end_ns[arrive], schedule.start_ns[ids[arrive] + 1])
    order = np.argsort(device, kind="stable")
    first = np.searchsorted(device[order], np.arange(int(devices.max()) + 2))
    for number in range(int(devices.max()) + 1):
        mine = order[first[number] : first[number + 1]]
        moves = mine[~arrive[mine]]
        yield number, cover(start_ns[mine], end_ns[mine]), cover(start_ns[moves], end_ns[moves])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timeline:
    """What communication each device has, in segments."""

    first: Int64
    """Per device its first segment, and one past the last of all."""
    begin_ns: Int64
    """The first segment of a device begins before all time."""
    state: Int64


def _timeline(graph: TaskGraph, schedule: Schedule, devices: Int64) -> _Timeline:
    first, begins, states = [0], [], []
    for _, present, moving in _communication(graph, schedule, devices):
        at_ns = np.unique(
            np.concatenate([present.lo_ns, present.hi_ns, moving.lo_ns, moving.hi_ns])
        )
        state = np.where(
            _inside(moving, at_ns), MOVING, np.where(_inside(present, at_ns), WAITING, NOTHING)
        )
        begins.append(np.concatenate([[np.iinfo(np.int64).min], at_ns]))
        states.append(np.concatenate([[NOTHING], state]))
        first.append(first[-1] + len(at_ns) + 1)
    return _Timeline(
        first=np.array(first, np.int64),
        begin_ns=np.concatenate(begins).astype(np.int64),
        state=np.concatenate(states).astype(np.int64),
    )


def _inside(intervals: Cover, moment_ns: Int64) -> Bool:
    """Whether each moment lies in one of the intervals (their ends do not)."""
    if not len(intervals.lo_ns):
        return np.zeros(len(moment_ns), bool)
    place = np.searchsorted(intervals.lo_ns, moment_ns, side="right") - 1
    inside: Bool = (place >= 0) & (moment_ns < intervals.hi_ns[place])
    return inside
