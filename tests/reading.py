"""Raw text of traces for tests of the reader, and the tables that come of it; times in us."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ingest.issues import IssueLog
from ingest.lexicon.distinct import Lexicon
from ingest.lexicon.words import Words
from ingest.parsed import ArgumentRows, Parsed
from ingest.pipeline import IngestOptions, Run, open_run
from ingest.readers.batches import Batch
from ingest.readers.kineto import read_kineto
from ingest.readers.source import Source
from ingest.readers.stream import read_events

Row = tuple[Any, ...]


def host(category: str, name: str, ts: object, dur: object, **args: object) -> str:
    """A row of a CPU thread as text; `ts` and `dur` stand in it as they are given."""
    return _event(category, name, (7, 70), (ts, dur), args)


def kernel(name: str, ts: object, dur: object, *, stream: int = 7, **args: object) -> str:
    """A kernel as text."""
    return _event("kernel", name, (0, stream), (ts, dur), {"device": 0, "stream": stream} | args)


def _event(
    category: str, name: str, track: tuple[int, int], times: Sequence[object], args: object
) -> str:
    ts, dur = (time if isinstance(time, str) else json.dumps(time) for time in times)
    track_text = f'"pid": {track[0]}, "tid": {track[1]}'
    return (
        f'{{"ph": "X", "cat": "{category}", "name": "{name}", {track_text}, '
        f'"ts": {ts}, "dur": {dur}, "args": {json.dumps(args)}}}'
    )


def document(*events: str, head: str = '"schemaVersion": 1', tail: str = "") -> str:
    """A trace, one event on each line, as the profiler writes it."""
    listed = ",\n    ".join(events)
    return f'{{\n  {head},\n  "traceEvents": [\n    {listed}\n  ]{tail}\n}}\n'


def rank_of(rank: int, world_size: int = 2) -> str:
    """The header of one rank's file."""
    return f'"distributedInfo": {{"rank": {rank}, "world_size": {world_size}, "backend": "nccl"}}'


def write(path: Path, content: str | bytes) -> Path:
    """A file with this content."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


class Bytes(Source):
    """A trace in memory, called `t.json`."""

    def __init__(self, data: bytes) -> None:
        super().__init__(Path("t.json"))
        object.__setattr__(self, "data", data)

    data: bytes

    def blocks(self, log: IssueLog, digest: Callable[[bytes], None]) -> Iterator[bytes]:  # noqa: ARG002
        """All of it."""
        yield self.data


class Dropped:
    """Takes arguments and only counts them."""

    count = 0

    def write(self, rows: ArgumentRows) -> None:
        """Take some."""
        self.count += len(rows.args_id)


def parse(source: Source | bytes, *, strict: bool = False) -> Parsed:
    """The columns of one file, and none of the store."""
    source = Bytes(source) if isinstance(source, bytes) else source
    return read_kineto(source, Words(), Dropped(), strict=strict)


def count_events(data: bytes, *, strict: bool = False) -> tuple[int, bool, dict[str, int]]:
    """Events of one file, whether it is whole, and what was odd; without its columns."""
    log, found = IssueLog(), [0]

    def take(batch: Batch) -> None:
        found[0] += len(batch)

    ending = read_events(Bytes(data), Lexicon(), take, log, strict=strict)
    return found[0], ending.complete, log.counts


@contextmanager
def reading(*paths: Path, strict: bool = False) -> Iterator[Run]:
    """The run of these files, without a cache."""
    with open_run(paths, options=IngestOptions(cache=False, strict=strict)) as run:
        yield run


def rows(paths: Path | Sequence[Path], query: str) -> list[Row]:
    """What a query says of the run of these files."""
    with reading(*([paths] if isinstance(paths, Path) else paths)) as run:
        return run.store.rows(query)


def issues(run: Run) -> dict[str, int]:
    """Oddities of the run, summed over its files."""
    return {
        name: int(value)
        for name, value in run.store.rows(
            "SELECT name, sum(value) FROM import_stat GROUP BY name ORDER BY name"
        )
    }
