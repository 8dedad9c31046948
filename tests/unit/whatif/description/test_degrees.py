"""Degrees multiply to the ranks of the job, and each says what it rests on."""

import pytest

from tests.jobs import A2A, AG, AR, BWD, FWD, MB, OPT, RS, Call, run
from whatif.description.degrees import FoundDegrees, degrees_of
from whatif.description.described import Kind, Sure
from whatif.models.shape import ContextKind, Degrees
from whatif.parallelism import layout_of

ALL = (0, 1, 2, 3)


def found(
    calls: list[tuple[tuple[int, ...], list[Call]]],
    *,
    world: int | None = None,
    names: dict[int, str] | None = None,
    kind: Kind = Kind.TRAINING,
) -> FoundDegrees:
    graph = run(calls, world=world, names=names)
    return degrees_of(graph, layout_of(graph), kind)


def why(degrees: FoundDegrees, what: str) -> tuple[str, Sure, str]:
    (one,) = [one for one in degrees.findings if one.what == f"degrees.{what}"]
    return one.value, one.sure, one.evidence


@pytest.mark.parametrize(
    ("calls", "degrees"),
    [
        ([(AR, BWD, 50 * MB)], Degrees(dp=4)),
        ([(AG, FWD, 50 * MB), (AG, BWD, 50 * MB), (RS, BWD, 50 * MB)], Degrees(dp=4, zero=3)),
        ([(AG, FWD, 50 * MB), (RS, BWD, 50 * MB)], Degrees(dp=4, zero=2)),
        ([(RS, BWD, 50 * MB), (AG, OPT, 50 * MB)], Degrees(dp=4, zero=2)),
        ([(RS, OPT, 50 * MB), (AG, OPT, 50 * MB)], Degrees(dp=4, zero=1)),
        ([(AR, BWD, 50 * MB), (AG, OPT, 50 * MB)], Degrees(dp=4, zero=1)),
        ([(AR, FWD, 8 * MB), (AR, BWD, 8 * MB)], Degrees(tp=4)),
        (
            [(AG, FWD, 8 * MB), (RS, FWD, 8 * MB), (AG, BWD, 8 * MB), (RS, BWD, 8 * MB)],
            Degrees(tp=4, sp=True),
        ),
        ([(A2A, FWD, 80 * MB), (A2A, BWD, 80 * MB), (AR, BWD, 5 * MB)], Degrees(dp=4, ep=4)),
    ],
)
def test_calls_of_all_ranks_tell_one_degree(calls: list[Call], degrees: Degrees) -> None:
    assert found([(ALL, calls)]).degrees == degrees


def test_axes_multiply_to_the_ranks_of_the_job() -> None:
    both = found(
        [
            ((0, 1), [(AR, FWD, 8 * MB), (AR, BWD, 8 * MB)]),
            ((0, 2, 4, 6), [(AR, BWD, 50 * MB)]),
        ],
        world=8,
    )
    assert both.degrees == Degrees(tp=2, dp=4)
    assert both.doubts == ()


def test_hybrid_shards_are_smaller_than_the_replicas() -> None:
    hybrid = found(
        [
            (ALL, [(AG, FWD, MB), (AG, BWD, MB), (RS, BWD, MB)]),
            ((0, 4, 8), [(AR, BWD, MB)]),
        ],
        world=12,
    )
    assert hybrid.degrees == Degrees(dp=12, zero=3, shard=4)
    assert why(hybrid, "shard")[2] == "3 groups of 4 ranks that share state"


def test_ranks_that_nothing_divides_are_replicas_by_elimination() -> None:
    rest = found([((0, 1), [(AR, FWD, 8 * MB), (AR, BWD, 8 * MB)])], world=8)
    assert rest.degrees == Degrees(tp=2, dp=4)
    assert why(rest, "dp")[:2] == ("4", Sure.GUESSED)


def test_axes_that_do_not_make_the_world_are_doubted() -> None:
    odd = found([((0, 1, 2), [(AR, FWD, 8 * MB), (AR, BWD, 8 * MB)])], world=8)
    assert odd.degrees.tp == 3
    assert odd.doubts == ("the axes found make 3 ranks, the run has 8",)


def test_inference_has_nothing_but_activations_to_reduce() -> None:
    calls = [(ALL, [(AR, FWD, 8 * MB)])]
    evidence = why(found(calls, kind=Kind.INFERENCE), "tp")[2]
    assert "nothing but activations is there to reduce" in evidence


def test_a_named_context_group_that_exchanges_all_to_all_is_ulysses() -> None:
    calls = [((0, 1), [(A2A, FWD, MB), (A2A, BWD, MB)]), ((0, 2), [(AR, BWD, MB)])]
    context = found(calls, world=4, names={0: "CONTEXT_PARALLEL_GROUP"})
    assert context.degrees == Degrees(cp=2, dp=2, cp_kind=ContextKind.ALL_TO_ALL)


def test_all_to_all_without_a_name_is_doubted() -> None:
    calls = [((0, 1), [(A2A, FWD, MB), (A2A, BWD, MB)]), (ALL, [(AR, BWD, MB)])]
    unnamed = found(calls)
    assert unnamed.degrees.ep == 2
    assert why(unnamed, "ep")[1] is Sure.GUESSED
    assert "tables of embeddings, or heads against sequence" in unnamed.doubts[0]


def test_gradients_are_reduced_over_context_ranks_too() -> None:
    calls = [((0, 1), [(A2A, FWD, MB), (A2A, BWD, MB)]), (ALL, [(AR, BWD, 50 * MB)])]
    context = found(calls, world=4, names={0: "CONTEXT_PARALLEL_GROUP", 1: "DATA_PARALLEL_GROUP"})
    assert (context.degrees.cp, context.degrees.dp, context.doubts) == (2, 2, ())
    assert "the 2 context ranks of each" in why(context, "dp")[2]


def test_heads_against_sequence_are_no_experts_where_replicas_share_the_ranks() -> None:
    calls = [((0, 1), [(A2A, FWD, MB), (A2A, BWD, MB)]), ((0, 1), [(AR, BWD, 50 * MB)])]
    named = {0: "CONTEXT_PARALLEL_GROUP", 1: "DATA_PARALLEL_GROUP_WITH_CP"}
    shared = found(calls, world=2, names=named)
    assert shared.degrees == Degrees(cp=2, cp_kind=ContextKind.ALL_TO_ALL)
