"""Cut a real trace at every byte of its last 64 KiB: the whole events stay, and it is said."""

from bisect import bisect_right
from pathlib import Path

import pytest

from tests.bench.fuzz_reader import load
from tests.reading import count_events

TRACES = Path(__file__).parents[3] / "shared" / "traces"
PATHS = sorted(TRACES.rglob("*.json*"), key=lambda path: path.stat().st_size)
LAST_BYTES = 1 << 16
KEPT_EVENTS = 400


@pytest.mark.skipif(not PATHS, reason="the real traces (../shared/traces) are not here")
def test_every_cut_keeps_the_whole_events_and_says_so() -> None:
    trace = next(one for path in PATHS if (one := load(path)) and len(one.text) > 4 * LAST_BYTES)
    first = trace.spans[-KEPT_EVENTS][0]
    text = b'{"traceEvents": [' + trace.text[first:]
    moved = len(text) - len(trace.text)
    ends = [end + moved for _, end in trace.spans[-KEPT_EVENTS:]]
    assert len(text) > LAST_BYTES
    for length in range(len(text) - LAST_BYTES, len(text.rstrip()) - 1):
        whole = bisect_right(ends, length)
        assert count_events(text[:length]) == (whole, False, {"truncated": 1}), length
