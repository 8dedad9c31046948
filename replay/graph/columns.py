"""Fill the task columns from the recorded rows."""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import KernelClass, LaneKind, RuntimeKind, TaskKind
from replay.graph.arrays import NEVER_RELEASED_NS, NONE, Bool, Int64, Lane, Tasks
from replay.graph.host_tasks import HostTasks
from replay.graph.layout import Layout, Meetings, Parts
from replay.graph.recorded import ANNOTATION, OP, Recorded, take
from replay.graph.steps import Windows
from replay.graph.streams import UNLAUNCHED_NS, Streams


def start_and_duration(
    recorded: Recorded, host_tasks: HostTasks, layout: Layout, meetings: Meetings
) -> tuple[Int64, Int64]:
    """Recorded start and duration of every task, ns."""
    device, member = recorded.device, recorded.member
    ts_ns = np.zeros(layout.n_tasks, np.int64)
    dur_ns = np.zeros(layout.n_tasks, np.int64)
    ts_ns[: layout.n_host], dur_ns[: layout.n_host] = host_tasks.ts_ns, host_tasks.dur_ns
    ts_ns[layout.first_of_device] = device.ts_ns
    dur_ns[layout.first_of_device] = device.end_ns - device.ts_ns
    ts_ns[layout.arrive_of_member] = member.ts_ns
    dur_ns[layout.arrive_of_member] = meetings.outside_ns
    ts_ns[layout.transfer_of_member] = meetings.go_ns
    dur_ns[layout.transfer_of_member] = member.end_ns - meetings.go_ns
    ts_ns[layout.meet_of_collective] = meetings.met_ns
    return ts_ns, dur_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lanes:
    lanes: tuple[Lane, ...]
    of_thread: Int64
    of_stream: Int64
    of_link: Int64
    """Per thread, for host-side members."""


def task_columns(parts: Parts, windows: Windows) -> tuple[Tasks, tuple[Lane, ...]]:
    """All columns but the residual, which needs the edges."""
    recorded, layout = parts.recorded, parts.layout
    lanes = _lanes(recorded, parts.streams)
    kind, trace, lane = _identity(parts, lanes)
    caller, issued_ns = _callers(parts)
    device_task = np.zeros(layout.n_tasks, bool)
    device_task[layout.n_host :] = True
    device_task[layout.meet_of_collective] = False
    head = device_task & (issued_ns == UNLAUNCHED_NS)
    unissued = (recorded.member.device_row < 0) & (recorded.member.record_row < 0)
    head[layout.arrive_of_member[unissued]] = True
    step, fixed = _step_and_fixed(windows, trace, issued_ns, head)
    fixed = _spread_to_meetings(parts, fixed)
    name, op, module, phase, kernel_class = _names(parts)
    release_ns = np.full(layout.n_tasks, NEVER_RELEASED_NS, np.int64)
    release_ns[head] = parts.ts_ns[head]
    transfer = layout.transfer_of_member
    release_ns[transfer] = NEVER_RELEASED_NS
    unexplained_ns = np.zeros(layout.n_tasks, np.int64)
    unexplained_ns[: layout.n_host] = parts.host_tasks.unexplained_ns
    collective = np.full(layout.n_tasks, NONE, np.int64)
    for ids in (layout.arrive_of_member, transfer):
        collective[ids] = recorded.member.collective
    collective[layout.meet_of_collective] = np.arange(len(layout.meet_of_collective))
    ranks = np.array([*recorded.ranks, NONE], np.int64)
    tasks = Tasks(
        kind=kind.astype(np.int8),
        rank=ranks[trace].astype(np.int32),
        lane=lane.astype(np.int32),
        step=step.astype(np.int32),
        name=name.astype(np.int32),
        op=op.astype(np.int32),
        module=module.astype(np.int32),
        phase=phase.astype(np.int8),
        kernel_class=kernel_class.astype(np.int8),
        geometry=_geometry(parts),
        ts_ns=parts.ts_ns,
        dur_ns=parts.dur_ns,
        release_ns=release_ns,
        residual_ns=np.zeros(layout.n_tasks, np.int64),
        unexplained_ns=unexplained_ns,
        fixed=fixed,
        caller=caller.astype(np.int32),
        slice_id=_slice_ids(parts),
        collective=collective.astype(np.int32),
    )
    return tasks, lanes.lanes


