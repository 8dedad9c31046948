"""Events of the Chrome trace format as text, track by track."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from replay.graph.arrays import NONE, Bool, Int64
from replay.results.scans import crossing

_CHUNK = 20_000
"""Slices that are written together."""

Args = Callable[[Int64], list[str]]
"""Arguments of slices of a track, by their places in it: one JSON object each, or an empty text."""
Texts = NDArray[np.object_]
MARK = ',"cname":"terrible"'
"""Colour of what lies on the critical path, in chrome://tracing."""
_ARGS = ',"args":'


@dataclass(frozen=True, slots=True, kw_only=True)
class Slices:
    """What stands on a track, in any order."""

    start_ns: Int64
    end_ns: Int64
    label: Texts
    category: Texts
    rank: Int64
    """Of slices that begin and end together: the lower lies outside."""
    task: Int64
    """The task that a slice stands for; -1 for none."""
    marked: Bool
    """On the critical path."""
    args: Args

    def __len__(self) -> int:
        return len(self.start_ns)

    def chosen(self, rows: Int64) -> "Slices":
        """Some of them, in this order."""
        return Slices(
            start_ns=self.start_ns[rows],
            end_ns=self.end_ns[rows],
            label=self.label[rows],
            category=self.category[rows],
            rank=self.rank[rows],
            task=self.task[rows],
            marked=self.marked[rows],
            args=lambda places: self.args(rows[places]),
        )

    def within(self, window_ns: tuple[int, int] | None) -> "Slices":
        """Those that lie in a window, in whole or in part; all where none is given."""
        if window_ns is None:
            return self
        inside = (self.end_ns > window_ns[0]) & (self.start_ns < window_ns[1])
        return self.chosen(np.flatnonzero(inside))


def slices(  # noqa: PLR0913  (one per column)
    start_ns: Int64,
    end_ns: Int64,
    label: Texts,
    category: Texts | str,
    *,
    args: Args,
    task: Int64 | None = None,
    marked: Bool | None = None,
    rank: Int64 | None = None,
) -> Slices:
    """Columns of equal length, with what most tracks do not say filled in."""
    n = len(start_ns)
    return Slices(
        start_ns=start_ns,
        end_ns=end_ns,
        label=label,
        category=np.full(n, category, object) if isinstance(category, str) else category,
        rank=np.zeros(n, np.int64) if rank is None else rank,
        task=np.full(n, NONE, np.int64) if task is None else task,
        marked=np.zeros(n, bool) if marked is None else marked,
        args=args,
    )


def joined(parts: list[Slices]) -> Slices:
    """Several sets of slices as one."""
    ends = np.cumsum([len(part) for part in parts])

    def args(places: Int64) -> list[str]:
        told = [""] * len(places)
        of_part = np.searchsorted(ends, places, side="right")
        for number, part in enumerate(parts):
            mine = np.flatnonzero(of_part == number)
            if len(mine):
                texts = part.args(places[mine] - (ends[number] - len(part)))
                for place, text in zip(mine.tolist(), texts, strict=True):
                    told[place] = text
        return told

    def column(name: str) -> NDArray[np.generic]:
        return np.concatenate([getattr(part, name) for part in parts])

    columns = {name: column(name) for name in Slices.__slots__ if name != "args"}
    return Slices(**columns, args=args)  # type: ignore[arg-type]  # columns by their names


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One line of the picture: its slices follow one another or lie inside one another."""

    pid: int
    tid: int
    name: str
    sort_index: int
    """Place in its process, from the top."""
    slices: Slices
    """By start; of equal starts the longest first."""


def tracks_of(found: Slices, first: Track) -> list[Track]:
    """Slices in their order, on as many tracks as it takes for each to nest or follow.

    Args:
        found: in any order; slices that cross others go to further tracks, as they are.
        first: the track to fill; others take the next numbers, and its name with a number.
    """
    order = np.lexsort((found.rank, -found.end_ns, found.start_ns))
    ordered = found.chosen(order)
    layers = nested_in_layers(ordered.start_ns, ordered.end_ns)
    return [
        replace(
            first,
            tid=first.tid + number,
            name=first.name if number == 0 else f"{first.name} (crossing {number})",
            slices=ordered.chosen(layer),
        )
        for number, layer in enumerate(layers)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A group of tracks."""

    pid: int
    name: str
    sort_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPoint:
    """One point of an arrow, on the slice of a track that runs then."""

    pid: int
    tid: int
    ts_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """An arrow over two points or more, ascending in time."""

    number: int
    """Of its own in the file."""
    category: str
    name: str
    points: tuple[FlowPoint, ...]


