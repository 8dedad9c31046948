"""Labels carried over between ranks and steps that run the same program."""

from dataclasses import fields, replace

import numpy as np

from tests.layered import Layered
from whatif.description.agreement import agreed
from whatif.description.labels import Labels, Part


def _run() -> Layered:
    return Layered(layers=3, ranks=2, steps=2, reduces=True)


def _same(one: Labels, other: Labels) -> bool:
    return all(
        (getattr(one, field.name) == getattr(other, field.name)).all() for field in fields(one)
    )


def _garbled(labels: Labels, rows: np.ndarray) -> Labels:
    """Layers of some tasks taken for the first one."""
    layer = labels.layer.copy()
    layer[rows & (labels.part == Part.LAYER)] = 0
    return replace(labels, layer=layer)


def test_a_rank_that_tells_less_apart_is_labelled_as_the_other() -> None:
    tape = _run().tape()
    wrong = _garbled(tape.labels, tape.graph.tasks.rank == 1)
    assert not _same(wrong, tape.labels)
    found = agreed(tape.graph, wrong, {0: 0, 1: 0})
    on_ranks = tape.graph.tasks.rank >= 0
    for field in fields(found):
        columns = [getattr(one, field.name)[on_ranks] for one in (found, tape.labels)]
        assert (columns[0] == columns[1]).all(), field.name


def test_a_step_is_labelled_as_the_other() -> None:
    tape = _run().tape()
    wrong = _garbled(tape.labels, tape.graph.tasks.step == 0)
    found = agreed(tape.graph, wrong, {0: 0, 1: 0})
    on_ranks = tape.graph.tasks.rank >= 0
    assert (found.layer[on_ranks] == tape.labels.layer[on_ranks]).all()


def test_stages_have_labels_of_their_own() -> None:
    tape = _run().tape()
    wrong = _garbled(tape.labels, tape.graph.tasks.rank == 1)
    found = agreed(tape.graph, wrong, {0: 0, 1: 1})
    mine = tape.graph.tasks.rank == 1
    assert (found.layer[mine] == wrong.layer[mine]).all()


def test_another_program_keeps_its_labels() -> None:
    """A rank with twice the kernels."""
    builder = _run()
    tape = builder.tape()
    mine = tape.graph.tasks.rank == 1
    names = tape.graph.tasks.name.copy()
    names[mine] = np.where(np.arange(int(mine.sum())) % 3 == 0, 0, names[mine])
    graph = replace(tape.graph, tasks=replace(tape.graph.tasks, name=names))
    wrong = _garbled(tape.labels, mine)
    assert (agreed(graph, wrong, {0: 0, 1: 0}).layer[mine] == wrong.layer[mine]).all()
