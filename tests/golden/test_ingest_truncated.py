"""A file that ends too early, in any byte, gives its whole events and says that it is not whole."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.errors import TraceError
from ingest.issues import IssueLog
from ingest.pipeline import IngestOptions, open_run
from ingest.readers.source import Source
from tests.reading import (
    count_events,
    document,
    host,
    issues,
    kernel,
    parse,
    rank_of,
    reading,
    write,
)

NAMES = ("aten::mm", "two {braces} and ] one bracket", 'a \\"quoted\\" word', "\u20ac and \\u00df")
EVENTS = [
    event
    for number, name in enumerate(NAMES * 3)
    for event in (
        host("cpu_op", name, number, 0.5, **{"Input Dims": [[1, 2], []], "Ev Idx": number}),
        host("cuda_runtime", "cudaLaunchKernel", number + 0.1, 0.1, correlation=number + 1),
        kernel(f"k<{name}>", number + 10, 0.25, correlation=number + 1, grid=[1, 1, 1]),
    )
]
TAIL = f', {rank_of(1)}, "traceName": "/tmp/run.json", "displayTimeUnit": "ms"'
WHOLE = document(*EVENTS, head='"schemaVersion": 1, "displayTimeUnit": "ms"', tail=TAIL).encode()
LAST_BYTES = 4096


def _cuts() -> Iterator[tuple[int, int]]:
    """Every length in the last 4 KiB, with the number of events that are whole up to there."""
    ends, position = [], 0
    for event in EVENTS:
        position = WHOLE.index(event.encode(), position) + len(event.encode())
        ends.append(position)
    for length in range(max(len(WHOLE) - LAST_BYTES, ends[0]), len(WHOLE) - 1):
        yield length, sum(end <= length for end in ends)


def test_the_cuts_reach_back_into_the_events() -> None:
    numbers = {whole for _, whole in _cuts()}
    assert numbers == set(range(min(numbers), len(EVENTS) + 1))
    assert len(numbers) > 8


def test_every_cut_keeps_the_whole_events_and_says_so() -> None:
    for length, whole in _cuts():
        assert count_events(WHOLE[:length]) == (whole, False, {"truncated": 1}), length


def test_strict_says_after_how_many_events_a_file_is_cut() -> None:
    for length, whole in list(_cuts())[::7]:
        with pytest.raises(TraceError, match=rf"truncated.* byte {length}, after {whole} whole"):
            count_events(WHOLE[:length], strict=True)


def test_the_table_says_that_the_file_is_not_whole(tmp_path: Path) -> None:
    for length in (len(WHOLE) - 2, len(WHOLE) - 60, len(WHOLE) - 900):
        with reading(write(tmp_path / f"{length}.json", WHOLE[:length])) as run:
            assert run.store.rows("SELECT complete FROM trace") == [(False,)]
            assert issues(run)["truncated"] == 1


def test_the_whole_file_is_whole_with_or_without_its_last_line_break(tmp_path: Path) -> None:
    for number, data in enumerate((WHOLE, WHOLE.rstrip(), WHOLE + b"\n  ")):
        path = write(tmp_path / f"{number}.json", data)
        parsed = parse(Source(path), strict=True)
        assert (parsed.n_events, parsed.complete) == (len(EVENTS), True)
        assert parsed.log.counts == {}


def test_a_bare_list_that_ends_early_gives_its_whole_events(tmp_path: Path) -> None:
    text = "[" + ",".join(EVENTS)
    path = write(tmp_path / "t.json", text)
    with reading(path) as run:
        assert run.store.rows("SELECT n_events, complete FROM trace") == [(len(EVENTS), False)]
    path.write_text(text[:-3])
    with reading(path) as run:
        assert run.store.rows("SELECT n_events, complete FROM trace") == [(len(EVENTS) - 1, False)]


def test_a_cut_before_the_first_event_is_one_clear_line(tmp_path: Path) -> None:
    for end in (b'"trace', b'"traceEvents": [', b'{"ph"'):
        path = write(tmp_path / "t.json", WHOLE[: WHOLE.index(end) + len(end)])
        with pytest.raises(TraceError) as refusal:
            parse(Source(path))
        assert str(refusal.value).startswith("`t.json`")
        assert "\n" not in str(refusal.value)


def test_a_stretch_lost_in_the_middle_loses_only_the_events_that_it_hits(tmp_path: Path) -> None:
    first = WHOLE.index(EVENTS[6].encode()) + 40
    last = WHOLE.index(EVENTS[7].encode()) + 40
    path = write(tmp_path / "t.json", WHOLE[:first] + WHOLE[last:])
    parsed = parse(Source(path))
    assert len(EVENTS) - 2 <= parsed.n_events <= len(EVENTS) - 1
    assert parsed.complete


def test_gzip_is_told_by_content_and_may_have_several_members(tmp_path: Path) -> None:
    half = len(WHOLE) // 2
    members = gzip.compress(WHOLE[:half]) + gzip.compress(WHOLE[half:])
    for name, data in (("t.json", gzip.compress(WHOLE)), ("t.json.gz", members), ("p.gz", WHOLE)):
        parsed = parse(Source(write(tmp_path / name, data)), strict=True)
        assert (parsed.n_events, parsed.complete) == (len(EVENTS), True)


@pytest.mark.parametrize("damage", ["cut", "no trailer", "flipped", "second member cut", "junk"])
def test_a_damaged_gzip_gives_what_precedes_the_damage(tmp_path: Path, damage: str) -> None:
    events = [host("cpu_op", f"op {number * 7919 % 9973}", number, 0.5) for number in range(2000)]
    text = document(*events).encode()
    packed = gzip.compress(text)
    half = gzip.compress(text[: len(text) // 2]), gzip.compress(text[len(text) // 2 :])
    middle = len(packed) // 2
    data = {
        "cut": packed[:middle],
        "no trailer": packed[:-8],
        "flipped": packed[:middle] + bytes([packed[middle] ^ 0xFF]) + packed[middle + 1 :],
        "second member cut": half[0] + half[1][: len(half[1]) // 2],
        "junk": packed + b"no gzip member begins here",
    }[damage]
    path = write(tmp_path / "t.json.gz", data)
    with reading(path) as run:
        ((kept, complete),) = run.store.rows("SELECT n_events, complete FROM trace")
        assert issues(run)["gzip_damaged"] == 1
        starts = run.store.rows("SELECT ts FROM slice ORDER BY ts")
    assert not complete
    assert (kept == len(events)) == (damage in {"no trailer", "junk"})
    sure = int(len(events) * (0.6 if damage == "second member cut" else 0.2))
    assert starts[:sure] == [(number * 1000,) for number in range(sure)]
    with pytest.raises(TraceError), reading(path, strict=True):
        pass


def test_a_source_says_what_it_could_not_read(tmp_path: Path) -> None:
    log = IssueLog()
    source = Source(write(tmp_path / "t.gz", gzip.compress(WHOLE)[:-20]))
    data = b"".join(source.blocks(log, lambda _: None))
    assert WHOLE.startswith(data)
    ((name, action),) = [(place.name, place.action) for place in log.places]
    assert name == "gzip_damaged"
    assert str(len(data)) in action


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "file is empty"),
        (gzip.compress(b"", mtime=0), "file is empty"),
        (b'{"traceEvents": []}', "no events"),
        (b"[]", "no events"),
        (b'{"events": [1]}', "no traceEvents: not a Chrome trace"),
        (b"hello", "not (valid )?JSON"),
        (b"\x00\x01\x02\x03", "not (valid )?JSON"),
        (b"\x28\xb5\x2f\xfd rest", "zstd"),
        (b"{", "JSON"),
        (json.dumps({"traceEvents": {}}).encode(), "traceEvents"),
    ],
)
def test_what_is_no_trace_is_one_line_with_name_and_cause(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = write(tmp_path / "given.json", content)
    for strict in (False, True):
        with pytest.raises(TraceError, match=message) as refusal, reading(path, strict=strict):
            pass
        assert "`given.json`" in str(refusal.value)
        assert "\n" not in str(refusal.value)
        assert refusal.value.exit_code == 3


def test_what_is_lost_is_told_each_time_the_run_is_opened(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", WHOLE[: len(WHOLE) - 900])
    told: list[str] = []
    for _ in range(2):
        options = IngestOptions(cache_dir=tmp_path / "cache", announce=told.append)
        with open_run([path], options=options):
            pass
    assert told == ["data lost: truncated 1; the places are in import_log"] * 2
