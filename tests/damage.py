"""Traces that are damaged in known places, and the law of what may be lost by it.

The law: of the events that stand whole outside the damage, at most as many are missing as the file
counts as unreadable (its header is one of them), and one more where it says that it is cut or goes
on behind its end. Nothing but `TraceError` is ever raised.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ingest.errors import TraceError
from ingest.readers.source import Source
from tests.read_back import Complete, expected, read

HOSTILE = (
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"NaN", b"\n", b"\x00", b"\x01", b"\x02",
    b"\x03", b"\\u", b"\\ud800", b'{"ph":', b"]}", b"\xff", b"\xc3", b"0", b"1e999", b"-", b'\\"',
    b'"args":', b'"args":}', b"]},", b"],", b'],"a":', b" ", b"\r\n", b'"}', b'"},{"', b"null",
    b'"traceEvents":[', b"][", b"}{", b"\xef\xbb\xbf", b"\x7f", b"\xed\xa0\x80", b"'", b"//",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trace:
    """Text of a trace and where its events are; those that damage touched are not among them."""

    text: bytes
    spans: tuple[tuple[int, int], ...]

    @property
    def events(self) -> list[bytes]:
        """Texts of the events that stand whole."""
        return [self.text[begin:end] for begin, end in self.spans]

    def replaced(self, first: int, last: int, put_in: bytes) -> "Trace":
        """The trace with a stretch replaced."""
        moved = len(put_in) - (last - first)
        before = [span for span in self.spans if span[1] <= first]
        behind = [(b + moved, e + moved) for b, e in self.spans if b >= last and e > first]
        text = self.text[:first] + put_in + self.text[last:]
        return Trace(text, (*before, *behind))

    def cut(self, length: int) -> "Trace":
        """Its first bytes."""
        return Trace(self.text[:length], tuple(span for span in self.spans if span[1] <= length))

    def behind(self, first: int) -> "Trace":
        """All but its first bytes."""
        kept = tuple((b - first, e - first) for b, e in self.spans if b >= first)
        return Trace(self.text[first:], kept)

    def followed_by(self, other: "Trace") -> "Trace":
        """Two texts, one behind the other."""
        size = len(self.text)
        moved = tuple((b + size, e + size) for b, e in other.spans)
        return Trace(self.text + other.text, self.spans + moved)


def built(head: bytes, events: Sequence[bytes], separator: bytes, tail: bytes) -> Trace:
    """A trace of these events."""
    spans, at = [], len(head)
    for event in events:
        spans.append((at, at + len(event)))
        at += len(event) + len(separator)
    return Trace(head + separator.join(events) + tail, tuple(spans))


def damaged(trace: Trace, others: Sequence[Trace], dice: random.Random) -> Trace:
    """The trace with one to three places damaged."""
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        trace = _damaged_once(trace, others, dice)
    return trace


def _damaged_once(trace: Trace, others: Sequence[Trace], dice: random.Random) -> Trace:
    size = len(trace.text)
    first = dice.randrange(size + 1)
    last = min(size, first + dice.choice((0, 0, 1, 2, 9, 60, 700)))
    match dice.randrange(8):
        case 0 if first < size:
            flipped = bytes((trace.text[first] ^ 1 << dice.randrange(8),))
            return trace.replaced(first, first + 1, flipped)
        case 1:
            return trace.replaced(first, last, b"")
        case 2:
            begin = dice.randrange(size + 1)
            return trace.replaced(first, first, trace.text[begin : begin + last - first + 5])
        case 3:
            return trace.cut(first)
        case 4 | 5 as way:
            other = dice.choice(others)
            place, begin = (first, dice.randrange(len(other.text))) if way == 4 else (size, 0)
            return trace.cut(place).followed_by(other.behind(begin))
        case _:
            put_in = b"".join(dice.choices(HOSTILE, k=dice.choice((1, 1, 2, 4))))
            return trace.replaced(first, dice.choice((first, last)), put_in)


def rows_of(events: Sequence[bytes]) -> Counter[Complete]:
    """Complete events as a JSON decoder reads them."""
    return Counter(expected("[" + ",".join(event.decode() for event in events) + "]")[0])


def broken_law(trace: Trace, source: Source) -> str:
    """What of the law does not hold for a file with this text; empty where all does."""
    try:
        rows, parsed = read(source)
    except TraceError as error:
        told = str(error)
        return "" if "`" in told and "\n" not in told else f"unclear refusal: {told}"
    counts = parsed.log.counts
    unreadable = counts.get("event_unreadable", 0) + counts.get("header_unreadable", 0)
    allowed = unreadable + any(name in counts for name in ("truncated", "text_behind_end"))
    missing = rows_of(trace.events) - Counter(rows)
    if missing.total() > allowed:
        return f"{missing.total()} events missing, {counts}: {next(iter(missing))}"
    if parsed.n_events + allowed < len(trace.spans):
        return f"{parsed.n_events} of {len(trace.spans)} events, {counts}"
    return ""


def smaller(trace: Trace, events: int, dice: random.Random) -> Trace:
    """A stretch of its events, between the same head and tail."""
    first = dice.randrange(max(len(trace.spans) - events, 1))
    kept = trace.spans[first : first + events]
    head = trace.text[: trace.spans[0][0]]
    tail = trace.text[trace.spans[-1][1] :]
    body = trace.text[kept[0][0] : kept[-1][1]]
    moved = len(head) - kept[0][0]
    spans = tuple((b + moved, e + moved) for b, e in kept)
    return replace(trace, text=head + body + tail, spans=spans)
