"""Long stretches without rows on a thread: waiting for a thread, for a device, or work.

A stretch counts when it is longer than `SILENCE_NS`, lies between two neighbouring rows of its
thread and not inside a runtime call.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ingest.vocab import RuntimeKind
from replay.graph import thresholds
from replay.graph.arrays import Bool, Int64
from replay.graph.nesting import Segments
from replay.graph.recorded import ANNOTATION, OP, RUNTIME, HostRows, Recorded, take
from replay.graph.scans import helpers, last_ended, nearest_ended
from replay.graph.streams import Streams


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstWakes:
    """Threads whose first row follows the work of another thread."""

    thread: Int64
    helper: Int64
    helper_end_ns: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretches:
    """Long stretches and what ended them; exactly one of the three sources is set, or none."""

    thread: Int64
    lo_ns: Int64
    hi_ns: Int64
    helper: Int64
    """Thread whose last row ended shortly before `hi_ns`; -1."""
    helper_end_ns: Int64
    device_row: Int64
    member: Int64
    """Member of a collective on the host; -1."""
    unexplained_ns: Int64
    first_wakes: FirstWakes

    @property
    def waits(self) -> Bool:
        """Where the stretch is a wait, not work."""
        return (self.helper >= 0) | (self.device_row >= 0) | (self.member >= 0)


def find_stretches(recorded: Recorded, parts: Segments, streams: Streams) -> Stretches:
    """Find every long stretch and the cause of its end."""
    host = recorded.host
    in_call = take(host.category, parts.row) == RUNTIME
    chosen = np.flatnonzero((parts.hi_ns - parts.lo_ns > thresholds.SILENCE_NS) & ~in_call)
    thread, lo_ns, hi_ns = parts.thread[chosen], parts.lo_ns[chosen], parts.hi_ns[chosen]
    activity = _Activity(recorded, parts)
    helper, helper_end_ns = activity.helper_of(thread, lo_ns, hi_ns)
    trace = activity.trace_of_thread[thread]
    free = helper < 0
    idle_row = free & _may_wait(recorded, parts.row[chosen])
    member = np.where(idle_row, _member_ended(recorded, trace, lo_ns, hi_ns), -1)
    off_ns = (thresholds.MEMBER_OFF_FRAC * (hi_ns - lo_ns)).astype(np.int64)
    off_ns = np.minimum(off_ns, thresholds.MEMBER_OFF_MOST_NS)
    nearly = np.where(idle_row, _member_ended(recorded, trace, lo_ns, hi_ns, off_ns), -1)
    waiting_place = _mostly(nearly >= 0, of=idle_row, place=_places(recorded, parts, chosen))
    member = np.where((member < 0) & waiting_place, nearly, member)
    free &= member < 0
    implied = free & ~activity.records_events[trace]
    device_row = np.where(implied, _device_ended(recorded, streams, trace, lo_ns, hi_ns), -1)
    free &= device_row < 0
    silent = _is_silent(host, parts.row[chosen], activity.has_device[trace])
    alone = free & silent & ~_has_twin(recorded, parts, chosen)
    alone &= hi_ns - lo_ns > thresholds.UNEXPLAINED_NS
    return Stretches(
        thread=thread,
        lo_ns=lo_ns,
        hi_ns=hi_ns,
        helper=helper,
        helper_end_ns=helper_end_ns,
        device_row=device_row,
        member=member,
        unexplained_ns=np.where(alone, hi_ns - lo_ns, 0),
        first_wakes=_first_wakes(recorded, activity),
    )


def _first_wakes(recorded: Recorded, activity: "_Activity") -> FirstWakes:
    host = recorded.host
    thread, first_row = np.unique(host.thread, return_index=True)
    begin_ns = host.ts_ns[first_row]
    steps = np.isin(thread, recorded.step.thread)
    helper, end_ns = activity.helper_of(thread, begin_ns - thresholds.HAND_OVER_RETURN_NS, begin_ns)
    woken = (helper >= 0) & ~steps
    return FirstWakes(thread=thread[woken], helper=helper[woken], helper_end_ns=end_ns[woken])


class _Activity:
    """When each thread that does more than poll was in a row that shows work.

    A long stretch without children and an annotation alone show none.
    """

    def __init__(self, recorded: Recorded, parts: Segments) -> None:
        host = recorded.host
        n_threads = int(host.thread.max()) + 1 if len(host) else 0
        n_traces = len(recorded.ranks)
        self.trace_of_thread = np.zeros(n_threads, np.int64)
        self.trace_of_thread[host.thread] = host.trace
        self.works = np.zeros(n_threads, bool)
        self.works[host.thread[host.category == OP]] = True
        self.works[host.thread[recorded.device.call[recorded.device.call >= 0]]] = True
        category = take(host.category, parts.row)
        length_ns = parts.hi_ns - parts.lo_ns
        busy = (parts.row >= 0) & (category != ANNOTATION)
        busy &= (length_ns <= thresholds.SILENCE_NS) | (category == RUNTIME)
        self._thread = parts.thread[busy]
        self._lo_ns, self._hi_ns = parts.lo_ns[busy], parts.hi_ns[busy]
        self._first = np.searchsorted(self._thread, np.arange(n_threads + 1))
        helps = np.flatnonzero(self.works[self._thread])[::-1]
        trace = self.trace_of_thread[self._thread[helps]]
        order = np.lexsort((self._hi_ns[helps], trace))
        self._by_end = helps[order]
        self._trace_first = np.searchsorted(trace[order], np.arange(n_traces + 1))
        self.records_events = np.zeros(n_traces, bool)
        self.records_events[host.trace[host.kind == RuntimeKind.EVENT_RECORD]] = True
        self.has_device = np.zeros(n_traces, bool)
        self.has_device[recorded.device.trace] = True

    def helper_of(self, thread: Int64, lo_ns: Int64, hi_ns: Int64) -> tuple[Int64, Int64]:
        """Per stretch the thread that worked meanwhile and went silent just before its end."""
        helper = np.full(len(thread), -1, np.int64)
        end_ns = np.full(len(thread), -1, np.int64)
        chosen = np.flatnonzero(self.works[thread])
        helper[chosen], end_ns[chosen] = helpers(
            thread[chosen],
            self.trace_of_thread[thread[chosen]],
            lo_ns[chosen],
            hi_ns[chosen],
            self._trace_first,
            self._by_end,
            self._thread,
            self._lo_ns,
            self._hi_ns,
            self._first,
            thresholds.HAND_OVER_RETURN_NS,
        )
        return helper, end_ns


def _device_ended(
    recorded: Recorded, streams: Streams, trace: Int64, lo_ns: Int64, hi_ns: Int64
) -> Int64:
    """Device row that ended at most `IMPLIED_RETURN_NS` before each stretch did; -1 for none.

    It was launched before the stretch began; of several, the latest to end.
    """
    device = recorded.device
    order = np.lexsort((device.end_ns, device.trace))
    place = last_ended(
        trace,
        lo_ns,
        hi_ns,
        np.searchsorted(device.trace[order], np.arange(len(recorded.ranks) + 1)),
        device.end_ns[order],
        streams.launch_ns[order],
        thresholds.IMPLIED_RETURN_NS,
    )
    return take(order, place)


def _member_ended(
    recorded: Recorded, trace: Int64, lo_ns: Int64, hi_ns: Int64, off_ns: Int64 | int = 0
) -> Int64:
    """Host-side member of a collective whose end is nearest to that of each stretch; -1 for none.

    It was issued before the stretch began and had not ended by then. Its end is at most `off_ns`
    away from the stretch's, or as far as the thresholds allow in any case.
    """
    member, host = recorded.member, recorded.host
    on_host = np.flatnonzero(member.host_row >= 0)
    order = on_host[np.lexsort((member.end_ns[on_host], member.trace[on_host]))]
    recorded_ns = take(host.ts_ns, member.record_row)
    issued_ns = np.where(member.record_row >= 0, recorded_ns, member.ts_ns)
    nothing_ns = np.zeros(len(trace), np.int64)
    place = nearest_ended(
        trace,
        lo_ns,
        hi_ns,
        np.searchsorted(member.trace[order], np.arange(len(recorded.ranks) + 1)),
        member.end_ns[order],
        issued_ns[order],
        np.maximum(nothing_ns + off_ns, thresholds.MEMBER_LATE_NS),
        np.maximum(nothing_ns + off_ns, thresholds.MEMBER_EARLY_NS),
    )
    return take(order, place)


def _may_wait(recorded: Recorded, row: Int64) -> Bool:
    """Silence, an annotation, or an operator of the communication library: others compute."""
    host = recorded.host
    library = np.array(["c10d" in name or "gloo:" in name for name in recorded.names], bool)
    in_library = library[take(host.name, row, 0)] if len(library) else row < 0
    idle: Bool = (row < 0) | (take(host.category, row) == ANNOTATION) | in_library
    return idle


def _is_silent(host: HostRows, row: Int64, has_device: Bool) -> Bool:
    """No row, or only an annotation; inside an op too where the op's work is on a device."""
    category = take(host.category, row)
    silent: Bool = (row < 0) | (category == ANNOTATION) | ((category == OP) & has_device)
    return silent