def _identity(parts: Parts, lanes: _Lanes) -> tuple[Int64, Int64, Int64]:
    recorded, layout, host_tasks = parts.recorded, parts.layout, parts.host_tasks
    device, member, host = recorded.device, recorded.member, recorded.host
    kind = np.full(layout.n_tasks, TaskKind.MEET, np.int64)
    trace = np.full(layout.n_tasks, NONE, np.int64)
    lane = np.full(layout.n_tasks, NONE, np.int64)
    kind[: layout.n_host] = host_tasks.kind
    trace[: layout.n_host] = take(host.trace, np.searchsorted(host.thread, host_tasks.thread))
    lane[: layout.n_host] = lanes.of_thread[host_tasks.thread]
    of_class = np.full(max(KernelClass) + 1, TaskKind.KERNEL, np.int64)
    of_class[KernelClass.MEMCPY], of_class[KernelClass.MEMSET] = TaskKind.MEMCPY, TaskKind.MEMSET
    for ids in (layout.first_of_device, layout.last_of_device):
        kind[ids] = of_class[device.kernel_class]
        trace[ids], lane[ids] = device.trace, lanes.of_stream[device.lane]
    for ids, member_kind in (
        (layout.arrive_of_member, TaskKind.ARRIVE),
        (layout.transfer_of_member, TaskKind.TRANSFER),
    ):
        kind[ids], trace[ids] = member_kind, member.trace
        on_host = member.device_row < 0
        lane[ids[on_host]] = lanes.of_link[host.thread[member.host_row[on_host]]]
    return kind, trace, lane


def _callers(parts: Parts) -> tuple[Int64, Int64]:
    """Task of the launching call and the moment at which each task was issued, ns."""
    recorded, layout = parts.recorded, parts.layout
    caller = np.full(layout.n_tasks, NONE, np.int64)
    issued_ns = parts.ts_ns.copy()
    device = recorded.device
    call_task = take(parts.host_tasks.call_task, device.call)
    for ids in (layout.first_of_device, layout.last_of_device):
        caller[ids] = call_task
        issued_ns[ids] = parts.streams.issued_ns
    member = recorded.member
    issuing = np.flatnonzero((member.device_row < 0) & (member.record_row >= 0))
    record = member.record_row[issuing]
    source = parts.host_tasks.ending_at(recorded.host.thread[record], recorded.host.ts_ns[record])
    for ids in (layout.arrive_of_member[issuing], layout.transfer_of_member[issuing]):
        caller[ids] = source
        issued_ns[ids] = recorded.host.ts_ns[record]
    return caller, issued_ns


def _step_and_fixed(
    windows: Windows, trace: Int64, issued_ns: Int64, head: Bool
) -> tuple[Int64, Bool]:
    """Step in which each task was issued (-1 outside), and what was issued before the first."""
    step = np.full(len(trace), NONE, np.int64)
    fixed = np.zeros(len(trace), bool)
    for position in range(len(windows.ts_ns)):
        mine = np.flatnonzero(trace == position)
        moment_ns = issued_ns[mine]
        place = np.searchsorted(windows.ts_ns[position], moment_ns, side="right") - 1
        inside = (place >= 0) & (moment_ns <= windows.end_ns[position, -1])
        step[mine] = np.where(inside, place, NONE)
        fixed[mine] = moment_ns < windows.ts_ns[position, 0]
    if not windows.recorded:
        fixed &= ~head
        step[head] = 0
    return step, fixed


def _spread_to_meetings(parts: Parts, fixed: Bool) -> Bool:
    """A transfer is fixed when one that it waits for is: that began before the steps.

    Who waits for all is fixed with any member of the collective, and so is the meeting.
    """
    member, awaited, layout = parts.recorded.member, parts.recorded.awaited, parts.layout
    own = fixed[layout.transfer_of_member]
    any_fixed = np.zeros(len(layout.meet_of_collective), bool)
    any_fixed[member.collective[own]] = True
    spread = own | (member.waits_for_all & any_fixed[member.collective])
    spread[awaited.member[own[awaited.other] & (awaited.other >= 0)]] = True
    fixed = fixed.copy()
    fixed[layout.transfer_of_member] = spread
    fixed[layout.meet_of_collective] = any_fixed
    return fixed


def _names(parts: Parts) -> tuple[Int64, Int64, Int64, Int64, Int64]:
    recorded, layout, host_tasks = parts.recorded, parts.layout, parts.host_tasks
    host, device, member = recorded.host, recorded.device, recorded.member
    name = np.full(layout.n_tasks, NONE, np.int64)
    op, module = name.copy(), name.copy()
    phase = np.zeros(layout.n_tasks, np.int64)
    kernel_class = np.zeros(layout.n_tasks, np.int64)
    row = host_tasks.row
    host_name, category = take(host.name, row), take(host.category, row)
    name[: layout.n_host] = host_name
    op[: layout.n_host] = np.where(category == OP, host_name, NONE)
    module[: layout.n_host] = np.where(category == ANNOTATION, host_name, NONE)
    phase[: layout.n_host] = take(host.phase, row, 0)
    for ids in (layout.first_of_device, layout.last_of_device):
        name[ids], op[ids], module[ids] = device.name, device.op_name, device.module_name
        phase[ids], kernel_class[ids] = device.phase, device.kernel_class
    on_host = member.device_row < 0
    for ids in (layout.arrive_of_member, layout.transfer_of_member):
        kernel_class[ids] = KernelClass.COLLECTIVE
        name[ids[on_host]] = host.name[member.host_row[on_host]]
    name[layout.meet_of_collective[member.collective]] = name[layout.arrive_of_member]
    kernel_class[layout.meet_of_collective] = KernelClass.COLLECTIVE
    return name, op, module, phase, kernel_class


