"""Complete events of a trace twice: as our reader holds them, and as a plain JSON decoder does."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from json.decoder import scanstring  # type: ignore[attr-defined]  # public in all but its stub
from pathlib import Path
from typing import Any, NamedTuple

from ingest.issues import IssueLog
from ingest.lexicon.words import OLD_CATEGORIES, Words
from ingest.parsed import Parsed
from ingest.readers.kineto import ArgumentRows, read_kineto
from ingest.readers.source import Source

LONGEST_NS = 1 << 61
_BLANK = re.compile(r"[ \t\r\n]*")
_WHOLE = re.compile(r"\s*-?\d{1,20}\s*", re.ASCII)
_DECODER = json.JSONDecoder()


class Complete(NamedTuple):
    """An `X` event with a usable time."""

    category: str
    name: str
    pid: str
    tid: str
    ts: int
    """ns."""
    dur: int
    """ns; 0 where none is recorded, or one below zero."""
    correlation: int | None
    external_id: int | None
    args: str | None
    """As they are written."""


class Blocks(Source):
    """A trace in memory, called `t.json`, in blocks of a given size."""

    data: bytes
    size: int

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(Path("t.json"))
        object.__setattr__(self, "data", data)
        object.__setattr__(self, "size", size)

    def blocks(self, log: IssueLog, digest: Callable[[bytes], None]) -> Iterator[bytes]:  # noqa: ARG002
        """All of it."""
        for at in range(0, max(len(self.data), 1), self.size):
            yield self.data[at : at + self.size]


class Kept:
    """Takes arguments and keeps them."""

    count = 0

    def __init__(self, words: Words) -> None:
        self._words = words
        self.texts: dict[int, str] = {}

    def write(self, rows: ArgumentRows) -> None:
        """Take some."""
        self.count += len(rows.args_id)
        for at, number in enumerate(rows.args_id.tolist()):
            numbers = rows.numbers[rows.first[at] : rows.first[at + 1]]
            text = self._words.arguments_text(int(rows.shape[at]), numbers)
            self.texts[number] = text.decode()


def read(source: Source) -> tuple[list[Complete], Parsed]:
    """The complete events of a file by our reader, in order."""
    words = Words()
    sink = Kept(words)
    parsed = read_kineto(source, words, sink, strict=False)
    rows = parsed.slices
    correlation, external = (
        dict(zip(ids.row.tolist(), ids.value.tolist(), strict=True))
        for ids in (parsed.correlation, parsed.external_id)
    )
    columns = (rows.category, rows.name, rows.thread, rows.ts, rows.dur, rows.args_id)
    listed = zip(*(column.tolist() for column in columns), strict=True)
    events = [
        Complete(
            words.categories.texts[category],
            words.names.texts[name],
            *words.threads[thread],
            ts,
            dur,
            correlation.get(at),
            external.get(at),
            sink.texts.get(args),
        )
        for at, (category, name, thread, ts, dur, args) in enumerate(listed)
    ]
    return events, parsed


def expected(text: str) -> tuple[list[Complete], Counter[str]]:
    """The same by a decoder of JSON, and how many events there are of each phase."""
    events, phases = [], Counter[str]()
    for event, raw in events_of(text):
        phase = as_text(event.get("ph"))
        phases[phase] += 1
        ts = nanos(raw.get("ts"))
        if phase == "X" and ts is not None:
            events.append(_complete(event, raw, ts))
    return events, phases


def _complete(event: dict[str, Any], raw: dict[str, str], ts: int) -> Complete:
    category = as_text(event.get("cat"))
    category = OLD_CATEGORIES.get(category, category)
    name = as_text(event.get("name"))
    if category == "cpu_op" and name.startswith("ProfilerStep#"):
        category = "user_annotation"
    args = event["args"] if isinstance(event.get("args"), dict) else {}
    external = identifier(args.get("External id"))
    return Complete(
        category,
        name,
        as_text(event.get("pid")),
        as_text(event.get("tid")),
        ts,
        max(nanos(raw.get("dur")) or 0, 0),
        identifier(args.get("correlation")),
        external if external is not None else identifier(args.get("external id")),
        raw.get("args"),
    )


def events_of(text: str) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """Each event decoded, and the text of each of its values; the last one of repeated keys."""
    found = re.compile(r'\s*\[|.*?"traceEvents"\s*:\s*\[', re.DOTALL).match(text)
    assert found
    at = _blank(text, found.end())
    while text[at] == "{":
        event, raw = {}, {}
        at = _blank(text, at + 1)
        while text[at] != "}":
            key, at = scanstring(text, at + 1)
            begin = _blank(text, _blank(text, at) + 1)
            event[key], end = _DECODER.raw_decode(text, begin)
            raw[key] = text[begin:end]
            at = _blank(text, end)
            at = _blank(text, at + (text[at] == ","))
        yield event, raw
        at = _blank(text, at + 1)
        at = _blank(text, at + (text[at] == ","))


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    assert found
    return found.end()


def nanos(raw: str | None) -> int | None:
    """Exact ns of µs as they are written; None where they are unusable."""
    try:
        value = Decimal((raw or "").strip('"').strip())
    except InvalidOperation:
        return None
    if not value.is_finite() or value.copy_abs() >= LONGEST_NS:
        return None
    exact = int((value * 1000).to_integral_value())
    return exact if abs(exact) < LONGEST_NS else None


def identifier(value: object) -> int | None:
    """A whole number of 64 bits without a sign, written as a number or as text."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value < 1 << 64 else None


def as_text(value: object) -> str:
    """Text, and anything else as text; nothing for what is absent or beyond a double."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return ""
    return "" if value is None else value if isinstance(value, str) else str(value)
