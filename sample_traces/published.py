"""Makes a recorded trace fit to publish: no names of machines, every digit of every time kept."""

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

NAMES_OF_MACHINE_OR_RUN = ("host_name", "trace_id")


def publish(raw: Path, path: Path) -> None:
    """Write the recorded `raw` (gzip) to `path`, without what names the machine or the run."""
    trace: dict[str, Any] = json.loads(gzip.decompress(raw.read_bytes()), parse_float=Decimal)
    for key in NAMES_OF_MACHINE_OR_RUN:
        trace.pop(key, None)
    trace["traceName"] = path.name.removesuffix(".gz")
    lines = ",\n".join(_line(event) for event in trace.pop("traceEvents"))
    document = f'{_dumps(trace)[:-1]}, "traceEvents": [\n{lines}\n]}}\n'
    path.write_bytes(gzip.compress(document.encode(), compresslevel=9, mtime=0))


def _line(event: dict[str, Any]) -> str:
    if event.get("name") == "process_name":
        event["args"] = {"name": "python"}
    return _dumps(event)


def _dumps(value: object) -> str:
    """JSON in which decimals stand as they were read."""
    marked = json.dumps(value, default=lambda number: f"<decimal>{number}</decimal>")
    return marked.replace('"<decimal>', "").replace('</decimal>"', "")
