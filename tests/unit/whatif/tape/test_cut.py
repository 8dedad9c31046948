"""Runs cut where their labels change."""

from dataclasses import replace

import numpy as np

from ingest.vocab import LaneKind, TaskKind
from replay.graph.arrays import NONE, Lane, TaskGraph
from tests.unit.whatif.tape.layered import Labelled, training
from whatif.description.labels import Labels, Part, Pass, unlabelled
from whatif.tape.cut import cut
from whatif.tape.segments import OUTSIDE


def _labels(graph: TaskGraph, **columns: list[int]) -> Labels:
    nothing = unlabelled(graph.n_tasks)
    return replace(
        nothing, **{n: np.array(v, getattr(nothing, n).dtype) for n, v in columns.items()}
    )


def test_a_segment_is_a_run_of_equal_labels_on_a_rank_in_a_step() -> None:
    tape = training(ranks=(0, 1), n_layers=2, steps=2).tape()
    segments = tape.segments
    assert segments.rank.tolist() == [0] * 10 + [1] * 10
    assert segments.step.tolist() == ([0] * 5 + [1] * 5) * 2
    one = (Pass.FORWARD, Pass.FORWARD, Pass.BACKWARD, Pass.BACKWARD, Pass.NONE)
    assert segments.direction.tolist() == list(one) * 4
    assert segments.layer.tolist() == [0, 1, 1, 0, NONE] * 4
    assert segments.part.tolist() == [*[Part.LAYER] * 4, Part.OPTIMIZER] * 4


def test_device_work_belongs_to_its_caller_and_meetings_to_their_first_member() -> None:
    tape = training(ranks=(0, 1), n_layers=2, steps=1).tape()
    tasks = tape.graph.tasks
    called = np.flatnonzero(tasks.caller >= 0)
    assert len(called)
    assert (tape.segment[called] == tape.segment[tasks.caller[called]]).all()
    meetings = np.flatnonzero(tasks.kind == TaskKind.MEET)
    assert tape.segment[meetings].tolist() == [2, 3]


def test_device_work_without_a_caller_follows_its_lane() -> None:
    run = training(n_layers=2, steps=1)
    run.at(Part.EXIT)
    graph, labels = run.built()
    caller = graph.tasks.caller.copy()
    kernels = np.flatnonzero(graph.tasks.kind == TaskKind.KERNEL)
    caller[kernels[1]] = NONE
    loose = replace(graph, tasks=replace(graph.tasks, caller=caller))
    tape = cut(loose, labels)
    assert tape.segment[kernels].tolist() == [0, 0, 2, 3, 4]


def test_work_outside_the_steps_and_fixed_work_belongs_to_no_segment() -> None:
    run = training(n_layers=1, steps=1)
    graph, labels = run.built()
    step, fixed = graph.tasks.step.copy(), graph.tasks.fixed.copy()
    step[:2] = NONE
    fixed[2:4] = True
    tape = cut(replace(graph, tasks=replace(graph.tasks, step=step, fixed=fixed)), labels)
    assert (tape.segment[:4] == OUTSIDE).all()
    assert tape.segments.part.tolist() == [Part.OPTIMIZER]


def test_crumbs_join_what_runs_around_them() -> None:
    run = Labelled.new()
    for layer in (0, 1):
        run.at(Part.LAYER, Pass.FORWARD, layer, 0)
        run.builder.host(0, "aten::mm", 90_000)
        run.kernel(0, 5_000)
        run.at(Part.OTHER)
        run.builder.host(0, "gap", 50)  # issues nothing, takes a two-thousandth
        run.at(Part.LAYER, Pass.FORWARD, layer, 0)
        run.kernel(0, 5_000)
        run.at(Part.OTHER)
        run.builder.host(0, "gap", 50)
    tape = run.tape()
    assert tape.segments.layer.tolist() == [0, 1]
    long = Labelled.new()
    long.at(Part.LAYER, Pass.FORWARD, 0, 0)
    long.kernel(0, 5_000)
    long.at(Part.OTHER)
    long.builder.host(0, "a while", 50_000)
    long.at(Part.LAYER, Pass.FORWARD, 0, 0)
    long.kernel(0, 5_000)
    assert long.tape().segments.part.tolist() == [Part.LAYER, Part.OTHER, Part.LAYER]


def test_other_threads_belong_to_what_runs_when_they_begin() -> None:
    run = training(n_layers=2, steps=1)
    for _ in range(3):
        run.builder.host(0, "loader", 12)
    graph, labels = run.built()
    lanes = (
        *graph.lanes,
        Lane(kind=LaneKind.THREAD, rank=0, device=NONE, stream=NONE, role="thread 1", steps=False),
    )
    loader = np.arange(graph.n_tasks - 3, graph.n_tasks)
    lane, ts_ns = graph.tasks.lane.copy(), graph.tasks.ts_ns.copy()
    lane[loader], ts_ns[loader] = len(lanes) - 1, [0, 12, 24]
    edges = replace(
        graph.edges,
        start=np.where(
            np.arange(graph.n_tasks + 1) > loader[0], graph.edges.start - 1, graph.edges.start
        ),
        **{
            name: np.delete(getattr(graph.edges, name), graph.edges.start[loader[0]])
            for name in ("src", "lag_ns", "kind", "evidence", "from_start")
        },
    )
    beside = replace(
        graph, lanes=lanes, edges=edges, tasks=replace(graph.tasks, lane=lane, ts_ns=ts_ns)
    )
    tape = cut(beside, labels)
    # Launches take 10 each: F0 from 0, F1 from 10, B1 from 20.
    assert tape.segment[loader].tolist() == [0, 1, 2]
    assert len(tape.segments) == 5


def test_ranks_without_threads_are_cut_by_their_device_work() -> None:
    run = Labelled.new()
    for layer in (0, 1):
        run.at(Part.LAYER, Pass.FORWARD, layer, 0)
        run.builder.kernel(0, "gemm", 5_000)
    tape = run.tape()
    assert tape.segments.layer.tolist() == [0, 1]
    assert tape.segment.tolist() == [0, 1]


def test_nothing_understood_is_one_segment_per_rank_and_step() -> None:
    graph, _ = training(ranks=(0, 1), n_layers=2, steps=3).built()
    segments = cut(graph, _labels(graph)).segments
    assert segments.rank.tolist() == [0, 0, 0, 1, 1, 1]
    assert segments.step.tolist() == [0, 1, 2] * 2
