"""Micro-batches are counted by changes from forward to backward, and the signs are compared."""

import pytest

from ingest.vocab import Phase
from tests.builders import GraphBuilder
from whatif.description.described import Sure
from whatif.description.micro_batches import alternations, micro_batches_of

FWD, BWD, OPT = Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER


def counted(*kernels: tuple[Phase, int]) -> dict[int, int]:
    build = GraphBuilder()
    for phase, dur_ns in kernels:
        build.kernel(0, "k", dur_ns, phase=phase)
    return alternations(build.build())


@pytest.mark.parametrize(
    ("kernels", "count"),
    [
        ([(FWD, 100), (BWD, 200), (OPT, 10)], {0: 1}),
        ([(FWD, 100), (BWD, 200)] * 4 + [(OPT, 10)], {0: 4}),
        ([(FWD, 100), (BWD, 100), (FWD, 5), (BWD, 100)], {0: 1}),
        ([(FWD, 100)], {}),
    ],
)
def test_a_change_to_backward_ends_a_forward_and_short_runs_are_none(
    kernels: list[tuple[Phase, int]], count: dict[int, int]
) -> None:
    assert counted(*kernels) == count


def test_messages_go_before_passes_and_these_before_phases() -> None:
    count, finding, doubts = micro_batches_of({0: 8}, {0: 8, 1: 8}, {0: 1})
    assert (count, finding.sure, doubts) == (8, Sure.MEASURED, ())
    assert micro_batches_of({0: 2}, {}, {0: 4})[0] == 2
    assert micro_batches_of({0: 0}, {}, {0: 4})[0] == 4


def test_signs_that_differ_and_ranks_that_differ_are_doubted() -> None:
    _, _, doubts = micro_batches_of({0: 2}, {}, {0: 4})
    assert doubts == (
        "forward passes of a step: 2, yet changes from forward to backward in a step: 4",
    )
    _, _, uneven = micro_batches_of({}, {0: 4, 1: 3}, {})
    assert uneven == ("ranks differ in micro-batches of a step: [3, 4]",)


def test_nothing_that_tells_several_is_one_by_guess() -> None:
    count, finding, _ = micro_batches_of({}, {}, {})
    assert (count, finding.sure) == (1, Sure.GUESSED)
