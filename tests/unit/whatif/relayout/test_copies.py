"""What stands for more than it was recorded as is as far off as recorded instances are apart."""

from dataclasses import replace as replaced

import numpy as np
import pytest
from msgspec.structs import replace

from tests.layered import Layered, ask
from whatif.models.bound import Bound
from whatif.models.shape import Recompute
from whatif.transforms.base import with_durations
from whatif.transforms.relayout.copies import with_spread
from whatif.transforms.relayout.rebuild import rebuilt


@pytest.mark.parametrize(("slow", "spread_frac"), [(1.0, 0.0), (1.5, 0.2)])
def test_a_copied_forward_carries_the_spread_of_the_layers(slow: float, spread_frac: float) -> None:
    """Half of the layers take 1.5 times as long: the deviation is a fifth of the mean."""
    run = Layered(layers=4)
    tape = run.tape()
    tasks, labels = tape.graph.tasks, tape.labels
    dur_ns = np.where(labels.layer >= 2, np.rint(tasks.dur_ns * slow), tasks.dur_ns)
    graph = with_durations(tape.graph, dur_ns.astype(np.int64))
    tape = replaced(tape, graph=graph)
    options = replace(run.shape.options, recompute=Recompute.FULL)
    made = rebuilt(graph, ask(tape, run.shape, replace(run.shape, options=options))).graph
    low, high = (
        with_spread(made, graph, labels, bound).tasks.dur_ns for bound in (Bound.LOW, Bound.HIGH)
    )
    assert made.origin is not None
    copied = np.bincount(made.origin, minlength=graph.n_tasks)[made.origin] > 1
    moved = high != low
    assert moved.any() == (spread_frac > 0)
    assert copied[moved].all()
    # Of two that stand for one, one is as recorded.
    off_frac = (high - low)[moved] / made.tasks.dur_ns[moved]
    assert off_frac == pytest.approx(np.full(moved.sum(), spread_frac), rel=0.01)
    assert with_spread(made, graph, labels, Bound.NOMINAL) is made
