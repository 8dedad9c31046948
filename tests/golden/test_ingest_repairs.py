"""Broken text is read as far as it goes: strings keep what they hold, every repair is counted."""

import json
from pathlib import Path

import pytest

from ingest.errors import TraceError
from tests.reading import document, host, issues, kernel, rank_of, reading, rows, write

FINE = (host("cpu_op", "before", 1, 1), host("cpu_op", "after", 9, 1))


def _between(event: str, **around: str) -> str:
    return document(FINE[0], event, FINE[1], **around)


def _named(name: str, *, args: str = "{}") -> str:
    return f'{{"ph": "X", "cat": "cpu_op", "name": "{name}", "ts": 5, "dur": 2, "args": {args}}}'


@pytest.mark.parametrize(
    ("written", "name", "issue"),
    [
        (r"torch\nn\modules\linear.py(114): forward",) * 2 + ("bad_escape",),
        (r"C:\new\user\table.py(3): f",) * 2 + ("bad_escape",),
        (r"C:\temp\u12.py", r"C:\temp\u12.py", "bad_escape"),
        (r"C:\work\lib" + "\\", "C:\\work\\lib\\", "bad_escape"),
        ('nn.Linear("proj")', 'nn.Linear("proj")', "unescaped_quote"),
        ('say "a, b" twice', 'say "a, b" twice', "unescaped_quote"),
        ("line one\nline two\ttab", "line one\nline two\ttab", "control_character"),
        ("bell \x07", "bell \x07", "control_character"),
        (r"lone \ud83d half", "lone \ufffd half", "not_utf8"),
    ],
    ids=[
        "windows path with a legal escape by chance",
        "windows path with two",
        "windows path with a short \\u",
        "windows path that ends in a backslash",
        "quotes inside",
        "quotes around a comma",
        "line break",
        "bell",
        "half a surrogate pair",
    ],
)
def test_a_string_that_was_written_wrong_keeps_its_text(
    tmp_path: Path, written: str, name: str, issue: str
) -> None:
    with reading(write(tmp_path / "t.json", _between(_named(written)))) as run:
        found = run.store.rows("SELECT name FROM slice ORDER BY ts")
        assert found == [("before",), (name,), ("after",)]
        assert issues(run)[issue] == 1
        (place,) = run.store.rows("SELECT name, byte_offset, event_excerpt FROM import_log")
        assert place[:2] == (issue, _between(_named(written)).encode().index(b'{"ph"', 60))
        assert place[2].startswith('{"ph": "X", "cat": "cpu_op"')


def test_what_is_written_right_is_not_touched(tmp_path: Path) -> None:
    text = 'tab\tquote" back\\slash \u20ac \U0001f600 C:\\new'
    event = _named(json.dumps(text)[1:-1])
    with reading(write(tmp_path / "t.json", _between(event))) as run:
        assert run.store.rows("SELECT name FROM slice WHERE ts = 4000") == [(text,)]
        assert issues(run) == {"rank_from_order": 1}


def test_bytes_that_are_not_utf8_are_replaced_and_the_event_is_kept(tmp_path: Path) -> None:
    good = _between(_named("gr\u00f6\u00dfe", args='{"correlation": 7, "who": "J\u00fcrgen"}'))
    bad = good.encode().replace("\u00f6".encode(), b"\xf6").replace("\u00fc".encode(), b"\xfc")
    with reading(write(tmp_path / "t.json", bad)) as run:
        assert run.store.rows("SELECT name, correlation FROM slice WHERE ts = 4000") == [
            ("gr\ufffd\u00dfe", 7)
        ]
        assert issues(run)["not_utf8"] == 1


@pytest.mark.parametrize(
    "word", ["NaN", "Infinity", "-Infinity", "inf", "-inf", "nan", "-nan", "N/A", "None", "True"]
)
def test_a_bare_word_as_number_is_null_and_counted(tmp_path: Path, word: str) -> None:
    copy = kernel("Memcpy HtoD", 5, 1, bytes=64).replace(
        '"bytes": 64', f'"bytes": 64, "memory bandwidth (GB/s)": {word}'
    )
    with reading(write(tmp_path / "t.json", _between(copy))) as run:
        assert run.store.rows("SELECT bytes, memory_bw_gbps FROM kernel") == [(64, None)]
        assert issues(run)["not_finite"] == 1


