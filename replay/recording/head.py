"""What a recording says of itself: an object of its own at the start of the trace file.

It stands before everything else of the file, so that it can be read without the rest.
"""

import gzip
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KEY = "trace_replay"
_OPENING = f'{{\n"{KEY}": '
_MOST_BYTES = 1 << 20
_BEGINNING = 64
"""Bytes within which the file opens; Kineto begins with a blank."""
_LEVEL = 3
"""Of gzip: a third of the time of the usual 6, files a tenth larger."""


def compress(raw: Path, head: Mapping[str, Any], more: Mapping[str, Any]) -> Path:
    """Write `x.json` as `x.json.gz` with the head in front, and take `x.json` away.

    The compressed file is there as a whole or not at all.

    Args:
        raw: a JSON object with at least one member.
        head: becomes the member `trace_replay`.
        more: members beside it, which the file lacks.

    Raises:
        ValueError: the file is no JSON object.
        OSError: no place, or no right to write.
    """
    path = raw.with_suffix(".json.gz")
    part = raw.with_suffix(".json.gz.part")
    with raw.open("rb") as source:
        start = source.read(_BEGINNING).lstrip()
        if not start.startswith(b"{"):
            raise ValueError(f"`{raw.name}` is no JSON object")
        with gzip.open(part, "wb", compresslevel=_LEVEL) as target:
            target.write(f"{_OPENING}{json.dumps(head)},".encode())
            for key, value in more.items():
                target.write(f"\n{json.dumps(key)}: {json.dumps(value)},".encode())
            target.write(start[1:])
            shutil.copyfileobj(source, target, 1 << 20)
    part.replace(path)
    raw.unlink()
    return path


def read_head(path: Path) -> dict[str, Any]:
    """The head of a trace file; empty where it has none, as before it is compressed."""
    if path.suffix != ".gz":
        return {}
    with gzip.open(path, "rb") as source:
        text = source.read(_MOST_BYTES).decode("utf-8", errors="replace")
    if not text.startswith(_OPENING):
        return {}
    found, _ = json.JSONDecoder().raw_decode(text, len(_OPENING))
    return found if isinstance(found, dict) else {}