def _geometry(parts: Parts) -> Int64:
    geometry = np.full(parts.layout.n_tasks, NONE, np.int64)
    for ids in (parts.layout.first_of_device, parts.layout.last_of_device):
        geometry[ids] = parts.recorded.device.geometry
    return geometry


def _slice_ids(parts: Parts) -> Int64:
    recorded, layout, host_tasks = parts.recorded, parts.layout, parts.host_tasks
    slice_id = np.full(layout.n_tasks, NONE, np.int64)
    slice_id[: layout.n_host] = take(recorded.host.slice_id, host_tasks.row)
    for ids in (layout.first_of_device, layout.last_of_device):
        slice_id[ids] = recorded.device.slice_id
    for ids in (layout.arrive_of_member, layout.transfer_of_member):
        slice_id[ids] = recorded.member.slice_id
    return slice_id


def _lanes(recorded: Recorded, streams: Streams) -> _Lanes:
    host = recorded.host
    n_threads = int(host.thread.max()) + 1 if len(host) else 0
    roles = _thread_roles(recorded, n_threads)
    trace_of_thread = np.zeros(n_threads, np.int64)
    trace_of_thread[host.thread] = host.trace
    with_steps = set(recorded.step.thread.tolist())
    lanes: list[Lane] = [
        Lane(
            kind=LaneKind.THREAD,
            rank=recorded.ranks[trace_of_thread[thread]],
            device=NONE,
            stream=NONE,
            role=roles[thread],
            steps=thread in with_steps,
        )
        for thread in range(n_threads)
    ]
    of_stream = len(lanes) + np.arange(streams.n_lanes)
    ordinal = _ordinal_within(streams.trace)
    lanes += [
        Lane(
            kind=LaneKind.STREAM,
            rank=recorded.ranks[streams.trace[lane]],
            device=int(streams.device[lane]),
            stream=int(streams.stream[lane]),
            role=f"stream {ordinal[lane]}",
            steps=False,
        )
        for lane in range(streams.n_lanes)
    ]
    of_link = np.full(n_threads, NONE, np.int64)
    member = recorded.member
    link_threads = np.unique(host.thread[member.host_row[member.device_row < 0]])
    of_link[link_threads] = len(lanes) + np.arange(len(link_threads))
    link_ordinal = _ordinal_within(trace_of_thread[link_threads])
    lanes += [
        Lane(
            kind=LaneKind.LINK,
            rank=recorded.ranks[trace_of_thread[thread]],
            device=NONE,
            stream=NONE,
            role=f"link {link_ordinal[index]}",
            steps=False,
        )
        for index, thread in enumerate(link_threads)
    ]
    return _Lanes(
        lanes=tuple(lanes),
        of_thread=np.arange(n_threads),
        of_stream=of_stream,
        of_link=of_link,
    )


def _ordinal_within(group: Int64) -> Int64:
    """Place of each row among those of its group, in order."""
    order = np.argsort(group, kind="stable")
    first = np.searchsorted(group[order], group[order], side="left")
    ordinal = np.empty(len(group), np.int64)
    ordinal[order] = np.arange(len(group)) - first
    return ordinal


def _thread_roles(recorded: Recorded, n_threads: int) -> list[str]:
    """The same word for the same thread on every rank: main, autograd, thread k."""
    host, names = recorded.host, recorded.names
    backward = np.array([name.startswith("autograd::engine") for name in names], bool)
    is_backward = np.zeros(n_threads, bool)
    is_launching = np.zeros(n_threads, bool)
    if len(host):
        is_backward[host.thread[backward[host.name]]] = True
        is_launching[host.thread[host.kind != RuntimeKind.OTHER]] = True
    carries_steps = np.zeros(n_threads, bool)
    carries_steps[recorded.step.thread] = True
    trace = np.zeros(n_threads, np.int64)
    trace[host.thread] = host.trace
    other = ~carries_steps & ~is_backward
    ordinal = np.zeros(n_threads, np.int64)
    ordinal[other] = _ordinal_within(trace[other])
    roles = []
    for thread in range(n_threads):
        if carries_steps[thread]:
            roles.append("main")
        elif is_backward[thread]:
            roles.append("autograd")
        else:
            roles.append(f"thread {ordinal[thread]}")
    return roles


def launched_frac(parts: Parts) -> float:
    """Share of device rows whose launching call is recorded."""
    launch_ns = parts.streams.launch_ns
    return float((launch_ns != UNLAUNCHED_NS).mean()) if len(launch_ns) else 1.0
