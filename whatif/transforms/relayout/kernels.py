"""Times of kernels (and of operators of CPU runs) whose shapes another layout changes."""

from whatif.tape.segments import Tape
from whatif.transforms.relayout.parts import Ask, Part


def reshaped(tape: Tape, ask: Ask) -> Part:
    """The tape with new durations where tp, sp, cp, ep, micro-batch size or sequence change."""
    return Part(tape=tape)
