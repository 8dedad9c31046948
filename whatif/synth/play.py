"""Scripts -> when everything ran: host threads, streams and messages between stages.

The host goes through its script; a work starts once it was launched, its stream is free and what
it waits for has ended. A message between two stages moves from the moment at which both ends are
there. Ranks of other groups are alike (one stands for all), so their collectives wait for nobody.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ingest.errors import ScenarioError
from ingest.vocab import CollectiveKind
from whatif.synth.script import Close, Exchange, Launch, Open, Script, Sort, Thread, Turn

ROW_NS = 1_500
"""Host time of an operator before its first call, and after its last."""
CALL_NS = 3_500
"""Of a launching call: 4 to 6 us with a profiler on, less without (facts on launches)."""
SHORT_CALL_NS = 600
"""Of a call that records or waits for an event."""
TURN_NS = 30_000
"""From one thread to the other: `backward()` and its return."""
LAUNCH_LAG_NS = 2_000
"""From the end of the launching call to the start of its work on an idle stream."""
STREAM_GAP_NS = 1_000
"""Between two works of a stream."""
EVENT_LAG_NS = 1_000
"""From the end of a work to the start of what waits for it on another stream."""


@dataclass(frozen=True, slots=True)
class HostRow:
    """A row of the host; times in ns."""

    category: str
    name: str
    thread: Thread
    start_ns: int
    end_ns: int
    args: Mapping[str, object]
    correlation: int = 0


@dataclass(slots=True)
class Work:
    """A work of a stream; times in ns."""

    launch: Launch
    correlation: int
    external: int
    start_ns: int
    end_ns: int = -1


@dataclass(frozen=True, slots=True)
class Wait:
    """A stream waited for an event."""

    at_ns: int
    stream: int
    correlation: int
    on_stream: int
    record: int
    """Correlation of the call that recorded the event."""


@dataclass(slots=True)
class Played:
    """One rank after the play."""

    rank: int
    rows: list[HostRow] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    host_ns: int = 0

    @property
    def end_ns(self) -> int:
        """When host and device are done."""
        return max([self.host_ns, *(work.end_ns for work in self.works)])


class _Meetings:
    """Who waits for whom; messages of one direction between two ranks move one after another."""

    def __init__(self) -> None:
        self._come: dict[tuple[int, ...], list[Work]] = {}
        self._free_ns: dict[tuple[int, ...], int] = {}

    def come(self, exchange: Exchange, work: Work, way: tuple[int, ...]) -> None:
        """One is there; with the last one all works get their end."""
        works = self._come.setdefault(exchange.meeting, [])
        works.append(work)
        if len(works) < exchange.ends:
            return
        start = max(*(each.start_ns for each in works), self._free_ns.get(way, 0))
        end = start + round(exchange.transfer_ns)
        self._free_ns[way] = end
        for each in works:
            each.end_ns = end
        del self._come[exchange.meeting]


def play(
    scripts: Sequence[Script], factors: Mapping[Sort, float], *, noted: bool = True
) -> list[Played]:
    """Play scripts together.

    Args:
        scripts: one per rank.
        factors: what every time of that sort is multiplied with.
        noted: keep rows of the host and events.

    Raises:
        ScenarioError: they wait for each other.
    """
    meetings = _Meetings()
    players = [_Player(script, meetings, factors, noted=noted) for script in scripts]
    running = [(player, player.run()) for player in players]
    while running:
        moved = False
        left = []
        for player, steps in running:
            before = player.done
            if next(steps, None) is not None:
                left.append((player, steps))
            moved |= player.done > before or not (left and left[-1][0] is player)
        if not moved:
            raise ScenarioError("the stages wait for each other", hint="take another schedule")
        running = left
    return [player.played for player in players]


class _Player:
    """One rank."""

    def __init__(
        self, script: Script, meetings: _Meetings, factors: Mapping[Sort, float], *, noted: bool
    ) -> None:
        self.played = Played(rank=script.rank)
        self.done = 0
        self._script = script
        self._meetings = meetings
        self._factors = factors
        self._noted = noted
        self._thread = Thread.MAIN
        self._stack: list[tuple[Open, int, int]] = []
        self._externals = 0
        self._correlation = 10_000
        self._last: dict[int, Work] = {}
        self._records: dict[int, int] = {}
        """Of works that were launched with an event behind them: the call that recorded it."""
        self._now = 0

    def run(self) -> Iterator[bool]:
        """Go through the script; yields where a work waits for an end that is not known yet."""
        for act in self._script.acts:
            self.done += 1
            match act:
                case Open():
                    self._externals += 1
                    self._stack.append((act, self._now, self._externals))
                    self._now += ROW_NS
                case Close():
                    self._close()
                case Turn():
                    self._thread = act.to
                    self._now += TURN_NS
                case Launch():
                    while not self._startable(act):
                        yield True
                    self._launch(act)
        while any(work.end_ns < 0 for work in self._last.values()):
            yield True
        self.played.host_ns = self._now

    def _startable(self, launch: Launch) -> bool:
        """Whether the ends of all that it waits for are known."""
        last = self._last.get(launch.stream)
        works = self.played.works
        return (last is None or last.end_ns >= 0) and all(
            works[number].end_ns >= 0 for number in launch.after
        )

    def _launch(self, launch: Launch) -> None:
        self._events(launch)
        name = "cudaLaunchKernel" if launch.exchange is None else "cudaLaunchKernelExC"
        correlation = self._call(name, CALL_NS)
        works = self.played.works
        last = self._last.get(launch.stream)
        start = self._now + LAUNCH_LAG_NS
        if last is not None:
            start = max(start, last.end_ns + STREAM_GAP_NS)
        for number in launch.after:
            start = max(start, works[number].end_ns + EVENT_LAG_NS)
        external = self._external()
        work = Work(launch, correlation, external, start)
        works.append(work)
        self._last[launch.stream] = work
        exchange = launch.exchange
        if exchange is not None:
            self._records[len(works) - 1] = self._call("cudaEventRecord", SHORT_CALL_NS)
        if exchange is not None and exchange.meeting:
            ends = (self.played.rank, exchange.peer)
            way = ends[::-1] if exchange.kind == CollectiveKind.RECV else ends
            self._meetings.come(exchange, work, way)
        else:
            work.end_ns = start + self._lasts(launch)

    def _lasts(self, launch: Launch) -> int:
        if launch.exchange is None:
            scaled = launch.kernel.dur_ns * self._factors[Sort.COMPUTE]
            return max(round(scaled + launch.fixed_ns), 1)
        return max(round(launch.exchange.transfer_ns * self._factors[Sort.COMMUNICATION]), 1)

    def _events(self, launch: Launch) -> None:
        """Records and waits; of works of one stream the last one counts."""
        works = self.played.works
        latest = {works[number].launch.stream: number for number in sorted(launch.after)}
        for stream, number in sorted(latest.items()):
            record = self._records.get(number) or self._call("cudaEventRecord", SHORT_CALL_NS)
            wait = self._call("cudaStreamWaitEvent", SHORT_CALL_NS)
            if self._noted:
                self.played.waits.append(Wait(self._now, launch.stream, wait, stream, record))

    def _call(self, name: str, lasts_ns: int) -> int:
        self._correlation += 1
        start = self._now
        self._now += lasts_ns
        if self._noted:
            args = {"External id": self._external(), "correlation": self._correlation}
            row = HostRow(
                "cuda_runtime", name, self._thread, start, self._now, args, self._correlation
            )
            self.played.rows.append(row)
        return self._correlation

    def _external(self) -> int:
        return next((e for row, _, e in reversed(self._stack) if row.category == "cpu_op"), 0)

    def _close(self) -> None:
        opened, start, external = self._stack.pop()
        self._now += ROW_NS
        if self._noted:
            args = opened.args
            if opened.category in ("cpu_op", "user_annotation"):
                args = {"External id": external, "Record function id": 0, **args}
            row = HostRow(opened.category, opened.name, self._thread, start, self._now, args)
            self.played.rows.append(row)
