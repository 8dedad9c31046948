"""Recording a trace from a training program: `from replay.capture import capture`.

Needs torch (extra `torch`) and imports nothing else of the analyzer. For programs that are not to
be changed there is `replay capture -- python train.py`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replay.recording.settings import Settings

if TYPE_CHECKING:
    from torch.profiler import profile

    from replay.recording.session import Session


@contextmanager
def capture(  # noqa: PLR0913  (one per option)
    folder: str | Path,
    *,
    skip: int = 10,
    warmup: int = 3,
    steps: int = 3,
    shapes: bool = True,
    stacks: bool = False,
    memory: bool = False,
    ranks: tuple[int, ...] | None = None,
    metadata: Mapping[str, str | int | float] | None = None,
) -> "Iterator[Session]":
    """Record some steps of this process, and measure the step without the profiler around them.

        with capture("traces/run1", metadata={"tokens_per_step": 8 * 4096}) as recording:
            for batch in loader:
                train(batch)
                recording.step()

    Every rank of a job does the same, into one folder: `rank0.json.gz`, `rank1.json.gz`, … An
    error of the recording is told on stderr and the training goes on.

    Args:
        folder: made where it is missing; nothing in it is overwritten.
        skip: steps before the profiler is started. Over the last of them (at most 5, at most half)
            and over 5 after the recording the step without the profiler is measured.
        warmup: steps with the profiler on that are thrown away; at least 1.
        steps: steps that are recorded; at least 1.
        shapes: inputs of operators, for FLOPs, bytes and what-ifs about other GPUs.
        stacks: Python frames; slows the host down, by far the most of all options.
        memory: allocations and frees.
        ranks: those that record; all where None.
        metadata: facts of the run to keep in the file.

    Raises:
        ValueError: numbers of steps that record nothing.
        ImportError: torch is not installed.
    """
    from replay.recording.session import Session

    session = Session(
        Settings(
            folder=str(folder),
            skip=skip,
            warmup=warmup,
            steps=steps,
            shapes=shapes,
            stacks=stacks,
            memory=memory,
            ranks=ranks,
            metadata=metadata or {},
        )
    )
    session.start()
    try:
        yield session
    finally:
        session.close()


def profiler(  # noqa: PLR0913  (one per option)
    folder: str | Path,
    *,
    skip: int = 10,
    warmup: int = 3,
    steps: int = 3,
    shapes: bool = True,
    stacks: bool = False,
    memory: bool = False,
) -> "profile":
    """A `torch.profiler.profile` set up the same way, for code that calls its `step()` itself.

    It writes `rank3.json.gz` when the last step is recorded, and measures nothing beside.

    Args:
        folder: made where it is missing; nothing in it is overwritten.
        skip: steps before the profiler is started.
        warmup: steps with the profiler on that are thrown away; at least 1.
        steps: steps that are recorded; at least 1.
        shapes: inputs of operators.
        stacks: Python frames.
        memory: allocations and frees.

    Raises:
        ValueError: numbers of steps that record nothing.
        ImportError: torch is not installed.
    """
    from replay.recording.profiling import make_profiler
    from replay.recording.session import write

    settings = Settings(
        folder=str(folder),
        skip=skip,
        warmup=warmup,
        steps=steps,
        shapes=shapes,
        stacks=stacks,
        memory=memory,
    )

    def save(recorded: Any) -> None:  # noqa: ANN401  (torch's, of any version)
        write(recorded, settings)

    return make_profiler(settings, ready=save, file_only=False)
