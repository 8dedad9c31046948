"""Colours can be told from their ground, and letters read, in both themes (WCAG 2.2, AA)."""

from itertools import combinations

import pytest

from whatif.report.charts.palette import (
    ALIASES,
    BAD,
    GOOD,
    GROUND,
    INK,
    LINK,
    MUTED,
    RAISED,
    ROLES,
    SERIES,
    Tone,
    mark,
    marks,
)

LEAST_OF_MARKS, LEAST_OF_LETTERS = 3.0, 4.5
MIX = 0.24
"""Of a bar behind a value (`.bar` in style.css)."""


def _light(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((_light(one), _light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _mixed(colour: str, ground: str) -> str:
    parts = [
        round(MIX * int(colour[at : at + 2], 16) + (1 - MIX) * int(ground[at : at + 2], 16))
        for at in (1, 3, 5)
    ]
    return "#" + "".join(f"{part:02x}" for part in parts)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("name", ROLES)
def test_a_mark_stands_out_from_the_page(name: str, theme: int) -> None:
    assert contrast(ROLES[name][theme], GROUND[theme]) >= LEAST_OF_MARKS


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("letters", [INK, MUTED, LINK, GOOD, BAD])
def test_letters_can_be_read_on_every_ground(letters: Tone, theme: int) -> None:
    for ground in (GROUND, RAISED):
        assert contrast(letters[theme], ground[theme]) >= LEAST_OF_LETTERS
    bar = _mixed(ROLES["compute"][theme], GROUND[theme])
    assert contrast(INK[theme], bar) >= LEAST_OF_LETTERS


def _as_seen(colour: str, *, deutan: bool) -> tuple[float, float, float]:
    """Linear RGB as who lacks green (or red) cones sees it (Vienot, Brettel, Mollon 1999)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part**2.2 for part in parts)
    if deutan:
        mixed = 0.29275 * red + 0.70725 * green
        return mixed, mixed, -0.02234 * red + 0.02234 * green + blue
    mixed = 0.11238 * red + 0.88762 * green
    return mixed, mixed, 0.00401 * red - 0.00401 * green + blue


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("deutan", [True, False])
def test_parts_of_a_step_differ_for_the_colour_blind(theme: int, *, deutan: bool) -> None:
    names = ("compute", "comm", "memcpy", "host")
    for one, other in combinations(names, 2):
        first, second = (_as_seen(ROLES[name][theme], deutan=deutan) for name in (one, other))
        apart = sum(
            (a ** (1 / 2.2) - b ** (1 / 2.2)) ** 2
            for a, b in zip(map(abs, first), map(abs, second), strict=True)
        )
        assert apart**0.5 > 0.1, (one, other)


def test_a_role_has_one_colour_on_all_charts() -> None:
    assert marks(["compute", "comm", "idle"]) == ("c-compute", "c-comm", "c-idle")
    assert mark("collective") == mark("comm") == "c-comm"
    assert mark("never heard of") == "c-other"
    assert set(ALIASES.values()) <= set(ROLES)


def test_parts_of_one_role_still_differ() -> None:
    assert marks(["compute"] * 3) == ("s-1", "s-2", "s-3")
    assert len(set(SERIES)) == len(SERIES)
