"""Messages between stages: what they wait for, and what waits for them."""

from collections.abc import Sequence

import numpy as np

from ingest.vocab import CollectiveKind, EdgeKind, LaneKind, TaskKind
from replay.engine.run import replay
from replay.graph.arrays import NONE, Int64, TaskGraph
from replay.graph.thresholds import DEFAULT_EVENT_NS, DEFAULT_SYNC_NS
from replay.results.metrics import step_times
from tests.builders import GraphBuilder
from tests.unit.whatif.tape.layered import CALL_NS, Labelled, training
from whatif.description.labels import Part, Pass, unlabelled
from whatif.tape.assemble import assemble, original
from whatif.tape.cut import cut
from whatif.tape.segments import BOTH, OUTSIDE, RECEIVE, SEND, Peers, Program, Tape

TRANSFER_NS = 2_000
F0, F1, B1, B0, OPTIMIZER = range(5)
"""Segments of one step of two layers."""


def _program(tape: Tape, stage: int, rows: Sequence[tuple[int, ...]]) -> Program:
    """Rows are (segment, micro-batch) or (OUTSIDE, kind, key)."""
    segment = np.array([row[0] for row in rows], np.int32)
    kind = np.array([row[1] if row[0] == OUTSIDE else 0 for row in rows], np.int8)
    key = np.array([row[2] if row[0] == OUTSIDE else NONE for row in rows], np.int64)
    micro_batch = np.array([NONE if row[0] == OUTSIDE else row[1] for row in rows], np.int32)
    message = kind > 0
    return Program(
        rank=stage,
        like=0,
        stage=stage,
        segment=segment,
        step=np.zeros(len(rows), np.int32),
        layer=np.where(message, NONE, tape.segments.layer[segment]).astype(np.int32),
        micro_batch=micro_batch,
        p2p=Peers(
            kind=kind,
            peer=np.where(message, 1 - stage, NONE).astype(np.int32),
            key=key,
            size_bytes=np.where(message, 4_096, NONE),
            transfer_ns=np.where(message, TRANSFER_NS, 0),
        ),
    )


def _gpipe(tape: Tape, n: int) -> TaskGraph:
    """Two stages of one layer; forward of all micro-batches, then backward of all."""
    first = [row for m in range(n) for row in ((F0, m), (OUTSIDE, SEND, m))]
    first += [row for m in range(n) for row in ((OUTSIDE, RECEIVE, n + m), (B0, m))]
    last = [row for m in range(n) for row in ((OUTSIDE, RECEIVE, m), (F1, m))]
    last += [row for m in range(n) for row in ((B1, m), (OUTSIDE, SEND, n + m))]
    programs = [
        _program(tape, stage, [*rows, (OPTIMIZER, NONE)])
        for stage, rows in enumerate((first, last))
    ]
    return assemble(tape, programs, world_size=2).tape.graph


def test_one_micro_batch_goes_through_both_stages_and_back() -> None:
    graph = _gpipe(training(steps=1).tape(), 1)
    ends = step_times(graph, replay(graph)).rank_boundary_ns[:, 1]
    there = DEFAULT_EVENT_NS + TRANSFER_NS + DEFAULT_EVENT_NS
    whole_ns = CALL_NS + 5_000 + there + 5_100 + 10_200 + there + 10_000 + 1_000
    assert ends[0] == whole_ns
    backward_ns = CALL_NS + 5_000 + there + 5_100 + 10_200
    assert ends[1] == backward_ns + DEFAULT_EVENT_NS + TRANSFER_NS  # its send is the last of it


def test_the_bubble_of_gpipe_is_that_of_the_textbook() -> None:
    tape = training(steps=1, layer_ns=1_000_000).tape()
    one, many = (_step_ns(_gpipe(tape, n)) for n in (1, 9))
    # (micro-batches + stages - 1) x (forward + backward); lags and messages are a hundredth.
    both_ns = 3_000_000
    assert abs(one - 2 * both_ns) < 0.01 * both_ns
    assert abs(many - 10 * both_ns) < 0.01 * many


def _step_ns(graph: TaskGraph) -> int:
    return int(step_times(graph, replay(graph)).per_step_ns[0])


