"""The closed form of a step: parts that add up, bubbles as in the papers, an exact anchor."""

from dataclasses import fields

import pytest
from msgspec.structs import replace

from whatif.models.exchanges.volume import Along
from whatif.models.fabric import Fabric
from whatif.models.hardware import require
from whatif.models.kernels.machine import machine_of
from whatif.models.pipeline.costs import bubble
from whatif.models.pipeline.terms import PassTimes, Pipeline
from whatif.models.places import Part, Pass
from whatif.models.shape import (
    Batch,
    Degrees,
    ModelShape,
    Options,
    Recompute,
    RunShape,
    Schedule,
)
from whatif.plan.front import front_of, pareto
from whatif.plan.passes import Levels, Times, stride_of
from whatif.plan.score import computation_ns, losses_of
from whatif.plan.search import Scored, ideal_of

MODEL = ModelShape(layers=8, hidden=4096, heads=32, ffn=16384, vocab=32000)
H100 = require("H100 SXM5 80 GB")
LINKS = Fabric(
    architecture="hopper", scale_up_bytes_per_s=450e9, pcie_bytes_per_s=55e9, nic_bytes_per_s=50e9
)


def times(levels: Levels | None = None) -> Times:
    return Times(machine_of(H100), LINKS, 8, levels or Levels())


BATCH = Batch(samples=2, sequence=2048, micro_batches=4)


def shape(degrees: Degrees, **more: object) -> RunShape:
    given = RunShape(model=MODEL, degrees=degrees, batch=BATCH)
    return replace(given, **more)


ONE_F_ONE_B = Options(schedule=Schedule.ONE_F_ONE_B)


def test_one_gpu_computes_and_nothing_else() -> None:
    alone = shape(Degrees())
    found = losses_of(alone, times(), 0.0)
    assert found.small_kernels == pytest.approx(4 * computation_ns(alone, times()))
    others = {field.name for field in fields(found)} - {"small_kernels", "optimizer"}
    assert {name: getattr(found, name) for name in others} == dict.fromkeys(others, 0.0)


@pytest.mark.parametrize(
    "degrees",
    [Degrees(dp=8), Degrees(dp=8, zero=3), Degrees(tp=8, sp=True), Degrees(pp=4, dp=2, zero=1)],
)
def test_the_parts_add_up_whatever_the_ideal_is(degrees: Degrees) -> None:
    one = shape(degrees, options=ONE_F_ONE_B if degrees.pp > 1 else Options())
    steps = [losses_of(one, times(), ideal_ns).step_ns for ideal_ns in (0.0, 1e7)]
    assert steps[0] == pytest.approx(steps[1])


def test_the_bubble_is_that_of_equal_stages() -> None:
    """Layers are all of the model here, so that stages are equal and nothing is exchanged."""
    one = shape(Degrees(pp=4), options=ONE_F_ONE_B)
    found = losses_of(one, times(), 0.0)
    parts = times().part_ns(one, Part.LAYER)
    ends = [
        sum(times().part_ns(one, part)[row] for part in (Part.EMBEDDING, Part.HEAD))
        for row in range(4)
    ]
    mean = [(8 * each + end) / 4 for each, end in zip(parts, ends, strict=True)]
    passes = PassTimes(forward=mean[0], backward_input=mean[1], backward_weight=mean[2])
    pipeline = Pipeline(schedule=Schedule.ONE_F_ONE_B, stages=4, micro_batches=4)
    assert found.bubble == pytest.approx(bubble(pipeline, passes))
    assert found.imbalance > 0


def test_recomputation_runs_forward_again_and_saves_nothing_else() -> None:
    plain, again = (
        losses_of(shape(Degrees(), options=Options(recompute=what)), times(), 0.0)
        for what in (Recompute.NONE, Recompute.FULL)
    )
    forward = times().part_ns(shape(Degrees()), Part.LAYER)[0]
    assert again.recomputation == pytest.approx(4 * 8 * forward)
    assert again.step_ns - plain.step_ns == pytest.approx(again.recomputation)


def test_tensor_communication_leaves_the_node_where_ranks_do() -> None:
    inside = losses_of(shape(Degrees(tp=8)), times(), 0.0)
    across = losses_of(shape(Degrees(tp=8)), Times(machine_of(H100), LINKS, 4, Levels()), 0.0)
    assert across.tensor > 1.5 * inside.tensor > 0


