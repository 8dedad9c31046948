"""What people say of a run overrules what was found, and contradictions are named by place."""

from pathlib import Path

import pytest

from ingest.errors import ScenarioError
from whatif.description.described import Finding, Sure
from whatif.description.file import (
    description_text,
    load_said,
    refuse_contradictions,
    said_over,
)
from whatif.models.shape import Batch, Degrees, ModelShape, Options, RunShape, Schedule

SHAPE = RunShape(
    model=ModelShape(name="it's: 100 %", layers=24, parameters=1_300_000_000),
    degrees=Degrees(tp=4, sp=True, pp=2, dp=8, zero=1),
    batch=Batch(micro_batches=8, samples=1.5),
    options=Options(schedule=Schedule.ONE_F_ONE_B),
)


def said(text: str, folder: Path) -> dict[str, object]:
    path = folder / "run.yaml"
    path.write_text(text)
    return load_said(path)


def test_a_description_that_was_printed_reads_back_as_the_same_shape(tmp_path: Path) -> None:
    why = Finding(what="degrees.tp", value="4", sure=Sure.NAMED, evidence="named `tp` # so")
    text = description_text(SHAPE, [why])
    assert "# named: named `tp` # so" in text
    assert said_over(RunShape(), said(text, tmp_path), "run.yaml") == SHAPE


def test_guesses_and_usual_values_are_not_said(tmp_path: Path) -> None:
    why = Finding(what="options.schedule", value="1f1b", sure=Sure.GUESSED, evidence="by habit")
    written = description_text(SHAPE, [why])
    assert "  # guessed: by habit\n  # schedule: 1f1b\n" in written
    assert "  # tied: false  # usual: the trace does not tell\n" in written
    read = said(written, tmp_path)
    assert "options" not in read or read["options"] == {"recompute": "none"}
    assert read["degrees"] == {
        "tp": 4, "sp": True, "cp": 1, "pp": 2, "dp": 8, "zero": 1, "ep": 1,
    }  # fmt: skip


def test_one_field_is_overruled_and_the_others_stay(tmp_path: Path) -> None:
    over = said_over(SHAPE, said("degrees: {zero: 3}\nmodel:\n", tmp_path), "run.yaml")
    assert over.degrees == Degrees(tp=4, sp=True, pp=2, dp=8, zero=3)
    assert over.model == SHAPE.model


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("degrees: {tp: two}", "run.yaml, at `$.degrees.tp`: Expected `int`, got `str`"),
        ("degrees: {tpp: 2}", "run.yaml, at `$.degrees`: Object contains unknown field `tpp`"),
        ("degrees: {dp: 0}", "run.yaml"),
        ("- 2", "run.yaml: no description"),
    ],
)
def test_what_is_no_description_is_refused_with_its_place(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError) as caught:
        said(text, tmp_path)
    assert message in str(caught.value)


def test_degrees_that_make_another_number_of_ranks_are_refused() -> None:
    shape = RunShape(degrees=Degrees(tp=4, dp=4))
    with pytest.raises(ScenarioError, match=r"run.yaml, at `\$.degrees`: tp 4 x dp 4 = 16 ranks"):
        refuse_contradictions(
            shape, {"degrees": {"tp": 4}}, "run.yaml", world_size=8, layers_seen=0
        )


def test_fewer_layers_than_there_are_to_see_are_refused() -> None:
    shape = RunShape(model=ModelShape(layers=12))
    with pytest.raises(ScenarioError, match=r"`\$.model.layers`: 12, but 24 layers are in the run"):
        refuse_contradictions(
            shape, {"model": {"layers": 12}}, "run.yaml", world_size=1, layers_seen=24
        )
