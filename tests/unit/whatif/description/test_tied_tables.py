"""A table that serves for the logits too is seen by the number of gradients."""

import pytest
from msgspec.structs import replace

from whatif.description.elements import is_tied
from whatif.models.shape import ModelShape
from whatif.models.transformer.parameters import model_parameters

MODEL = ModelShape(layers=2, hidden=64, heads=4, ffn=256, vocab=1_000)
UNTIED = round(model_parameters(MODEL).total)
TABLE = 64 * 1_000


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (UNTIED, False),
        (UNTIED - TABLE, True),
        (UNTIED - TABLE + 500, True),
        (UNTIED - TABLE // 2, False),
        (None, False),
    ],
)
def test_what_is_near_one_table_and_not_near_two(parameters: int | None, *, expected: bool) -> None:
    assert is_tied(replace(MODEL, parameters=parameters)) is expected
