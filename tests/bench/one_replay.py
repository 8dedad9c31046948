"""Read, build, replay and judge a run in a process of its own: prints seconds and peak memory.

    python -m tests.bench.one_replay FOLDER TRACE...

The clock runs around the work alone, behind the imports. FOLDER takes the store.
"""

import itertools
import json
import sys
import time
from pathlib import Path

from ingest.pipeline import IngestOptions, open_run
from replay.engine.run import replay
from replay.graph.build import build
from replay.results.critical_path import critical_path
from replay.results.fidelity import baseline
from tests.bench.one_reading import peak_bytes

STAGES = ("ingest", "build", "replay", "path", "baseline")


def main(folder: str, *traces: str) -> None:
    """Do it once, then print one line of JSON."""
    times = [time.perf_counter()]

    def lap() -> None:
        times.append(time.perf_counter())

    paths = [Path(trace) for trace in traces]
    with open_run(paths, options=IngestOptions(cache_dir=Path(folder))) as run:
        lap()
        built = build(run.store)
        lap()
    graph = built.graph
    schedule = replay(graph)
    lap()
    path = critical_path(graph, schedule)
    lap()
    trust = baseline(graph, built.facts).trust
    lap()
    seconds = [after - before for before, after in itertools.pairwise(times)]
    answer = {
        "seconds": dict(
            zip(("ingest", "build", "replay", "path", "baseline"), seconds, strict=True)
        ),
        "processor_s": time.process_time(),
        "peak_bytes": peak_bytes(),
        "events": built.facts.events,
        "ranks": len(graph.ranks),
        "tasks": graph.n_tasks,
        "edges": len(graph.edges.src),
        "members": built.facts.members,
        "members_complete": built.facts.members_complete,
        "path_tasks": len(path.task),
        "strict_error_frac": trust.strict_error_frac,
    }
    print(json.dumps(answer))  # noqa: T201  (its answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
