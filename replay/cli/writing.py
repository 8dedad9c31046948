"""Files that a command writes: as a whole or not at all, and never over what is read."""

from collections.abc import Sequence
from pathlib import Path

from ingest.errors import UsageError

OWN_HEAD = b'"schema_version"'
"""Stands near the start of JSON that this program wrote."""
HEAD_BYTES = 64


def require_place(output: Path, traces: Sequence[str]) -> None:
    """Said before anything is read, which may take minutes.

    Raises:
        UsageError: the output is a folder, would lie in none, or is one of the traces.
        TraceError: there are no traces.
    """
    from replay.export.files import refuse_traces

    if output.is_dir():
        raise UsageError(f"`{output}` is a folder", hint="give the name of a file")
    if not output.parent.is_dir():
        raise UsageError(f"`{output.parent}` is no folder", hint="make it first")
    refuse_traces(output, traces)


def refuse_other_json(output: Path) -> None:
    """What is there already may be a trace of another run: only answers are written over.

    Raises:
        UsageError: it is JSON that this program did not write.
    """
    if output.suffix.lower() == ".json" and output.exists() and not _is_own(output):
        raise UsageError(
            f"`{output}` is there already and is no answer of replay: not overwritten",
            hint="give another name, or delete that file first",
        )


def _is_own(path: Path) -> bool:
    with path.open("rb") as file:
        return OWN_HEAD in file.read(HEAD_BYTES)


def write_whole(output: Path, content: bytes) -> None:
    """Under a temporary name, then renamed."""
    from replay.export.files import whole_file

    with whole_file(output) as part:
        part.write_bytes(content)


def counted(number: int, noun: str) -> str:
    """`1 file`, `1,200 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
