"""Which device task of a stream was launched last before a moment, or first after it."""

from dataclasses import dataclass

import numpy as np

from replay.graph.arrays import Int64
from replay.graph.recorded import DeviceRows, HostRows

UNLAUNCHED_NS = -(1 << 60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """Launch order of each lane (file, device, stream) of the device rows."""

    launch_ns: Int64
    """Per device row: start of the launching call; UNLAUNCHED_NS when not recorded."""
    issued_ns: Int64
    """Per device row: earliest moment at which it can have been launched, the latest launch up to
    it on its stream; UNLAUNCHED_NS for the rows before the first recorded launch."""
    first_row: Int64
    """Shape (lanes + 1,): rows of lane k are [first_row[k], first_row[k + 1])."""
    trace: Int64
    """Per lane."""
    device: Int64
    stream: Int64
    _key_of_row: Int64
    """Per device row, sorted: lane and latest launch up to and including it, in one number."""
    _low_ns: int
    _span_ns: int

    @property
    def n_lanes(self) -> int:
        """Number of lanes."""
        return len(self.trace)

    def last_before(self, lane: Int64, moment_ns: Int64) -> Int64:
        """Last row of `lane` launched before `moment_ns`; -1 for none. Lane -1 gives -1."""
        place = self._count_before(lane, moment_ns)
        return np.where((lane >= 0) & (place > 0), self._first(lane) + place - 1, -1)

    def first_after(self, lane: Int64, moment_ns: Int64) -> Int64:
        """First row of `lane` launched at or after `moment_ns`; -1 for none. Lane -1 gives -1."""
        place = self._first(lane) + self._count_before(lane, moment_ns)
        end = self.first_row[np.maximum(lane, 0) + 1]
        return np.where((lane >= 0) & (place < end), place, -1)

    def lanes_of(self, trace: Int64) -> tuple[Int64, Int64]:
        """All lanes of each file in `trace`: (position in `trace`, lane), by position."""
        order = np.argsort(self.trace, kind="stable")
        lo = np.searchsorted(self.trace[order], trace, side="left")
        hi = np.searchsorted(self.trace[order], trace, side="right")
        position = np.repeat(np.arange(len(trace)), hi - lo)
        within = np.arange(len(position)) - np.repeat(np.cumsum(hi - lo) - (hi - lo), hi - lo)
        return position, order[np.repeat(lo, hi - lo) + within]

    def find(self, trace: Int64, stream: Int64) -> Int64:
        """Lane of a stream of a file (the first device that has it); -1 for none."""
        table = {
            (int(t), int(s)): lane
            for lane, (t, s) in reversed(list(enumerate(zip(self.trace, self.stream, strict=True))))
        }
        found = [table.get((int(t), int(s)), -1) for t, s in zip(trace, stream, strict=True)]
        return np.array(found, np.int64)

    def _first(self, lane: Int64) -> Int64:
        return self.first_row[np.maximum(lane, 0)]

    def _count_before(self, lane: Int64, moment_ns: Int64) -> Int64:
        after_heads_ns = np.maximum(moment_ns, self._low_ns - 1)
        wanted = _key(np.maximum(lane, 0), after_heads_ns, self._low_ns, self._span_ns)
        return np.searchsorted(self._key_of_row, wanted, side="left") - self._first(lane)


def _key(lane: Int64, moment_ns: Int64, low_ns: int, span_ns: int) -> Int64:
    return lane * span_ns + np.clip(moment_ns - low_ns + 2, 0, span_ns - 1)


def index_streams(device: DeviceRows, host: HostRows) -> Streams:
    """Index the device rows, which are sorted by lane and start."""
    n_lanes = int(device.lane.max()) + 1 if len(device) else 0
    first_row = np.searchsorted(device.lane, np.arange(n_lanes + 1)).astype(np.int64)
    launch_ns = np.full(len(device), UNLAUNCHED_NS, np.int64)
    linked = device.call >= 0
    launch_ns[linked] = host.ts_ns[device.call[linked]]
    order_ns = launch_ns.copy()
    for lane in range(n_lanes):
        rows = slice(first_row[lane], first_row[lane + 1])
        order_ns[rows] = np.maximum.accumulate(launch_ns[rows])
    known_ns = launch_ns[linked]
    low_ns = int(known_ns.min()) if len(known_ns) else 0
    span_ns = (int(known_ns.max()) - low_ns if len(known_ns) else 0) + 4
    head = first_row[:-1]
    return Streams(
        launch_ns=launch_ns,
        issued_ns=order_ns,
        first_row=first_row,
        trace=device.trace[head],
        device=device.device[head],
        stream=device.stream[head],
        _key_of_row=_key(device.lane, order_ns, low_ns, span_ns),
        _low_ns=low_ns,
        _span_ns=span_ns,
    )
