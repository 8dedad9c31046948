"""Memory of a rank: equal to the papers' closed forms, by part."""

import pytest
from msgspec.structs import replace

from ingest.errors import UserError
from whatif.models.memory.device import fits, needed
from whatif.models.memory.layer import saved_bytes, working_bytes
from whatif.models.memory.rank import activations_of, fullest, is_told, memory_of
from whatif.models.memory.stages import stages_of
from whatif.models.memory.state import state_of
from whatif.models.memory.suggest import suggestions
from whatif.models.shape import (
    Batch,
    Degrees,
    Elements,
    ModelShape,
    Options,
    Recompute,
    RunShape,
    Schedule,
)
from whatif.models.transformer.parameters import model_parameters

GIB = 2**30
H, A, L, S, B, T = 6144, 64, 48, 2048, 4, 8
"""The 22B model of arXiv:2205.05198, table 3."""
SBH = S * B * H
NO_PART = ("stage", "beside_bytes")
GPT = ModelShape(
    layers=L, hidden=H, heads=A, ffn=4 * H, vocab=51200, bias=True, dropout=True, tied=True
)
LLAMA = ModelShape(
    layers=32, hidden=4096, heads=32, kv_heads=8, ffn=14336, gated=True, vocab=128256
)


def gpt(
    *, tp: int = 1, sp: bool = False, recompute: Recompute = Recompute.NONE, fused: bool = False
) -> RunShape:
    return RunShape(
        model=GPT,
        degrees=Degrees(tp=tp, sp=sp),
        batch=Batch(samples=B, sequence=S),
        options=Options(recompute=recompute, fused_attention=fused),
    )


def llama(**degrees: int) -> RunShape:
    return RunShape(
        model=LLAMA, degrees=Degrees(**degrees), batch=Batch(micro_batches=8, samples=1, sequence=S)
    )


@pytest.mark.parametrize(
    ("shape", "bytes_of_sbh"),
    [
        (gpt(), 34 + 5 * A * S / H),
        (gpt(tp=T), 10 + 24 / T + 5 * A * S / (H * T)),
        (gpt(tp=T, sp=True), (34 + 5 * A * S / H) / T),
        (gpt(tp=T, recompute=Recompute.SELECTIVE), 10 + 24 / T),
        (gpt(tp=T, sp=True, recompute=Recompute.SELECTIVE), 34 / T),
        (gpt(tp=T, recompute=Recompute.FULL), 2),
    ],
)
def test_a_layer_keeps_what_table_2_of_the_paper_says(shape: RunShape, bytes_of_sbh: float) -> None:
    assert saved_bytes(shape, has_experts=False) == pytest.approx(SBH * bytes_of_sbh)


def test_attention_in_one_kernel_keeps_a_number_per_row_instead_of_the_scores() -> None:
    # dropout's masks behind both halves stay
    assert saved_bytes(gpt(fused=True), has_experts=False) == SBH * 34 + 4 * S * B * A


def test_a_gated_layer_with_grouped_heads_keeps_each_tensor_once() -> None:
    h, q, kv, f = 4096, 4096, 1024, 14336
    per_token = 2 * (4 * h + q + 2 * kv + q + 3 * f) + 4 * 32
    assert saved_bytes(llama(), has_experts=False) == S * per_token


def test_recomputing_all_needs_in_backward_what_was_not_kept() -> None:
    whole, kept = (
        saved_bytes(gpt(recompute=how), has_experts=False)
        for how in (Recompute.NONE, Recompute.FULL)
    )
    extra = working_bytes(gpt(recompute=Recompute.FULL), has_experts=False) - working_bytes(
        gpt(), has_experts=False
    )
    assert extra == whole - kept


@pytest.mark.parametrize(
    ("zero", "each"),
    [(0, 16), (1, 4 + 12 / 64), (2, 2 + 14 / 64), (3, 16 / 64)],
)
def test_zero_divides_state_as_figure_1_of_its_paper_says(zero: int, each: float) -> None:
    shape = replace(llama(dp=64, zero=zero), elements=Elements(gradient=2))
    state = state_of(shape, stages_of(shape)[0])
    assert state.total_bytes == pytest.approx(each * model_parameters(LLAMA).total)


def test_context_ranks_share_state_with_the_replicas() -> None:
    alone, with_context = (
        state_of(shape, stages_of(shape)[0]).optimizer_bytes
        for shape in (llama(dp=8, zero=1), llama(dp=2, cp=4, zero=1))
    )
    assert alone == with_context


