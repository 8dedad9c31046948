"""Work of kernels whose copies do parts of it."""

from dataclasses import replace

import numpy as np

from ingest.vocab import TaskKind
from replay.graph.work import KernelWork
from tests.unit.whatif.tape.layered import rows_of, training
from whatif.tape.assemble import assemble, original
from whatif.transforms.relayout.work_done import with_parts_of_work


def test_parts_of_copies_add_up() -> None:
    tape = training(n_layers=1, steps=1).tape()
    kernels = np.flatnonzero(tape.graph.tasks.kind == TaskKind.KERNEL)
    flops = np.array([6e9, 1e10, np.nan])
    work = KernelWork(
        slice_id=tape.graph.tasks.slice_id[kernels],
        flops=flops,
        bytes=np.ones(3),
        operand_bytes=np.ones(3),
        dtype=np.zeros(3, np.int8),
        tiles=np.full(3, -1),
    )
    tape = replace(tape, graph=replace(tape.graph, work=work))
    (program,) = original(tape)
    graph = assemble(tape, [rows_of(program, [0, 1, 1, 2])], world_size=1).tape.graph
    copies = np.flatnonzero(graph.tasks.kind == TaskKind.KERNEL)
    factor = np.ones(graph.n_tasks)
    factor[copies] = [1.0, 0.5, 0.5, 1.0]
    found = with_parts_of_work(graph, factor).work
    row = found.rows_of(graph.tasks.slice_id[copies])
    assert np.nansum(found.flops[row]) == 1.6e10
    assert found.bytes.tolist() == [1.0, 0.5, 1.0]
