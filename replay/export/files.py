"""Files that are there as a whole or not at all."""

import errno
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from isal import igzip

from ingest.errors import UsageError
from ingest.inputs import find_files

_LEVEL = 2
"""Of compression: 3 takes a third longer for 4 % less."""
_PART = ".replay.part"
_OPENING_BYTES = 1 << 20
_OWN = re.compile(rb'"program":\s*"trace-replay')
"""In the head of timelines that this program wrote."""
_EVENTS = re.compile(rb'"(?:traceEvents|deviceProperties|distributedInfo|ph)"\s*:')


def is_one_file(output: Path) -> bool:
    """The name is that of one trace file; any other is that of a folder."""
    return output.name.lower().endswith((".json", ".json.gz"))


def refuse_place(output: Path) -> None:
    """A file cannot be written there; said before anything is read, which may take minutes.

    Raises:
        UsageError: the output is a folder, or would lie in none.
    """
    if output.is_dir():
        raise UsageError(f"`{output}` is a folder", hint="give the name of a file")
    if not output.parent.is_dir():
        raise UsageError(f"`{output.parent}` is no folder", hint="make it first")


def refuse_no_folder(output: Path) -> None:
    """A folder cannot be made there, nor is it there.

    Raises:
        UsageError: it is a file, or its name reads as that of one.
    """
    if output.is_dir():
        return
    if output.exists():
        raise UsageError(f"`{output}` is a file, no folder", hint="give -o another name")
    if output.suffix:
        raise UsageError(
            f"`{output}` is no folder", hint="end a timeline in .json or .json.gz; or: -o folder/"
        )


def refuse_traces(output: Path, traces: Sequence[Path | str]) -> None:
    """What is read is never overwritten.

    Raises:
        UsageError: the output is one of the traces.
        TraceError: there are no traces.
    """
    if output.resolve() in {trace.resolve() for trace in find_files(traces)}:
        raise UsageError(
            f"`{output}` is the trace itself: not overwritten", hint="give -o another name"
        )


def refuse_recordings(output: Path) -> None:
    """What a profiler wrote cannot be had again: only timelines of this program are written over.

    Raises:
        UsageError: what lies there is none of them.
    """
    if output.is_file() and not _OWN.search(_opening(output)):
        raise UsageError(
            f"`{output}` is there already and no timeline of replay: not overwritten",
            hint="give -o another name, or delete that file first",
        )


def holds_events(path: Path) -> bool:
    """It reads as a trace from its beginning."""
    opening = _opening(path)
    return opening.lstrip()[:1] in {b"{", b"["} and bool(_EVENTS.search(opening))


def _opening(path: Path) -> bytes:
    """The first part of a file, unpacked; of a damaged one as it is."""
    try:
        with igzip.open(path, "rb") as file:
            return cast("bytes", file.read(_OPENING_BYTES))
    except (OSError, EOFError):
        with path.open("rb") as file:
            return file.read(_OPENING_BYTES)


@contextmanager
def whole_file(output: Path) -> Iterator[Path]:
    """A place to write to, which becomes the file when all is written.

    Raises:
        UsageError: its folder is not there.
        OSError: it cannot be written; under the name that was given.
    """
    refuse_place(output)
    part = output.with_name(f".{output.name}.part")
    with _named(output, part):
        try:
            yield part
            part.replace(output)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def whole_folder(output: Path) -> Iterator[Path]:
    """A folder to write to, whose files are moved to `output` when all are written.

    A folder that was there keeps its other files; one that was not is gone after an error.

    Raises:
        UsageError: it is a file, or its name reads as that of one.
        OSError: a file cannot be written; under the name that was given.
    """
    refuse_no_folder(output)
    made = [folder for folder in (output, *output.parents) if not folder.exists()]
    part = output / _PART
    with _named(output, part):
        try:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            yield part
            files = sorted(path for path in part.rglob("*") if path.is_file())
            places = [output / path.relative_to(part) for path in files]
            for place in places:
                if is_one_file(place) and place.is_file() and holds_events(place):
                    refuse_recordings(place)
            for path, place in zip(files, places, strict=True):
                place.parent.mkdir(exist_ok=True)
                path.replace(place)
            made = []
        finally:
            shutil.rmtree(part, ignore_errors=True)
            for folder in made:
                _remove_empty(folder)


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


@contextmanager
def _named(output: Path, part: Path) -> Iterator[None]:
    """Errors of writing name what was typed, not the place where it is made."""
    try:
        yield
    except OSError as error:
        named = error.filename
        if named is not None and part not in (Path(str(named)), *Path(str(named)).parents):
            raise
        reason = error.strerror or str(error)
        raise OSError(error.errno or errno.EIO, reason, str(output)) from error


def write_pieces(output: Path, pieces: Iterable[bytes]) -> int:
    """Write a file piece by piece, compressed where its name ends in `.gz`.

    Args:
        output: the file.
        pieces: what it holds.

    Returns:
        its size, bytes.

    Raises:
        UsageError: its folder is not there.
        OSError: it cannot be written.
    """
    with whole_file(output) as part:
        opened = _compressed if output.suffix.lower() == ".gz" else _plain
        with opened(part) as file:
            for piece in pieces:
                file.write(piece)
        return part.stat().st_size


def _plain(path: Path) -> BinaryIO:
    return path.open("wb")


def _compressed(path: Path) -> BinaryIO:
    return cast("BinaryIO", igzip.open(path, "wb", compresslevel=_LEVEL))
