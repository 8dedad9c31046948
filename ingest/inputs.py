"""Which files a person means: paths, folders, globs."""

import glob
import re
from collections.abc import Sequence
from pathlib import Path

from ingest.errors import TraceError

_SKIPPED_SUFFIXES = (".duckdb", ".wal", ".md", ".py", ".txt", ".csv", ".tsv", ".yaml", ".yml")


def find_files(paths: Sequence[Path | str]) -> list[Path]:
    """Files behind paths, folders and globs, without repeats, in a stable order.

    Raises:
        TraceError: a path that does not exist, a pattern or a folder without files.
    """
    found: list[Path] = []
    for given in paths:
        path = Path(given)
        if path.is_dir():
            inside = _in_folder(path)
            if not inside:
                raise TraceError(f"`{path}` holds no trace files")
            found += inside
        elif path.is_file():
            found.append(path)
        elif path.exists():
            raise TraceError(
                f"`{path}` is no regular file", hint="write the trace to a file: pipes are not read"
            )
        elif matches := sorted(glob.glob(str(given), recursive=True)):  # noqa: PTH207  (absolute patterns)
            found += [Path(match) for match in matches if Path(match).is_file()]
        else:
            raise TraceError(f"no such file: `{given}`")
    return list(dict.fromkeys(found))


def _in_folder(folder: Path) -> list[Path]:
    """Files of a folder that may be traces; of its sub-folders when it has none itself."""
    for pattern in ("*", "*/*"):
        files = sorted(path for path in folder.glob(pattern) if path.is_file())
        traces = [
            path
            for path in files
            if path.suffix not in _SKIPPED_SUFFIXES and not path.name.startswith(".")
        ]
        if traces:
            return sorted(traces, key=_natural)
    return []


def _natural(path: Path) -> list[tuple[int, str]]:
    return [
        (int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", str(path))
    ]


def is_store(path: Path) -> bool:
    """A DuckDB file, by its name or its content."""
    if path.suffix == ".duckdb":
        return True
    with path.open("rb") as stream:
        return stream.read(12)[8:] == b"DUCK"
