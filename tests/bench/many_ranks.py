"""Traces of many ranks from the synthetic sample of eight: longer, and each rank several times.

Rank r has the events of rank r % 8 of the sample, again and again, always by the same time for all
ranks, so that the collectives of all ranks stay matched. Files are gzip, as profilers write them.
"""

import gzip
import json
import re
from pathlib import Path
from typing import Any

from tests.bench.big_trace import NUMBERS, shifted

SAMPLE = Path(__file__).resolve().parents[2] / "sample_traces" / "ddp8_h100"
STEP_US = 3_000
"""Between the end of a copy and the start of the next one."""
STEPS = 2


def write(folder: Path, *, ranks: int, events_per_rank: int) -> int:
    """Write `rank0.json.gz` and so on; answers the number of events over all files."""
    sample = [
        json.loads(gzip.decompress(path.read_bytes())) for path in sorted(SAMPLE.glob("*.gz"))
    ]
    span = _span_us([trace["traceEvents"] for trace in sample])
    bodies = []
    total = 0
    for trace in sample[:ranks]:
        body, events = _body(trace["traceEvents"], span, events_per_rank)
        bodies.append(body)
        total += events * len(range(len(bodies) - 1, ranks, len(sample)))
    for rank in range(ranks):
        header = _header(sample[rank % len(sample)], rank, ranks)
        path = folder / f"rank{rank}.json.gz"
        # Two gzip members after one another are one gzip file: each body is packed only once.
        path.write_bytes(gzip.compress(header, 1) + bodies[rank % len(sample)])
    return total


def _span_us(lists: list[list[dict[str, Any]]]) -> int:
    timed = [event for events in lists for event in events if event.get("ph") == "X"]
    first = min(event["ts"] for event in timed)
    return int(max(event["ts"] + event["dur"] for event in timed) - first) + STEP_US


def _body(events: list[dict[str, Any]], span: int, at_least: int) -> tuple[bytes, int]:
    """The packed list of events behind the header, and their number."""
    texts = [json.dumps(event) for event in events]
    ids = 1 + max(int(found[2]) for text in texts for found in NUMBERS.finditer(text))
    copies = -(-at_least // len(texts))
    every = [text for copy in range(copies) for text in shifted(texts, copy, span, ids, STEPS)]
    return gzip.compress((",\n".join(every) + "\n]}\n").encode(), 1), len(every)


def _header(trace: dict[str, Any], rank: int, ranks: int) -> bytes:
    header = {key: value for key, value in trace.items() if key != "traceEvents"}
    groups = [
        group | {"pg_size": ranks, "ranks": list(range(ranks))}
        for group in header["distributedInfo"]["pg_config"]
    ]
    header["distributedInfo"] |= {"rank": rank, "world_size": ranks, "pg_config": groups}
    return (re.sub(r"\}$", "", json.dumps(header)) + ', "traceEvents": [\n').encode()