def text_of(value: object) -> str:
    """JSON of a plain value."""
    return msgspec.json.encode(value).decode()


def microseconds(ns: int) -> str:
    """Nanoseconds as microseconds with all their decimals, exactly.

    Args:
        ns: not negative: the format knows nothing before its origin.
    """
    assert ns >= 0, "times are counted from the first event"
    return f"{ns // 1000}.{ns % 1000:03d}"


def process_events(process: Process) -> Iterator[str]:
    """How a group of tracks is called, and its place."""
    head = f'"ph":"M","pid":{process.pid},"tid":0,"ts":0'
    yield f'{{{head},"name":"process_name","args":{{"name":{text_of(process.name)}}}}}'
    index = f'"args":{{"sort_index":{process.sort_index}}}'
    yield f'{{{head},"name":"process_sort_index",{index}}}'


def track_events(track: Track, origin_ns: int) -> Iterator[str]:
    """A track's name, its place, and its slices.

    Args:
        track: what to write.
        origin_ns: the moment that becomes 0.
    """
    head = f'"ph":"M","pid":{track.pid},"tid":{track.tid},"ts":0'
    yield f'{{{head},"name":"thread_name","args":{{"name":{text_of(track.name)}}}}}'
    yield f'{{{head},"name":"thread_sort_index","args":{{"sort_index":{track.sort_index}}}}}'
    for first in range(0, len(track.slices), _CHUNK):
        rows = np.arange(first, min(first + _CHUNK, len(track.slices)))
        yield from _slice_events(track, rows, origin_ns)


def _slice_events(track: Track, rows: Int64, origin_ns: int) -> Iterator[str]:
    found, names = track.slices, dict[str, str]()
    tail = f'"pid":{track.pid},"tid":{track.tid}'
    columns = (
        found.label[rows],
        found.category[rows],
        (found.start_ns[rows] - origin_ns).tolist(),
        (found.end_ns[rows] - found.start_ns[rows]).tolist(),
        found.marked[rows].tolist(),
        found.args(rows),
    )
    for label, category, ts, dur, marked, args in zip(*columns, strict=True):
        name = names.get(label) or names.setdefault(label, text_of(label))
        yield (
            f'{{"ph":"X","cat":"{category}","name":{name},{tail},'
            f'"ts":{microseconds(ts)},"dur":{microseconds(dur)}'
            f"{MARK if marked else ''}{_ARGS + args if args else ''}}}"
        )


def flow_events(flow: Flow, origin_ns: int) -> Iterator[str]:
    """The points of an arrow: start, steps, end."""
    last = len(flow.points) - 1
    for place, point in enumerate(flow.points):
        phase = "s" if place == 0 else "f" if place == last else "t"
        yield (
            f'{{"ph":"{phase}","bp":"e","id":{flow.number},"cat":"{flow.category}",'
            f'"name":{text_of(flow.name)},"pid":{point.pid},"tid":{point.tid},'
            f'"ts":{microseconds(point.ts_ns - origin_ns)}}}'
        )


def document(head: dict[str, object], events: Iterable[str]) -> Iterator[bytes]:
    """A whole file, piece by piece.

    Args:
        head: what stands before the events.
        events: one JSON object each.
    """
    opening = text_of(head)[:-1]
    comma = "," if head else ""
    yield f'{opening}{comma}\n"traceEvents":[\n'.encode()
    piece: list[str] = []
    is_first = True
    for event in events:
        piece.append(event)
        if len(piece) == _CHUNK:
            yield (("" if is_first else ",\n") + ",\n".join(piece)).encode()
            piece, is_first = [], False
    if piece:
        yield (("" if is_first else ",\n") + ",\n".join(piece)).encode()
    yield b"\n]}\n"


def nested_in_layers(start_ns: Int64, end_ns: Int64) -> list[Int64]:
    """Rows of intervals in as many layers as it takes for each to nest or follow in its layer.

    Args:
        start_ns: ascending; of equal starts the longest first.
        end_ns: not before the starts.
    """
    layers: list[Int64] = []
    left = np.arange(len(start_ns))
    while len(left):
        crosses = crossing(start_ns[left], end_ns[left])
        layers.append(left[~crosses])
        left = left[crosses]
    return layers
