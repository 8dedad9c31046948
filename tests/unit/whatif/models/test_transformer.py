"""Work and parameters of transformers against the formulas of papers and published counts."""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from tests.published_models import DEEPSEEK_V2, DEEPSEEK_V3, LLAMA3
from whatif.models.places import Part, Pass, Place
from whatif.models.shape import (
    Batch,
    Degrees,
    ModelShape,
    Options,
    Recompute,
    RunShape,
)
from whatif.models.transformer.dims import dims_of
from whatif.models.transformer.parameters import (
    held_by_rank,
    model_parameters,
    stage_held,
    state_parameters,
)
from whatif.models.transformer.work import Work, WorkKind
from whatif.models.transformer.works import optimizer_works, works_of

GPT3 = ModelShape(
    layers=96, hidden=12288, heads=96, ffn=4 * 12288, vocab=51200, bias=True, tied=True
)
MIXTRAL = ModelShape(
    layers=32,
    hidden=4096,
    heads=32,
    kv_heads=8,
    ffn=14336,
    expert_ffn=14336,
    vocab=32000,
    gated=True,
    experts=8,
    top_k=2,
)
DIRECTIONS = (Pass.FORWARD, Pass.BACKWARD_INPUT, Pass.BACKWARD_WEIGHT)


def run(model: ModelShape, degrees: Degrees | None = None, **batch: float) -> RunShape:
    """A shape with a batch of 2 samples of 2,048 tokens unless said otherwise."""
    sizes = {"samples": 2.0, "sequence": 2048} | batch
    return RunShape(model=model, degrees=degrees or Degrees(), batch=Batch(**sizes))


def flops_of(works: Iterable[Work]) -> float:
    return sum(work.flops for work in works)


@pytest.mark.parametrize(
    ("model", "published"),
    [
        (GPT3, 174.6e9),  # arXiv:2104.04473, table 1
        (LLAMA3["8B"], 8.03e9),
        (LLAMA3["70B"], 70.55e9),
        (MIXTRAL, 46.7e9),
        (DEEPSEEK_V2, 236e9),
        (DEEPSEEK_V3, 671e9),
    ],
    ids=["gpt3", "llama8b", "llama70b", "mixtral", "deepseek_v2", "deepseek_v3"],
)
def test_parameters_are_those_published(model: ModelShape, published: float) -> None:
    assert model_parameters(model).total == pytest.approx(published, rel=0.005)


@pytest.mark.parametrize(
    ("model", "published"),
    [(MIXTRAL, 12.9e9), (DEEPSEEK_V2, 21e9), (DEEPSEEK_V3, 37e9)],
    ids=["mixtral", "deepseek_v2", "deepseek_v3"],
)
def test_active_parameters_are_those_published(model: ModelShape, published: float) -> None:
    held = model_parameters(model)
    assert model.experts is not None
    met = held.divided + held.whole + held.routed * model.top_k / model.experts
    assert met == pytest.approx(published, rel=0.03)


def test_flops_of_a_step_are_those_of_the_paper() -> None:
    batch, seq, layers, hidden, vocab = 1536.0, 2048, 96, 12288, 51200
    # All of the scores count in the paper, also those that a causal mask drops.
    shape = RunShape(model=replace(GPT3, causal=False), batch=Batch(samples=batch, sequence=seq))
    layer, head = (
        flops_of(works_of(shape, part, Pass.FORWARD)) for part in (Part.LAYER, Part.HEAD)
    )
    paper = (
        72
        * batch
        * seq
        * layers
        * hidden**2
        * (1 + seq / (6 * hidden) + vocab / (12 * layers * hidden))
    )
    assert 3 * (layers * layer + head) == pytest.approx(paper, rel=1e-12)


@pytest.mark.parametrize("model", [GPT3, LLAMA3["8B"], MIXTRAL], ids=["gpt3", "llama", "mixtral"])
@pytest.mark.parametrize("degrees", [Degrees(tp=4), Degrees(tp=4, sp=True), Degrees(cp=2, tp=2)])
@pytest.mark.parametrize("part", [Part.LAYER, Part.HEAD])
def test_ranks_together_compute_what_one_did(
    model: ModelShape, degrees: Degrees, part: Part
) -> None:
    has_experts = model.experts is not None
    for direction in DIRECTIONS:
        alone = works_of(run(model), part, direction, has_experts=has_experts)
        divided = works_of(run(model, degrees), part, direction, has_experts=has_experts)
        whole = 1 if degrees.sp or degrees.tp == 1 else degrees.tp
        for one, each in zip(alone, divided, strict=True):
            # Every tensor rank routes for itself unless tokens are divided.
            routers = whole if one.place is Place.ROUTER else 1
            assert each.flops * degrees.world == pytest.approx(one.flops * routers, rel=1e-12)


def test_tensor_parallel_halves_columns_and_rows_exactly() -> None:
    alone = works_of(run(GPT3), Part.LAYER, Pass.FORWARD)
    halved = works_of(run(GPT3, Degrees(tp=2)), Part.LAYER, Pass.FORWARD)
    sizes = {
        one.place: ((one.m, one.n, one.k), (two.m, two.n, two.k))
        for one, two in zip(alone, halved, strict=True)
        if one.kind is WorkKind.PRODUCT
    }
    assert sizes[Place.QKV] == ((4096, 36864, 12288), (4096, 18432, 12288))
    assert sizes[Place.PROJECTION] == ((4096, 12288, 12288), (4096, 12288, 6144))
    assert sizes[Place.UP] == ((4096, 49152, 12288), (4096, 24576, 12288))
    assert sizes[Place.DOWN] == ((4096, 12288, 49152), (4096, 12288, 24576))


