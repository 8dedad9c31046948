"""Degrees and ranks of another layout, in words."""

import pytest

from whatif.models.layout_told import LayoutTold, in_words
from whatif.models.shape import Degrees


@pytest.mark.parametrize(
    ("degrees", "words"),
    [
        (Degrees(), "dp 1"),
        (Degrees(dp=8, tp=2, sp=True), "dp 8 x tp 2, sp"),
        (Degrees(dp=4, pp=2, virtual_stages=3, zero=1), "dp 4 x pp 2, 3 chunks a stage, zero 1"),
    ],
)
def test_degrees_that_divide_something_are_named(degrees: Degrees, words: str) -> None:
    assert in_words(degrees) == words


def test_the_number_of_gpus_stands_beside_the_layout() -> None:
    told = LayoutTold(
        degrees="dp 8 x tp 2", ranks_before=8, ranks_after=16, throughput_per_rank=0.747
    )
    expected = "dp 8 x tp 2: 16 GPUs (8 before), throughput of each 0.747 times as high"
    assert told.told("GPU") == expected
    same = LayoutTold(degrees="dp 1", ranks_before=1, ranks_after=1, throughput_per_rank=1.0)
    assert same.told("rank") == "dp 1: 1 rank, as before"
