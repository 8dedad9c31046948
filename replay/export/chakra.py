"""Chakra execution traces of a run: a file per rank, and its communicators."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from replay.engine.schedule import Schedule
from replay.export.files import whole_folder
from replay.graph.arrays import TaskGraph
from replay.results.chakra import ExecutionTraces, execution_traces

PREFIX = "replay"
GROUPS = "comm_groups.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTraces:
    """What was written."""

    files: tuple[Path, ...]
    """One per rank: ASTRA-sim asks for `PREFIX.0.et`, `PREFIX.1.et`, ..."""
    groups: Path
    size_bytes: int
    traces: ExecutionTraces


def write_execution_traces(graph: TaskGraph, schedule: Schedule, folder: Path) -> WrittenTraces:
    """Write the files of all ranks, all of them or none.

    Args:
        graph: of the run, with a scenario's changes.
        schedule: of the same.
        folder: made where it is not there.

    Raises:
        UsageError: the folder is a file.
        OSError: a file cannot be written.
    """
    names = {info.rank: f"{PREFIX}.{number}.et" for number, info in enumerate(graph.ranks)}
    with whole_folder(folder) as part:
        with ExitStack() as files:
            opened: dict[int, BinaryIO] = {
                rank: files.enter_context((part / name).open("wb")) for rank, name in names.items()
            }
            traces = execution_traces(graph, schedule, opened)
        text = msgspec.json.format(msgspec.json.encode(traces.groups)) + b"\n"
        (part / GROUPS).write_bytes(text)
    written = tuple(folder / name for name in names.values())
    return WrittenTraces(
        files=written,
        groups=folder / GROUPS,
        size_bytes=sum(path.stat().st_size for path in written),
        traces=traces,
    )