def test_experts_are_shared_by_the_replicas_that_hold_the_same_ones() -> None:
    model = replace(LLAMA, experts=8, top_k=2, expert_ffn=14336)
    shape = RunShape(
        model=model,
        degrees=Degrees(dp=8, ep=4, zero=1),
        batch=Batch(samples=1, sequence=S),
    )
    held = model_parameters(model)
    dense, routed = held.divided + held.whole, held.routed
    optimizer = state_of(shape, stages_of(shape)[0]).optimizer_bytes
    assert optimizer == pytest.approx(12 * (dense / 8 + routed / 4 / 2))


@pytest.mark.parametrize(
    ("schedule", "virtual", "held"),
    [
        (Schedule.ONE_F_ONE_B, 1, 4),
        (Schedule.GPIPE, 1, 8),
        (Schedule.INTERLEAVED, 2, 4 * (1 + 3 / 8)),
        (Schedule.ZERO_BUBBLE, 1, 4),
    ],
)
def test_the_first_stage_keeps_as_many_micro_batches_as_its_schedule_lets_in(
    schedule: Schedule, virtual: int, held: float
) -> None:
    shape = replace(llama(pp=4, virtual_stages=virtual), options=Options(schedule=schedule))
    activations = activations_of(shape, stages_of(shape)[0])
    assert activations == pytest.approx(held * 8 * saved_bytes(shape, has_experts=False))


def test_the_last_stage_of_1f1b_keeps_one_micro_batch_and_has_the_logits() -> None:
    shape = llama(pp=4)
    first, *_, last = memory_of(shape)
    assert first.activations_bytes == 4 * last.activations_bytes
    assert (first.logits_bytes, last.logits_bytes > 0) == (0, True)


@pytest.mark.parametrize("schedule", [Schedule.ONE_F_ONE_B, Schedule.GPIPE, Schedule.ZERO_BUBBLE])
def test_the_fullest_rank_is_that_of_all_stages(schedule: Schedule) -> None:
    shape = replace(llama(pp=8), options=Options(schedule=schedule))
    stages = memory_of(shape)
    one = fullest(shape)
    assert one.peak_bytes == max(stage.peak_bytes for stage in stages)
    high = max(stage.peak_bytes + stage.beside_bytes for stage in stages)
    assert one.peak_bytes + one.beside_bytes == pytest.approx(high)


def test_some_layers_recomputed_lie_between_none_and_all() -> None:
    none, some, full = (
        activations_of(shape, stages_of(shape)[0])
        for shape in (
            gpt(),
            replace(
                gpt(),
                options=Options(
                    recompute=Recompute.FULL, recompute_layers=12, fused_attention=False
                ),
            ),
            gpt(recompute=Recompute.FULL),
        )
    )
    assert some == pytest.approx(none * 3 / 4 + full / 4)


def test_parts_add_up_to_the_peak() -> None:
    one = fullest(llama(dp=8, zero=3))
    parts = [getattr(one, name) for name in type(one).__slots__ if name not in NO_PART]
    assert one.peak_bytes == pytest.approx(sum(parts))


def test_a_model_of_which_sizes_are_missing_is_not_told() -> None:
    shape = RunShape(model=ModelShape(layers=4, parameters=1000))
    assert not is_told(shape)
    with pytest.raises(UserError):
        fullest(shape)


def test_between_what_tensors_hold_and_what_the_allocator_may_reserve_nobody_knows() -> None:
    peak = 70 * GIB
    assert fits(peak, 80 * GIB) is True
    assert fits(peak, 69 * GIB) is False
    assert fits(peak, 71 * GIB) is None
    assert needed(peak).high_bytes == peak * 1.07 + GIB


def test_suggested_changes_fit_and_the_step_before_each_does_not() -> None:
    shape = RunShape(model=LLAMA, degrees=Degrees(dp=8), batch=Batch(samples=1, sequence=8192))
    device = 80 * GIB
    assert fits(fullest(shape).peak_bytes, device) is False
    found = {one.flags: one.peak_bytes for one in suggestions(shape, device)}
    assert set(found) == {"--zero 3", "--tp 4", "--pp 4"}
    assert all(fits(peak, device) for peak in found.values())
    less = replace(shape, degrees=Degrees(dp=8, zero=2))
    assert not fits(fullest(less).peak_bytes, device)


def test_where_no_change_is_enough_several_are_put_together() -> None:
    model = replace(LLAMA, layers=126, hidden=16384, heads=128, ffn=53248)
    shape = RunShape(model=model, batch=Batch(samples=1, sequence=8192))
    (found,) = suggestions(shape, 80 * GIB)
    assert "--tp 8" in found.flags
    assert "--pp" in found.flags
    assert fits(found.peak_bytes, 80 * GIB)
