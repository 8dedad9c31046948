"""One way of reading a trace, in a process of its own: prints its seconds and peak memory.

    python -m tests.bench.one_reading WAY FOLDER TRACE...

The clock runs around the reading alone, behind the imports. FOLDER takes the cache.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ingest.pipeline import IngestOptions, open_run

Task = Callable[[], object]


def _json_load(_: Path, traces: Sequence[Path]) -> Task:
    def load() -> list[object]:
        with traces[0].open(encoding="utf-8") as stream:
            return [json.load(stream)]

    return load


def _ingest(folder: Path, traces: Sequence[Path]) -> Task:
    return lambda: _opened(folder, traces, cached=False)


def _reopen(folder: Path, traces: Sequence[Path]) -> Task:
    return lambda: _opened(folder, traces, cached=True)


def _opened(folder: Path, traces: Sequence[Path], *, cached: bool) -> int:
    with open_run(traces, options=IngestOptions(cache_dir=folder)) as run:
        assert (run.cached, run.failed) == (cached, ())
        return int(run.store.rows("SELECT count(*) FROM slice")[0][0])


def _hta(_: Path, traces: Sequence[Path]) -> Task:
    """One process as everything here; HTA's default of one per rank does the same for one rank."""
    from hta.common.trace import Trace

    trace = Trace({rank: str(path) for rank, path in enumerate(traces)})
    return lambda: trace.load_traces(use_multiprocessing=False)


WAYS = {"json.load": _json_load, "ingest": _ingest, "reopen": _reopen, "hta": _hta}


def peak_bytes() -> int:
    """Most memory this program has had at once.

    `getrusage` would not do: a child begins with the peak of the process that started it.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def main(way: str, folder: str, *traces: str) -> None:
    """Read, then print one line of JSON."""
    task = WAYS[way](Path(folder), [Path(trace) for trace in traces])
    began = time.perf_counter()
    kept = task()
    seconds = time.perf_counter() - began
    print(json.dumps({"seconds": seconds, "peak_bytes": peak_bytes()}))  # noqa: T201  (its answer)
    del kept


if __name__ == "__main__":
    main(*sys.argv[1:])
