"""The sample traces, read by the product: what the manifest expects is what the store says."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from ingest.pipeline import IngestOptions, open_run

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
FILES: dict[str, dict[str, Any]] = yaml.safe_load((SAMPLES / "manifest.yaml").read_text())["files"]

ISSUES = """
    SELECT t.path, s.name, s.value FROM import_stat s JOIN trace t USING (trace_id)
"""
DEVICE_EVENTS = "SELECT t.path, count(*) FROM kernel k JOIN trace t USING (trace_id) GROUP BY ALL"
EVENTS = "SELECT path, n_events, complete FROM trace"


def _runs() -> list[str]:
    """What is read at once: a file alone, the ranks of one run together."""
    files = (Path(name) for name in FILES)
    return sorted({str(f.parent if f.name.startswith("rank") else f) for f in files})


@pytest.mark.parametrize("run", _runs())
def test_events_device_events_and_issues_are_those_of_the_manifest(run: str) -> None:
    found: dict[str, dict[str, Any]] = {}
    issues: dict[str, dict[str, int]] = defaultdict(dict)
    with open_run([SAMPLES / run], options=IngestOptions(cache=False)) as opened:
        assert not opened.failed
        for path, name, value in opened.store.rows(ISSUES):
            issues[_name(path)][name] = value
        device = {_name(path): count for path, count in opened.store.rows(DEVICE_EVENTS)}
        for path, events, complete in opened.store.rows(EVENTS):
            name = _name(path)
            found[name] = {
                "events": events,
                "device_events": device.get(name, 0),
                "issues": issues.get(name, {}),
            }
            assert complete == ("truncated" not in issues.get(name, {}))
    assert found == {
        name: {key: entry.get(key, {}) for key in ("events", "device_events", "issues")}
        for name, entry in FILES.items()
        if name == run or name.startswith(f"{run}/")
    }


def _name(path: str) -> str:
    return Path(path).relative_to(SAMPLES).as_posix()


def test_clocks_of_two_hosts_are_brought_together() -> None:
    with open_run([SAMPLES / "tiny/clock_skew"], options=IngestOptions(cache=False)) as run:
        offsets = run.store.rows("SELECT rank, clock_offset_ns FROM trace ORDER BY rank")
        waits = run.store.rows("SELECT DISTINCT wait_dur, transfer_dur FROM collective_rank")
    assert offsets == [(0, 0), (1, 7_000_000)]
    assert sorted(waits) == [(0, 20_000), (5_000, 20_000), (30_000, 20_000)]


def test_times_beyond_a_double_keep_their_nanoseconds() -> None:
    with open_run(
        [SAMPLES / "tiny/absolute_microseconds.json"], options=IngestOptions(cache=False)
    ) as run:
        kernels = run.store.rows("SELECT ts, dur FROM kernel ORDER BY ts")
        plain = [(22_000, 40_000), (63_500, 9_750)]
        assert [(ts - kernels[0][0], dur) for ts, dur in kernels] == [
            (ts - plain[0][0], dur) for ts, dur in plain
        ]
