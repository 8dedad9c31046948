"""What answers say of the kernel model's error is what public measurements give today."""

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pytest

from ingest.vocab import ElementType
from tests.bench.accuracy_kernels import LOW_POWER, Judged, float8_runs, precisions, table_rows
from whatif.models.kernels import precision, roofline
from whatif.models.kernels.shares import published

SHARED = Path(__file__).parents[2] / "../shared"
pytestmark = pytest.mark.skipif(
    not (SHARED / "facts").is_dir(), reason="needs the public tables in ../shared"
)


@pytest.fixture(scope="module")
def rows() -> list[Judged]:
    return table_rows(SHARED, published())


def typical(rows: Sequence[Judged]) -> str:
    return f"{median(abs(row.error_frac) for row in rows):.0%}"


def inside(rows: Sequence[Judged]) -> float:
    return sum(row.is_inside for row in rows) / len(rows)


def test_the_error_that_answers_state_is_the_measured_one(rows: list[Judged]) -> None:
    usual = [row for row in rows if row.source != LOW_POWER]
    said = re.findall(r"\d+%?", roofline.KNOWN_ERROR)
    assert said == [typical(usual), str(len(usual)), f"{inside(usual):.0%}"]
    low = [row for row in rows if row.source == LOW_POWER]
    assert re.findall(r"\d+%", roofline.LOW_POWER_ERROR) == [typical(low)]


def test_nine_of_ten_truths_lie_in_ranges_of_a_factor_of_two(rows: list[Judged]) -> None:
    assert inside([row for row in rows if row.source != LOW_POWER]) >= 0.9
    assert max(row.width for row in rows) <= 2.01


def test_the_model_is_nearer_than_the_ratio_of_peaks(rows: list[Judged]) -> None:
    for source in {row.source for row in rows} - {"SimuMax sdp_bwd"}:  # known to be worse there
        mine = [row for row in rows if row.source == source]
        plain = median(abs(row.plain_error_frac) for row in mine)
        assert median(abs(row.error_frac) for row in mine) < plain, source


def test_the_error_of_eight_bits_is_the_measured_one() -> None:
    shares = published()
    narrow = [*precisions(SHARED, shares), *float8_runs(SHARED, shares)]
    said = precision.KNOWN_ERROR[ElementType.FP8]
    assert re.findall(r"\d+%", said) == [typical(narrow)]
    assert inside(narrow) == 1
