"""What the host of one rank does, in order: rows it opens and closes, work it launches."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from ingest.vocab import CollectiveKind

COMPUTE = 7
"""Stream of PyTorch's compute in traces."""


class Thread(StrEnum):
    """Host threads of a rank."""

    MAIN = "main"
    AUTOGRAD = "autograd"


class Sort(IntEnum):
    """What a work takes its time for; each has its own factor in a calibration."""

    COMPUTE = 0
    COMMUNICATION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel as a profiler shows it."""

    name: str
    dur_ns: float
    grid: tuple[int, int, int] = (1, 1, 1)
    block: int = 128
    registers: int = 32
    shared_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Ranks that exchange something."""

    name: str
    """`pg_name`."""
    description: str
    """`pg_desc`, as Megatron-LM calls it."""
    ranks: tuple[int, ...]
    stream: int
    """On which this process runs its collectives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A collective, a send or a receive of one rank."""

    kind: CollectiveKind
    group: Group
    sent: int
    """Elements that go in."""
    received: int
    """Elements that come out."""
    dtype: str
    """As a profiler writes it: `BFloat16`."""
    transfer_ns: float
    """From the moment at which the last member has come."""
    peer: int = -1
    """Rank at the other end of a send or a receive."""
    meeting: tuple[int, ...] = ()
    """Equal for all that wait for each other here: both ends of a message, the stages of a
    collective over several; empty: the others are alike and come at the same time."""
    ends: int = 2
    """How many meet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A row of the host begins; what follows until its `Close` lies inside."""

    category: str
    name: str
    args: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """The row opened last ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What follows runs on another thread."""

    to: Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Work for a stream. It has the next number of its rank, from 0."""

    kernel: Kernel
    stream: int = COMPUTE
    after: tuple[int, ...] = ()
    """Numbers of works of other streams that must have ended."""
    exchange: Exchange | None = None
    fixed_ns: float = 0.0
    """More time, which no calibration changes: of collectives that were counted in."""


Act = Open | Close | Turn | Launch


@dataclass(slots=True, kw_only=True)
class Script:
    """The acts of one rank, as they are written down."""

    rank: int
    acts: list[Act] = field(default_factory=list)
    launches: int = 0
    last_on: dict[int, int] = field(default_factory=dict)
    """Number of the last work of each stream."""
    pending: tuple[int, ...] = ()
    """Works that the next one on the compute stream waits for."""

    def open(self, category: str, name: str, args: Mapping[str, object]) -> None:
        """A row begins."""
        self.acts.append(Open(category=category, name=name, args=args))

    def close(self) -> None:
        """The row opened last ends."""
        self.acts.append(Close())

    def turn(self, to: Thread) -> None:
        """Go on with another thread."""
        self.acts.append(Turn(to=to))

    def wait(self, *works: int) -> None:
        """Let the compute stream wait for works before its next one."""
        self.pending += works

    def launch(self, kernel: Kernel, fixed_ns: float = 0.0) -> int:
        """A kernel on the compute stream; its number."""
        after, self.pending = self.pending, ()
        return self._add(Launch(kernel=kernel, after=after, fixed_ns=fixed_ns))

    def join(self, kernel: Kernel, exchange: Exchange, after: tuple[int, ...] | None = None) -> int:
        """A member of a collective on the stream of its group; its number.

        Args:
            kernel: that runs it.
            exchange: what it is.
            after: works that it waits for; None: the last one of the compute stream.
        """
        if after is None:
            last = self.last_on.get(COMPUTE)
            after = () if last is None else (last,)
            after += self.pending
        launch = Launch(kernel=kernel, stream=exchange.group.stream, after=after, exchange=exchange)
        return self._add(launch)

    def _add(self, launch: Launch) -> int:
        number = self.launches
        self.acts.append(launch)
        self.last_on[launch.stream] = number
        self.launches += 1
        return number
