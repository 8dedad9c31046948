"""What is not explained is listed by place, and nothing of it is lost on the way."""

from dataclasses import replace

import numpy as np

from replay.graph.arrays import TaskGraph
from replay.results.fidelity import baseline
from replay.results.unexplained import Place, path_unexplained_ns, places
from tests.builders import GraphBuilder, facts_of


def _places(graph: TaskGraph) -> tuple[Place, ...]:
    base = baseline(graph, facts_of(graph))
    return places(graph, base.schedule, base.path)


def _run() -> TaskGraph:
    """Two ranks, two steps: `slow` begins late each time, `early` too soon, rank 1 off the path."""
    made = GraphBuilder(ranks=(0, 1))
    for step in range(2):
        for rank, length_ns in ((0, 900_000), (1, 300_000)):
            made.host(rank, "before", 2_000_000, step=step)
            call = made.call(rank, "launch", 10_000, step=step)
            made.kernel(
                rank, "slow", length_ns, caller=call, residual_ns=30_000 + rank, step=step, op="mm"
            )
            made.kernel(rank, "early", 20_000, caller=call, residual_ns=-5_000, step=step)
    return made.build()


def test_equal_tasks_of_all_ranks_and_steps_are_one_place() -> None:
    found = {place.name: place for place in _places(_run())}
    assert set(found) == {"slow", "early"}
    slow = found["slow"]
    assert (slow.what, slow.op, slow.lane_role) == ("residual", "mm", "stream 7")
    assert (slow.ranks, slow.count) == ((0, 1), 4)
    assert slow.total_ns == 2 * 30_000 + 2 * 30_001
    assert (slow.largest_ns, slow.example_rank) == (30_001, 1)
    assert found["early"].largest_ns == -5_000
    assert found["early"].total_ns == 20_000


def test_streams_are_told_by_their_recorded_numbers() -> None:
    graph = _run()
    lanes = tuple(
        replace(lane, role="stream 0", stream=7 + lane.rank) if lane.stream >= 0 else lane
        for lane in graph.lanes
    )
    assert {place.lane_role for place in _places(replace(graph, lanes=lanes))} == {"streams 7, 8"}


def test_sizes_add_up_to_all_residuals_and_to_those_of_the_path() -> None:
    graph = _run()
    base = baseline(graph, facts_of(graph))
    found = places(graph, base.schedule, base.path)
    assert sum(place.total_ns for place in found) == int(np.abs(graph.tasks.residual_ns).sum())
    on_path_ns = int(path_unexplained_ns(graph, base.path).sum())
    assert sum(place.on_path_ns for place in found) == on_path_ns > 0
    assert on_path_ns == base.trust.unexplained_path_ns


def test_places_on_the_path_stand_before_larger_ones_beside_it() -> None:
    made = GraphBuilder(ranks=(0, 1))
    for rank, name, length_ns, late_ns in ((0, "on", 900_000, 1_000), (1, "beside", 100, 50_000)):
        call = made.call(rank, "launch", 10_000)
        made.kernel(rank, name, length_ns, caller=call, residual_ns=late_ns)
    assert [(place.name, place.on_path_ns) for place in _places(made.build())] == [
        ("on", 1_000),
        ("beside", 0),
    ]


def test_silence_counts_as_far_as_the_path_runs_through_it() -> None:
    made = GraphBuilder()
    work = made.host(0, "work", 500_000)
    made.kernel(0, "k", 100_000, caller=work)
    graph = made.build()
    silent_ns = np.array([400_000, 0])
    graph = replace(graph, tasks=replace(graph.tasks, unexplained_ns=silent_ns))
    (place,) = _places(graph)
    assert (place.what, place.name, place.lane_role, place.edge) == ("silence", "work", "main", "")
    assert (place.on_path_ns, place.total_ns, place.largest_ns) == (400_000,) * 3


def test_run_without_residuals_has_no_place() -> None:
    made = GraphBuilder()
    made.host(0, "work", 500_000)
    assert _places(made.build()) == ()
