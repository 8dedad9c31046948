"""Brings `manifest.yaml` in step with the files: digests and counts, and entries for new files.

    python sample_traces/refresh_manifest.py

What only a person knows (the issues expected at import) stays as it is.
"""

import gzip
import hashlib
import re
import sys
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent
MANIFEST = FOLDER / "manifest.yaml"
NO_TRACES = frozenset({".py", ".pyc", ".md", ".yaml"})
EVENT_LINE = re.compile(rb'^ *\{"(?:ph|name)".*\},?$', re.MULTILINE)
DEVICE_EVENT = re.compile(rb'"cat": "(?:kernel|Kernel|gpu_memcpy|gpu_memset)".*\},?$', re.MULTILINE)

HEADER = """\
# What lies in this folder. `refresh_manifest.py` fills in sha256, events and device_events;
# `issues` (counts in `import_stat` after reading the file, or its folder) is written by hand.
"""


def trace_files() -> list[Path]:
    """All trace files of the folder."""
    files = (path for path in FOLDER.rglob("*") if path.is_file())
    return sorted(path for path in files if path.suffix not in NO_TRACES)


def measured(path: Path) -> dict[str, Any]:
    """Digest and counts of a file; every event of ours is a line of its own."""
    data = path.read_bytes()
    text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    return {
        "sha256": hashlib.sha256(data).hexdigest(),
        "events": len(EVENT_LINE.findall(text)),
        "device_events": len(DEVICE_EVENT.findall(text)),
    }


def main() -> int:
    """Rewrite the manifest."""
    manifest: dict[str, Any] = yaml.safe_load(MANIFEST.read_text())
    known = manifest.get("files") or {}
    manifest["files"] = {}
    for path in trace_files():
        name = path.relative_to(FOLDER).as_posix()
        by_hand = {key: known[name][key] for key in ("issues",) if key in known.get(name, {})}
        manifest["files"][name] = measured(path) | by_hand
    MANIFEST.write_text(HEADER + yaml.safe_dump(manifest, sort_keys=False, width=100))
    return 0


if __name__ == "__main__":
    sys.exit(main())
