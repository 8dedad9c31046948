"""Laws that the replay of any recording obeys, tried on every sample and on one real run."""

from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ingest.vocab import DEVICE_KINDS, EdgeKind, LaneKind, TaskKind
from replay.engine.run import replay
from replay.graph.arrays import TaskGraph
from replay.graph.thresholds import SM_FULL_TAIL_NS
from replay.results.critical_path import cut_at_steps
from replay.results.fidelity import baseline
from replay.results.idle import device_idle, stream_idle
from replay.results.metrics import breakdown, covered_ns, rank_breakdowns, step_times
from replay.results.slack import slack
from tests.oracles.replay import starts
from tests.replayed import Replayed, read

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_traces"
REAL = ROOT.parent / "shared" / "traces" / "v100x4_torchrec_fp32"


def _runs() -> list[str]:
    """A file alone, or the ranks of one run together."""
    suffixes = (".json", ".gz")
    files = [path for path in SAMPLES.rglob("*") if path.name.endswith(suffixes)]
    names = {path.parent if path.name.startswith("rank") else path for path in files}
    return [*sorted(str(path.relative_to(SAMPLES)) for path in names), "real"]


@cache
def _read(name: str) -> Replayed:
    return read([REAL if name == "real" else SAMPLES / name])


@pytest.fixture(params=_runs())
def run(request: pytest.FixtureRequest) -> Replayed:
    if request.param == "real" and not REAL.exists():
        pytest.skip("no shared/traces beside this checkout")
    return _read(request.param)


def test_calibrated_replay_gives_every_recorded_start(run: Replayed) -> None:
    assert run.is_exact()
    assert (run.base.replayed.boundary_ns == run.base.measured.boundary_ns).all()


def test_empty_change_gives_the_same_schedule(run: Replayed) -> None:
    again = replay(replace(run.graph))
    assert (again.start_ns == run.base.schedule.start_ns).all()
    assert (again.blocked_by == run.base.schedule.blocked_by).all()


def test_order_lists_every_source_before_its_destination(run: Replayed) -> None:
    graph = run.graph
    assert sorted(graph.order.tolist()) == list(range(graph.n_tasks))
    place = np.empty(graph.n_tasks, np.int64)
    place[graph.order] = np.arange(graph.n_tasks)
    dst = np.repeat(np.arange(graph.n_tasks), np.diff(graph.edges.start))
    assert (place[graph.edges.src] < place[dst]).all()


def test_arrays_are_read_only(run: Replayed) -> None:
    graph = run.graph
    for columns in (graph, graph.tasks, graph.edges, graph.collectives, graph.boundaries):
        for column in fields(columns):
            value = getattr(columns, column.name)
            assert not (isinstance(value, np.ndarray) and value.flags.writeable), column.name
    assert not run.base.schedule.start_ns.flags.writeable


def test_no_edge_contradicts_the_recording(run: Replayed) -> None:
    """A source is over when its destination begins, but for overlaps below 10 us.

    Three kinds of source may go on: the call of a graph, the row of a host-side collective (it is
    closed after the waiting thread was woken), and a kernel whose last blocks leave room.
    """
    graph, tasks = run.graph, run.graph.tasks
    dst = np.repeat(np.arange(graph.n_tasks), np.diff(graph.edges.start))
    src = graph.edges.src
    over_ns = tasks.ts_ns[src] + np.where(graph.edges.from_start, 0, tasks.dur_ns[src])
    links = np.array([lane.kind == LaneKind.LINK for lane in graph.lanes] + [False])
    waits = (graph.edges.kind != EdgeKind.GRAPH_LAUNCH) & ~links[tasks.lane[src]]
    tails = graph.edges.kind == EdgeKind.SM_FULL
    over_ns -= tasks.ts_ns[dst]
    assert over_ns[waits & ~tails].max(initial=0) <= 10_000
    assert over_ns[tails].max(initial=0) <= SM_FULL_TAIL_NS


def test_edges_point_to_tasks_of_the_same_rank_except_meetings(run: Replayed) -> None:
    graph, tasks = run.graph, run.graph.tasks
    dst = np.repeat(np.arange(graph.n_tasks), np.diff(graph.edges.start))
    same = tasks.rank[graph.edges.src] == tasks.rank[dst]
    assert (same | np.isin(graph.edges.kind, [EdgeKind.COLLECTIVE, EdgeKind.P2P])).all()


def test_tasks_of_a_thread_follow_one_another(run: Replayed) -> None:
    tasks = run.graph.tasks
    for lane, what in enumerate(run.graph.lanes):
        ids = np.flatnonzero((tasks.lane == lane) & (tasks.kind <= TaskKind.HOST_WAIT))
        if what.kind != LaneKind.THREAD or not len(ids):
            continue
        assert (np.diff(ids) == 1).all()
        end_ns = tasks.ts_ns[ids] + tasks.dur_ns[ids]
        gap_ns = tasks.ts_ns[ids[1:]] - end_ns[:-1]
        waits = tasks.kind[ids[1:]] == TaskKind.HOST_WAIT
        assert (gap_ns >= 0).all()
        assert (gap_ns[~waits] == 0).all(), "only a wait leaves time to others"


def test_work_of_a_stream_is_in_the_order_of_its_starts(run: Replayed) -> None:
    tasks = run.graph.tasks
    for lane, what in enumerate(run.graph.lanes):
        ids = np.flatnonzero((tasks.lane == lane) & np.isin(tasks.kind, list(DEVICE_KINDS)))
        if what.kind == LaneKind.STREAM:
            assert (np.diff(tasks.ts_ns[ids]) >= 0).all()


