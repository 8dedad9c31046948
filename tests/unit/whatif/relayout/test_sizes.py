"""Sizes of a target over those of the recorded run, also of models of which little is known."""

import pytest
from msgspec.structs import replace

from whatif.models.shape import Batch, ContextKind, Degrees, ModelShape, RunShape
from whatif.transforms.relayout.sizes import Sizes, sizes_of

KNOWN = ModelShape(layers=4, hidden=1024, heads=16, kv_heads=4, ffn=4096, vocab=32000)
MODELS = (
    ModelShape(),
    ModelShape(parameters=1_000_000),
    ModelShape(layers=4),
    ModelShape(layers=4, parameters=1_000_000),
    KNOWN,
)


@pytest.mark.parametrize("model", MODELS)
def test_of_the_recorded_shape_nothing_changes(model: ModelShape) -> None:
    shape = RunShape(model=model, degrees=Degrees(tp=2, dp=4, zero=1))
    assert sizes_of(shape, shape) == Sizes()
    assert sizes_of(shape, shape).is_same


@pytest.mark.parametrize("model", MODELS)
def test_a_batch_is_scaled_whether_or_not_it_is_known(model: ModelShape) -> None:
    before = RunShape(model=model)
    sizes = sizes_of(before, replace(before, batch=Batch(samples=2.0)))
    assert (sizes.tokens, sizes.whole, sizes.columns, sizes.state) == (2.0, 2.0, 1.0, 1.0)


@pytest.mark.parametrize("model", MODELS[2:])
def test_degrees_divide_what_they_divide(model: ModelShape) -> None:
    before = RunShape(model=model, degrees=Degrees(dp=8))
    target = RunShape(model=model, degrees=Degrees(dp=8, tp=2, cp=4, cp_kind=ContextKind.RING))
    sizes = sizes_of(before, target)
    assert (sizes.columns, sizes.queries, sizes.keys) == (0.5, 0.25, 1.0)
    assert sizes.whole == sizes.tokens == 0.25
    assert sizes.state == pytest.approx(0.5, rel=0.01)


def test_sequence_parallel_divides_whole_rows_and_back() -> None:
    before = RunShape(model=KNOWN, degrees=Degrees(tp=4))
    after = RunShape(model=KNOWN, degrees=Degrees(tp=4, sp=True))
    assert sizes_of(before, after).whole == 0.25
    assert sizes_of(after, before).whole == 4.0


@pytest.mark.parametrize(("zero", "share"), [(0, 1.0), (1, 0.125), (3, 0.125)])
def test_sharded_state_is_divided_by_replicas(zero: int, share: float) -> None:
    before = RunShape(model=KNOWN, degrees=Degrees(dp=8))
    after = RunShape(model=KNOWN, degrees=Degrees(dp=8, zero=zero))
    assert sizes_of(before, after).state == pytest.approx(share, rel=1e-12)


def test_keys_and_values_are_never_less_than_a_head() -> None:
    batch = Batch(samples=1.0, sequence=128)
    before = RunShape(model=KNOWN, batch=batch)
    after = replace(before, degrees=Degrees(tp=8))
    assert sizes_of(before, after).qkv == (2 + 2 * 1) / (16 + 2 * 4)


def test_stages_update_an_equal_part_at_the_mean() -> None:
    before = RunShape(model=KNOWN)
    after = replace(before, degrees=Degrees(pp=4))
    assert sizes_of(before, after).state == pytest.approx(0.25, rel=1e-12)
