"""Layouts fill the GPUs and the batch; what does not divide is counted with its reason."""

from whatif.models.shape import Batch, Degrees, ModelShape, RunShape, Schedule
from whatif.plan.space import Excluded, Space, layouts

MODEL = ModelShape(layers=8, hidden=512, heads=12, ffn=2048, vocab=32000)
BASE = RunShape(model=MODEL, degrees=Degrees(dp=8), batch=Batch(samples=2, sequence=1024))


def tried(space: Space, base: RunShape = BASE) -> tuple[list[RunShape], Excluded]:
    excluded = Excluded()
    return list(layouts(base, space, excluded)), excluded


def test_every_layout_fills_the_gpus_and_the_batch_once() -> None:
    found, _ = tried(Space(gpus=16, samples=64, node=8))
    assert {shape.degrees.world for shape in found} == {16}
    batches = {
        shape.degrees.dp * shape.batch.micro_batches * (shape.batch.samples or 0) for shape in found
    }
    assert batches == {64}
    assert len({repr(shape) for shape in found}) == len(found)


def test_tensor_parallelism_stays_in_a_node_and_divides_the_heads() -> None:
    found, excluded = tried(Space(gpus=16, samples=64, node=8))
    assert {shape.degrees.tp for shape in found} == {1, 2, 4}
    assert excluded.values["tp does not divide 12 heads, 12 of keys"] == {"8"}


def test_limits_are_kept() -> None:
    found, _ = tried(Space(gpus=16, samples=64, node=8, most_tp=2, most_pp=2))
    assert {shape.degrees.tp for shape in found} == {1, 2}
    assert {shape.degrees.pp for shape in found} == {1, 2}


def test_a_pipeline_has_no_zero_beyond_the_optimizer() -> None:
    found, excluded = tried(Space(gpus=16, samples=64, node=8))
    assert max(shape.degrees.zero for shape in found if shape.degrees.pp > 1) == 1
    assert max(shape.degrees.zero for shape in found if shape.degrees.pp == 1) == 3
    reason = "with a pipeline, ZeRO exchanges gradients for every micro-batch"
    assert excluded.values[reason] == {"ZeRO 2", "ZeRO 3"}


def test_chunks_divide_the_layers_and_stages_the_micro_batches() -> None:
    found, _ = tried(Space(gpus=4, samples=12, node=8))
    interleaved = [one for one in found if one.options.schedule is Schedule.INTERLEAVED]
    assert interleaved
    for one in interleaved:
        assert 8 % (one.degrees.pp * one.degrees.virtual_stages) == 0
        assert one.batch.micro_batches % one.degrees.pp == 0


def test_a_batch_that_no_replicas_divide_leaves_nothing() -> None:
    found, excluded = tried(Space(gpus=16, samples=7, node=1, most_tp=1, most_pp=1))
    assert found == []
    assert excluded.values["dp does not divide a batch of 7 samples"] == {"16"}


def test_experts_are_spread_over_replicas_that_they_divide() -> None:
    model = ModelShape(
        layers=8, hidden=512, heads=16, ffn=2048, expert_ffn=2048, vocab=32000, experts=4
    )
    base = RunShape(model=model, batch=Batch(samples=1, sequence=1024))
    found, _ = tried(Space(gpus=4, samples=16, node=8), base)
    assert {one.degrees.ep for one in found if one.degrees.dp == 4} == {1, 2, 4}
    assert {one.degrees.ep for one in found if one.degrees.dp == 2} == {1, 2}
