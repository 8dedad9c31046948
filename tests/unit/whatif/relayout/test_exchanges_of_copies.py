"""Which micro-batches exchange gradients where one recorded stands for several."""

import numpy as np
import pytest
from msgspec.structs import replace

from ingest.vocab import CollectiveKind, TaskKind
from tests.layered import Layered, ask
from whatif.models.shape import Batch, Degrees, ModelShape
from whatif.transforms.relayout.rebuild import rebuilt

MODEL = ModelShape(layers=4, hidden=1024, heads=8, ffn=4096, vocab=10_000)


@pytest.mark.parametrize(("zero", "expected"), [(1, {2}), (2, {0, 1, 2}), (3, {0, 1, 2})])
def test_shared_gradients_are_scattered_by_each(zero: int, expected: set[int]) -> None:
    """As `volumes` has it: others add up where they are, and go with the last one."""
    run = Layered(layers=4)
    tape = run.tape()
    before = replace(run.shape, model=MODEL)
    target = replace(
        before,
        degrees=Degrees(dp=4, zero=zero),
        batch=Batch(micro_batches=3, samples=1, sequence=1024),
    )
    made = rebuilt(tape.graph, ask(tape, before, target))
    tasks, calls = made.graph.tasks, made.graph.collectives
    scatters = np.append(calls.kind == CollectiveKind.REDUCE_SCATTER, False)[tasks.collective]
    moving = scatters & (tasks.kind == TaskKind.TRANSFER) & (tasks.dur_ns > 0)
    assert set(made.described.labels.micro_batch[moving].tolist()) == expected
