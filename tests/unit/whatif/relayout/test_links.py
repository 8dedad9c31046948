"""Links of a new layout, whether what-ifs about them stand before or behind it."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ingest.vocab import TaskKind
from replay.calls.replayed import replay_run
from replay.engine.run import replay
from replay.graph.arrays import Group
from replay.results.metrics import step_times
from whatif.scenario import Scenario
from whatif.stacking import Changed, Stacking
from whatif.tape.meetings import renamed
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.registry import Transform
from whatif.transforms.replicas import Replicas
from whatif.transforms.tp import TensorParallel

TRACE = Path(__file__).resolve().parents[4] / "sample_traces" / "ddp8_h100"
LAYOUT, FASTER = TensorParallel(degree=2), Nvlink(rate="1800GBps")


@cache
def _stacking() -> Stacking:
    return Stacking(replay_run([TRACE]).graph)


def _made(*transforms: Transform) -> Changed:
    return _stacking().made(Scenario(transforms=transforms))


def _step_ns(changed: Changed) -> float:
    return float(np.diff(step_times(changed.graph, replay(changed.graph)).boundary_ns).mean())


def _transfer_ns(changed: Changed) -> int:
    """Of the sums inside layers."""
    graph = changed.graph
    ids = np.flatnonzero(graph.tasks.kind == TaskKind.TRANSFER)
    group = graph.collectives.group[graph.tasks.collective[ids]]
    names = np.array([each.name for each in graph.groups])[group]
    return int(graph.tasks.dur_ns[ids[names == "tensor of 2"]].sum())


@pytest.mark.parametrize("stack", [(FASTER, LAYOUT), (LAYOUT, FASTER)], ids=("before", "behind"))
def test_a_faster_link_makes_new_collectives_faster(stack: tuple[Transform, ...]) -> None:
    plain, faster = _made(LAYOUT), _made(*stack)
    assert _transfer_ns(faster) < 0.9 * _transfer_ns(plain)
    assert _step_ns(faster) < _step_ns(plain)
    assert faster.no_effect == ()


def test_the_order_of_link_and_layout_hardly_matters() -> None:
    before, behind = _made(FASTER, LAYOUT), _made(LAYOUT, FASTER)
    assert _transfer_ns(before) == pytest.approx(_transfer_ns(behind), rel=0.1)
    assert _step_ns(before) == pytest.approx(_step_ns(behind), rel=0.02)


def test_several_numbers_of_replicas_before_a_layout_are_part_of_it() -> None:
    """None of them is worked by itself: there and back is the recorded run."""
    _made(Replicas(replicas=16), Replicas(replicas=4))
    there = (Replicas(replicas=16), Replicas(replicas=4), LAYOUT)
    changed = _made(*there, Replicas(replicas=8), TensorParallel(degree=1))
    assert changed.graph is _made().graph


@pytest.mark.parametrize(
    ("ranks", "new", "expected"),
    [
        ((0, 1), {1: 2}, (2, 3)),
        ((0, 2, 4, 6), {5: 10}, (8, 10, 12, 14)),
        ((0, 4), {0: 16, 4: 17}, (16, 17)),
        ((0, 1, 5), {2: 3}, ()),
        ((), {0: 1}, ()),
    ],
)
def test_members_of_a_communicator_lie_around_the_new_rank(
    ranks: tuple[int, ...], new: dict[int, int], expected: tuple[int, ...]
) -> None:
    group = Group(name="0", ranks=ranks, size=len(ranks), backend="nccl", description="")
    assert renamed(group, new).ranks == expected
