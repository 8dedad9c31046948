"""Bytes and types that recorded inputs tell, counted by hand."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.vocab import ElementType
from replay.results.kernel_names import element_type, tile
from replay.results.operands import NOT_KNOWN, operands_of

BF16, FLOAT = "c10::BFloat16", "float"


def of(name: str, *inputs: tuple[object, str]) -> tuple[float, float]:
    dims = json.dumps([shape for shape, _ in inputs])
    types = json.dumps([kind for _, kind in inputs])
    found = operands_of(name, dims, types)
    return found.bytes, found.operand_bytes


@pytest.mark.parametrize(
    ("name", "inputs", "moved"),
    [
        ("aten::mm", [([32, 64], BF16), ([64, 16], BF16)], 2 * (32 * 64 + 64 * 16 + 32 * 16)),
        (
            "aten::addmm",
            [([16], BF16), ([32, 64], BF16), ([64, 16], BF16), ([], "Scalar")],
            2 * (16 + 32 * 64 + 64 * 16 + 32 * 16),
        ),
        ("aten::bmm", [([4, 8, 8], FLOAT), ([4, 8, 8], FLOAT)], 4 * 3 * 4 * 64),
        ("aten::add", [([32, 64], BF16), ([64], BF16), ([], "Scalar")], 2 * (2 * 32 * 64 + 64)),
        ("aten::add_", [([32, 64], BF16), ([32, 64], BF16)], 2 * 3 * 32 * 64),
        ("aten::copy_", [([32, 64], FLOAT), ([32, 64], BF16)], 6 * 32 * 64),
        ("aten::sum", [([32, 64], FLOAT)], 4 * 32 * 64),
        ("aten::gelu", [([32, 64], BF16), ([], "")], 2 * 2 * 32 * 64),
        ("aten::cat", [([[2, 3], [4, 3]], "TensorList"), ([], "Scalar")], 2 * 2 * 18),
        ("aten::embedding", [([50_000, 64], BF16), ([2, 8], "long int")], 2 * 16 * 128 + 16 * 8),
        ("triton_poi_fused_add_0", [([64], FLOAT), ([64], FLOAT), ([64], FLOAT)], 3 * 256),
        ("aten::native_layer_norm", [([8, 64], BF16), ([], "ScalarList")], 2 * 2 * 8 * 64),
        (
            "aten::_flash_attention_forward",
            [([1, 8, 2, 64], BF16), ([1, 8, 2, 64], BF16), ([1, 8, 2, 64], BF16)],
            4 * 2 * 8 * 2 * 64,
        ),
    ],
)
def test_every_tensor_counts_once(name: str, inputs: list, moved: float) -> None:
    assert of(name, *inputs)[0] == moved


SCALAR = ([], "Scalar")
E4M3 = "c10::Float8_e4m3fn"


@pytest.mark.parametrize(
    ("name", "inputs", "out"),
    [
        ("aten::mm", [([32, 64], BF16), ([64, 16], BF16)], ([32, 16], BF16)),
        ("aten::mm", [([32, 32], BF16), ([32, 32], BF16)], ([32, 32], BF16)),
        (
            "aten::addmm",
            [([16], BF16), ([32, 64], BF16), ([64, 16], BF16), SCALAR, SCALAR],
            ([32, 16], BF16),
        ),
        ("aten::bmm", [([4, 8, 2], FLOAT), ([4, 2, 8], FLOAT)], ([4, 8, 8], FLOAT)),
        (
            "aten::baddbmm",
            [([4, 8, 8], BF16), ([4, 8, 8], BF16), ([4, 8, 8], BF16), SCALAR, SCALAR],
            ([4, 8, 8], BF16),
        ),
        (
            "aten::_scaled_mm",
            [([32, 64], E4M3), ([64, 16], E4M3), ([], FLOAT), ([], FLOAT), SCALAR],
            ([32, 16], BF16),
        ),
        (
            "aten::_scaled_mm",
            [([32, 64], E4M3), ([64, 16], E4M3), ([32, 1], FLOAT), ([1, 16], FLOAT), SCALAR],
            ([32, 16], BF16),
        ),
        (
            "aten::_int_mm",
            [([32, 64], "signed char"), ([64, 16], "signed char")],
            ([32, 16], "int"),
        ),
        ("aten::add", [([32, 64], BF16), ([64], BF16), SCALAR], ([32, 64], BF16)),
        ("aten::mul", [([32, 64], BF16), ([32, 64], BF16)], ([32, 64], BF16)),
        ("aten::sqrt", [([32, 64], FLOAT)], ([32, 64], FLOAT)),
        ("aten::where", [([8], FLOAT), ([8], FLOAT), ([8], FLOAT)], ([8], FLOAT)),
        ("aten::cat", [([[2, 3], [2, 3]], "TensorList"), SCALAR], ([4, 3], BF16)),
    ],
)
def test_an_output_that_the_caller_gives_counts_once(name: str, inputs: list, out: tuple) -> None:
    assert of(name, *inputs, out)[0] == of(name, *inputs)[0]


def test_what_makes_a_tensor_reads_none() -> None:
    assert of("aten::arange", SCALAR, SCALAR, ([8], "long int"))[0] == 64


def test_operands_of_a_product_are_its_two_matrices() -> None:
    inputs = (([16], BF16), ([32, 64], BF16), ([64, 16], BF16))
    assert of("aten::addmm", *inputs)[1] == 2 * (32 * 64 + 64 * 16)


def test_the_type_is_that_of_what_is_multiplied() -> None:
    found = operands_of("aten::addmm", "[[16],[32,64],[64,16]]", f'["{FLOAT}","{BF16}","{BF16}"]')
    assert found.dtype == ElementType.BF16
    assert found.product == (1, 32, 16)


@pytest.mark.parametrize(
    ("dims", "types"), [("", ""), ("[", "[]"), ("{}", "[]"), ("[[1]]", ""), ("null", "null")]
)
def test_what_was_not_recorded_is_not_known(dims: str, types: str) -> None:
    assert operands_of("aten::mm", dims, types) == NOT_KNOWN


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=12,
)


@given(
    st.sampled_from(["aten::mm", "aten::add", "aten::cat", "aten::embedding", "x", ""]),
    st.lists(json_values, max_size=4),
    st.lists(st.sampled_from([BF16, FLOAT, "TensorList", "Scalar", "", 7]), max_size=4),
)
def test_no_input_breaks_it(name: str, dims: list, types: list) -> None:
    found = operands_of(name, json.dumps(dims), json.dumps(types))
    assert math.isnan(found.bytes) or found.bytes >= 0


@pytest.mark.parametrize(
    ("name", "dtype", "blocks"),
    [
        (
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute",
            ElementType.BF16,
            (128, 128),
        ),
        (
            "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x6_tn",
            ElementType.BF16,
            (128, 64),
        ),
        ("cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_nn_align1", ElementType.BF16, (128, 128)),
        (
            "ampere_fp16_s16816gemm_fp16_256x128_ldg8_f2f_stages_32x3_tn",
            ElementType.FP16,
            (256, 128),
        ),
        ("ampere_sgemm_128x64_nn", ElementType.FP32, (128, 64)),
        ("volta_sgemm_128x32_tn", ElementType.FP32, (128, 32)),
        ("cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4", ElementType.TF32, (128, 128)),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x64x8", ElementType.TF32, (64, 64)),
        ("volta_fp16_s884gemm_fp16_64x64_ldg8_f2f_nt", ElementType.FP16, (64, 64)),
        (
            "Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT256x128x64_MI16x16x1",
            ElementType.BF16,
            (256, 128),
        ),
        ("Cijk_Alik_Bljk_HHS_BH_MT64x32x32_MI16x16x16x1", ElementType.FP16, (64, 32)),
        ("Cijk_Ailk_Bljk_SB_MT64x64x16_MI32x32x2x1", ElementType.FP32, (64, 64)),
        ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNN", ElementType.BF16, (128, 256)),
        ("nvjet_qqtst_128x128_128x6_1x2_h_bz_TNT", ElementType.FP8, (128, 128)),
        ("nvjet_rqsss_144x128_128x6_1x2_h_bz_coopA_algo2_TNN", ElementType.FP8, (144, 128)),
        ("volta_scudnn_128x64_relu_interior_nn_v1", ElementType.FP32, (128, 64)),
        ("void cudnn::detail::dgrad_engine<float, 512, 6>(int)", ElementType.FP32, (0, 0)),
        ("cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1", ElementType.FP64, (64, 64)),
        (
            "cutlass_80_tensorop_f16_s16816gemm_relu_f16_256x128_32x3_tn",
            ElementType.FP16,
            (256, 128),
        ),
        ("cutlass_75_tensorop_s1688gemm_f16_256x128_nt_align8", ElementType.FP16, (256, 128)),
        (
            "sm90_xmma_gemm_f16f32_f16f32_f32_tn_n_tilesize128x128x64",
            ElementType.FP16,
            (128, 128),
        ),
        ("sm80_xmma_gemm_f64f64_f64f64_f64_tn_n_tilesize64x64x16", ElementType.FP64, (64, 64)),
        ("attn_fwd", ElementType.UNKNOWN, (0, 0)),
    ],
)
def test_names_tell_types_and_tiles(name: str, dtype: ElementType, blocks: tuple[int, int]) -> None:
    assert element_type(name) == dtype
    assert tile(name) == blocks
