"""A big trace from a small one: the same events again and again, each time later.

Times, correlation ids, External ids, flow ids, Python ids and `Ev Idx` go on from copy to copy, as
they would in a longer recording, so that links stay within a copy.
"""

import gzip
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

_TS = re.compile(r'("ts":\s*)(-?\d+(?:\.\d+)?)')
NUMBERS = re.compile(
    r'("(?:correlation|External id|id|Ev Idx|Python id|Python parent id|Record function id)":\s*)'
    r"(\d+)"
)
_STEP = re.compile(r"ProfilerStep#(\d+)")
_WRITTEN_AT_ONCE = 1 << 24


def grow(source: Path, target: Path, *, at_least_bytes: int) -> int:
    """Write the grown trace as plain JSON.

    Args:
        source: a trace, plain or gzip.
        target: the file to write.
        at_least_bytes: size to reach.

    Returns:
        How many events it holds.
    """
    stored = source.read_bytes()
    trace = json.loads(gzip.decompress(stored) if source.suffix == ".gz" else stored)
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    header = {key: value for key, value in trace.items() if key != "traceEvents"}
    texts = [json.dumps(event) for event in events]
    starts = [event["ts"] for event in events if "ts" in event and event.get("ph") == "X"]
    span = int(max(starts) - min(starts)) + 1000
    ids = 1 + max(int(found[2]) for text in texts for found in NUMBERS.finditer(text))
    steps = len({found[1] for text in texts for found in _STEP.finditer(text)})
    copies = -(-at_least_bytes // (sum(map(len, texts)) + 2 * len(texts)))
    with target.open("w") as out:
        out.write(json.dumps(header)[:-1] + ', "traceEvents": [\n')
        for copy in range(copies):
            ending = ",\n" if copy + 1 < copies else "\n"
            out.write(",\n".join(shifted(texts, copy, span, ids, steps)) + ending)
        out.write("]}\n")
    return copies * len(events)


def shifted(texts: list[str], copy: int, span: int, ids: int, steps: int) -> Iterator[str]:
    """The events of one copy: `span` microseconds, `ids` numbers and `steps` steps later each."""
    for text in texts:
        moved = _TS.sub(lambda found: found[1] + str(Decimal(found[2]) + copy * span), text)
        moved = NUMBERS.sub(lambda found: found[1] + str(int(found[2]) + copy * ids), moved)
        if "ProfilerStep#" in moved:
            moved = _STEP.sub(lambda found: f"ProfilerStep#{int(found[1]) + copy * steps}", moved)
        yield moved
