"""The reader agrees with a plain JSON decoder, wherever the pieces of a file begin and end."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.readers import source, stream
from ingest.readers.source import Source
from tests.read_back import Blocks, Complete, expected, read

TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.sampled_from(
        [
            "007", "000000000000000000000", "123456789012345678901234567890", "a1b22c333", "0",
            '}, {"ph": "X"', '"ph": "X"}, {', "]}", "\\", '\\"', "\x01\x02\x03", "\u0661",
            "C:\\new", "1e400", "10000000000000000", "u10000000000000001", "\U0001f600",
            "ProfilerStep#12",
        ]
    ),
)  # fmt: skip
NUMBERS = st.one_of(
    st.integers(-(10**3), 10**3).map(str),
    st.integers(-(2**66), 2**66).map(str),
    st.sampled_from([10**17, 10**18 - 1, 10**18, 10**19, 2**63, 2**64 - 1, 2**64, 10**40]).map(str),
    st.decimals(-(10**16), 10**16, places=3).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["-0", "0.000", "-0.5", "1e400", "1E+05", "1e-9", "2.50e007", "1e1000000"]),
    st.sampled_from(["0.0005", "0.0015", "0.00050000000000000000000000001", "1.0000000000000001"]),
)


def _string(text: str, style: int) -> str:
    """A text as JSON: as it is, in ASCII, or with every character as an escape."""
    if style == 2:
        units = text.encode("utf-16-be")
        return (
            '"' + "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)) + '"'
        )
    return json.dumps(text, ensure_ascii=bool(style))


STRINGS = st.builds(_string, TEXTS, st.integers(0, 2))
BLANKS = st.sampled_from(["", "", "", " ", "\n", "\t", "\r\n   "])


def _listed(parts: list[str], blank: str) -> str:
    return f"[{blank}" + f"{blank},{blank}".join(parts) + f"{blank}]"


def _object(pairs: list[tuple[str, str]], blanks: tuple[str, str]) -> str:
    one, two = blanks
    return f"{{{one}" + f"{two},{one}".join(f"{k}{two}:{one}{v}" for k, v in pairs) + f"{two}}}"


KEYS = st.builds(
    _string,
    st.sampled_from(["ph", "name", "args", "ts", "dur", "pid", "tid", "correlation", "cat"]),
    st.sampled_from([0, 0, 0, 0, 2]),
)
PAIR_OF_BLANKS = st.tuples(BLANKS, BLANKS)
VALUES = st.recursive(
    st.one_of(st.sampled_from(["null", "true", "false", "{}", "[]"]), NUMBERS, STRINGS),
    lambda inner: st.one_of(
        st.builds(_listed, st.lists(inner, max_size=4), BLANKS),
        st.builds(
            _object,
            st.lists(st.tuples(st.one_of(STRINGS, KEYS), inner), max_size=3),
            PAIR_OF_BLANKS,
        ),
    ),
    max_leaves=8,
)
ARGS_KEYS = st.sampled_from(
    ['"correlation"', '"External id"', '"external id"', '"grid"', '"stream"']
)
ARGS = st.one_of(
    st.builds(
        _object,
        st.lists(
            st.one_of(
                st.tuples(st.one_of(ARGS_KEYS, KEYS, STRINGS), VALUES),
                st.just(('"nested"', '[{"name": 1}, {"ph": "X"}, {"args": {}}]')),
            ),
            max_size=5,
            unique_by=lambda pair: json.loads(pair[0]),
        ),
        PAIR_OF_BLANKS,
    ),
    VALUES,
)
CATEGORIES = st.sampled_from(
    ['"cpu_op"', '"kernel"', '"cuda_sync"', '"Operator"', '"gpu_memcpy"', '"python_function"']
)
MEMBERS = st.one_of(
    st.tuples(st.just('"name"'), STRINGS),
    st.tuples(st.just('"cat"'), CATEGORIES),
    st.tuples(st.sampled_from(['"ts"', '"dur"', '"pid"', '"tid"', '"id"']), NUMBERS),
    st.tuples(st.just('"args"'), ARGS),
    st.tuples(KEYS, VALUES),
    st.tuples(STRINGS, VALUES),
)


@st.composite
def events(draw: st.DrawFn) -> str:
    """An event: mostly complete ones with a time, in any order of keys."""
    members = draw(st.lists(MEMBERS, max_size=7))
    members += draw(st.sampled_from([[], [('"ph"', '"X"')], [('"ph"', '"X"'), ('"ts"', "17.25")]]))
    return _object(draw(st.permutations(members)), draw(PAIR_OF_BLANKS))


@st.composite
def traces(draw: st.DrawFn) -> str:
    """A trace as text."""
    listed = _listed(draw(st.lists(events(), min_size=1, max_size=8)), draw(BLANKS))
    head = draw(
        st.sampled_from(["", '{"traceEvents":', '{"a": [{"b": 1}, {"c": 2}],\n"traceEvents" : '])
    )
    tail = draw(
        st.sampled_from(["}", ', "z": [{"x": 1}, {"name": 2}, {"id": 3}]}', ' ,"y":"]}"}\n'])
    )
    return head + listed + tail if head else listed


def _decodable(text: str) -> bool:
    """Legal for the strict decoder: halves of surrogate pairs are not."""
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except (UnicodeEncodeError, ValueError):
        return False
    return True


Seen = tuple[list[Complete], int, bool, dict[str, int]]


def _seen(given_source: Source) -> Seen:
    rows, parsed = read(given_source)
    return rows, parsed.n_events, parsed.complete, parsed.log.counts


@given(traces(), st.integers(1, 80))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_rows_are_those_of_a_json_decoder_in_pieces_of_any_size(text: str, size: int) -> None:
    if not _decodable(text):
        return
    want, phases = expected(text)
    rows, n_events, complete, counts = _seen(Blocks(text.encode(), size))
    assert rows == want
    assert (n_events, complete) == (sum(phases.values()), True)
    assert not {"truncated", "event_unreadable", "text_behind_end", "several_lists"} & set(counts)
    assert _seen(Blocks(text.encode(), 1 << 23)) == (rows, n_events, complete, counts)


@given(text=traces(), size=st.integers(16, 200), threads=st.integers(1, 3))
@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_gzip_and_the_number_of_threads_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, size: int, threads: int
) -> None:
    plain, packed = tmp_path / "t.json", tmp_path / "t.gz"
    data = text.encode()
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data[: size * 2]) + gzip.compress(data[size * 2 :]))
    want = _seen(Blocks(data, 1 << 23))
    monkeypatch.setattr(source, "BLOCK_BYTES", size)
    monkeypatch.setattr(source, "_STORED_BYTES", 32)
    monkeypatch.setattr(stream, "_THREADS", threads)
    assert _seen(Source(plain)) == want
    assert _seen(Source(packed)) == want
