"""Threads that take turns in a new order of passes."""

import numpy as np
import pytest

from ingest.vocab import EdgeKind, LaneKind, TaskKind
from replay.engine.run import replay
from tests.builders import GraphBuilder, Row
from whatif.description.labels import Labels, Part, Pass
from whatif.tape.assemble import assemble
from whatif.tape.cut import cut
from whatif.tape.segments import Program, Tape

FORWARD_NS, BACKWARD_NS = 100_000, 200_000


def _run() -> Tape:
    """Two micro-batches on one rank: forward on the main thread, then backward on another."""
    builder = GraphBuilder(ranks=(0,))
    autograd = builder._lane(LaneKind.THREAD, 0, -1, "autograd")
    rows = []
    last = None
    for micro_batch in range(2):
        forward = builder.host(0, "forward", FORWARD_NS)
        if last is not None:
            builder.edge(last, forward, kind=EdgeKind.HAND_OVER)
        row = Row(
            kind=TaskKind.HOST_WORK, rank=0, lane=autograd, name="backward", dur_ns=BACKWARD_NS
        )
        last = builder._on_lane(row, EdgeKind.PROGRAM_ORDER, forward)
        rows += [(Pass.FORWARD, micro_batch), (Pass.BACKWARD, micro_batch)]
    direction, micro = np.array(rows).T
    labels = Labels(
        part=np.full(4, Part.LAYER, np.int8),
        direction=direction.astype(np.int8),
        layer=np.zeros(4, np.int32),
        micro_batch=micro.astype(np.int32),
        place=np.zeros(4, np.int8),
    )
    return cut(builder.build(), labels)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 3, 1)])
def test_passes_on_two_threads_run_one_after_another_in_any_order(order: tuple[int, ...]) -> None:
    tape = _run()
    chosen = np.array(order, np.int32)
    program = Program(
        rank=0,
        like=0,
        stage=0,
        segment=chosen,
        step=np.zeros(4, np.int32),
        layer=np.zeros(4, np.int32),
        micro_batch=tape.segments.micro_batch[chosen],
    )
    graph = assemble(tape, [program], world_size=1).tape.graph
    schedule = replay(graph)
    working = graph.tasks.dur_ns > 0
    starts = np.sort(schedule.start_ns[working])
    ends = np.sort(schedule.end_ns[working])
    assert (starts[1:] >= ends[:-1]).all()
    assert schedule.end_ns.max() == 2 * (FORWARD_NS + BACKWARD_NS)
