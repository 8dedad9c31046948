"""From one layout to another: what-ifs that make it, none where nothing changes."""

from msgspec.structs import replace

from whatif.models.shape import (
    Batch,
    Degrees,
    ModelShape,
    Options,
    Recompute,
    RunShape,
    Schedule,
)
from whatif.plan.steps import what_ifs

BASE = RunShape(
    model=ModelShape(layers=8), degrees=Degrees(dp=8), batch=Batch(samples=2, micro_batches=1)
)


def test_the_recorded_layout_needs_none() -> None:
    assert what_ifs(BASE, BASE) == ()


def test_each_field_that_differs_has_its_option() -> None:
    after = replace(
        BASE,
        degrees=Degrees(tp=2, sp=True, pp=2, virtual_stages=2, dp=2, zero=1),
        batch=Batch(samples=1, micro_batches=8),
        options=Options(schedule=Schedule.INTERLEAVED, recompute=Recompute.FULL),
    )
    assert [one.flag for one in what_ifs(BASE, after, "B200")] == [
        "--gpu B200",
        "--tp 2",
        "--sp",
        "--pp 2",
        "--virtual-stages 2",
        "--schedule interleaved",
        "--dp 2",
        "--zero 1",
        "--grad-accum 8",
        "--batch-scale 0.5",
        "--recompute full",
    ]
