"""Counts that were measured cannot be overruled by what a person says."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from ingest.errors import ScenarioError
from ingest.vocab import CollectiveKind
from tests.layered import Layered
from whatif.description.contradictions import Measured, refuse_overruled
from whatif.description.file import said_over
from whatif.models.shape import Degrees, ModelShape, Options, RunShape, Schedule

GATHERING = frozenset({CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER})
SHARDED = RunShape(model=ModelShape(layers=6), degrees=Degrees(dp=4, zero=3))
MEASURED = Measured(kinds=GATHERING, all_kinds_known=True, is_dense=True, layers=6)


def refuse(said: dict[str, Any], measured: Measured = MEASURED, shape: RunShape = SHARDED) -> None:
    refuse_overruled(said_over(shape, said, "run.yaml"), shape, said, "run.yaml", measured)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"model": {"layers": 12}}, r"run.yaml, at `\$.model.layers`: 12, .* 6 layers"),
        ({"degrees": {"ep": 4}}, r"at `\$.degrees.ep`: .* every feed-forward measured is dense"),
        ({"degrees": {"pp": 4, "dp": 1, "zero": 0}}, r"at `\$.degrees.pp`: 4 stages, but no mess"),
        ({"degrees": {"zero": 0}}, r"at `\$.degrees.zero`: ZeRO 0, but the steps gather"),
        ({"degrees": {"dp": 1}}, r"at `\$.degrees.dp`: ZeRO 3 on one replica, but the steps"),
    ],
)
def test_what_contradicts_a_measurement_is_refused(said: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        refuse(said)


@pytest.mark.parametrize(
    ("said", "measured"),
    [
        ({"model": {"layers": 24}}, replace(MEASURED, layers=None)),
        ({"model": {"layers": 6}}, MEASURED),
        ({"degrees": {"zero": 2}}, MEASURED),
        ({"degrees": {"tp": 4, "sp": True, "dp": 1, "zero": 0}}, MEASURED),
        ({"degrees": {"ep": 4}}, replace(MEASURED, is_dense=False)),
        ({"degrees": {"pp": 4, "dp": 1}}, replace(MEASURED, all_kinds_known=False)),
        (
            {"degrees": {"pp": 2, "dp": 2}},
            replace(MEASURED, kinds=GATHERING | {CollectiveKind.SEND_RECV}),
        ),
    ],
)
def test_what_the_run_leaves_open_may_be_said(said: dict[str, Any], measured: Measured) -> None:
    refuse(said, measured)


def test_layers_of_both_ends_of_a_dualpipe_may_be_said() -> None:
    both = structs.replace(SHARDED, options=Options(schedule=Schedule.DUALPIPE))
    refuse({"model": {"layers": 12}}, shape=both)


def test_layers_are_counted_where_all_stages_are_in_the_files() -> None:
    tape = Layered(layers=3).tape()
    of = (tape.graph, tape.labels)
    assert Measured.of(*of, {0: (0, 1, 2), 1: (0, 1)}, {0: 0, 1: 1}, 2).layers == 5
    assert Measured.of(*of, {0: (0, 1, 2), 1: (0, 1, 2)}, {0: 0, 1: 0}, 1).layers == 3
    assert Measured.of(*of, {0: (0, 1, 2)}, {0: 0}, 4).layers is None


def test_what_was_found_may_be_said_again() -> None:
    """A description that was printed can be given back, whatever the run does."""
    odd = RunShape(model=ModelShape(layers=12), degrees=Degrees(dp=4, ep=4))
    refuse({"model": {"layers": 12}, "degrees": {"dp": 4, "ep": 4}}, shape=odd)
