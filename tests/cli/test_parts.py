"""`--steps` and `--ranks` mean what they say."""

import pytest

from ingest.errors import UsageError
from replay.cli.parts import parse_ranks, parse_steps


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("3:6", (3, 4, 5), (2, 6)),
        ("3", (3,), (2, 4)),
        ("3:", (3, 1_000_000), (2,)),
        (":6", (0, 5), (6,)),
    ],
)
def test_steps_are_a_half_open_slice(
    text: str, inside: tuple[int, ...], outside: tuple[int, ...]
) -> None:
    steps = parse_steps(text)
    assert steps is not None
    assert all(number in steps for number in inside)
    assert not any(number in steps for number in outside)


@pytest.mark.parametrize("text", ["", "a", "6:3", "3:3", "-1", "1:2:3", "1.5"])
def test_other_steps_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_steps(text)


@pytest.mark.parametrize(
    ("text", "ranks"),
    [("0,2-5", (0, 2, 3, 4, 5)), ("7", (7,)), ("3, 1,1", (1, 3)), ("2-2", (2,))],
)
def test_ranks_are_numbers_and_spans(text: str, ranks: tuple[int, ...]) -> None:
    assert parse_ranks(text) == ranks


@pytest.mark.parametrize("text", ["", "x", "5-2", "1-", "-1", "1;2", "0-99999999"])
def test_other_ranks_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_ranks(text)


def test_without_the_options_all_counts() -> None:
    assert parse_steps(None) is None
    assert parse_ranks(None) is None
