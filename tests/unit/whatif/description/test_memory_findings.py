"""What a description tells of memory: by formula, as recorded, or why not."""

from dataclasses import replace

import pytest
from msgspec import structs

from replay.graph.work import NO_WORK
from whatif.description.described import Kind, Sure
from whatif.description.memory import memory_findings
from whatif.models.shape import Batch, Degrees, ModelShape, Options, RunShape, Schedule

GIB = 2**30
MODEL = ModelShape(layers=4, hidden=512, heads=8, ffn=2048, vocab=1024)
SHAPE = RunShape(model=MODEL, batch=Batch(samples=1.0, sequence=128))


def _told(shape: RunShape, kind: Kind = Kind.TRAINING) -> dict[str, str]:
    return {one.what: one.value for one in memory_findings(shape, kind, NO_WORK)}


def test_training_holds_gradients_and_the_optimizer_beside_parameters() -> None:
    told = _told(SHAPE)
    parameters = float(told["memory.parameters"].removesuffix(" GiB"))
    elements = SHAPE.elements
    for name, each in (("gradients", elements.gradient), ("optimizer", elements.optimizer)):
        found = float(told[f"memory.{name}"].removesuffix(" GiB"))
        assert found == pytest.approx(parameters * each / elements.parameter, rel=1e-2)
    assert {"memory.activations", "memory.peak_by_formula"} <= set(told)


def test_inference_holds_parameters_alone() -> None:
    assert set(_told(SHAPE, Kind.INFERENCE)) == {"memory.parameters"}


def test_what_was_recorded_stands_first() -> None:
    recorded = replace(NO_WORK, peak_bytes=3 * GIB, memory_bytes=80 * GIB)
    first, second, *_ = memory_findings(SHAPE, Kind.TRAINING, recorded)
    assert (first.what, first.value, first.sure) == ("memory.peak", "3 GiB", Sure.MEASURED)
    assert (second.what, second.value) == ("memory.device", "80 GiB")


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        (RunShape(), "layers is not known"),
        (
            structs.replace(
                SHAPE,
                degrees=Degrees(pp=3),
                batch=Batch(samples=1.0, sequence=128, micro_batches=6),
                options=Options(schedule=Schedule.DUALPIPE),
            ),
            "DualPipe over 3 stages",
        ),
    ],
)
def test_what_the_formulas_cannot_tell_is_said(shape: RunShape, why: str) -> None:
    (found,) = memory_findings(shape, Kind.TRAINING, NO_WORK)
    assert (found.what, found.sure) == ("memory", Sure.UNKNOWN)
    assert why in found.evidence
