"""Files that a command writes: as a whole or not at all, and never over what is read."""

from collections.abc import Sequence
from pathlib import Path

from ingest.errors import UsageError


def refuse_traces(output: Path, traces: Sequence[str]) -> None:
    """What is read is never overwritten.

    Raises:
        UsageError: the output is one of the traces.
        TraceError: there are no traces.
    """
    from ingest.inputs import find_files

    if output.resolve() in {file.resolve() for file in find_files(traces)}:
        raise UsageError(
            f"`{output}` is the trace itself: not overwritten", hint="give -o another name"
        )


def require_folder(output: Path) -> None:
    """Said before anything is read.

    Raises:
        UsageError: the output is a folder, or would lie in none.
    """
    if output.is_dir():
        raise UsageError(f"`{output}` is a folder", hint="give -o the name of a file")
    if not output.parent.is_dir():
        raise UsageError(f"`{output.parent}` is no folder", hint="make it first")


def write_whole(output: Path, content: bytes) -> None:
    """Under a temporary name, then renamed."""
    part = output.with_name(f".{output.name}.part")
    try:
        part.write_bytes(content)
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)
