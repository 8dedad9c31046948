"""The door of the relayout: what a stack of what-ifs about the layout asks for."""

import pytest

import whatif.transforms.relayout.apply as door
from ingest.errors import ScenarioError
from replay.engine.run import replay
from replay.graph.arrays import TaskGraph
from replay.results.metrics import step_times
from tests.layered import Layered, described
from whatif.description.described import Described
from whatif.models.shape import Batch, Recompute, RunShape, Schedule
from whatif.scenario import Scenario
from whatif.stacking import Changed, Stacking
from whatif.transforms.batch_scale import BatchScale
from whatif.transforms.grad_accum import GradAccum
from whatif.transforms.layers import Layers
from whatif.transforms.micro_batches import MicroBatches
from whatif.transforms.pp import PipelineParallel
from whatif.transforms.recompute import Recomputation
from whatif.transforms.registry import Transform
from whatif.transforms.replicas import Replicas, with_samples
from whatif.transforms.scale import Scale
from whatif.transforms.schedule import PipelineSchedule
from whatif.transforms.virtual_stages import VirtualStages


@pytest.fixture
def stacking(monkeypatch: pytest.MonkeyPatch) -> Stacking:
    """Of a run of four layers whose description is known."""
    run = Layered(layers=4)
    tape = run.tape()
    found = described(tape, run.shape)

    def known(graph: TaskGraph, *_: object) -> Described:
        assert graph is tape.graph, "what was made is not described anew"
        return found

    monkeypatch.setattr(door, "describe", known)
    return Stacking(tape.graph)


def _made(stacking: Stacking, *transforms: Transform) -> Changed:
    return stacking.made(Scenario(transforms=transforms))


def _step_ns(changed: Changed) -> int:
    graph = changed.graph
    return int(step_times(graph, replay(graph)).boundary_ns[1])


IDENTITIES: tuple[Transform, ...] = (
    PipelineParallel(stages=1),
    GradAccum(micro_batches=1),
    MicroBatches(count=1),
    Layers(layers=4),
    Recomputation(what=Recompute.NONE),
    PipelineSchedule(name=Schedule.NONE),
    PipelineSchedule(name=Schedule.GPIPE),
    VirtualStages(chunks=2),
)


@pytest.mark.parametrize("transform", IDENTITIES, ids=lambda one: one.flag)
def test_what_the_run_has_already_leaves_its_graph(
    stacking: Stacking, transform: Transform
) -> None:
    changed = _made(stacking, transform)
    assert changed.graph is _made(stacking).graph
    assert len(changed.no_effect) == 1


def test_there_and_back_is_the_recorded_graph(stacking: Stacking) -> None:
    for there, back in (
        (Layers(layers=8), Layers(layers=4)),
        (PipelineParallel(stages=2), PipelineParallel(stages=1)),
        (GradAccum(micro_batches=3), GradAccum(micro_batches=1)),
    ):
        assert _made(stacking, there, back).graph is _made(stacking).graph


def test_what_ifs_in_a_row_may_stand_in_any_order(stacking: Stacking) -> None:
    pp, more = PipelineParallel(stages=2), GradAccum(micro_batches=4)
    schedule = PipelineSchedule(name=Schedule.GPIPE)
    one = _made(stacking, pp, more, schedule)
    other = _made(stacking, schedule, more, pp)
    assert _step_ns(one) == _step_ns(other)
    assert one.no_effect == ()


def test_the_graph_is_made_once_for_what_ifs_in_a_row(stacking: Stacking) -> None:
    """The first two alone could not be: chunks need micro-batches that divide by the stages."""
    changed = _made(
        stacking,
        PipelineParallel(stages=2),
        VirtualStages(chunks=2),
        GradAccum(micro_batches=4),
    )
    assert len(changed.graph.ranks) == 2
    with pytest.raises(ScenarioError, match="do not divide by 2 stages"):
        _made(stacking, PipelineParallel(stages=2), VirtualStages(chunks=2))


def test_a_shorter_stack_after_a_longer_one_is_made_too(stacking: Stacking) -> None:
    both = _made(stacking, Layers(layers=8), GradAccum(micro_batches=2))
    first = _made(stacking, Layers(layers=8))
    assert _step_ns(first) < _step_ns(both)
    assert _step_ns(first) > _step_ns(_made(stacking))


def test_a_what_if_between_two_about_the_layout_stays_in_force(stacking: Stacking) -> None:
    """Kernels twice as fast, and then twice the micro-batches."""
    half = Scale(where="class:gemm", factor=0.5)
    both = _made(stacking, Layers(layers=8), half, GradAccum(micro_batches=2))
    expected = _made(stacking, Layers(layers=8), GradAccum(micro_batches=2), half)
    assert _step_ns(both) == pytest.approx(_step_ns(expected), rel=0.01)


def test_a_layout_of_other_tasks_than_were_made_is_refused(stacking: Stacking) -> None:
    changed = _made(stacking, Layers(layers=8))
    fewer = Layered(layers=3).tape().graph
    with pytest.raises(ScenarioError, match="took tasks away") as caught:
        GradAccum(micro_batches=2).apply(fewer, changed.context)
    assert "side by side" in caught.value.hint


def test_samples_of_a_step_follow_the_batch(stacking: Stacking) -> None:
    changed = _made(stacking, GradAccum(micro_batches=4))
    assert changed.context.samples_factor == 4
    changed = _made(stacking, BatchScale(factor=4), MicroBatches(count=4))
    assert changed.context.samples_factor == 4


def test_a_number_of_replicas_stands_in_any_order_too(stacking: Stacking) -> None:
    """What it makes is not described anew, nor does the next what-if start from it."""
    dp, more = Replicas(replicas=1), GradAccum(micro_batches=2)
    one, other = _made(stacking, dp, more), _made(stacking, more, dp)
    assert _step_ns(one) == _step_ns(other)
    assert one.labels == tuple(reversed(other.labels))


def test_a_number_of_replicas_is_only_noted_before_another_what_if_about_the_layout(
    stacking: Stacking,
) -> None:
    alone = _made(stacking)
    noted = alone.by(Replicas(replicas=1), relayout_follows=True)
    assert noted.graph is alone.graph
    assert noted.context.before_relayout is not None


def test_replicas_that_keep_the_samples_of_a_step_leave_nothing_there_and_back(
    stacking: Stacking,
) -> None:
    """Of one micro-batch a replica computes half of the samples, and all of them again."""
    alone = _made(stacking)
    there = alone.by(Replicas(replicas=2, strong=True), relayout_follows=True)
    assert there.context.before_relayout is not None
    assert there.context.before_relayout.target.batch.samples == 0.5
    there = there.by(Replicas(replicas=6, strong=True), relayout_follows=True)
    assert there.by(Replicas(replicas=1, strong=True)).graph is alone.graph


@pytest.mark.parametrize("micro_batches", [1, 2, 4, 6])
@pytest.mark.parametrize("numbers", [(2, 1), (3, 1), (4, 2, 1), (2, 6, 4, 1), (8, 3, 1)])
def test_a_share_of_the_samples_and_its_inverse_are_the_same_batch(
    numbers: tuple[int, ...], micro_batches: int
) -> None:
    start = RunShape(batch=Batch(micro_batches=micro_batches, samples=2.0))
    target, factors, before = start, (1.0, 1.0), 1
    for replicas in numbers:
        target, factors = with_samples(target, before / replicas, factors)
        done = replicas * target.batch.micro_batches * (target.batch.samples or 0)
        assert done == pytest.approx(micro_batches * 2)
        before = replicas
    assert target == start
    assert factors == (1, 1)
