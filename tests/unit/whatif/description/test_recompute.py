"""Recomputation is told by how much of forward's work runs again inside backward."""

from dataclasses import replace

import numpy as np
import pytest

from tests.builders import GraphBuilder
from whatif.description.labels import unlabelled
from whatif.description.recompute import recompute_of
from whatif.models.places import Pass
from whatif.models.shape import Recompute


@pytest.mark.parametrize(
    ("again_ns", "expected"),
    [(0, Recompute.NONE), (4, Recompute.NONE), (30, Recompute.SELECTIVE), (95, Recompute.FULL)],
)
def test_the_share_of_forward_tells_what_is_computed_again(
    again_ns: int, expected: Recompute
) -> None:
    build = GraphBuilder()
    for dur_ns in (100, again_ns, 200):
        build.kernel(0, "k", dur_ns)
    graph = build.build()
    labels = replace(
        unlabelled(graph.n_tasks),
        direction=np.array([Pass.FORWARD, Pass.RECOMPUTE, Pass.BACKWARD], np.int8),
    )
    found, findings = recompute_of(graph, labels)
    assert found is expected
    assert [one.value for one in findings] == ([] if expected is Recompute.NONE else [expected])