def _has_twin(recorded: Recorded, parts: Segments, chosen: Int64) -> Bool:
    """Another stretch at the same place (names around it) has the same length within 10 %."""
    place = _places(recorded, parts, chosen)
    length_ns = parts.hi_ns[chosen] - parts.lo_ns[chosen]
    order = np.lexsort((length_ns, place))
    twin = np.zeros(len(chosen), bool)
    left, right = order[:-1], order[1:]
    same = place[left] == place[right]
    same &= length_ns[right] - length_ns[left] <= thresholds.TWIN_TOLERANCE_FRAC * length_ns[right]
    twin[left[same]] = True
    twin[right[same]] = True
    return twin


def _mostly(found: Bool, *, of: Bool, place: Int64) -> Bool:
    """Per stretch: at its place at least half of those `of` are found."""
    n_places = int(place.max()) + 1 if len(place) else 0
    hits, tries = (np.bincount(place[rows], minlength=n_places) for rows in (found & of, of))
    mostly: Bool = found & (2 * hits[place] >= tries[place])
    return mostly


def _places(recorded: Recorded, parts: Segments, chosen: Int64) -> Int64:
    """Number of the place of each chosen stretch: the names before it and around it."""
    host = recorded.host
    number = _place_of_names(recorded.names)
    before = number[host.name[parts.before[chosen]]]
    inside = take(number, take(host.name, parts.row[chosen]))
    both = before * (number.max(initial=0) + 2) + inside + 1
    return np.unique(both, return_inverse=True)[1].astype(np.int64)


def _place_of_names(names: Sequence[str]) -> Int64:
    """Number of each name, the same for all steps: their annotations differ in the count alone."""
    number: dict[str, int] = {}
    plain = ("ProfilerStep" if name.startswith("ProfilerStep#") else name for name in names)
    return np.array([number.setdefault(name, len(number)) for name in plain], np.int64)
