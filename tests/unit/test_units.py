"""Times as people type them."""

import pytest

from ingest.errors import UsageError
from ingest.units import parse_time


@pytest.mark.parametrize(
    ("text", "time_ns"),
    [
        ("412ms", 412_000_000),
        ("0.412s", 412_000_000),
        (" 350 us ", 350_000),
        ("350.001µs", 350_001),
        ("7ns", 7),
        (".5ms", 500_000),
    ],
)
def test_time_with_its_unit_is_exact(text: str, time_ns: int) -> None:
    assert parse_time(text) == time_ns


@pytest.mark.parametrize(
    "text", ["412", "ms", "", "0ms", "0.1ns", "-1ms", "1e3ms", "1 hour", "1,5s"]
)
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time above zero") as raised:
        parse_time(text)
    assert "412ms" in raised.value.hint