def test_norms_stay_whole_without_sequence_parallel() -> None:
    def norms(degrees: Degrees) -> float:
        rows = works_of(run(GPT3, degrees), Part.LAYER, Pass.FORWARD)
        return sum(row.bytes for row in rows if row.place is Place.NORM)

    assert norms(Degrees(tp=8)) == norms(Degrees())
    assert norms(Degrees(tp=8, sp=True)) == norms(Degrees()) / 8


def test_keys_and_values_are_never_less_than_a_head() -> None:
    assert dims_of(run(LLAMA3["8B"], Degrees(tp=16))).kv_heads == 1.0
    assert dims_of(run(LLAMA3["8B"], Degrees(tp=4))).kv_heads == 2.0


def test_backward_is_twice_the_products_of_forward() -> None:
    def products(direction: Pass) -> float:
        rows = works_of(run(LLAMA3["8B"]), Part.LAYER, direction)
        return flops_of(row for row in rows if row.kind is WorkKind.PRODUCT)

    assert products(Pass.BACKWARD) == 2 * products(Pass.FORWARD)
    assert products(Pass.BACKWARD_INPUT) == products(Pass.BACKWARD_WEIGHT)


def test_attention_grows_with_the_square_of_the_sequence() -> None:
    def core(**batch: float) -> float:
        rows = works_of(run(LLAMA3["8B"], **batch), Part.LAYER, Pass.FORWARD)
        return flops_of(row for row in rows if row.kind is WorkKind.ATTENTION)

    assert core(sequence=4096) == 4 * core(sequence=2048)
    # 4 s^2 d heads per sample, half of it under the mask (facts of FlashAttention 2).
    assert core(samples=1.0) == 4 * 2048**2 * 128 * 32 / 2


@pytest.mark.parametrize(
    ("options", "times"),
    [
        (Options(), 1.0),
        (Options(imbalance=1.5), 1.5),
        (Options(imbalance=1.5, capacity=1.25), 1.25),
    ],
)
def test_experts_get_what_is_routed_to_them(options: Options, times: float) -> None:
    shape = replace(run(MIXTRAL, Degrees(ep=4, dp=4)), options=options)
    rows = works_of(shape, Part.LAYER, Pass.FORWARD, has_experts=True)
    up = next(row for row in rows if row.place is Place.EXPERT)
    assert (up.batch, up.m, up.n) == (2, 4096 * 2 * times / 2, 2 * 14336)


def test_experts_in_a_rank_of_their_own_are_not_divided() -> None:
    spread = run(MIXTRAL, Degrees(tp=2, sp=True, dp=4, ep=8))
    up = next(
        row
        for row in works_of(spread, Part.LAYER, Pass.FORWARD, has_experts=True)
        if row.place is Place.EXPERT
    )
    assert (up.batch, up.m, up.n) == (1, 4096, 2 * 14336)


@pytest.mark.parametrize(
    ("recompute", "flops_over_forward"),
    [(Recompute.NONE, 0.0), (Recompute.FULL, 1.0)],
)
def test_recomputing_all_is_the_forward_again(
    recompute: Recompute, flops_over_forward: float
) -> None:
    shape = replace(run(GPT3), options=Options(recompute=recompute))
    forward = flops_of(works_of(shape, Part.LAYER, Pass.FORWARD))
    again = works_of(shape, Part.LAYER, Pass.RECOMPUTE)
    assert flops_of(again) == flops_over_forward * forward


def test_recomputing_selectively_is_the_core_of_attention() -> None:
    shape = replace(run(GPT3), options=Options(recompute=Recompute.SELECTIVE))
    (row,) = works_of(shape, Part.LAYER, Pass.RECOMPUTE)
    assert (row.place, row.direction) == (Place.ATTENTION, Pass.RECOMPUTE)


def test_stages_hold_the_model_together() -> None:
    shape = run(LLAMA3["8B"], Degrees(pp=4))
    held = sum(held_by_rank(shape, stage_held(shape, stage)) for stage in range(4))
    assert held == pytest.approx(model_parameters(LLAMA3["8B"]).total, rel=1e-12)


def test_a_given_sum_of_parameters_is_kept() -> None:
    shape = run(replace(LLAMA3["8B"], parameters=8_000_000_000), Degrees(pp=2))
    assert sum(
        held_by_rank(shape, stage_held(shape, stage)) for stage in range(2)
    ) == pytest.approx(8e9)


def test_an_unknown_model_is_spread_over_its_layers() -> None:
    shape = RunShape(model=ModelShape(layers=4, parameters=400), degrees=Degrees(tp=2))
    assert held_by_rank(shape, stage_held(shape, 0)) == 200


def test_adam_moves_its_state_in_one_pass() -> None:
    (row,) = optimizer_works(run(GPT3), 1_000.0)
    assert row.bytes == 1_000 * (2 * 12 + 4 + 2)


@pytest.mark.parametrize("ep", [1, 2, 4, 8])
def test_shards_of_experts_are_the_same_however_they_are_spread(ep: int) -> None:
    model = replace(MIXTRAL, layers=2)
    alone, spread = (run(model, Degrees(dp=8, zero=1, ep=each)) for each in (1, ep))
    assert state_parameters(spread) == pytest.approx(state_parameters(alone), rel=1e-12)
    assert state_parameters(alone) == pytest.approx(model_parameters(model).total / 8, rel=1e-12)


def test_without_shards_a_rank_updates_the_experts_that_it_holds() -> None:
    model = replace(MIXTRAL, layers=2)
    alone, spread = (run(model, Degrees(dp=8, ep=each)) for each in (1, 8))
    routed = 2 * 8 * 3 * 4096 * 14336
    assert state_parameters(alone) - state_parameters(spread) == routed * 7 / 8
