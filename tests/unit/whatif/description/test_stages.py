"""Stages hold the layers of the model in its order, chunk after chunk."""

from whatif.description.stages import stage_layers_of
from whatif.models.shape import Degrees


def test_layers_of_recorded_stages_are_counted_over_the_model() -> None:
    found = stage_layers_of({0: (0, 1, 2), 1: (0, 1)}, {0: 0, 1: 1}, Degrees(pp=2), None)
    assert found == ((0, 1, 2), (3, 4))


def test_chunks_of_a_stage_alternate_with_those_of_the_others() -> None:
    degrees = Degrees(pp=2, virtual_stages=2)
    found = stage_layers_of({0: range(4), 1: range(4)}, {0: 0, 1: 1}, degrees, None)
    assert found == ((0, 1, 4, 5), (2, 3, 6, 7))


def test_stages_that_were_not_recorded_share_what_is_left() -> None:
    found = stage_layers_of({5: range(4)}, {5: 1}, Degrees(pp=3), 12)
    assert found == ((0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11))


def test_without_a_count_they_are_like_the_recorded_one() -> None:
    found = stage_layers_of({5: range(4)}, {5: 1}, Degrees(pp=2), None)
    assert found == ((0, 1, 2, 3), (4, 5, 6, 7))
