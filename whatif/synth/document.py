"""What people write to have a run made: its shape, the machine, a step that was measured."""

from pathlib import Path
from typing import Any

from msgspec import Struct, field

from ingest.errors import ScenarioError
from whatif.documents import as_struct, read_yaml
from whatif.models.dividing import refuse_contradictory
from whatif.models.fabric import Shape
from whatif.models.shape import (
    MOST_DEGREE,
    Batch,
    Degrees,
    Elements,
    ModelShape,
    Options,
    RunShape,
    check_bounds,
)


class MachineSaid(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Accelerators and their links; rates in GB/s of one accelerator and one direction."""

    gpu: str
    """As in `replay hardware`."""
    nodes_of: int = 8
    """Accelerators that a scale-up link joins."""
    nvlink_gb_per_s: float | None = None
    """None: as the catalog has it."""
    joined_by: Shape | None = None
    """How the scale-up links join a node; None: as the catalog has it. `switch` for V100 in a
    DGX-2."""
    net_gb_per_s: float | None = None
    """Between nodes; needed where there are several."""
    net_latency_us: float | None = None

    def __post_init__(self) -> None:
        """Refuse what no machine has."""
        check_bounds(self, _BOUNDS)


_RATE = (1e-3, 1e9)
_BOUNDS = {
    "nodes_of": (1, MOST_DEGREE),
    "nvlink_gb_per_s": _RATE,
    "net_gb_per_s": _RATE,
    "net_latency_us": (1e-3, 1e6),
}


class Measured(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A step that was measured; what it ran with where that is not the run that is made."""

    step_ms: float
    model: ModelShape | None = None
    degrees: Degrees | None = None
    batch: Batch | None = None
    elements: Elements | None = None
    options: Options | None = None

    def __post_init__(self) -> None:
        """Refuse what no clock shows."""
        check_bounds(self, {"step_ms": (1e-6, LONGEST_STEP_MS)})

    def of(self, shape: RunShape) -> RunShape:
        """The shape that was measured."""
        return RunShape(
            model=self.model or shape.model,
            degrees=self.degrees or shape.degrees,
            batch=self.batch or shape.batch,
            elements=self.elements or shape.elements,
            options=self.options or shape.options,
        )


class Wanted(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    model: ModelShape
    machine: MachineSaid
    degrees: Degrees = field(default_factory=Degrees)
    batch: Batch = field(default_factory=Batch)
    elements: Elements = field(default_factory=Elements)
    options: Options = field(default_factory=Options)
    calibrate: Measured | None = None
    """None: times are those of the models, as they are."""
    steps: int = 1

    def __post_init__(self) -> None:
        """Refuse what cannot be played."""
        if not 1 <= self.steps <= MOST_STEPS:
            raise ValueError(f"{self.steps} steps; 1 to {MOST_STEPS} can be made")

    @property
    def shape(self) -> RunShape:
        """Of the run."""
        return RunShape(
            model=self.model,
            degrees=self.degrees,
            batch=self.batch,
            elements=self.elements,
            options=self.options,
        )


MOST_STEPS = 8
LONGEST_STEP_MS = 86_400_000.0
"""A day: no training has such a step, and times of a longer one do not fit a trace."""


def load_wanted(path: Path) -> Wanted:
    """Read and check a file.

    Raises:
        UsageError: it cannot be read.
        ScenarioError: it is wrong.
    """
    document: Any = read_yaml(path, "a run to be made")
    if not isinstance(document, dict):
        raise ScenarioError(f"{path}: no run", hint="fields: model, machine, degrees, batch, …")
    wanted = as_struct(document, Wanted, str(path))
    refuse_contradictory(wanted.shape, str(path))
    return wanted
