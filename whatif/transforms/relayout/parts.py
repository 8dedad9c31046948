"""What the parts of a relayout get and give back."""

from dataclasses import dataclass

from ingest.vocab import TaskKind
from whatif.description.described import Described
from whatif.models.shape import RunShape
from whatif.tape.segments import Tape
from whatif.transforms.base import Context

DEVICE_WORK = (TaskKind.KERNEL, TaskKind.MEMCPY, TaskKind.MEMSET)
"""What devices do beside communicating."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One relayout."""

    described: Described
    """The run as recorded."""
    target: RunShape
    """What it shall be."""
    context: Context
    """The machine; `machine.known` has filled it. `context.bound` is the end of the range asked."""

    @property
    def before(self) -> RunShape:
        """Shape of the recorded run."""
        return self.described.shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A tape after one part of the work."""

    tape: Tape
    assumptions: tuple[str, ...] = ()
    known_errors: tuple[str, ...] = ()
