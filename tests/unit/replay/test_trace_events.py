"""Events as text: exact times, names that are hostile, arrows with their points."""

import json
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.results.timeline.events import (
    Flow,
    FlowPoint,
    Process,
    Track,
    document,
    flow_events,
    microseconds,
    process_events,
    slices,
    track_events,
)

HOSTILE = ['"', "\\", "</script>", "\x00\x1f\n", "a" * 5_000, "\u2028", "日本", "\U0001f600", ""]


@given(st.integers(0, 2**62))
def test_nanoseconds_are_microseconds_to_the_last_digit(ns: int) -> None:
    assert Decimal(microseconds(ns)) * 1000 == ns


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_makes_valid_json_and_comes_back(name: str) -> None:
    found = slices(
        np.array([5]), np.array([1_234]), np.array([name], object), "kernel", args=lambda _: [""]
    )
    track = Track(pid=1, tid=2, name=name, sort_index=3, slices=found)
    process = Process(pid=1, name=name, sort_index=0)
    lines = [*process_events(process), *track_events(track, 5)]
    text = b"".join(document({"otherData": {"name": name}}, lines)).decode()
    read = json.loads(text)
    assert read["otherData"]["name"] == name
    told = {event["name"]: event for event in read["traceEvents"] if event["ph"] == "M"}
    assert told["process_name"]["args"]["name"] == name
    assert told["thread_name"]["args"]["name"] == name
    (drawn,) = (event for event in read["traceEvents"] if event["ph"] == "X")
    assert (drawn["name"], drawn["ts"], drawn["dur"]) == (name, 0, 1.229)


def test_a_file_without_events_is_valid() -> None:
    assert json.loads(b"".join(document({}, []))) == {"traceEvents": []}


def test_an_arrow_of_three_points_starts_steps_and_ends() -> None:
    points = tuple(FlowPoint(pid=1, tid=tid, ts_ns=1_000 * tid) for tid in (1, 2, 3))
    flow = Flow(number=7, category="collective", name="all_reduce", points=points)
    events = [json.loads(line) for line in flow_events(flow, 500)]
    assert [event["ph"] for event in events] == ["s", "t", "f"]
    assert [event["ts"] for event in events] == [0.5, 1.5, 2.5]
    assert {event["id"] for event in events} == {7}
