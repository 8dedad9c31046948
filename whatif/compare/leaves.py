"""What the time of a run's steps is spent on, part by part."""

from dataclasses import dataclass
from enum import StrEnum


class Part(StrEnum):
    """The parts of the breakdown; waiting for members is told apart from transfers."""

    COMPUTE = "compute"
    TRANSFER = "exposed_transfer"
    WAIT = "exposed_wait"
    MEMCPY = "exposed_memcpy"
    IDLE = "idle"


PARTS = tuple(Part)


class Idle(StrEnum):
    """What an idle device (or the waiting thread of a run without one) waited for."""

    HOST = "host work"
    INPUT = "data loader"
    LAUNCH = "launch latency"
    GAPS = "gaps between kernels"
    EVENTS = "waits between streams"
    SYNC = "return of synchronising calls"
    HAND_OVER = "hand-over between threads"
    QUEUE = "full launch queue"
    GRAPH = "CUDA-graph work without rows"
    DEVICE = "another device of the rank"
    RANKS = "other ranks"
    LAST = "the last rank at the end"
    SILENT = "host silent, place known"
    """More than 1 ms without any row, inside a recorded operator or Python frame."""
    BEFORE = "work launched before the recording"
    UNKNOWN = "no known cause"


IDLE = tuple(Idle)

CPU = "CPU work"
"""Cause of the compute part of ranks without device work."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Key:
    """What a piece of time was spent on; equal keys on all ranks and steps are one leaf."""

    part: Part
    cause: str
    """Kernel class, collective, direction of a copy, or why the device was idle."""
    name: str
    """Kernel, call or operator; empty where no row stands for it."""
    op: str
    """Innermost operator that launched it; empty where it is the name or none."""
    module: str
    phase: str
    shape: int
    """Equal for equal grids, blocks and input shapes; -1 where not recorded."""
    size_bytes: int
    """Of a collective; -1 where not recorded."""
    group: str
    """Of a collective: what the framework calls its communicator, and how many ranks it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One key with its time. Per step and rank (mean over ranks, devices of a rank, and steps)."""

    key: Key
    spent_ns: int
    per_step_ns: tuple[float, ...]
    """Of each step, mean over the ranks."""
    count: float
    raw_ns: float
    """Duration of all, whether something hid it or not."""
    places: tuple[int, ...] = ()
    """Of kernels: which ones they are, in launch order, among those of their operator and phase; in
    the first step of the first rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankAccount:
    """The parts of one rank; they add up to the step of the run."""

    rank: int
    parts_ns: dict[Part, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The mean step of a run: the leaves add up to it exactly."""

    step_ns: int
    steps_ns: tuple[int, ...]
    """Of each step of the run."""
    leaves: tuple[Leaf, ...]
    """In the order of their keys."""
    ranks: tuple[RankAccount, ...]
    has_device: bool

    def part_ns(self, part: Part) -> int:
        """Sum of the leaves of a part."""
        return sum(leaf.spent_ns for leaf in self.leaves if leaf.key.part is part)
