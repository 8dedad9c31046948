"""Segments put together: as they were, fewer, repeated, in another order."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.errors import ScenarioError
from ingest.vocab import EdgeKind, LaneKind, TaskKind
from replay.engine.run import replay
from replay.graph.arrays import NONE, TaskGraph
from replay.results.metrics import step_times
from tests.replayed import Replayed, read
from tests.unit.whatif.tape.layered import CALL_NS, Labelled, again, rows_of, step_ns, training
from whatif.description.labels import Labels, Part, Pass, unlabelled
from whatif.tape.assemble import assemble, original
from whatif.tape.cut import cut
from whatif.tape.segments import Assembled, Program, Tape

ROOT = Path(__file__).resolve().parents[4]
SAMPLES = ROOT / "sample_traces"
SHARED = ROOT.parent / "shared" / "traces"
REAL = (
    "a100x8_megatron_tp8",
    "h100x4_torchtitan_fsdp_A",
    "h100x8_nanogpt_12-11",
    "h200x8_lightllm_decode_static",
    "v100x4_torchrec_fp32",
)


@cache
def _read(path: Path) -> Replayed:
    return read([path])


def _random_labels(n_tasks: int, run_length: int, seed: int) -> Labels:
    """Runs of equal labels of about that length."""
    rng = np.random.default_rng(seed)
    n_runs = max(n_tasks // run_length, 1)
    run = np.searchsorted(np.sort(rng.integers(0, n_tasks, n_runs)), np.arange(n_tasks))

    def column(low: int, high: int, dtype: type[np.generic]) -> np.ndarray:
        return rng.integers(low, high, n_runs + 1).astype(dtype)[run]

    return Labels(
        part=column(0, len(Part), np.int8),
        direction=column(0, len(Pass), np.int8),
        layer=column(-1, 6, np.int32),
        micro_batch=column(-1, 4, np.int32),
        place=np.zeros(n_tasks, np.int8),
    )


def _replays_the_same(graph: TaskGraph, made: Assembled) -> None:
    new = made.tape.graph
    assert new.origin is not None
    assert sorted(new.origin.tolist()) == list(range(graph.n_tasks))
    was, now = replay(graph), replay(new)
    assert (was.start_ns[new.origin] == now.start_ns).all()
    assert (was.end_ns[new.origin] == now.end_ns).all()
    assert (new.tasks.ts_ns == now.start_ns).all()
    assert (step_times(graph, was).rank_boundary_ns == step_times(new, now).rank_boundary_ns).all()
    assert made.dropped_edges == 0
    assert len(new.edges.src) == len(graph.edges.src)
    for name in ("kind", "rank", "step", "name", "dur_ns", "slice_id", "residual_ns"):
        assert (getattr(new.tasks, name) == getattr(graph.tasks, name)[new.origin]).all(), name
    called = new.tasks.caller >= 0
    assert (new.origin[new.tasks.caller[called]] == graph.tasks.caller[new.origin[called]]).all()
    assert (called == (graph.tasks.caller[new.origin] >= 0)).all()


@pytest.mark.parametrize("run_length", [3, 40])
@pytest.mark.parametrize(
    "path", [SAMPLES / "ddp8_h100", SAMPLES / "gloo2_cpu", *(SHARED / name for name in REAL)]
)
def test_original_programs_replay_to_the_nanosecond(path: Path, run_length: int) -> None:
    if not path.exists():
        pytest.skip("no shared/traces beside this checkout")
    graph = _read(path).graph
    for labels in (unlabelled(graph.n_tasks), _random_labels(graph.n_tasks, run_length, 1)):
        _replays_the_same(graph, again(cut(graph, labels)))


@settings(max_examples=40, deadline=None)
@given(
    n_ranks=st.integers(1, 3),
    n_layers=st.integers(1, 3),
    steps=st.integers(1, 3),
    run_length=st.integers(1, 9),
    seed=st.integers(0, 1_000),
)
def test_any_labels_leave_the_replay_as_it_was(
    n_ranks: int, n_layers: int, steps: int, run_length: int, seed: int
) -> None:
    run = training(ranks=range(n_ranks), n_layers=n_layers, steps=steps)
    graph, _ = run.built()
    _replays_the_same(graph, again(cut(graph, _random_labels(graph.n_tasks, run_length, seed))))


def test_what_was_put_together_can_be_cut_and_put_together_again() -> None:
    graph, labels = training(ranks=(0, 1)).built()
    first = again(cut(graph, labels)).tape
    second = again(first).tape
    third = again(cut(first.graph, first.labels)).tape
    for tape in (second, third):
        origin = tape.graph.origin
        assert origin is not None
        assert (replay(tape.graph).start_ns == replay(graph).start_ns[origin]).all()
        assert (tape.labels.layer == labels.layer[origin]).all()
        assert (tape.labels.part == labels.part[origin]).all()


def _only(tape: Tape) -> Program:
    (program,) = original(tape)
    return program


def test_a_layer_less_takes_its_time_out() -> None:
    tape = training(n_layers=3, steps=1).tape()
    program = _only(tape)
    kept = np.flatnonzero(program.layer != 1)
    made = assemble(tape, [rows_of(program, kept)], world_size=1)
    # Per layer 3 x 5,000 and 3 x 100 i; the device waits for its first launch only.
    assert step_ns(tape.graph) == [CALL_NS + 3 * (5_000 + 5_100 + 5_200) + 1_000]
    assert step_ns(made.tape.graph) == [CALL_NS + 3 * (5_000 + 5_200) + 1_000]


def test_every_layer_twice_of_a_chain_on_the_device() -> None:
    tape = training(n_layers=2, steps=2).tape()
    program = _only(tape)
    rows = np.repeat(np.arange(len(program.segment)), np.where(program.layer >= 0, 2, 1))
    again_, layer = np.zeros(len(rows), np.int64), program.layer[rows]
    again_[1:] = rows[1:] == rows[:-1]
    forward = tape.segments.direction[program.segment[rows]] == Pass.FORWARD
    copy = np.where(forward, again_, 1 - again_)
    doubled = np.where(layer >= 0, 2 * layer + copy, layer).astype(np.int32)
    made = assemble(tape, [rows_of(program, rows, layer=doubled)], world_size=1)
    labels = made.tape.labels
    assert set(labels.layer[labels.part == Part.LAYER].tolist()) == {0, 1, 2, 3}
    graph = made.tape.graph
    assert graph.origin is not None
    assert (np.bincount(graph.origin)[: tape.graph.n_tasks] >= 1).all()
    assert step_ns(graph)[1] == 2 * 3 * (5_000 + 5_100) + 1_000
    # Lane by lane one task after the other.
    schedule = replay(graph)
    for lane in range(len(graph.lanes)):
        mine = np.flatnonzero(graph.tasks.lane == lane)
        mine = mine[np.argsort(schedule.start_ns[mine], kind="stable")]
        assert (schedule.end_ns[mine][:-1] <= schedule.start_ns[mine][1:]).all()


def test_layers_in_another_order_take_as_long() -> None:
    tape = training(n_layers=2, steps=1).tape()
    program = _only(tape)
    swapped = assemble(tape, [rows_of(program, [1, 0, 3, 2, 4])], world_size=1)
    assert step_ns(swapped.tape.graph) == step_ns(tape.graph)
    kernels = np.flatnonzero(swapped.tape.graph.tasks.kind == TaskKind.KERNEL)
    assert swapped.tape.graph.tasks.dur_ns[kernels].tolist() == [
        5_100,
        5_000,
        10_000,
        10_200,
        1_000,
    ]


def test_members_of_all_ranks_meet_in_every_copy() -> None:
    tape = training(ranks=(0, 1, 2), n_layers=2, steps=1).tape()
    programs = []
    for program in original(tape):
        rows = np.repeat(np.arange(len(program.segment)), np.where(program.layer == 1, 2, 1))
        programs.append(rows_of(program, rows))
    graph = assemble(tape, programs, world_size=3).tape.graph
    assert graph.collectives.members_seen.tolist() == [3, 3, 3]
    meetings = np.flatnonzero(graph.tasks.kind == TaskKind.MEET)
    assert np.diff(graph.edges.start)[meetings].tolist() == [3, 3, 3]
    schedule = replay(graph)
    transfers = np.flatnonzero(graph.tasks.kind == TaskKind.TRANSFER)
    for call in range(3):
        mine = transfers[graph.tasks.collective[transfers] == call]
        assert len(np.unique(schedule.start_ns[mine])) == 1
        assert set(graph.tasks.rank[mine].tolist()) == {0, 1, 2}


def test_stages_of_one_recorded_rank_meet_their_own_kind() -> None:
    tape = training(ranks=(0, 1), n_layers=2, steps=1).tape()
    programs = []
    for program in original(tape):
        for stage in (0, 1):
            rows = np.flatnonzero((program.layer == stage) | (program.layer < 0))
            part = rows_of(program, rows)
            programs.append(
                Program(
                    rank=program.rank + 2 * stage,
                    like=program.like,
                    stage=stage,
                    segment=part.segment,
                    step=part.step,
                    layer=part.layer,
                    micro_batch=part.micro_batch,
                )
            )
    graph = assemble(tape, programs, world_size=4).tape.graph
    assert [info.rank for info in graph.ranks] == [0, 2, 1, 3]
    groups = [graph.groups[number].ranks for number in graph.collectives.group]
    assert sorted(groups) == [(0, 1), (2, 3)]
    assert graph.collectives.members_seen.tolist() == [2, 2]
    ends = step_times(graph, replay(graph)).rank_boundary_ns
    # Stage 0 has layer 0, both its all-reduce and the optimizer; stage 1 layer 1.
    assert (ends[0] == ends[2]).all()
    assert ends[0, 1] == CALL_NS + 15_000 + 1_000
    assert ends[1, 1] == CALL_NS + 15_300 + 1_000


def test_a_partner_that_is_gone_holds_nobody_up() -> None:
    run = training(ranks=(0, 1), n_layers=1, steps=1)
    tape = run.tape()
    first, second = original(tape)
    backward = tape.segments.direction[second.segment] == Pass.BACKWARD
    made = assemble(
        tape, [first, rows_of(second, np.flatnonzero(~backward))], world_size=2
    ).tape.graph
    assert made.collectives.members_seen.tolist() == [1]
    assert made.collectives.members_expected.tolist() == [2]
    assert np.diff(made.edges.start)[made.tasks.kind == TaskKind.MEET].tolist() == [1]


def test_order_between_new_neighbours_has_the_lag_of_the_run() -> None:
    tape = training(n_layers=2, steps=1).tape()
    program = _only(tape)
    graph = assemble(tape, [rows_of(program, [0, 3, 4])], world_size=1).tape.graph
    dst = np.repeat(np.arange(graph.n_tasks), np.diff(graph.edges.start))
    order = np.isin(graph.edges.kind, (EdgeKind.PROGRAM_ORDER, EdgeKind.STREAM_ORDER))
    lanes = graph.tasks.lane
    assert (lanes[graph.edges.src[order]] == lanes[dst[order]]).all()
    on_thread = np.array([lane.kind == LaneKind.THREAD for lane in graph.lanes])
    assert order.sum() == 2 * on_thread.sum() + 2


def test_orders_in_which_ranks_wait_for_each_other_are_refused() -> None:
    tape = training(ranks=(0, 1), n_layers=2, steps=1).tape()
    first, second = original(tape)
    with pytest.raises(ScenarioError, match="wait for each other"):
        assemble(tape, [rows_of(first, [0, 1, 3, 2, 4]), second], world_size=2)


def test_what_waited_for_all_of_a_lane_waits_for_all_that_it_has_now() -> None:
    run = Labelled.new()
    run.at(Part.LAYER, Pass.FORWARD, 0, 0)
    run.kernel(0, 5_000)
    run.at(Part.OPTIMIZER)
    wait = run.builder.call(0, "cudaStreamSynchronize", 0)
    run.builder.edge(1, wait, 300, kind=EdgeKind.HOST_SYNC)
    run.kernel(0, 1_000)
    tape = run.tape()
    (program,) = original(tape)
    graph = assemble(tape, [rows_of(program, [0, 0, 0, 1])], world_size=1).tape.graph
    waits = np.flatnonzero(graph.edges.kind == EdgeKind.HOST_SYNC)
    kernels = np.flatnonzero(graph.tasks.kind == TaskKind.KERNEL)
    assert graph.edges.src[waits].tolist() == [kernels[2]]
    assert step_ns(graph) == [CALL_NS + 3 * 5_000 + 300 + CALL_NS + 1_000]


def test_a_counterpart_in_another_segment_is_at_the_same_turn_of_the_lane() -> None:
    run = Labelled.new()
    for layer in (0, 1):
        run.at(Part.LAYER, Pass.FORWARD, layer, 0)
        for _ in range(3 + layer):
            run.kernel(0, 1_000)
    run.at(Part.HEAD, Pass.FORWARD, NONE, 0)
    run.kernel(0, 500, stream=9)
    head = run.builder.last_of_lane[run.builder.stream(0, 9)]
    run.builder.edge(1, head, kind=EdgeKind.EVENT_WAIT)  # the first kernel of layer 0
    run.builder.edge(11, head, kind=EdgeKind.EVENT_WAIT)  # the third of layer 1
    tape = run.tape()
    (program,) = original(tape)
    graph = assemble(tape, [rows_of(program, [0, 2])], world_size=1).tape.graph
    waits = np.flatnonzero(graph.edges.kind == EdgeKind.EVENT_WAIT)
    assert sorted(graph.edges.src[waits].tolist()) == [1, 3]  # of the three that there are
