"""Damage costs what it touches and no more, and what is lost is counted (`tests.damage`)."""

import random
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.damage import broken_law, built, damaged
from tests.read_back import Blocks, expected, read
from tests.reading import document, host, kernel, rank_of

EVENTS = [
    event.encode()
    for number in range(6)
    for event in (
        host("cpu_op", f"aten::op{number}", number, 0.5, **{"Input Dims": [[1, 2], []]}),
        host("cuda_runtime", 'launch \\"it\\"', number + 0.1, 0.1, correlation=number + 1),
        kernel("k<a, {b}>", number + 10, 0.25, correlation=number + 1, grid=[1, 1, 1]),
    )
]
HEAD, TAIL = (
    document("@", head=rank_of(0), tail=', "end": [{"a": 1}, {"b": 2}]').encode().split(b"@")
)
TRACES = (
    built(HEAD, EVENTS, b",\n  ", TAIL),
    built(b"[", EVENTS[:7], b",", b"]"),
    built(b'{"traceEvents":[', EVENTS[3:9], b",\n", b'],"traceName":"/tmp/a.json"}'),
)


@given(st.integers(0, 1 << 40), st.sampled_from((7, 64, 1 << 20)))
@settings(max_examples=300, deadline=None)
def test_no_event_outside_the_damage_is_lost_in_silence(seed: int, size: int) -> None:
    dice = random.Random(seed)
    first, *others = dice.sample(TRACES, 3)
    trace = damaged(first, others, dice)
    assert broken_law(trace, Blocks(trace.text, size)) == ""


@given(st.integers(1, len(TRACES[0].text)))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whole_traces_are_read_alike_in_pieces_of_any_size(size: int) -> None:
    for trace in TRACES:
        rows, parsed = read(Blocks(trace.text, size))
        assert rows == expected(trace.text.decode())[0]
        assert (parsed.n_events, parsed.log.counts) == (len(trace.spans), {})


def test_the_law_sees_what_is_lost(tmp_path: Path) -> None:
    """A law that nothing can break would be none."""
    whole = TRACES[0]
    begin, end = whole.spans[4]
    shorter = tmp_path / "t.json"
    shorter.write_bytes(whole.text[:begin] + whole.text[end + 1 :])
    assert "1 events missing" in broken_law(whole, Blocks(shorter.read_bytes(), 100))


def test_a_key_that_runs_into_the_next_event_costs_one_unreadable_event(tmp_path: Path) -> None:
    glued = tmp_path / "t.json"
    first, second = EVENTS[0], EVENTS[1]
    glued.write_bytes(b'{"traceEvents": [' + first + b',{"p' + second + b"]}")
    _, parsed = read(Blocks(glued.read_bytes(), 100))
    assert (parsed.n_events, parsed.log.counts) == (1, {"event_unreadable": 1})
