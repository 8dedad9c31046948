"""Layouts that cannot be, or that a run tells too little for."""

from dataclasses import replace as replaced

import numpy as np
import pytest
from msgspec.structs import replace

from ingest.errors import ScenarioError
from replay.graph.arrays import TaskGraph
from tests.layered import Layered, described
from whatif.description.described import Described, Kind
from whatif.description.labels import Place, unlabelled
from whatif.models.shape import ModelShape, RunShape, Schedule
from whatif.models.transformer.parameters import contradicts_experts, model_parameters
from whatif.transforms.relayout.refuse import refuse

KNOWN = ModelShape(layers=4, hidden=1024, heads=12, experts=None)


def _run(model: ModelShape = KNOWN, **more: object) -> tuple[TaskGraph, Described]:
    run = Layered(layers=4, ranks=2)
    tape = run.tape()
    found = described(tape, replace(run.shape, model=model))
    return tape.graph, replaced(found, **more)


def _target(shape: RunShape, **changes: object) -> RunShape:
    for part in ("model", "degrees", "batch", "options"):
        names = getattr(shape, part).__struct_fields__
        mine = {name: value for name, value in changes.items() if name in names}
        shape = replace(shape, **{part: replace(getattr(shape, part), **mine)})
    return shape


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"tp": 8}, "12 attention heads do not divide over 8 tensor-parallel ranks"),
        ({"cp": 3}, "1,024 tokens of a sample do not divide over 3 context-parallel ranks"),
        ({"ep": 2}, "no experts were found"),
        ({"zero": 3, "shard": 3}, "2 replicas do not divide over 3 that share state"),
        (
            {"pp": 2, "virtual_stages": 2, "micro_batches": 3},
            "3 micro-batches do not divide by 2 stages",
        ),
        ({"micro_batches": 2, "samples": 0.5}, "2 micro-batches do not divide the 1 sample of"),
        (
            {"pp": 2, "schedule": Schedule.INTERLEAVED, "micro_batches": 2},
            "interleaved over 2 stages of one chunk",
        ),
        (
            {"pp": 2, "schedule": Schedule.DUALPIPE, "micro_batches": 2},
            "DualPipe of 2 stages needs an even number",
        ),
    ],
)
def test_what_does_not_divide_is_refused(changes: dict[str, object], fact: str) -> None:
    graph, found = _run()
    with pytest.raises(ScenarioError, match=fact):
        refuse(graph, found, _target(found.shape, **changes))


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"pp": 2, "schedule": Schedule.INTERLEAVED, "micro_batches": 2}, "add --virtual-stages 2"),
        ({"pp": 2, "schedule": Schedule.DUALPIPE, "micro_batches": 2}, "add --grad-accum 4"),
    ],
)
def test_the_hint_is_a_way_that_there_is(changes: dict[str, object], hint: str) -> None:
    graph, found = _run()
    with pytest.raises(ScenarioError) as caught:
        refuse(graph, found, _target(found.shape, **changes))
    assert caught.value.hint.startswith(hint)


def test_experts_are_not_said_of_a_run_with_the_parameters_of_a_dense_one() -> None:
    sizes = replace(KNOWN, ffn=4096, vocab=1_000)
    counted = round(model_parameters(sizes).total)
    graph, found = _run(replace(sizes, parameters=counted))
    with pytest.raises(ScenarioError, match="no experts were found") as caught:
        refuse(graph, found, _target(found.shape, ep=2))
    assert "--describe" not in caught.value.hint
    assert contradicts_experts(replace(sizes, experts=8, top_k=2), counted)
    finer = replace(sizes, experts=8, top_k=2, expert_ffn=512)
    assert not contradicts_experts(finer, counted)
    assert not contradicts_experts(sizes, counted)


@pytest.mark.parametrize("changes", [{"layers": 1_000_000}, {"micro_batches": 1_000_000}])
def test_graphs_that_take_hours_are_refused(changes: dict[str, int]) -> None:
    graph, found = _run()
    with pytest.raises(ScenarioError, match=r"about .* tasks, from .*; at most 10,000,000"):
        refuse(graph, found, _target(found.shape, **changes))


def test_experts_lie_on_ranks_that_there_are() -> None:
    graph, found = _run(replace(KNOWN, experts=8))
    with pytest.raises(ScenarioError, match="ranks together do not divide over 4"):
        refuse(graph, found, _target(found.shape, ep=4))
    assert refuse(graph, found, _target(found.shape, ep=2)) == ()


def test_a_run_without_layers_is_asked_for_more() -> None:
    graph, found = _run(replace(KNOWN, layers=None))
    for changes in ({"pp": 2}, {"layers": 8}, {"tp": 2}):
        with pytest.raises(ScenarioError, match="no repeated layers") as caught:
            refuse(graph, found, _target(found.shape, **changes))
        assert "with_modules=True" in caught.value.hint


def test_what_is_hardly_understood_is_not_guessed_at() -> None:
    graph, found = _run()
    part = found.labels.part.copy()
    part[: len(part) * 9 // 10] = 0
    dim = replaced(found, labels=replaced(found.labels, part=part))
    with pytest.raises(ScenarioError, match="of the work of this run is known to belong"):
        refuse(graph, dim, _target(found.shape, pp=2))
    nowhere = np.full(len(part), Place.UNKNOWN, np.int8)
    placeless = replaced(found, labels=replaced(found.labels, place=nowhere))
    with pytest.raises(ScenarioError, match="it is known what it computes"):
        refuse(graph, placeless, _target(found.shape, tp=2))
    refuse(graph, placeless, _target(found.shape, pp=2))
    blank = replaced(found, labels=unlabelled(graph.n_tasks))
    with pytest.raises(ScenarioError, match="forward or backward"):
        refuse(graph, blank, _target(found.shape, micro_batches=2))


@pytest.mark.parametrize(
    ("kind", "fact"), [(Kind.INFERENCE, "this run infers"), (Kind.UNKNOWN, "whether this run")]
)
def test_what_only_training_has_stays_in_other_runs(kind: Kind, fact: str) -> None:
    graph, found = _run(kind=kind)
    for changes in ({"pp": 2}, {"zero": 1}, {"micro_batches": 2}, {"sync_every": 4}):
        with pytest.raises(ScenarioError, match=fact):
            refuse(graph, found, _target(found.shape, **changes))
    assert refuse(graph, found, _target(found.shape, layers=8)) == ()
    assert refuse(graph, found, _target(found.shape, tp=2)) == ()


def test_degrees_that_are_not_those_of_the_job_are_refused() -> None:
    graph, found = _run()
    wrong = replaced(found, shape=_target(found.shape, dp=4))
    with pytest.raises(ScenarioError, match="make 4 ranks, and its job has 2"):
        refuse(graph, wrong, _target(wrong.shape, pp=2))


def test_what_is_unusual_is_told() -> None:
    graph, found = _run()
    told = refuse(graph, found, _target(found.shape, pp=3, zero=2, micro_batches=3))
    assert any("ZeRO-2 in a pipeline" in line for line in told)
    assert any("4 layers do not divide evenly over 3 stages" in line for line in told)
