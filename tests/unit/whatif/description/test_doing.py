"""What work does, by the names of operators and kernels."""

import pytest

from ingest.vocab import KernelClass
from whatif.description.doing import Doing, doing_of

OTHER, GEMM, ELEMENTWISE = KernelClass.OTHER, KernelClass.GEMM, KernelClass.ELEMENTWISE


@pytest.mark.parametrize(
    ("ops", "kernel", "kernel_class", "expected"),
    [
        (("aten::linear", "aten::addmm"), "", OTHER, Doing.PRODUCT),
        (("aten::linear", "aten::t"), "", OTHER, Doing.PRODUCT),
        (("MmBackward0", "aten::mm"), "nvjet_tst", GEMM, Doing.PRODUCT),
        ((), "ampere_fp16_gemm", GEMM, Doing.PRODUCT),
        (("aten::scaled_dot_product_attention",), "flash_fwd_kernel", OTHER, Doing.ATTENTION),
        ((), "_ZN7cutlass13device_kernelIflash_fwd", GEMM, Doing.PRODUCT),
        (("ScaledUpperTriangMaskedSoftmax",), "warp", OTHER, Doing.SOFTMAX),
        (("aten::log_softmax",), "softmax_kernel", OTHER, Doing.LOSS),
        (("_C::rotary_embedding",), "kernel", OTHER, Doing.ROTARY),
        (("aten::embedding", "aten::index_select"), "", OTHER, Doing.EMBEDDING),
        (("aten::_foreach_copy_",), "multi_tensor_apply_kernel", OTHER, Doing.GRADIENT),
        (("aten::_fused_adamw_",), "multi_tensor_apply_kernel", OTHER, Doing.OPTIMIZER),
        (("aten::layer_norm", "aten::native_layer_norm"), "", OTHER, Doing.NORM),
        (("aten::view",), "", OTHER, Doing.NOTHING),
        (("aten::add",), "vectorized", ELEMENTWISE, Doing.SUM),
        (("c10d::send",), "", OTHER, Doing.MESSAGE),
        (("_c10d_functional::all_reduce", "c10d::allreduce_"), "", OTHER, Doing.EXCHANGE),
        ((), "", OTHER, Doing.NOTHING),
    ],
)
def test_names_say_what_is_done(
    ops: tuple[str, ...], kernel: str, kernel_class: KernelClass, expected: Doing
) -> None:
    assert doing_of(ops, kernel, int(kernel_class)) is expected


def test_what_a_compiler_fused_is_not_what_stands_beside_it() -> None:
    name = "triton_poi_fused__unsafe_view_add_embedding_split_view_4"
    assert doing_of((name,), name, int(OTHER)) is Doing.ELEMENTS
    norm = "triton_red_fused__fused_rms_norm_add_3"
    assert doing_of((norm,), norm, int(OTHER)) is Doing.NORM
