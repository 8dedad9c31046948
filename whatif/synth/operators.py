"""Works as PyTorch's profiler shows them: operators with shapes, kernels with names and grids."""

from dataclasses import dataclass
from math import ceil

from whatif.models.kernels.machine import Machine
from whatif.models.places import Pass, Place
from whatif.models.shape import RunShape
from whatif.models.transformer.dims import dims_of
from whatif.models.transformer.work import Work, WorkKind
from whatif.synth.script import Kernel
from whatif.synth.times import is_narrow, kernel_ns

TILE_ROWS, TILE_COLUMNS = 128, 256
BLOCK_BYTES = 16_384
"""What one block of a kernel that streams moves."""
MOST_BLOCKS = 2**31 - 1
_TYPES = {
    "fp32": "float",
    "tf32": "float",
    "fp16": "c10::Half",
    "bf16": "c10::BFloat16",
    "fp8": "c10::Float8_e4m3fn",
}
_SHORT = {"fp32": "f32", "tf32": "tf32", "fp16": "fp16", "bf16": "bf16", "fp8": "fp8"}
_NATIVE = "void at::native::"
_ANON = _NATIVE + "(anonymous namespace)::"
_POINTWISE = _NATIVE + "vectorized_elementwise_kernel<4, at::native::{0}>"

Dims = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """An operator and the kernel that it launches."""

    names: tuple[str, ...]
    """Outermost first."""
    node: str
    """Of the autograd graph: what backward evaluates; empty where there is none."""
    dims: Dims
    types: tuple[str, ...]
    kernel: Kernel
    work: Work


@dataclass(frozen=True, slots=True)
class _Shown:
    """How one place of what streams is shown, forward and backward."""

    forward: tuple[str, ...]
    forward_kernel: str
    node: str
    backward: tuple[str, ...]
    backward_kernel: str


_SHOWN: dict[Place, _Shown] = {
    Place.RESIDUAL: _Shown(
        ("aten::add",),
        _POINTWISE.format("CUDAFunctor_add<c10::BFloat16>"),
        "AddBackward0",
        ("aten::add",),
        _POINTWISE.format("CUDAFunctor_add<c10::BFloat16>"),
    ),
    Place.ATTENTION: _Shown(
        ("aten::mul",),
        _NATIVE + "elementwise_kernel<128, 4, rotary_embedding>",
        "MulBackward0",
        ("aten::mul",),
        _NATIVE + "elementwise_kernel<128, 4, rotary_embedding_backward>",
    ),
    Place.EMBEDDING: _Shown(
        ("aten::embedding", "aten::index_select"),
        _ANON + "indexSelectLargeIndex<c10::BFloat16, long, unsigned int, 2, 2, -2, true>",
        "EmbeddingBackward0",
        ("aten::embedding_backward", "aten::embedding_dense_backward"),
        _ANON + "embedding_backward_feature_kernel<c10::BFloat16, float, long>",
    ),
    Place.DISPATCH: _Shown(
        ("aten::index_select",),
        _NATIVE + "index_elementwise_kernel<128, 4, gpu_index_kernel>",
        "IndexSelectBackward0",
        ("aten::index_add_",),
        _NATIVE + "indexFuncLargeIndex<c10::BFloat16, long>",
    ),
    Place.COMBINE: _Shown(
        ("aten::index_add",),
        _NATIVE + "indexFuncLargeIndex<c10::BFloat16, long>",
        "IndexAddBackward0",
        ("aten::index_select",),
        _NATIVE + "index_elementwise_kernel<128, 4, gpu_index_kernel>",
    ),
    Place.GRADIENT: _Shown(
        ("aten::add_",),
        _POINTWISE.format("CUDAFunctor_add<float>"),
        "torch::autograd::AccumulateGrad",
        ("aten::add_",),
        _POINTWISE.format("CUDAFunctor_add<float>"),
    ),
    Place.OPTIMIZER: _Shown(
        ("aten::_fused_adamw_",),
        _ANON + "multi_tensor_apply_kernel<FusedAdamMathFunctor>",
        "",
        ("aten::_fused_adamw_",),
        _ANON + "multi_tensor_apply_kernel<FusedAdamMathFunctor>",
    ),
}
_RMS = _Shown(
    ("aten::rms_norm", "aten::_fused_rms_norm"),
    _ANON + "vectorized_layer_norm_kernel<c10::BFloat16, float, true>",
    "FusedRmsNormBackward0",
    ("aten::_fused_rms_norm_backward",),
    _ANON + "layer_norm_grad_input_kernel_vectorized<c10::BFloat16, float, true>",
)
_LAYER_NORM = _Shown(
    ("aten::layer_norm", "aten::native_layer_norm"),
    _ANON + "vectorized_layer_norm_kernel<c10::BFloat16, float, false>",
    "NativeLayerNormBackward0",
    ("aten::native_layer_norm_backward",),
    _ANON + "layer_norm_grad_input_kernel_vectorized<c10::BFloat16, float, false>",
)
_SILU = _Shown(
    ("aten::silu",),
    _POINTWISE.format("silu_kernel"),
    "SiluBackward0",
    ("aten::silu_backward",),
    _POINTWISE.format("silu_backward_kernel"),
)
_GELU = _Shown(
    ("aten::gelu",),
    _POINTWISE.format("GeluCUDAKernelImpl"),
    "GeluBackward0",
    ("aten::gelu_backward",),
    _POINTWISE.format("GeluBackwardCUDAKernelImpl"),
)
_SOFTMAX = _Shown(
    ("aten::softmax", "aten::_softmax"),
    _ANON + "softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 11, false, true>",
    "SoftmaxBackward0",
    ("aten::_softmax_backward_data",),
    _ANON + "softmax_warp_backward<float, c10::BFloat16, c10::BFloat16, 11, false, true>",
)
_LOSS = (
    _Shown(
        ("aten::to", "aten::_to_copy", "aten::copy_"),
        _POINTWISE.format("float_copy_kernel_cuda"),
        "ToCopyBackward0",
        ("aten::copy_",),
        _POINTWISE.format("bfloat16_copy_kernel_cuda"),
    ),
    _Shown(
        ("aten::log_softmax", "aten::_log_softmax"),
        _ANON + "cunn_SoftMaxForward<4, float>",
        "LogSoftmaxBackward0",
        ("aten::_log_softmax_backward_data",),
        _ANON + "cunn_SoftMaxBackward<4, float>",
    ),
    _Shown(
        ("aten::nll_loss_forward",),
        "nll_loss_forward_reduce_cuda_kernel_2d",
        "NllLossBackward0",
        ("aten::nll_loss_backward",),
        "nll_loss_backward_reduce_cuda_kernel_2d",
    ),
)


