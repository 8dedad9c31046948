"""What a Chrome trace must be, said again without the product: faults as sentences."""

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

Event = dict[str, Any]
Place = tuple[int, int]
PHASES = {"M", "X", "s", "t", "f"}


def read(path: Path) -> dict[str, Any]:
    """The document; numbers with a point are exact, and NaN is no JSON."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        document: dict[str, Any] = json.load(file, parse_float=Decimal, parse_constant=_no_number)
    return document


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def faults(document: dict[str, Any]) -> list[str]:
    """Everything that is wrong with a trace; empty for a good one."""
    events: list[Event] = document["traceEvents"]
    tracks = slices_by_track(events)
    return [
        *(f"phase {event['ph']}" for event in events if event["ph"] not in PHASES),
        *_faults_of_names(events, tracks),
        *(fault for track in tracks.values() for fault in _faults_of_track(track)),
        *_faults_of_flows(events, tracks),
    ]


def slices_by_track(events: list[Event]) -> dict[Place, list[Event]]:
    """Complete events in the order of the file."""
    tracks: dict[Place, list[Event]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append(event)
    return dict(tracks)


def _faults_of_names(events: list[Event], tracks: dict[Place, list[Event]]) -> Iterator[str]:
    named = {(event["name"], event["pid"], event["tid"]) for event in events if event["ph"] == "M"}
    for pid, tid in tracks:
        if ("thread_name", pid, tid) not in named:
            yield f"track {pid}/{tid} has no name"
        if ("process_name", pid, 0) not in named:
            yield f"process {pid} has no name"


def _faults_of_track(track: list[Event]) -> Iterator[str]:
    """A slice begins after those before it, and ends inside those that it begins in."""
    open_ends: list[Decimal] = []
    latest = Decimal(0)
    for event in track:
        start, end = Decimal(event["ts"]), Decimal(event["ts"]) + Decimal(event["dur"])
        if start < latest or end < start:
            yield f"{event['name']} at {start} comes after {latest}, or ends before it begins"
        latest = start
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if open_ends and end > open_ends[-1]:
            yield f"{event['name']} at {start} ends at {end}, what it lies in at {open_ends[-1]}"
        open_ends.append(end)


def _faults_of_flows(events: list[Event], tracks: dict[Place, list[Event]]) -> Iterator[str]:
    starts = {place: {event["ts"] for event in track} for place, track in tracks.items()}
    flows: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        if event["ph"] in "stf":
            flows[event["id"]].append(event)
            if event["ts"] not in starts.get((event["pid"], event["tid"]), set()):
                yield f"a point of arrow {event['id']} begins with no slice"
    for number, points in flows.items():
        phases = "".join(point["ph"] for point in points)
        if phases != "s" + "t" * (len(points) - 2) + "f":
            yield f"arrow {number} has the points {phases}"
        if len({(point["cat"], point["name"]) for point in points}) > 1:
            yield f"arrow {number} is of two kinds"
        times = [point["ts"] for point in points]
        if times != sorted(times):
            yield f"arrow {number} goes back in time"
