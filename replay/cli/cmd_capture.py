"""`replay capture`: run a program and record its training steps."""

import math
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand

from ingest.errors import UsageError
from replay.cli import console
from replay.cli.parts import parse_ranks

if TYPE_CHECKING:
    from replay.recording.launch import Ran
    from replay.recording.settings import Settings


class Counted(StrEnum):
    """What ends a step of a program that does not say so."""

    OPTIMIZER = "optimizer"
    FORWARD = "forward"


class ProgramCommand(TyperCommand):
    """All that follows the program belongs to it, with or without `--` before."""

    allow_interspersed_args = False


def capture(
    program: Annotated[
        list[str],
        typer.Argument(
            metavar="PROGRAM [ARGUMENT]",
            help="What is run, after --: python train.py, torchrun …",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Folder for the traces, one file per rank; without it, a new one under traces/.",
        ),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", metavar="N", min=1, help="Steps to record.")] = 3,
    warmup: Annotated[
        int,
        typer.Option(
            "--warmup", metavar="N", min=1, help="Steps with the profiler on, thrown away."
        ),
    ] = 3,
    skip: Annotated[
        int,
        typer.Option(
            "--skip",
            metavar="N",
            min=0,
            help="Steps before the profiler; the step without it is measured over the last.",
        ),
    ] = 10,
    step_is: Annotated[
        Counted,
        typer.Option(
            "--step-is",
            help="What ends a step: the optimizer's step, or the outermost module's forward "
            "(inference).",
        ),
    ] = Counted.OPTIMIZER,
    stacks: Annotated[
        bool, typer.Option("--stacks", help="Also Python frames; slows the host down a lot.")
    ] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Also allocations of memory.")] = False,
    no_shapes: Annotated[
        bool, typer.Option("--no-shapes", help="Leave out the inputs of operators.")
    ] = False,
    ranks: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Ranks that record, for example 0,8-15; else all."),
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            "--metadata", metavar="KEY=VALUE", help="A fact of the run to keep in the files."
        ),
    ] = None,
) -> None:
    """Run a training program and record some of its steps.

    The program is not changed, and every rank of it records.

    \b
    replay capture -- python train.py --lr 1e-4
    replay capture -o traces/run1 -- torchrun --nproc-per-node 8 train.py
    replay capture --steps 2 --skip 50 --stacks -- python train.py
    replay capture --step-is forward -- python generate.py

    Needs torch where the program runs. The program's exit code is handed on.
    """
    from replay.recording.launch import room_in, traces_in
    from replay.recording.settings import Settings
    from replay.recording.story import story

    folder = output or _new_folder(program)
    asked = Settings(
        folder=str(folder),
        steps=steps,
        warmup=warmup,
        skip=skip,
        shapes=not no_shapes,
        stacks=stacks,
        memory=memory,
        counted=str(step_is),
        ranks=parse_ranks(ranks),
        metadata=_facts(metadata or []),
    )
    if traces_in(folder):
        raise UsageError(
            f"`{folder}` holds the traces of another run", hint="give -o another folder"
        )
    try:
        with room_in(folder):
            ran = _ran(program, asked)
    except OSError as error:
        raise UsageError(
            f"`{folder}` cannot take traces: {error.strerror}", hint="give -o another folder"
        ) from None
    console.talk(story(ran, asked))
    raise typer.Exit(ran.code)


def _ran(program: list[str], asked: "Settings") -> "Ran":
    from replay.recording.launch import run

    try:
        return run(program, asked)
    except OSError as error:
        raise UsageError(
            f"`{program[0]}` cannot be run: {error.strerror}",
            hint="replay capture -- python train.py",
        ) from None


def _new_folder(program: list[str]) -> Path:
    """`traces/train-20260131-120000` for `python train.py`."""
    scripts = [Path(word).stem for word in program if word.endswith(".py")]
    name = scripts[0] if scripts else Path(program[0]).stem
    return Path("traces") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"


def _facts(texts: list[str]) -> dict[str, str | int | float]:
    """`KEY=VALUE`, numbers as numbers.

    Raises:
        UsageError: no `=`, nothing before it, or a number that JSON has no word for.
    """
    facts: dict[str, str | int | float] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise UsageError(
                f"`--metadata {text}` is no KEY=VALUE", hint="--metadata tokens_per_step=32768"
            )
        fact = facts[key] = _number(value)
        if isinstance(fact, float) and not math.isfinite(fact):
            raise UsageError(
                f"`--metadata {text}`: `{value}` is no number that a file can hold",
                hint="leave it out",
            )
    return facts


def _number(text: str) -> str | int | float:
    if "_" in text:  # Python's way of writing, not a person's
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
