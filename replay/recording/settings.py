"""What is asked of a recording, and how it travels to the processes of a program."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

VARIABLE = "TRACE_REPLAY_CAPTURE"
"""Environment variable that carries the settings as JSON."""

MEASURED_STEPS = 5
"""Steps before and after the recording over which the step without the profiler is measured."""
SETTLING_STEPS = 2
"""Steps between the recording and that measurement: writing the file holds the ranks up."""

OPTIMIZER, FORWARD = "optimizer", "forward"
COUNTED = (OPTIMIZER, FORWARD)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One recording per process: skip, warm up, record, measure.

    Raises:
        ValueError: numbers of steps that record nothing, an unknown way to count, or a fact that
            JSON has no word for.
    """

    folder: str
    """One for all ranks of a run."""
    skip: int = 10
    """Steps before the profiler is started; the step without it is measured over the last."""
    warmup: int = 3
    """Steps with the profiler on that are thrown away."""
    steps: int = 3
    """Steps that are recorded."""
    shapes: bool = True
    stacks: bool = False
    memory: bool = False
    counted: str = OPTIMIZER
    """Where nobody calls `step()`: what ends a step, `optimizer` or `forward`."""
    ranks: tuple[int, ...] | None = None
    """Those that record; all where None."""
    metadata: Mapping[str, str | int | float] = field(default_factory=dict)
    """Facts of the run for the file: model, tokens per step."""
    notes: str = ""
    """Folder for what processes tell of themselves; none where empty."""

    def __post_init__(self) -> None:
        if self.skip < 0 or self.warmup < 1 or self.steps < 1:
            raise ValueError("skip is 0 or more, warmup and steps are 1 or more")
        if self.counted not in COUNTED:
            raise ValueError(f"steps are counted at {' or '.join(COUNTED)}, not `{self.counted}`")
        for key, value in self.metadata.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"metadata `{key}` is {value}: JSON has no such number")

    @property
    def measured_before(self) -> int:
        """Steps before the profiler that are measured: the later half, as the first are slower."""
        return min(MEASURED_STEPS, self.skip // 2)

    @property
    def needed(self) -> int:
        """Steps that a program has to make for a whole recording."""
        return self.skip + self.warmup + self.steps

    def to_json(self) -> str:
        """For the environment."""
        return json.dumps(asdict(self), allow_nan=False)


def from_json(text: str) -> Settings:
    """The settings that `to_json` wrote."""
    given = json.loads(text)
    if given["ranks"] is not None:
        given["ranks"] = tuple(given["ranks"])
    return Settings(**given)