def test_messages_are_collectives_of_two_on_streams_of_their_own() -> None:
    tape = training(steps=1).tape()
    graph = _gpipe(tape, 3)
    sent = np.flatnonzero(graph.collectives.kind == CollectiveKind.SEND_RECV)
    assert len(sent) == 6
    assert (graph.collectives.members_seen[sent] == 2).all()
    assert (graph.collectives.size_bytes[sent] == 4_096).all()
    assert {graph.groups[number].ranks for number in graph.collectives.group[sent]} == {(0, 1)}
    transfer = np.flatnonzero(graph.tasks.kind == TaskKind.TRANSFER)
    assert (graph.tasks.kind[transfer - 1] == TaskKind.ARRIVE).all()
    roles = {graph.lanes[lane].role for lane in graph.tasks.lane[transfer]}
    assert roles == {"p2p", "p2p receive"}
    assert {graph.names[name] for name in graph.tasks.name[transfer]} == {"ncclDevKernel_SendRecv"}
    assert graph.origin is not None
    assert (graph.origin[transfer] == NONE).all()
    schedule = replay(graph)
    for call in sent:
        mine = transfer[graph.tasks.collective[transfer] == call]
        assert len(mine) == 2
        assert schedule.start_ns[mine[0]] == schedule.start_ns[mine[1]]
    for lane in set(graph.tasks.lane[transfer].tolist()):
        ends = schedule.end_ns[transfer[graph.tasks.lane[transfer] == lane]]
        assert (np.diff(ends) >= TRANSFER_NS).all()


def test_messages_that_cross_do_not_wait_for_each_other_for_ever() -> None:
    tape = training(steps=1).tape()
    first = [(F0, 0), (OUTSIDE, SEND, 0), (OUTSIDE, SEND, 1), (OUTSIDE, RECEIVE, 2), (B0, 0)]
    last = [(OUTSIDE, RECEIVE, 1), (F1, 0), (OUTSIDE, RECEIVE, 0), (B1, 0), (OUTSIDE, SEND, 2)]
    programs = [_program(tape, stage, rows) for stage, rows in enumerate((first, last))]
    graph = assemble(tape, programs, world_size=2).tape.graph
    assert len(graph.order) == graph.n_tasks
    assert _step_ns(graph) > 5_000 + 5_100 + 10_200 + 10_000


def test_both_at_once_is_one_exchange() -> None:
    tape = training(steps=1).tape()
    rows = ([(F0, 0), (OUTSIDE, BOTH, 0), (B0, 0)], [(F1, 0), (OUTSIDE, BOTH, 0), (B1, 0)])
    programs = [_program(tape, stage, one) for stage, one in enumerate(rows)]
    graph = assemble(tape, programs, world_size=2).tape.graph
    assert graph.collectives.members_seen.tolist() == [2]
    ends = step_times(graph, replay(graph)).rank_boundary_ns[:, 1]
    met = CALL_NS + 5_100 + DEFAULT_EVENT_NS + TRANSFER_NS + DEFAULT_EVENT_NS
    assert ends.tolist() == [met + 10_000, met + 10_200]


def test_what_has_messages_can_be_put_together_again() -> None:
    tape = training(steps=1).tape()
    graph = _gpipe(tape, 2)
    tape = cut(graph, unlabelled(graph.n_tasks))
    again = assemble(tape, original(tape), world_size=2).tape.graph
    assert (replay(again).start_ns == again.tasks.ts_ns).all()
    assert _step_ns(again) == _step_ns(graph)
    assert again.n_tasks == graph.n_tasks


def test_on_hosts_the_next_work_waits_for_the_receive() -> None:
    run = Labelled(builder=GraphBuilder(ranks=(0,), gpu=None), rows=[])
    for layer, way in (
        (0, Pass.FORWARD),
        (1, Pass.FORWARD),
        (1, Pass.BACKWARD),
        (0, Pass.BACKWARD),
    ):
        run.at(Part.LAYER, way, layer, 0)
        run.builder.host(0, "aten::mm", 5_000)
    run.at(Part.OPTIMIZER)
    run.builder.host(0, "sgd", 1_000)
    graph = _gpipe(run.tape(), 1)
    transfer = np.flatnonzero(graph.tasks.kind == TaskKind.TRANSFER)
    assert {graph.lanes[lane].kind for lane in graph.tasks.lane[transfer]} == {LaneKind.LINK}
    waiting: Int64 = graph.edges.lag_ns[graph.edges.kind == EdgeKind.HOST_SYNC]
    assert waiting.tolist() == [DEFAULT_SYNC_NS] * 2
    launch_ns = 2_000
    there = launch_ns + TRANSFER_NS + DEFAULT_SYNC_NS
    ends = step_times(graph, replay(graph)).rank_boundary_ns[:, 1]
    assert ends[0] == 5_000 + there + 10_000 + there + 5_000 + 1_000
