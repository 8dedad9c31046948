"""A small simulator by discrete events: processes, signals, GPU streams, collectives.

Nothing here knows of traces or of the product. Time is integer nanoseconds. A process is a
generator: it yields a number to sleep that long, or a `Signal` to wait for it.
"""

import heapq
from collections import deque
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from itertools import count


class Signal:
    """Something that happens once."""

    def __init__(self) -> None:
        self.fired = False
        self.waiters: list[Process] = []


Process = Generator[int | Signal, None, None]


class Simulator:
    """The clock and the processes that wait for it; equal times run in the order of asking."""

    def __init__(self) -> None:
        self.now = 0
        self._agenda: list[tuple[int, int, Process]] = []
        self._order = count()

    def start(self, process: Process) -> None:
        """Let `process` run from now on."""
        self._wake(process, self.now)

    def fire(self, signal: Signal) -> None:
        """Let everybody who waits for `signal` go on now."""
        signal.fired = True
        for waiter in signal.waiters:
            self._wake(waiter, self.now)
        signal.waiters.clear()

    def run(self) -> None:
        """Run until nothing is left to happen."""
        while self._agenda:
            self.now, _, process = heapq.heappop(self._agenda)
            self._resume(process)

    def _wake(self, process: Process, at_ns: int) -> None:
        heapq.heappush(self._agenda, (at_ns, next(self._order), process))

    def _resume(self, process: Process) -> None:
        for wish in process:
            if isinstance(wish, int):
                assert wish >= 0, "a process cannot go back in time"
                self._wake(process, self.now + wish)
                return
            if not wish.fired:
                wish.waiters.append(process)
                return


@dataclass(eq=False, kw_only=True)
class Work:
    """A kernel or copy: launched by a host, carried out by a stream, in the stream's order."""

    name: str
    category: str
    correlation: int
    launched_ns: int
    """Start of the launching call."""
    ready_ns: int
    """The stream may start it from then on."""
    gap_ns: int
    """What the stream needs after its previous work before this one."""
    external: int | None
    """Id of the operator that launched it."""
    dur_ns: int = 0
    """For a member of a collective: what its end lags behind the transfer."""
    args: dict[str, object] = field(default_factory=dict)
    metadata: dict[str, object] = field(default_factory=dict)
    """Known to the profiler only where it saw the launching operator."""
    collective: "Collective | None" = None
    blockers: "list[Work]" = field(default_factory=list)
    start_ns: int = -1
    end_ns: int = -1
    done: Signal = field(default_factory=Signal)


class Collective:
    """Members move data together, from the moment the last one has started."""

    def __init__(self, members: int, transfer_ns: int) -> None:
        self.transfer_ns = transfer_ns
        self.complete = Signal()
        self._missing = members

    def arrive(self, simulator: Simulator) -> None:
        """One more member has started."""
        self._missing -= 1
        if self._missing == 0:
            simulator.fire(self.complete)


EVENT_LAG_NS = 1_500
"""From the end of the work before an event's record to the start of the work that waits for it."""


class Stream:
    """A GPU stream: one piece of work after another, each after the events it waits for."""

    def __init__(self, simulator: Simulator, number: int) -> None:
        self.number = number
        self.finished: list[Work] = []
        self._simulator = simulator
        self._queue: deque[Work] = deque()
        self._last: Work | None = None
        self._blockers: list[Work] = []
        self._bell = Signal()
        simulator.start(self._serve())

    def launch(self, work: Work) -> None:
        """Put `work` at the end of the queue; it inherits the waits issued before it."""
        work.blockers = self._blockers
        self._blockers = []
        self._last = work
        self._queue.append(work)
        self._simulator.fire(self._bell)

    def record(self) -> Work | None:
        """An event: it stands for all work launched so far."""
        return self._last

    def wait(self, event: Work | None) -> None:
        """What is launched from now on starts after `event`."""
        if event is not None:
            self._blockers.append(event)

    def _serve(self) -> Process:
        free_ns = 0
        while True:
            while not self._queue:
                self._bell = Signal()
                yield self._bell
            work = self._queue.popleft()
            for blocker in work.blockers:
                yield blocker.done
            waited = _latest(blocker.end_ns + EVENT_LAG_NS for blocker in work.blockers)
            yield max(work.ready_ns, free_ns + work.gap_ns, waited) - self._simulator.now
            work.start_ns = self._simulator.now
            if work.collective is not None:
                work.collective.arrive(self._simulator)
                yield work.collective.complete
                yield work.collective.transfer_ns
            yield work.dur_ns
            free_ns = work.end_ns = self._simulator.now
            self.finished.append(work)
            self._simulator.fire(work.done)


def _latest(times: Iterable[int]) -> int:
    return max(times, default=0)