def test_a_bare_word_inside_a_string_stays(tmp_path: Path) -> None:
    event = _named("x", args='{"a": NaN, "b": "is: NaN, or: [inf]"}')
    with reading(write(tmp_path / "t.json", _between(event))) as run:
        assert run.store.rows("SELECT args FROM slice_args WHERE args LIKE '%is%'") == [
            ('{"a": null, "b": "is: NaN, or: [inf]"}',)
        ]
        assert issues(run)["not_finite"] == 1


def test_commas_before_a_bracket_are_left_out(tmp_path: Path) -> None:
    event = _named("x", args='{"Input Dims": [[2, 3],], "Ev Idx": 4,}')
    with reading(write(tmp_path / "t.json", _between(event).replace("]\n}", "],\n}"))) as run:
        assert run.store.rows("SELECT ev_idx FROM cpu_op WHERE ev_idx IS NOT NULL") == [(4,)]
        assert issues(run)["trailing_comma"] >= 1
        assert run.store.rows("SELECT n_events, complete FROM trace") == [(3, True)]


@pytest.mark.parametrize("separator", ["\n", ",,\n", " "])
def test_commas_between_events_may_be_missing_or_doubled(tmp_path: Path, separator: str) -> None:
    with reading(write(tmp_path / "t.json", "[" + separator.join([*FINE, FINE[0]]) + "]")) as run:
        assert run.store.rows("SELECT n_events, complete FROM trace") == [(3, True)]
        assert issues(run)["stray_comma"] == 2


@pytest.mark.parametrize(
    "junk",
    ["garbage", "3", '"text"', "null", "[1, 2]", '{"ph": "X", "name": tr!e}'],
)
def test_what_no_repair_can_read_is_left_out_alone_and_counted(tmp_path: Path, junk: str) -> None:
    with reading(write(tmp_path / "t.json", _between(junk))) as run:
        assert run.store.rows("SELECT name FROM slice ORDER BY ts") == [("before",), ("after",)]
        assert issues(run)["event_unreadable"] == 1
        ((excerpt, action),) = run.store.rows("SELECT event_excerpt, action FROM import_log")
        assert junk in excerpt
        assert action.startswith("left out")


def test_an_event_of_thousands_of_brackets_is_left_out_alone(tmp_path: Path) -> None:
    deep = _named("deep", args='{"a": ' + "[" * 5000 + "]" * 5000 + "}")
    with reading(write(tmp_path / "t.json", _between(deep))) as run:
        assert run.store.rows("SELECT name FROM slice ORDER BY ts") == [("before",), ("after",)]
        assert issues(run)["event_unreadable"] == 1


def test_arguments_of_any_type_are_kept_as_text_and_never_stop_the_file(tmp_path: Path) -> None:
    values = ('"--5"', '"\u0664"', "1e999", "true", "[[]]", '{"a": 1}', "-1", "1" * 40, '"0x1f"')
    events = [
        kernel(f"k{number}", number, 1).replace(
            '"device": 0', f'"device": {value}, "correlation": {value}, "grid": {value}'
        )
        for number, value in enumerate(values)
    ]
    path = write(tmp_path / "t.json", document(*events, '{"ph": "X", "ts": 99, "args": [1]}'))
    with reading(path) as run:
        assert run.store.rows("SELECT count(*) FROM kernel") == [(len(values),)]
        assert run.store.rows("SELECT count(*) FROM slice_args") == [(len(values) + 1,)]
        assert run.store.rows("SELECT DISTINCT linked FROM kernel") == [(False,)]


def test_a_broken_header_loses_no_more_than_the_broken_key(tmp_path: Path) -> None:
    head = r'"traceName": "D:\traces\mine.json", ' + rank_of(3, 8) + ', "rate": NaN'
    with reading(write(tmp_path / "t.json", document(*FINE, head=head))) as run:
        assert run.store.rows("SELECT rank, world_size, rank_source, trace_name FROM trace") == [
            (3, 8, "distributedInfo", r"D:\traces\mine.json")
        ]
        assert issues(run) == {"bad_escape": 1, "not_finite": 1}


