"""Collectives that come, go, or change members and sizes with another layout."""

from whatif.tape.segments import Tape
from whatif.transforms.relayout.parts import Ask, Part


def recommunicated(tape: Tape, ask: Ask) -> Part:
    """The tape with the collectives of the new layout, but for those between stages."""
    return Part(tape=tape)
