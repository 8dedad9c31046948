"""Mean step times of a few steps, measured from outside the profiler."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Timed:
    """Steps one after the other."""

    steps: int
    total_ns: int

    @property
    def mean_ns(self) -> int:
        """Of one step."""
        return round(self.total_ns / self.steps)

    def together(self, other: "Timed") -> "Timed":
        """Both, as one mean over all their steps."""
        return Timed(self.steps + other.steps, self.total_ns + other.total_ns)


APART_FRAC = 0.1
"""Steps before and after that differ by more are not alike."""


def clean_step(before: Timed | None, after: Timed | None) -> Timed | None:
    """The step without the profiler: both together, or the faster where they are not alike.

    What else falls into steps (an evaluation, a checkpoint, a new epoch, another user of the
    machine) only makes them longer.
    """
    there = sorted((one for one in (before, after) if one is not None), key=lambda one: one.mean_ns)
    if not there:
        return None
    if len(there) == 1 or there[1].mean_ns > there[0].mean_ns * (1 + APART_FRAC):
        return there[0]
    return there[0].together(there[1])


class Stopwatch:
    """Runs from one step boundary to another."""

    def __init__(
        self, *, settle: Callable[[], None], clock: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        """Make one that stands.

        Args:
            settle: waits for all work handed out so far, so that it counts where it belongs.
            clock: nanoseconds.
        """
        self._settle = settle
        self._clock = clock
        self._began_ns = 0

    def start(self) -> None:
        """From here."""
        self._settle()
        self._began_ns = self._clock()

    def stop(self, steps: int) -> Timed:
        """Until here, so many steps."""
        self._settle()
        return Timed(steps, self._clock() - self._began_ns)
