"""Programs -> a task graph in which new ranks run segments of recorded ones."""

from collections.abc import Sequence

from whatif.tape.segments import Assembled, Program, Tape


def original(tape: Tape) -> tuple[Program, ...]:
    """The programs that the recorded ranks ran."""
    raise NotImplementedError


def assemble(tape: Tape, programs: Sequence[Program], *, world_size: int) -> Assembled:
    """Put segments together.

    Of the original programs the result replays as the graph of the tape, to the nanosecond.
    """
    raise NotImplementedError
