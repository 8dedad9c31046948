"""Which new rank runs which segments, in which order."""

from whatif.tape.segments import Program, Tape
from whatif.transforms.relayout.parts import Ask


def programs_of(tape: Tape, ask: Ask) -> tuple[tuple[Program, ...], tuple[str, ...]]:
    """The programs of the new ranks, and what was taken for granted."""
    raise NotImplementedError
