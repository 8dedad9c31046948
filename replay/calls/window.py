"""Which run, and which part of it: the words of every call."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ingest.pipeline import IngestOptions
from replay.queries.load import Value
from whatif.scenario import Scenario

Paths = Sequence[Path | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The part of a run that counts; None is all of it."""

    ranks: tuple[int, ...] | None = None
    steps: range | None = None
    """Recorded step numbers, half-open."""

    def as_values(self) -> dict[str, Value]:
        """Parameters of the named queries that know parts of a run."""
        return {
            "ranks": None if self.ranks is None else ",".join(map(str, self.ranks)),
            "first_step": None if self.steps is None else self.steps.start,
            "last_step": None if self.steps is None else self.steps.stop - 1,
        }


WHOLE = Window()
DEFAULTS = IngestOptions()
UNCHANGED = Scenario()
