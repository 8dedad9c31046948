"""Files that hold something else, several traces, or text behind the end: said, never silent."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path

import pytest

from ingest.errors import TraceError
from ingest.readers.source import Source
from tests.read_back import Blocks, read
from tests.reading import document, host, issues, parse, rank_of, reading, write

EVENTS = [host("cpu_op", f"op{number}", number, 0.5) for number in range(4)]
TEXT = document(*EVENTS, tail=f", {rank_of(0)}")


def _archive(kind: str) -> bytes:
    out = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("rank0.json", TEXT)
    else:
        with tarfile.open(fileobj=out, mode="w") as archive:
            member = tarfile.TarInfo("rank0.json")
            member.size = len(TEXT)
            archive.addfile(member, io.BytesIO(TEXT.encode()))
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"\x28\xb5\x2f\xfd rest", "zstd"),
        (bz2.compress(TEXT.encode()), "bzip2"),
        (lzma.compress(TEXT.encode()), "xz"),
        (_archive("zip"), "zip archive"),
        (_archive("tar"), "tar archive"),
        (gzip.compress(_archive("tar")), "tar archive"),
        (gzip.compress(gzip.compress(TEXT.encode())), "gzip twice"),
        (TEXT.encode("utf-16"), "UTF-16"),
        (TEXT.lstrip().encode("utf-16-le"), "UTF-16"),
        (TEXT.lstrip().encode("utf-16-be"), "UTF-16"),
    ],
)
def test_another_format_is_named_with_what_to_do(tmp_path: Path, content: bytes, what: str) -> None:
    path = write(tmp_path / "t.json", content)
    with pytest.raises(TraceError, match=what) as refusal:
        parse(Source(path))
    assert str(refusal.value).startswith("`t.json` is ")
    assert refusal.value.hint


@pytest.mark.parametrize("packed", [False, True])
def test_a_byte_order_mark_is_skipped_in_any_block(tmp_path: Path, *, packed: bool) -> None:
    data = b"\xef\xbb\xbf" + TEXT.encode()
    if packed:  # the mark in a member of its own
        data = gzip.compress(data[:2]) + gzip.compress(data[2:])
    parsed = parse(Source(write(tmp_path / "t.json", data)), strict=True)
    assert (parsed.n_events, parsed.log.counts) == (4, {})


@pytest.mark.parametrize(
    "text",
    [
        TEXT + TEXT,
        TEXT.strip() + TEXT.strip(),
        "[" + ",".join(EVENTS) + "]\n[" + ",".join(EVENTS) + "]",
        '{"traceEvents": [%s], "a": {"b": 1}, "traceEvents": [%s]}' % ((",".join(EVENTS),) * 2),
        TEXT[: TEXT.index(EVENTS[3])] + TEXT + EVENTS[3],
    ],
    ids=["one behind the other", "without a break", "bare lists", "two keys", "the first is cut"],
)
@pytest.mark.parametrize("size", [50, 1 << 20])
def test_several_lists_of_events_are_read_and_counted(text: str, size: int) -> None:
    rows, parsed = read(Blocks(text.encode(), size))
    assert len(rows) == text.count('"ph": "X"') - (not text.endswith(("}", "]", "\n")))
    assert parsed.log.counts["several_lists"] == 1
    with pytest.raises(TraceError):
        parse(text.encode(), strict=True)


@pytest.mark.parametrize("behind", ["junk", "\x00" * 100, '{"a": 1}', "}", "]"])
@pytest.mark.parametrize("bare", [False, True])
def test_text_behind_the_end_is_counted_and_refused_when_strict(
    tmp_path: Path, behind: str, *, bare: bool
) -> None:
    text = "[" + ",".join(EVENTS) + "]" if bare else TEXT.strip()
    path = write(tmp_path / "t.json", text + " \n" + behind)
    with reading(path) as run:
        assert run.store.rows("SELECT n_events FROM trace") == [(4,)]
        found = issues(run)
        told = found.keys() & {"text_behind_end", "event_unreadable", "truncated"}
        assert len(told) == 1
    with pytest.raises(TraceError), reading(path, strict=True):
        pass


def test_events_behind_a_stray_bracket_are_kept_whatever_their_first_key() -> None:
    events = [f'{{"name": "op{n}", "ts": {n}, "dur": 1, "ph": "X"}}' for n in range(4)]
    text = '{"traceEvents": [' + ",".join(events[:2]) + "]}, " + ",".join(events[2:]) + "]}"
    rows, parsed = read(Blocks(text.encode(), 30))
    assert [row.name for row in rows] == ["op0", "op1", "op2", "op3"]
    assert parsed.log.counts == {"event_unreadable": 1}


def test_a_far_future_mark_of_the_window_does_not_stretch_the_trace(tmp_path: Path) -> None:
    marks = [
        '{"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 9e15}',
        '{"ph": "i", "s": "g", "name": "Iteration Start: PyTorch", "pid": "Traces", "tid": 1,'
        ' "ts": 1}',
    ]
    with reading(write(tmp_path / "t.json", document(*EVENTS, *marks))) as run:
        assert run.store.rows("SELECT max(ts + dur) FROM slice") == [(3500,)]
        assert issues(run)["event_instant"] == 2


@pytest.mark.parametrize(
    ("pid", "tid", "kept"),
    [
        ("-1", "0", ("-1", "0")),
        ('"Spans"', '"PyTorch Profiler"', ("Spans", "PyTorch Profiler")),
        (
            "9223372036854775808",
            "18446744073709551616",
            ("9223372036854775808", "18446744073709551616"),
        ),
        ('""', "null", ("", "")),
        ("1.5", '"007"', ("1.5", "007")),
    ],
)
def test_odd_processes_and_threads_are_kept_as_text(
    pid: str, tid: str, kept: tuple[str, str]
) -> None:
    event = f'{{"ph": "X", "name": "a", "pid": {pid}, "tid": {tid}, "ts": 1, "dur": 1}}'
    ((row,), _) = read(Blocks(f"[{event}]".encode(), 64))
    assert (row.pid, row.tid) == kept


def test_flows_without_a_time_and_labels_of_other_kinds_are_counted() -> None:
    text = '[{"ph": "s", "id": 1, "ts": null}, {"ph": "M", "name": "other"}, ' + EVENTS[0] + "]"
    parsed = parse(text.encode())
    assert parsed.n_events == 3
    assert parsed.log.counts == {"event_without_time": 1, "event_other": 1}


@pytest.mark.parametrize("number", ["1e1000000", "-1e1000000", "1" + "0" * 400])
def test_numbers_beyond_all_measure_stop_no_file(number: str) -> None:
    events = (
        f'{{"ph": "X", "name": "a", "ts": {number}, "dur": {number}, "args": {{"a": {number}}}}}',
        f'{{"ph": "C", "name": "c", "ts": 1, "args": {{"a": {number}}}}}',
        EVENTS[0],
    )
    parsed = parse(f"[{','.join(events)}]".encode())
    assert (parsed.n_events, len(parsed.slices)) == (3, 1)
    assert parsed.log.counts == {"event_without_time": 1, "counter_without_value": 1}


def test_arguments_without_a_value_are_no_event() -> None:
    for empty in ('{"ph": "X", "ts": 1, "args":}', '{"args":, "ph": "X", "ts": 1}'):
        parsed = parse(f"[{empty}, {EVENTS[0]}]".encode())
        assert (parsed.n_events, parsed.log.counts) == (1, {"event_unreadable": 1})


@pytest.mark.parametrize("key", ["\\u0061rgs", "ar\\u0067s"])
def test_arguments_under_an_escaped_key_are_kept(key: str) -> None:
    event = f'{{"ph": "X", "n\\u0061me": "a", "ts": 1, "dur": 1, "{key}": {{"correlation": 7}}}}'
    ((row,), parsed) = read(Blocks(f"[{event}]".encode(), 1 << 20))
    assert (row.name, row.correlation, row.args) == ("a", 7, '{"correlation": 7}')
    assert parsed.log.counts == {}


@pytest.mark.parametrize(
    "event",
    [
        '{"ph": "X", "ts": 1, "name": "a", "ts": 2, "dur": 1}',
        '{"ph": "X", "ts": 2, "name": "b", "name": "a", "dur": 1}',
        '{"ph": "X", "ts": 2, "name": "b", "n\\u0061me": "a", "dur": 1}',
    ],
)
def test_a_repeated_key_is_counted_and_its_last_value_kept(event: str) -> None:
    ((row,), parsed) = read(Blocks(f"[{event}]".encode(), 1 << 20))
    assert (row.name, row.ts, parsed.log.counts) == ("a", 2000, {"repeated_key": 1})
