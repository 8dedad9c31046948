"""What one layout cannot be does not end the search."""

import pytest

from ingest.errors import ScenarioError, UserError
from whatif.plan.search import why


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ScenarioError("12 heads do not divide", hint="6 do"), "12 heads do not divide"),
        (AssertionError("known with the peak"), "a mistake of this program: known with the peak"),
        (AssertionError(), "a mistake of this program: an assertion"),
    ],
)
def test_a_layout_is_left_out_with_its_reason(error: UserError | AssertionError, told: str) -> None:
    assert why(error) == told
