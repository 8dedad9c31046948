"""Real traces: every event as a plain JSON decoder reads it, times exact, arguments to the byte."""

import gzip
from collections import Counter
from pathlib import Path

import pytest

from ingest.readers.source import Source
from tests.read_back import expected, read
from tests.reading import reading

TRACES = Path(__file__).parents[3] / "shared" / "traces"
PATHS = sorted(TRACES.rglob("*.json*"), key=lambda path: path.stat().st_size)
SAMPLE = PATHS[:24:4]
pytestmark = pytest.mark.skipif(not PATHS, reason="the real traces (../shared/traces) are not here")


def _text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()


@pytest.mark.parametrize("path", SAMPLE, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_event_is_that_of_a_json_decoder(path: Path) -> None:
    want, phases = expected(_text(path))
    rows, parsed = read(Source(path))
    assert rows == want
    assert parsed.n_events == phases.total()
    assert len(parsed.flows) == phases["s"] + phases["f"]
    instants = parsed.log.counts.get("event_instant", 0) + len(parsed.memory)
    assert instants == phases["i"] + phases["I"]
    assert parsed.complete


@pytest.mark.parametrize("path", SAMPLE[:3], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_store_gives_back_the_bytes_of_every_argument(path: Path) -> None:
    """Durations too, but for annotations of streams, which the profiler widens by 1 ns."""
    want, _ = expected(_text(path))
    with reading(path) as run:
        found = run.store.rows(
            "SELECT s.name, CASE WHEN s.cat <> 'gpu_user_annotation' THEN s.dur END, a.args"
            " FROM slice s LEFT JOIN slice_args a USING (id)"
        )
    assert Counter(found) == Counter(
        (row.name, None if row.category == "gpu_user_annotation" else row.dur, row.args)
        for row in want
    )