def test_parts_of_the_breakdown_add_up_to_the_step(run: Replayed) -> None:
    for schedule in (run.base.schedule, run.base.strict_schedule):
        step_ns = step_times(run.graph, schedule).mean_ns
        whole = breakdown(run.graph, schedule)
        assert whole.total_ns == step_ns
        for part in (whole, *rank_breakdowns(run.graph, schedule)):
            assert part.total_ns == step_ns
            shares = (part.compute_ns, part.exposed_comm_ns, part.exposed_memcpy_ns, part.idle_ns)
            assert min(shares) >= 0
            assert 0 <= part.exposed_wait_ns <= part.exposed_comm_ns


def test_path_fills_the_window(run: Replayed) -> None:
    path = run.base.path
    assert path.span_ns.sum() + path.lag_ns.sum() + path.residual_ns.sum() == path.length_ns


def test_each_step_is_the_sum_of_its_pieces_of_the_path(run: Replayed) -> None:
    boundary_ns = run.base.replayed.boundary_ns
    pieces = cut_at_steps(run.base.path, boundary_ns)
    sums = np.zeros(len(boundary_ns) - 1, np.int64)
    np.add.at(sums, pieces.step, pieces.total_ns)
    assert (sums == np.diff(boundary_ns)).all()
    assert (pieces.ts_ns[1:] == (pieces.ts_ns + pieces.total_ns)[:-1]).all()


def test_only_the_path_must_be_in_time(run: Replayed) -> None:
    left = slack(run.graph, run.base.schedule)
    assert (left.run_ns[run.base.path.task] == 0).all()
    assert (left.step_ns >= 0).all()
    assert (left.step_ns <= left.run_ns).all()


def test_gaps_and_work_of_each_stream_fill_the_steps(run: Replayed) -> None:
    graph, schedule = run.graph, run.base.schedule
    boundary_ns = run.base.replayed.boundary_ns
    window = (int(boundary_ns[0]), int(boundary_ns[-1]))
    idle = stream_idle(graph, schedule)
    on_device = np.isin(graph.tasks.kind, [int(kind) for kind in DEVICE_KINDS])
    for number, lane in enumerate(graph.lanes):
        ids = np.flatnonzero((graph.tasks.lane == number) & on_device)
        if lane.kind != LaneKind.STREAM or not len(ids):
            continue
        arrives = graph.tasks.kind[ids] == TaskKind.ARRIVE
        end_ns = schedule.end_ns[np.where(arrives, np.minimum(ids + 1, graph.n_tasks - 1), ids)]
        busy_ns = covered_ns(schedule.start_ns[ids], end_ns, window)
        mine = (
            (idle.rank == lane.rank) & (idle.device == lane.device) & (idle.stream == lane.stream)
        )
        assert busy_ns + idle.dur_ns[mine].sum() == window[1] - window[0]


def test_idle_devices_are_those_of_the_breakdown(run: Replayed) -> None:
    if not run.facts.has_device:
        return
    idle = device_idle(run.graph, run.base.schedule)
    for info, part in zip(
        run.graph.ranks, rank_breakdowns(run.graph, run.base.schedule), strict=True
    ):
        mine = idle.rank == info.rank
        devices = {lane.device for lane in run.graph.lanes if lane.rank == info.rank} - {-1}
        if devices:
            mean_ns = int(idle.dur_ns[mine].sum()) / len(devices) / len(run.graph.steps)
            assert part.idle_ns == pytest.approx(mean_ns, abs=2)


def test_the_causes_of_a_gap_add_up_to_it(run: Replayed) -> None:
    idle = stream_idle(run.graph, run.base.schedule)
    told = idle.cause < idle.shares_ns.shape[1]
    assert (idle.shares_ns >= 0).all()
    assert (idle.shares_ns.sum(axis=1)[told] == idle.dur_ns[told]).all()


def test_compiled_pass_equals_its_oracle() -> None:
    graph = _read("tiny/graph_launch.json").graph
    assert replay(graph).start_ns.tolist() == starts(graph)
    assert replay(graph, residuals=False).start_ns.tolist() == starts(graph, residuals=False)


def _delayed(graph: TaskGraph, from_ns: int, delay_ns: int) -> TaskGraph:
    """As if the first device task after `from_ns` had been recorded so much later without reason.

    All that depends on it follows.
    """
    tasks = graph.tasks
    device = np.flatnonzero(np.isin(tasks.kind, [int(kind) for kind in DEVICE_KINDS]))
    on_path = device[tasks.ts_ns[device] >= from_ns]
    first = on_path[np.argmin(tasks.ts_ns[on_path])]
    residual_ns = tasks.residual_ns.copy()
    residual_ns[first] += delay_ns
    slower = replace(graph, tasks=replace(tasks, residual_ns=residual_ns))
    later = replay(slower).start_ns.copy()
    return replace(slower, tasks=replace(slower.tasks, ts_ns=later))


def test_delay_without_cause_shows_in_the_strict_error_and_the_explained_share() -> None:
    run = _read("ddp8_h100")
    before = run.base
    middle = int(before.measured.boundary_ns[1])
    delay_ns = 2_000_000
    after = baseline(_delayed(run.graph, middle, delay_ns), run.facts)
    length_ns = int(after.measured.boundary_ns[-1] - after.measured.boundary_ns[0])
    grown_ns = length_ns - int(before.measured.boundary_ns[-1] - before.measured.boundary_ns[0])
    assert 0.5 * delay_ns < grown_ns <= delay_ns
    assert after.trust.strict_error_frac == pytest.approx(
        before.trust.strict_error_frac - grown_ns / length_ns, abs=1e-3
    )
    assert after.trust.explained_frac < before.trust.explained_frac - 0.5 * delay_ns / length_ns
    assert after.trust.grade > before.trust.grade