def test_a_mark_before_the_text_is_skipped(tmp_path: Path) -> None:
    with reading(write(tmp_path / "t.json", b"\xef\xbb\xbf" + document(*FINE).encode())) as run:
        assert run.store.rows("SELECT n_events, complete FROM trace") == [(2, True)]


def test_only_broken_events_are_logged_and_the_first_hundred_of_a_kind(tmp_path: Path) -> None:
    events = [_named(rf"C:\mine\{number}") for number in range(130)]
    with reading(write(tmp_path / "t.json", document(*events))) as run:
        assert issues(run)["bad_escape"] == 130
        assert run.store.rows("SELECT count(*) FROM import_log") == [(100,)]


@pytest.mark.parametrize(
    ("event", "cause"),
    [
        (_named(r"a\mb"), r"invalid escape"),
        (_named("x", args='{"rate": inf}'), "inf"),
        (_named("x", args='{"rate": NaN}'), "NaN"),
        (_named("x", args='{"a": 1,}'), ""),
        (_named('say "no"'), ""),
        (_named("tab\there"), ""),
    ],
)
def test_strict_names_the_place_of_the_first_fault(tmp_path: Path, event: str, cause: str) -> None:
    path = write(tmp_path / "t.json", _between(event))
    with pytest.raises(TraceError, match="line 5, column ") as refusal, reading(path, strict=True):
        pass
    assert str(refusal.value).count("\n") == 0
    assert "`t.json`" in str(refusal.value)
    assert cause in str(refusal.value)
    assert refusal.value.exit_code == 3
    assert refusal.value.hint


def test_strict_counts_columns_in_characters(tmp_path: Path) -> None:
    text = _between(_named("\u20ac\u00df\\m"))
    path = write(tmp_path / "t.json", text)
    column = text.splitlines()[4].index("\\") + 1
    with pytest.raises(TraceError, match=f"line 5, column {column}\\b"), reading(path, strict=True):
        pass


@pytest.mark.parametrize(
    ("event", "issue"),
    [
        (host("cpu_op", "x", 5, -1), "negative_duration"),
        (host("cpu_op", "x", "null", 1), "event_without_time"),
    ],
)
def test_strict_refuses_what_is_legal_json_but_had_to_be_changed(
    tmp_path: Path, event: str, issue: str
) -> None:
    path = write(tmp_path / "t.json", _between(event))
    with pytest.raises(TraceError, match=issue), reading(path, strict=True):
        pass


def test_strict_reads_what_needs_no_repair(tmp_path: Path) -> None:
    counter = '{"ph": "C", "name": "memory", "ts": 4, "args": {"bytes": 1}}'
    path = write(tmp_path / "t.json", _between(counter, head=rank_of(0)))
    with reading(path, strict=True) as run:
        assert issues(run) == {}
        assert run.store.rows("SELECT name, ts, value FROM store.counter") == [
            ("memory", 3000, 1.0)
        ]


def test_rows_read_from_a_broken_file_are_those_of_the_whole_one(tmp_path: Path) -> None:
    """Piece by piece or at once: the same rows, whatever the first fault does to the way."""
    events = [host("cpu_op", f"op{number}", number, 0.5) for number in range(3000)]
    whole = write(tmp_path / "whole.json", document(*events, tail=f", {rank_of(1)}"))
    broken = [*events[:1500], _named(r"\m"), *events[1500:]]
    mended = write(tmp_path / "broken.json", document(*broken, tail=f", {rank_of(1)}"))
    query = "SELECT name, ts, dur, rank FROM slice WHERE name LIKE 'op%' ORDER BY ts, name"
    assert rows(mended, query) == rows(whole, query)


def test_allocations_of_a_thread_without_rows_have_no_operator(tmp_path: Path) -> None:
    instant = (
        '{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 7,'
        ' "tid": 99, "ts": 4, "args": {"Device Type": 1, "Device Id": 0, "Addr": 1, "Bytes": 64}}'
    )
    path = write(tmp_path / "t.json", document(host("cpu_op", "op", 1, 9), instant))
    assert rows(path, "SELECT bytes, op_id FROM memory_event") == [(64, None)]
