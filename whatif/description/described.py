"""What was found of a run, with its evidence."""

from dataclasses import dataclass
from enum import StrEnum

from whatif.description.labels import Labels
from whatif.models.shape import RunShape
from whatif.parallelism import Layout


class Kind(StrEnum):
    """What the run does."""

    TRAINING = "training"
    INFERENCE = "inference"
    UNKNOWN = "unknown"


class Sure(StrEnum):
    """How a finding is known, the surest first."""

    GIVEN = "given"
    """By a person (`--describe`)."""
    NAMED = "named"
    """By names that the framework or the model wrote."""
    MEASURED = "measured"
    """By what ran: shapes, counts, bytes, order."""
    GUESSED = "guessed"
    """By elimination or by habit."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of `replay describe`."""

    what: str
    """Field as in YAML: `degrees.tp`, `model.layers`, `batch.micro_batches`."""
    value: str
    sure: Sure
    evidence: str
    """In words, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A run as it was understood."""

    kind: Kind
    shape: RunShape
    layout: Layout
    """Which communicator is for what."""
    labels: Labels
    """Of the tasks of the graph that it was read from."""
    stage_of_rank: dict[int, int]
    """Pipeline stage of each rank in the files."""
    stage_layers: tuple[tuple[int, ...], ...]
    """Layers of each stage; several chunks follow one another in the order of the model."""
    findings: tuple[Finding, ...] = ()
    doubts: tuple[str, ...] = ()
    """Why a relayout of this run would rest on little, in words; a transform refuses or tells."""
