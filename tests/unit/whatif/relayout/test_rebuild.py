"""Whole relayouts of runs whose times are known by hand."""

import numpy as np
import pytest
from msgspec.structs import replace

from ingest.vocab import TaskKind
from replay.engine.run import replay
from replay.graph.arrays import TaskGraph
from replay.results.metrics import step_times
from tests.layered import (
    BACKWARD_NS,
    FORWARD_NS,
    HEAD_NS,
    HOST_NS,
    OPTIMIZER_NS,
    Layered,
    ask,
)
from whatif.description.labels import Place
from whatif.models.pipeline.costs import bubble
from whatif.models.pipeline.terms import PassTimes, Pipeline
from whatif.models.shape import Recompute, RunShape, Schedule
from whatif.transforms.relayout.rebuild import Rebuilt, rebuilt

PASS_NS = FORWARD_NS + BACKWARD_NS
LAUNCH_NS = 200 * HOST_NS
"""At most: calls before the first kernel, and what of a kernel its size does not change."""


def _target(shape: RunShape, **changes: object) -> RunShape:
    for part in ("model", "degrees", "batch", "options"):
        names = getattr(shape, part).__struct_fields__
        mine = {name: value for name, value in changes.items() if name in names}
        shape = replace(shape, **{part: replace(getattr(shape, part), **mine)})
    return shape


def _rebuilt(run: Layered, **changes: object) -> Rebuilt:
    tape = run.tape()
    return rebuilt(tape.graph, ask(tape, run.shape, _target(run.shape, **changes)))


def _step_ns(graph: TaskGraph) -> list[int]:
    return np.diff(step_times(graph, replay(graph)).boundary_ns).tolist()


def _about(expected_ns: int) -> object:
    return pytest.approx(expected_ns, abs=LAUNCH_NS)


def test_three_micro_batches_take_three_times_as_long_and_one_optimizer() -> None:
    made = _rebuilt(Layered(layers=4), micro_batches=3)
    assert _step_ns(made.graph) == [_about(3 * (4 * PASS_NS + 2 * HEAD_NS) + OPTIMIZER_NS)]


def test_every_recorded_step_is_made_anew() -> None:
    made = _rebuilt(Layered(layers=4, steps=3), micro_batches=2)
    expected_ns = 2 * (4 * PASS_NS + 2 * HEAD_NS) + OPTIMIZER_NS
    assert _step_ns(made.graph) == [_about(expected_ns)] * 3


def test_twice_the_layers_take_twice_their_time_and_a_longer_update() -> None:
    made = _rebuilt(Layered(layers=4), layers=8)
    assert _step_ns(made.graph) == [_about(8 * PASS_NS + 2 * HEAD_NS + 2 * OPTIMIZER_NS)]


def test_half_of_the_layers_take_half_of_their_time() -> None:
    made = _rebuilt(Layered(layers=4), layers=2)
    assert _step_ns(made.graph) == [_about(2 * PASS_NS + 2 * HEAD_NS + OPTIMIZER_NS // 2)]


def test_recomputation_adds_a_forward_of_the_layers() -> None:
    made = _rebuilt(Layered(layers=4), recompute=Recompute.FULL)
    again_ns = 4 * (PASS_NS + FORWARD_NS) + 2 * HEAD_NS + OPTIMIZER_NS
    assert _step_ns(made.graph) == [_about(again_ns)]


def test_selective_recomputation_adds_attention_alone() -> None:
    run = Layered(layers=4, places=(Place.QKV, Place.ATTENTION))
    made = _rebuilt(run, recompute=Recompute.SELECTIVE)
    again_ns = 4 * (PASS_NS + FORWARD_NS // 2) + 2 * HEAD_NS + OPTIMIZER_NS
    assert _step_ns(made.graph) == [_about(again_ns)]


def test_gradients_are_exchanged_after_the_last_micro_batch_alone() -> None:
    run = Layered(layers=4, ranks=2, reduces=True)
    made = _rebuilt(run, micro_batches=3)
    tasks = made.graph.tasks
    moving = (tasks.kind == TaskKind.TRANSFER) & (tasks.dur_ns > 0)
    assert int(moving.sum()) == 4 * 2
    assert set(made.described.labels.micro_batch[moving]) == {2}


def test_halves_of_a_backward_are_as_long_as_it() -> None:
    run = Layered(layers=2, places=(Place.QKV, Place.ATTENTION, Place.NORM, Place.DOWN))
    changes = {"pp": 2, "micro_batches": 4}
    whole = _rebuilt(run, **changes, schedule=Schedule.ONE_F_ONE_B).graph.tasks
    halves = _rebuilt(run, **changes, schedule=Schedule.ZERO_BUBBLE).graph.tasks
    kernels = [tasks.dur_ns[tasks.kind == TaskKind.KERNEL].sum() for tasks in (whole, halves)]
    assert kernels[0] == pytest.approx(kernels[1], abs=100)


@pytest.mark.parametrize(
    ("schedule", "stages", "chunks", "micro_batches"),
    [
        (Schedule.GPIPE, 2, 1, 3),
        (Schedule.ONE_F_ONE_B, 2, 1, 4),
        (Schedule.ONE_F_ONE_B, 4, 1, 8),
        (Schedule.INTERLEAVED, 2, 2, 4),
        (Schedule.ZERO_BUBBLE, 4, 1, 6),
    ],
)
def test_pipelines_of_equal_stages_have_the_bubble_of_the_closed_form(
    schedule: Schedule, stages: int, chunks: int, micro_batches: int
) -> None:
    """Messages take 8 us each; they lie on the way of the first and of the last micro-batch."""
    run = Layered(layers=4, head_ns=0)
    changes = {"pp": stages, "virtual_stages": chunks, "schedule": schedule}
    made = _rebuilt(run, **changes, micro_batches=micro_batches)
    pipeline = Pipeline(
        schedule=schedule, stages=stages, chunks=chunks, micro_batches=micro_batches
    )
    layers = 4 // stages
    times = PassTimes(
        forward=layers * FORWARD_NS,
        backward_input=layers * BACKWARD_NS / 2,
        backward_weight=layers * BACKWARD_NS / 2,
    )
    expected_ns = micro_batches * times.whole + bubble(pipeline, times) + OPTIMIZER_NS / stages
    assert _step_ns(made.graph)[0] == pytest.approx(expected_ns, rel=0.04)
    assert _step_ns(made.graph)[0] >= expected_ns


def test_what_a_relayout_makes_can_be_made_into_another() -> None:
    """Two micro-batches, then a second what-if from there: as if asked for at once."""
    run = Layered(layers=4)
    tape = run.tape()
    first = ask(tape, run.shape, _target(run.shape, micro_batches=2))
    made = rebuilt(tape.graph, first)
    assert made.described.shape.batch.micro_batches == 2
    again = ask(tape, run.shape, run.shape)
    again = type(again)(
        described=made.described,
        target=_target(made.described.shape, layers=8),
        context=made.context,
    )
    both = rebuilt(made.graph, again)
    at_once = _rebuilt(run, micro_batches=2, layers=8)
    assert _step_ns(both.graph) == pytest.approx(_step_ns(at_once.graph), rel=1e-3)
