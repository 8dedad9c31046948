"""Facts about typical lags."""

import numpy as np
import pytest

from replay.graph.lags import Typical, typical


@pytest.mark.parametrize(
    ("samples_ns", "lag_ns"),
    [
        ([], 1_500),
        ([100, 100], 1_500),
        ([0, 100, 200], 100),
        ([9_000] * 7, 1_500),
        ([9_000] * 8, 9_000),
        ([1, 2, 3, 4, 5, 6, 7, 9_000], 4),
    ],
    ids=["none", "two", "few and shorter", "few and longer", "enough", "one without its cause"],
)
def test_lag_is_the_median_of_enough_and_the_default_at_most_of_few(
    samples_ns: list[int], lag_ns: int
) -> None:
    found = typical(np.array(samples_ns, np.int64), 1_500)
    assert found == Typical(lag_ns=lag_ns, samples=len(samples_ns), is_default=len(samples_ns) < 8)
