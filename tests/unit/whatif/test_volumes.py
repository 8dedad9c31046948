"""Volumes of collectives against the textbook."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as with_fields

from ingest.vocab import CollectiveKind
from whatif.models.exchanges.volume import Along, Of, Spot, Volume, Way
from whatif.models.shape import (
    Batch,
    ContextKind,
    Degrees,
    Elements,
    ModelShape,
    Options,
    Recompute,
    RunShape,
)
from whatif.models.transformer.parameters import model_parameters
from whatif.models.volumes import (
    calls_per_step,
    recomputed,
    stage_message_bytes,
    volumes,
)

MODEL = ModelShape(layers=4, hidden=1024, heads=16, ffn=4096, vocab=512)
BATCH = Batch(micro_batches=3, samples=2, sequence=512)
ROWS_BYTES = 2 * 512 * 1024 * 2
"""tokens x hidden x 2 bytes"""
LAYER = 12 * 1024 * 1024 + 2 * 1024
"""4 h^2 of attention, 8 h^2 of the feed-forward, two norms"""
ONE_TYPE = Elements(parameter=2, gradient=2)


def _sent_bytes(shape: RunShape, along: Along) -> float:
    """What each rank sends along an axis in a step."""
    rows = [row for row in volumes(shape) if row.along is along]
    return sum(row.sent_bytes * calls_per_step(row, shape) for row in rows)


def _shape(**degrees: object) -> RunShape:
    return RunShape(model=MODEL, degrees=Degrees(**degrees), batch=BATCH, elements=ONE_TYPE)


def _rows(shape: RunShape, along: Along) -> list[Volume]:
    return [row for row in volumes(shape) if row.along is along]


def _layers(shape: RunShape, along: Along) -> list[Volume]:
    return [row for row in _rows(shape, along) if row.of is Of.LAYER]


def test_one_rank_has_none() -> None:
    """Nobody to talk to."""
    assert volumes(_shape()) == ()


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_rings_send_what_the_textbook_says(ranks: int) -> None:
    """2(N-1)/N S for an all-reduce, half for its halves, S for a message."""
    row = replace(_rows(_shape(dp=ranks), Along.REPLICAS)[0], size_bytes=8_000)
    half = 8_000 * (ranks - 1) / ranks
    sent = {
        kind: replace(row, kind=kind).sent_bytes
        for kind in (
            CollectiveKind.ALL_REDUCE,
            CollectiveKind.ALL_GATHER,
            CollectiveKind.REDUCE_SCATTER,
            CollectiveKind.ALL_TO_ALL,
            CollectiveKind.SEND_RECV,
        )
    }
    assert list(sent.values()) == [2 * half, half, half, half, 8_000]


@pytest.mark.parametrize(("zero", "volumes_of_parameters"), [(0, 2), (1, 2), (2, 2), (3, 3)])
def test_zero_moves_two_or_three_times_the_parameters(
    zero: int, volumes_of_parameters: int
) -> None:
    """arXiv:1910.02054, section 7: 2 psi, 2 psi, 2 psi, 3 psi; (N-1)/N of it by rings."""
    shape = with_fields(_shape(dp=8, zero=zero), batch=with_fields(BATCH, micro_batches=1))
    along = Along.REPLICAS if zero == 0 else Along.SHARDS
    psi_bytes = model_parameters(MODEL).total * 2
    expected = volumes_of_parameters * psi_bytes * 7 / 8
    assert _sent_bytes(shape, along) == pytest.approx(expected)


def test_fully_sharded_parameters_come_for_every_micro_batch() -> None:
    """Forward, backward and gradients: each micro-batch."""
    shape = _shape(dp=8, zero=3)
    rows = _layers(shape, Along.SHARDS)
    assert [(row.kind, row.way, calls_per_step(row, shape)) for row in rows] == [
        (CollectiveKind.ALL_GATHER, Way.FORWARD, 12),
        (CollectiveKind.ALL_GATHER, Way.BACKWARD, 12),
        (CollectiveKind.REDUCE_SCATTER, Way.BACKWARD, 12),
    ]


def test_gradients_are_summed_once_per_step() -> None:
    """Of three micro-batches with the last."""
    shape = _shape(dp=8)
    (row,) = _layers(shape, Along.REPLICAS)
    assert (calls_per_step(row, shape), row.size_bytes) == (4, 2 * LAYER)


def test_hybrid_shards_sum_their_parts_over_groups() -> None:
    """Reduce-scatter of all in the group of 4, all-reduce of a quarter over the 2 groups."""
    shape = _shape(dp=8, zero=3, shard=4)
    scatter = next(
        row for row in _layers(shape, Along.SHARDS) if row.kind is CollectiveKind.REDUCE_SCATTER
    )
    (outer,) = _layers(shape, Along.REPLICAS)
    assert (scatter.members, scatter.size_bytes) == (4, 2 * LAYER)
    assert (outer.members, outer.size_bytes) == (2, 2 * LAYER // 4)


def test_tensor_parallel_sums_four_times_per_layer() -> None:
    """arXiv:1909.08053: two all-reduces forward, two backward, each of tokens x hidden."""
    shape = _shape(tp=8)
    layers = [row for row in _rows(shape, Along.TENSOR) if row.of is Of.LAYER]
    assert [(row.kind, row.size_bytes) for row in layers] == [
        (CollectiveKind.ALL_REDUCE, ROWS_BYTES)
    ] * 4
    assert sorted(row.way for row in layers) == [Way.BACKWARD] * 2 + [Way.FORWARD] * 2


def test_sequence_parallel_moves_as_much_and_gathers_again() -> None:
    """arXiv:2205.05198: all-gather + reduce-scatter = all-reduce; inputs again, beside."""
    whole, divided = _shape(tp=8), _shape(tp=8, sp=True)
    again = [row for row in _rows(divided, Along.TENSOR) if row.beside]
    extra = sum(row.sent_bytes * calls_per_step(row, divided) for row in again)
    moved = _sent_bytes(divided, Along.TENSOR)
    assert moved - extra == pytest.approx(_sent_bytes(whole, Along.TENSOR))
    assert sum(calls_per_step(row, divided) for row in again) == 2 * 4 * 3


def test_logits_are_never_gathered() -> None:
    """Three numbers per token instead of the vocabulary."""
    rows = [row for row in _rows(_shape(tp=8), Along.TENSOR) if row.spot is Spot.LOSS]
    assert [(row.count, row.size_bytes) for row in rows] == [(3, 2 * 512 * 4)]


def test_context_ring_passes_keys_and_values() -> None:
    """cp-1 messages of K and V of a rank's tokens; backward with their gradients."""
    forward, backward = _rows(_shape(cp=4), Along.CONTEXT)
    block = 2 * (2 * 128) * 1024 * 2
    assert (forward.count, forward.size_bytes) == (3, block)
    assert (backward.count, backward.size_bytes) == (3, 2 * block)