def test_levels_scale_what_the_models_tell() -> None:
    twice = Levels(any_compute=2.0, exchange={Along.TENSOR: 3.0})
    one = shape(Degrees(tp=8))
    plain, scaled = losses_of(one, times(), 0.0), losses_of(one, times(twice), 0.0)
    assert scaled.small_kernels == pytest.approx(2 * plain.small_kernels)
    assert scaled.tensor == pytest.approx(3 * plain.tensor)


def test_a_level_of_a_direction_counts_for_its_halves_and_forward_for_recomputation() -> None:
    levels = Levels(compute={(Part.LAYER, Pass.FORWARD): 2.0, (Part.LAYER, Pass.BACKWARD): 3.0})
    found = [levels.of(Part.LAYER, one) for one in (*list(Pass)[1:4], Pass.RECOMPUTE)]
    assert found == [2.0, 3.0, 3.0, 2.0]
    assert levels.of(Part.HEAD, Pass.FORWARD) == 1.0


def test_ideal_is_the_best_pace_of_one_gpu() -> None:
    base = shape(Degrees(tp=4, pp=2), options=ONE_F_ONE_B)
    ideal = ideal_of(base, times())
    alone = [
        replace(shape(Degrees()), batch=replace(BATCH, samples=float(size)))
        for size in (1, 2, 4, 8, 16, 32)
    ]
    paces = [computation_ns(one, times()) / (one.batch.samples or 1) for one in alone]
    assert ideal == pytest.approx(min(paces))


def test_gradients_are_added_up_from_the_second_micro_batch_on() -> None:
    made = times()
    one, four = (
        made.part_ns(
            replace(shape(Degrees()), batch=replace(BATCH, micro_batches=count)), Part.LAYER
        )
        for count in (1, 4)
    )
    assert four[0] == one[0]
    assert four[2] > one[2]


def test_ranks_are_numbered_tensor_first() -> None:
    one = shape(Degrees(tp=4, cp=2, dp=8))
    strides = [stride_of(along, one) for along in (Along.TENSOR, Along.CONTEXT, Along.REPLICAS)]
    assert strides == [1, 4, 4]


def scored(step_ns: float, gpus: int, memory: float) -> Scored:
    losses = losses_of(shape(Degrees()), times(), 0.0)
    values = {field.name: 0.0 for field in fields(losses)} | {"ideal": step_ns}
    return Scored(
        shape=shape(Degrees(dp=gpus)),
        losses=type(losses)(**values),
        memory_bytes=memory,
        fits=True,
    )


def test_the_front_has_what_nothing_beats_in_all_three() -> None:
    fast, small, few = scored(1.0, 8, 9.0), scored(2.0, 8, 3.0), scored(4.0, 4, 9.0)
    beaten, tied = scored(3.0, 8, 4.0), scored(1.0, 8, 9.0)
    assert pareto([beaten, few, small, fast, tied]) == [fast, small, few]


def test_the_front_counts_replays_and_judges_none_of_them_by_the_closed_form() -> None:
    fast, slow = scored(2.0, 8, 9.0), scored(3.0, 8, 5.0)
    hope, apart, alike = scored(1.0, 8, 5.0), scored(2.9, 4, 9.0), scored(1.9, 8, 9.0)
    front = front_of([hope, alike, fast, apart, slow], [(fast, 4.0), (slow, 9.0)])
    told = [(one.scored, one.step_ns, one.is_replayed) for one in front]
    usual = (2.0 + 3.0) / 2
    assert told == [
        (hope, 1.0 * usual, False),
        (fast, 4.0, True),
        (apart, 2.9 * usual, False),
        (slow, 9.0, True),
    ]


def test_shards_cost_the_more_the_more_is_sharded_and_the_first_pays() -> None:
    """Megatron's overlapped gather hides, and its optimizer has less to do; FSDP gathers more."""
    model = ModelShape(
        layers=32, hidden=4096, heads=32, kv_heads=8, ffn=14336, gated=True, vocab=128_256
    )
    batch = Batch(samples=1, sequence=8192, micro_batches=4)
    steps = [
        losses_of(
            RunShape(model=model, degrees=Degrees(tp=2, sp=True, dp=8, zero=stage), batch=batch),
            times(),
            0.0,
        ).step_ns
        for stage in range(4)
    ]
    none, first, second, third = steps
    assert first < second < third < none
