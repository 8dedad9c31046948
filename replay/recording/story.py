"""What became of a program that was run to be recorded: files, cost, and what to type next."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from .head import read_head
from .launch import Ran
from .notes import Note
from .settings import Settings
from .spoken import costs, unprofiled_option

_SHOWN = 3


def story(ran: Ran, asked: Settings) -> str:
    """Lines for the person."""
    lines = _recorded(ran.files, asked) if ran.files else _nothing(ran.notes)
    short = [note for note in ran.notes if note.reason and note.steps and ran.files]
    lines += [f"rank {note.rank}: {note.reason}" for note in short[:_SHOWN]]
    if len(short) > _SHOWN:
        lines.append(f"so did {len(short) - _SHOWN} more ranks")
    if ran.code:
        lines.append(f"the program ended with code {ran.code}")
    return "\n".join(lines)


def _recorded(files: Sequence[Path], asked: Settings) -> list[str]:
    heads = [read_head(path) for path in files]
    folder = shlex.quote(os.path.relpath(asked.folder))
    size = sum(path.stat().st_size for path in files)
    count = f"{len(files)} file" + ("" if len(files) == 1 else "s")
    return [
        "",
        f"recorded   {count} in {folder}, {size / 1e6:,.1f} MB",
        f"cost       {costs(heads)}",
        f"next       replay {folder}{unprofiled_option(heads)}",
    ]


def _nothing(notes: Sequence[Note]) -> list[str]:
    if not notes:
        return [
            "nothing recorded: no Python process that imports torch was seen",
            "The program is reached by PYTHONPATH: python -E, -I and -S ignore it, and containers,",
            "ssh, Ray and other machines do not take it over. Use replay.capture in the script.",
        ]
    told = [note.reason or "it was killed before it could tell" for note in notes]
    reasons = [f"nothing recorded: {reason}" for reason in dict.fromkeys(told)]
    return [*reasons, *dict.fromkeys(note.advice for note in notes if note.advice)]