def test_grouped_queries_pass_fewer_keys() -> None:
    """4 of 16 heads: a quarter."""
    shape = with_fields(_shape(cp=4), model=with_fields(MODEL, kv_heads=4))
    assert _rows(shape, Along.CONTEXT)[0].size_bytes * 4 == (
        _rows(_shape(cp=4), Along.CONTEXT)[0].size_bytes
    )


def test_heads_against_sequence_four_times_per_direction() -> None:
    """Queries, keys, values and outputs."""
    shape = _shape(cp=4, cp_kind=ContextKind.ALL_TO_ALL)
    rows = _rows(shape, Along.CONTEXT)
    assert sum(row.count for row in rows if row.way is Way.FORWARD) == 4
    assert {row.size_bytes for row in rows} == {ROWS_BYTES // 4}


def test_experts_get_their_tokens_and_give_them_back() -> None:
    """Tokens x top_k x hidden, times the fullest rank; four times per layer with experts."""
    model = with_fields(MODEL, experts=16, top_k=2, dense_layers=1)
    shape = with_fields(
        _shape(dp=8, ep=8), model=model, options=Options(imbalance=1.5, capacity=1.25)
    )
    rows = _rows(shape, Along.EXPERT)
    assert [row.size_bytes for row in rows] == [ROWS_BYTES * 2 * 5 // 4] * 4
    assert sum(calls_per_step(row, shape) for row in rows) == 4 * 3 * 3


def test_gradients_of_experts_meet_fewer_replicas() -> None:
    """Of 8 replicas over which 4 ranks spread the experts, 2 hold the same."""
    model = with_fields(MODEL, experts=16)
    rows = _rows(with_fields(_shape(dp=8, ep=4), model=model), Along.REPLICAS)
    dense, routed = [row for row in rows if row.of is Of.EXPERTS]
    assert (dense.members, routed.members) == (8, 2)
    assert routed.size_bytes == 16 * 8 * 1024 * 1024 * 2 // 4


def test_a_model_of_known_size_only_shares_it_evenly() -> None:
    """48 million parameters in 4 layers."""
    shape = RunShape(
        model=ModelShape(layers=4, parameters=48_000_000), degrees=Degrees(dp=2), batch=BATCH
    )
    assert [row.size_bytes for row in volumes(shape) if row.along is Along.REPLICAS] == [48_000_000]


def test_what_is_not_told_is_unknown() -> None:
    """No size out of nothing."""
    shape = RunShape(model=ModelShape(layers=4), degrees=Degrees(dp=2, tp=2))
    layers = [row for row in volumes(shape) if row.of is Of.LAYER]
    assert {row.size_bytes for row in layers} == {-1}


def test_messages_between_stages() -> None:
    """All rows, or with sequence parallelism each rank its own."""
    assert stage_message_bytes(_shape(tp=8, pp=2)) == ROWS_BYTES
    assert stage_message_bytes(_shape(tp=8, pp=2, sp=True)) == ROWS_BYTES // 8


def test_recomputed_layers_sum_again() -> None:
    """Only what lies inside, only with all of it computed again."""
    full = with_fields(_shape(tp=8), options=Options(recompute=Recompute.FULL))
    again = [row for row in volumes(full) if recomputed(row, full)]
    assert [row.spot for row in again] == [Spot.ATTENTION_OUT, Spot.FFN_OUT]
    assert not any(recomputed(row, _shape(tp=8)) for row in volumes(_shape(tp=8)))


def test_gradients_add_up_to_the_sum_of_parameters_that_is_given() -> None:
    model = ModelShape(layers=2, hidden=1024, heads=16, ffn=4096, vocab=4096, parameters=20_000_000)
    shape = RunShape(model=model, degrees=Degrees(dp=4), elements=Elements(gradient=2))
    reduced = sum(
        row.size_bytes * calls_per_step(row, shape)
        for row in volumes(shape)
        if row.along is Along.REPLICAS
    )
    assert reduced == pytest.approx(2 * 20_000_000, rel=1e-6)
