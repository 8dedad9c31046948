"""The run as it is without the profiler: host work scaled so that the replay meets a step time.

A profiler costs host time per row that it writes and leaves the device nearly alone. So one factor
scales all work and calls of host threads; device work, transfers, waits and residuals stay as
recorded, and a wait follows from what it waits for.
"""

from dataclasses import dataclass, replace

from ingest.errors import ScenarioError
from ingest.units import Nanos, format_ms
from replay.engine.run import replay
from replay.graph.arrays import TaskGraph
from replay.results.critical_path import critical_path
from replay.results.fidelity import Baseline
from replay.results.metrics import step_times
from whatif.transforms.host_scale import scaled_host

FACTORS = (0.1, 1.25)
"""A host faster than the first is another host; slower than recorded are only noisy runs."""
TOO_SHORT = (
    "device work, transfers and what has no known cause stay as recorded: leave the option out "
    "where the run does not wait for its host"
)
TOO_LONG = "no profiler makes a run faster: give the mean of the same steps of the same job"
HALVINGS = 40
"""Of the interval of factors: far below a nanosecond of any step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unprofiled:
    """What was given, and what it made of the host."""

    step_ns: Nanos
    """Measured without the profiler."""
    host_factor: float
    recorded: Baseline
    """Replays of the recording as it is; its trust is that of the whole answer."""

    @property
    def assumption(self) -> str:
        """In words."""
        return (
            f"host work x{self.host_factor:.3f}, so that the replay meets the "
            f"{format_ms(self.step_ns)} measured without the profiler"
        )


def host_factor(graph: TaskGraph, step_ns: Nanos) -> float:
    """The factor on host work with which the calibrated replay takes `step_ns`, by bisection.

    Of several the largest not above 1 where the step is no longer than recorded: a host that may
    be slower without harm is not sped up.

    Raises:
        ScenarioError: no factor in `FACTORS` meets the step.
    """
    low, high = FACTORS
    shortest_ns, recorded_ns, longest_ns = (_step_ns(graph, at) for at in (low, 1.0, high))
    if step_ns == recorded_ns:
        return 1.0
    if not shortest_ns <= step_ns <= longest_ns:
        raise ScenarioError(
            f"no speed of the host makes this step {format_ms(step_ns)}: it takes "
            f"{format_ms(shortest_ns)} with host work taking {low:g} of its time, and "
            f"{format_ms(longest_ns)} with {high:g} of it",
            hint=TOO_SHORT if step_ns < shortest_ns else TOO_LONG,
        )
    low, high = (low, 1.0) if step_ns < recorded_ns else (1.0, high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _step_ns(graph, middle) <= step_ns:
            low = middle
        else:
            high = middle
    return low


def _step_ns(graph: TaskGraph, factor: float) -> int:
    scaled = scaled_host(graph, factor)
    return int(step_times(scaled, replay(scaled)).mean_ns)


def without_profiler(
    graph: TaskGraph, baseline: Baseline, step_ns: Nanos
) -> tuple[TaskGraph, Baseline, Unprofiled]:
    """The graph and the baseline that what-ifs start from, and what was done to get them.

    The new baseline keeps the measured steps and the trust of the recording.

    Raises:
        ScenarioError: no speed of the host meets the step.
    """
    factor = host_factor(graph, step_ns)
    scaled = scaled_host(graph, factor)
    schedule, strict_schedule = replay(scaled), replay(scaled, residuals=False)
    base = replace(
        baseline,
        replayed=step_times(scaled, schedule),
        strict=step_times(scaled, strict_schedule),
        schedule=schedule,
        strict_schedule=strict_schedule,
        path=critical_path(scaled, schedule),
    )
    return scaled, base, Unprofiled(step_ns=step_ns, host_factor=factor, recorded=baseline)