class Shower:
    """Shows the works of one run."""

    def __init__(self, shape: RunShape, machine: Machine) -> None:
        self._shape, self._machine = shape, machine
        self._dims = dims_of(shape)
        self._type = _TYPES[shape.elements.product]
        self._losses = 0

    def show(self, work: Work) -> Operator:
        """One kernel with its operator."""
        if work.kind is WorkKind.PRODUCT:
            return self._product(work)
        if work.kind is WorkKind.ATTENTION:
            return self._attention(work)
        return self._streaming(work)

    def _ns(self, work: Work) -> float:
        return kernel_ns(work, self._machine, self._shape)

    def _product(self, work: Work) -> Operator:
        m, n, k, batch = (max(round(size), 1) for size in (work.m, work.n, work.k, work.batch))
        dims: Dims = ((m, k), (k, n))
        narrow = is_narrow(work, self._shape.elements.product)
        inner = "aten::_scaled_mm" if narrow else "aten::mm"
        names: tuple[str, ...] = (inner,)
        node = "MmBackward0"
        if work.place is Place.ATTENTION:
            dims, names, node = ((batch, m, k), (batch, k, n)), ("aten::bmm",), "BmmBackward0"
        elif batch > 1:
            dims = ((batch * m, k), (batch, k, n))
            names, node = ("aten::_grouped_mm",), "GroupedMmBackward0"
            if work.direction is Pass.BACKWARD_WEIGHT:
                dims = ((m, batch * k), (batch * k, n))
        elif work.direction in (Pass.FORWARD, Pass.RECOMPUTE):
            names = ("aten::linear", inner)
        tiles = ceil(m / TILE_ROWS) * ceil(n / TILE_COLUMNS) * batch
        kernel = Kernel(
            name=self._product_name(work),
            dur_ns=self._ns(work),
            grid=(min(tiles, MOST_BLOCKS), 1, 1),
            block=256,
            registers=168,
            shared_bytes=98_304,
        )
        return Operator(
            names=names,
            node=node,
            dims=dims,
            types=(self._type if narrow or self._type != _TYPES["fp8"] else _TYPES["bf16"],) * 2,
            kernel=kernel,
            work=work,
        )

    def _product_name(self, work: Work) -> str:
        letters = {Pass.BACKWARD_INPUT: "nn", Pass.BACKWARD_WEIGHT: "nt"}.get(work.direction, "tn")
        short = _SHORT[self._shape.elements.product]
        tile = f"{TILE_ROWS}x{TILE_COLUMNS}"
        match self._machine.architecture:
            case "volta":
                return f"volta_{short}_s884gemm_{short}_{tile}_ldg8_f2f_{letters}"
            case "ampere" | "ada":
                return f"ampere_{short}_s16816gemm_{short}_{tile}_ldg8_f2f_stages_64x3_{letters}"
            case "hopper":
                return f"nvjet_tst_{tile}_64x4_2x1_v_bz_{letters.upper()}N"
            case _:
                return f"nvjet_sm100_tst_{tile}_64x5_2x1_2cta_v_bz_{letters.upper()}N"

    def _attention(self, work: Work) -> Operator:
        d = self._dims
        samples = max(round(d.samples), 1)
        query = (samples, round(d.heads), round(work.m), round(d.head_dim))
        key = (samples, round(d.kv_heads), round(work.n), round(d.head_dim))
        value = (*key[:3], round(d.v_head_dim))
        is_forward = work.direction in (Pass.FORWARD, Pass.RECOMPUTE)
        name = "flash_fwd_kernel" if is_forward else "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel"
        op = "aten::_scaled_dot_product_flash_attention"
        inner = (
            "aten::_flash_attention_forward" if is_forward else "aten::_flash_attention_backward"
        )
        outer = op if is_forward else op + "_backward"
        kernel = Kernel(
            name=f"void pytorch_flash::{name}<Flash_kernel_traits<{query[3]}, 128, 64, 4>>",
            dur_ns=self._ns(work),
            grid=(max(query[2] // TILE_ROWS, 1), samples, query[1]),
            registers=255,
            shared_bytes=81_920,
        )
        own = "c10::Half" if self._shape.elements.product == "fp16" else "c10::BFloat16"
        return Operator(
            names=(outer, inner),
            node="ScaledDotProductFlashAttentionBackward0",
            dims=(query, key, value),
            types=(own,) * 3,
            kernel=kernel,
            work=work,
        )

    def _streaming(self, work: Work) -> Operator:
        shown = self._shown(work)
        is_forward = work.direction in (Pass.FORWARD, Pass.RECOMPUTE, Pass.NONE)
        kernel = Kernel(
            name=shown.forward_kernel if is_forward else shown.backward_kernel,
            dur_ns=self._ns(work),
            grid=(int(min(max(work.bytes // BLOCK_BYTES, 1), MOST_BLOCKS)), 1, 1),
        )
        dims = self._streaming_dims(work)
        return Operator(
            names=shown.forward if is_forward else shown.backward,
            node=shown.node,
            dims=dims,
            types=(self._streaming_type(work),) * len(dims),
            kernel=kernel,
            work=work,
        )

    def _shown(self, work: Work) -> _Shown:
        gated = self._shape.model.gated
        match work.place:
            case Place.NORM:
                return _RMS if gated else _LAYER_NORM
            case Place.ACTIVATION | Place.EXPERT:
                return _SILU if gated else _GELU
            case Place.ATTENTION if self._shape.options.scores_written:
                return _SOFTMAX
            case Place.LOSS:
                self._losses += 1
                number = (self._losses - 1) % len(_LOSS)
                return _LOSS[number if work.direction is Pass.FORWARD else -1 - number]
            case _:
                return _SHOWN[work.place]

    def _streaming_type(self, work: Work) -> str:
        if work.place in (Place.GRADIENT, Place.OPTIMIZER):
            return "float" if self._shape.elements.gradient > 2 else "c10::BFloat16"  # noqa: PLR2004
        if work.place is Place.LOSS:
            return "float"
        return "c10::Half" if self._shape.elements.product == "fp16" else "c10::BFloat16"

    def _streaming_dims(self, work: Work) -> Dims:
        d, each = self._dims, self._shape.elements
        rows = (max(round(d.whole_tokens), 1), round(d.hidden))
        samples = max(round(d.samples), 1)
        routed = (max(round(d.local_routed), 1), round(d.hidden))
        width = round(d.keys if self._shape.options.scores_written else d.head_dim)
        shapes: dict[Place, Dims] = {
            Place.RESIDUAL: (rows, rows),
            Place.NORM: (rows, (rows[1],)),
            Place.ACTIVATION: ((round(d.tokens), max(round(d.ffn or d.shared_ffn), 1)),),
            Place.EXPERT: ((max(round(d.routed), 1), round(d.expert_ffn)),),
            Place.ATTENTION: ((samples, round(d.heads), round(d.queries), width),),
            Place.EMBEDDING: ((round(d.vocab), round(d.hidden)), (samples, round(d.queries))),
            Place.LOSS: ((round(d.tokens), round(d.vocab)),),
            Place.DISPATCH: (routed,),
            Place.COMBINE: (routed,),
            Place.GRADIENT: ((max(round(work.bytes / each.gradient / 2), 1),),),
        }
        state = max(round(work.bytes / (2 * each.optimizer + each.gradient)), 1)
        return shapes.get(work.place, ((state,),))
