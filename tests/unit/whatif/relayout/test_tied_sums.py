"""A table that embedding and head share is added up between the stages that hold it."""

from dataclasses import replace

import numpy as np
import pytest
from msgspec.structs import replace as edited

from ingest.vocab import TaskKind
from replay.engine.run import replay
from tests.layered import Layered, ask
from whatif.models.shape import Degrees, ModelShape
from whatif.tape.segments import Tape
from whatif.transforms.relayout.rebuild import rebuilt

MODEL = ModelShape(layers=4, hidden=1024, heads=8, ffn=4096, vocab=10_000)


def _made(*, tied: bool, stages: int, steps: int = 1) -> Tape:
    tape = Layered(layers=4, micro_batches=4, steps=steps).tape()
    run = Layered(layers=4, micro_batches=4)
    before = edited(run.shape, model=edited(MODEL, tied=tied))
    target = edited(before, degrees=Degrees(pp=stages))
    made = rebuilt(tape.graph, ask(tape, before, target))
    return replace(tape, graph=made.graph)


def test_first_and_last_stage_meet_once_a_step_behind_backward() -> None:
    graph = _made(tied=True, stages=3, steps=2).graph
    calls = graph.collectives
    mine = np.flatnonzero([graph.groups[group].description == "embedding" for group in calls.group])
    assert calls.size_bytes[mine].tolist() == [10_000 * 1024 * 4] * 2
    tasks = graph.tasks
    transfers = np.isin(tasks.collective, mine) & (tasks.kind == TaskKind.TRANSFER)
    assert sorted(set(tasks.rank[transfers].tolist())) == [0, 2]
    start_ns = replay(graph).start_ns
    for rank in (0, 2):
        kernels = np.flatnonzero((tasks.kind == TaskKind.KERNEL) & (tasks.rank == rank))
        names = [graph.names[name] for name in tasks.name[kernels]]
        optimizer = kernels[[name.startswith("optimizer") for name in names]]
        ends_ns = (start_ns + tasks.dur_ns)[transfers & (tasks.rank == rank)]
        assert (start_ns[optimizer] >= ends_ns).all()


@pytest.mark.parametrize(("tied", "stages"), [(False, 2), (True, 1)])
def test_nothing_is_added_up_where_nothing_is_parted(*, tied: bool, stages: int) -> None:
    graph = _made(tied=tied, stages=stages).graph
    assert all(group.description != "embedding" for group in graph.groups)
