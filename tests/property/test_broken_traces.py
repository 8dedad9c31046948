"""Whatever is done to a trace: it is read or refused in one line, and what is lost is counted."""

import json
from contextlib import suppress
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.errors import TraceError
from ingest.parsed import Parsed
from tests.kineto import KinetoFile
from tests.reading import document, host, issues, kernel, parse, rank_of, reading, write

EVENTS = [
    event
    for number in range(5)
    for event in (
        host("cpu_op", f"aten::op{number}", number, 0.5, **{"Input Dims": [[1, 2], []]}),
        host("cuda_runtime", 'launch \\"it\\"', number + 0.1, 0.1, correlation=number + 1),
        kernel("k<a, {b}>", number + 10, 0.25, correlation=number + 1, grid=[1, 1, 1]),
    )
]
TEXT = document(*EVENTS, head=f'{rank_of(0)}, "traceName": "/tmp/a.json"', tail=', "end": [1]')
HOSTILE = st.sampled_from(
    ['"', "\\", "{", "}", "[", "]", ",", ":", "NaN", "\n", "\x00", "\\u", "\\ud800", '{"ph":', "]}"]
) | st.text(max_size=6)


@st.composite
def damaged(draw: st.DrawFn) -> tuple[bytes, int]:
    """The text with one stretch replaced, and how many events the stretch touches."""
    first = draw(st.integers(0, len(TEXT)))
    last = min(len(TEXT), first + draw(st.integers(0, 60)))
    put_in = draw(HOSTILE)
    touched, position = 0, 0
    for event in EVENTS:
        begin = TEXT.index(event, position)
        position = begin + len(event)
        touched += begin <= last and first <= position
    return (TEXT[:first] + put_in + TEXT[last:]).encode("utf-8", "surrogatepass"), touched


def _parsed(data: bytes, *, strict: bool = False) -> Parsed | None:
    try:
        return parse(data, strict=strict)
    except TraceError as error:
        told = str(error)
    assert "`t.json`" in told
    assert "\n" not in told
    return None


@given(damaged())
@settings(max_examples=300, deadline=None)
def test_damage_costs_no_more_than_what_it_touches_or_is_counted(damage: tuple[bytes, int]) -> None:
    data, touched = damage
    parsed = _parsed(data)
    if parsed is None:
        return
    missing = len(EVENTS) - parsed.n_events
    if missing > 0:
        assert (
            parsed.log.counts.get("event_unreadable") or not parsed.complete or missing <= touched
        )
    if parsed.complete:
        assert missing <= touched + 1


@given(damaged())
@settings(max_examples=100, deadline=None)
def test_strict_reads_nothing_that_would_be_repaired(damage: tuple[bytes, int]) -> None:
    data, _ = damage
    lenient, strict = _parsed(data), _parsed(data, strict=True)
    if strict is not None:
        assert lenient is not None
        assert lenient.header == strict.header
        assert lenient.n_events == strict.n_events
        assert not lenient.log.repairs
    if lenient is not None and strict is None:
        assert lenient.log.counts


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(
        [0, -1, 2**31, 2**32 - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30]
    ),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["", "7", "--5", "NaN", "1e3", "cuda", "0x1f", "[0, 1, ...]", "\x00", "\ud7ff"]
    ),
    st.lists(st.integers(-(2**40), 2**40), max_size=4),
    st.dictionaries(st.sampled_from(["id", "rank", "a"]), st.integers(), max_size=2),
)


def _run() -> dict[str, Any]:
    """A run with something of everything."""
    file = KinetoFile(rank=1, ranks=(0, 1))
    file.step(1, (0, 100))
    file.op("aten::mm", (0, 20), **{"Input Dims": [[2, 3], []], "Sequence number": 5})
    file.launched("gemm", (5, 10), (20, 40))
    event = file.record((21, 22))
    file.wait((23, 24), on=(7, event), waiting=20)
    file.op("record_param_comms", (24, 32), **{"Collective name": "allreduce"})
    file.all_reduce(1, (25, 30), (45, 60))
    file.all_reduce(2, (31, 33), (65, 80))
    file.copy("DtoH (Device -> Pageable)", (40, 90), (82, 88))
    rows = [dict(row) for row in file.rows]
    arrow = {"cat": "ac2g", "name": "ac2g", "id": 1, "pid": 400, "tid": 400, "ts": 5}
    label = {"ph": "M", "name": "thread_name", "pid": 400, "tid": 400, "args": {"name": "main"}}
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 85, "numSms": 132}],
        "distributedInfo": {"rank": 1, "world_size": 2, "pg_count": 1, "pg_config": [{}]},
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "traceEvents": [*rows, {"ph": "s", **arrow}, {"ph": "f", **arrow, "ts": 20}, label],
    }


def _places(value: object, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside: list[tuple[Any, object]] = []
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list):
        inside = list(enumerate(value))
    return [here, *(place for key, part in inside for place in _places(part, (*here, key)))]


PLACES = [place for place in _places(_run()) if place and place != ("traceEvents",)]


@given(st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=3))
@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_value_at_any_place_is_read_or_counted(
    tmp_path: Path, changes: list[tuple[tuple[Any, ...], Any]]
) -> None:
    changed = _run()
    for place, value in changes:
        with suppress(KeyError, IndexError, TypeError):  # an earlier change took the place away
            reduce(getitem, place[:-1], changed)[place[-1]] = value
    path = write(tmp_path / "t.json", json.dumps(changed))
    with reading(path) as run:
        ((n_events,),) = run.store.rows("SELECT n_events FROM trace")
        lost = issues(run).get("event_unreadable", 0)
        missing = len(changed["traceEvents"]) - n_events
        assert (missing > 0) == (lost > 0)
        assert missing >= lost
        ((kept, kernels),) = run.store.rows(
            "SELECT count(*), count(*) FILTER (cat IN ('kernel', 'gpu_memcpy', 'gpu_memset'))"
            " FROM slice"
        )
        assert run.store.rows("SELECT count(*) FROM kernel") == [(kernels,)]
        assert kept <= n_events
        for view in ("slice_args", "cpu_op", "trace", "device", "kernel", "collective"):
            run.store.rows(f"SELECT * FROM {view}")
