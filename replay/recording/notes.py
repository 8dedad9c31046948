"""What each process of a program tells of its recording, as files in a folder of the launcher."""

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Note:
    """One process that loaded torch."""

    rank: int = 0
    steps: int = 0
    """Ends of steps that were seen."""
    file: str = ""
    """The trace; empty where there is none."""
    reason: str = ""
    """Why there is none, or less than asked."""
    advice: str = ""
    """What would record something."""


def write_note(folder: str, note: Note) -> None:
    """Put down what is known now, over what this process said before.

    Raises:
        OSError: the folder is gone, as when the launcher was killed.
    """
    if folder:
        Path(folder, f"{os.getpid()}.json").write_text(json.dumps(asdict(note)), encoding="utf-8")


def read_notes(folder: Path) -> list[Note]:
    """All of them, by rank; a half written one counts as a process without a reason."""
    notes = []
    for path in folder.glob("*.json"):
        try:
            notes.append(replace(Note(), **json.loads(path.read_text(encoding="utf-8"))))
        except ValueError:
            notes.append(Note())
    return sorted(notes, key=lambda note: (note.rank, note.file))
