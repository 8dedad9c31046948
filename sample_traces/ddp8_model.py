"""What one step of the simulated training computes: tensors, kernels, gradient buckets.

A decoder-only transformer with tied embeddings, bf16, on one H100 per rank. Kernel times come
from a plain roof: FLOPs at 560 TFLOP/s (57 % of the dense bf16 peak of 989.5), bytes at 2.6 TB/s
(78 % of 3.35). They only have to be of the right size; the trace and the truth share them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

LAYERS = 6
WIDTH = 2_048
TOKENS = 1_024
VOCABULARY = 128_256
HEADS = 16

FLOPS_PER_NS = 560_000
BYTES_PER_NS = 2_600
BF16_BYTES = 2

FIRST_BUCKET_BYTES = 1 << 20
BUCKET_BYTES = 40 << 20
"""DDP closes a bucket once it holds at least that much; the first one is small."""


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A kernel as the profiler shows it, with the time it takes on a healthy GPU."""

    name: str
    dur_ns: int
    grid: tuple[int, int, int]
    block: int
    registers: int = 32
    shared_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Op:
    """An operator (outermost name first) and the kernels that its innermost call launches."""

    names: tuple[str, ...]
    dims: tuple[tuple[int, ...], ...]
    kernels: tuple[Kernel, ...]

    @property
    def differentiable(self) -> bool:
        """Has a node of its own in the backward pass (the residual additions pass through)."""
        return self.names[0] != "aten::add"


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A tensor whose gradient is averaged over the ranks."""

    name: str
    dims: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Numbers in the tensor."""
        return math.prod(self.dims)


@dataclass(frozen=True, kw_only=True)
class Backward:
    """One node of the autograd graph: its operators, then the gradient that it completes."""

    node: str
    ops: tuple[Op, ...]
    completes: Parameter | None = None


def gemm(rows: int, columns: int, inner: int, layout: str) -> Kernel:
    """A matrix product (rows x inner) x (inner x columns) of bf16."""
    return Kernel(
        name=f"nvjet_tst_192x192_64x4_2x1_v_bz_coopB_{layout}",
        dur_ns=4_000 + 2 * rows * columns * inner // FLOPS_PER_NS,
        grid=(2, 66, 1),
        block=384,
        registers=168,
        shared_bytes=213_148,
    )


def streaming(name: str, moved_bytes: int) -> Kernel:
    """A kernel that is bound by memory."""
    return Kernel(
        name=name,
        dur_ns=1_800 + moved_bytes // BYTES_PER_NS,
        grid=(max(1, moved_bytes // 16_384), 1, 1),
        block=128,
    )


_ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::{0}, "
_ELEMENTWISE += "std::array<char*, {1}ul> >(int, at::native::{0}, std::array<char*, {1}ul>)"
_ADD = _ELEMENTWISE.format("CUDAFunctor_add<c10::BFloat16>", 3)
_MUL = _ELEMENTWISE.format("BUnaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, mul>", 2)
_COPY = _ELEMENTWISE.format("bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)", 2)
_GELU = _ELEMENTWISE.format("GeluCUDAKernelImpl(at::TensorIteratorBase&)", 2)
_GELU_BACKWARD = _ELEMENTWISE.format("GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&)", 3)
_NORM = "void at::native::(anonymous namespace)::{}<c10::BFloat16, float>"
_ADAM = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor>"

_ACTIVATION_BYTES = TOKENS * WIDTH * BF16_BYTES
_LOGIT_BYTES = TOKENS * VOCABULARY * BF16_BYTES
_ACTIVATION = (TOKENS, WIDTH)

EMBEDDING = Parameter(name="embedding", dims=(VOCABULARY, WIDTH))
FINAL_NORM = Parameter(name="norm", dims=(WIDTH,))


def layer_parameters(layer: int) -> dict[str, Parameter]:
    """Parameters of one layer by the part that owns them."""
    shapes: dict[str, tuple[int, ...]] = {
        "norm1": (WIDTH,),
        "qkv": (3 * WIDTH, WIDTH),
        "proj": (WIDTH, WIDTH),
        "norm2": (WIDTH,),
        "fc1": (4 * WIDTH, WIDTH),
        "fc2": (WIDTH, 4 * WIDTH),
    }
    return {
        part: Parameter(name=f"layers.{layer}.{part}", dims=dims) for part, dims in shapes.items()
    }


def _linear(parameter: Parameter) -> Op:
    out, inner = parameter.dims
    return Op(
        names=("aten::linear", "aten::mm"),
        dims=((TOKENS, inner), (inner, out)),
        kernels=(gemm(TOKENS, out, inner, "TNN"),),
    )


def _norm() -> Op:
    name = _NORM.format("vectorized_layer_norm_kernel")
    return Op(
        names=("aten::layer_norm", "aten::native_layer_norm"),
        dims=(_ACTIVATION, (WIDTH,)),
        kernels=(streaming(name, 2 * _ACTIVATION_BYTES),),
    )


def _add() -> Op:
    return Op(
        names=("aten::add",),
        dims=(_ACTIVATION, _ACTIVATION),
        kernels=(streaming(_ADD, 3 * _ACTIVATION_BYTES),),
    )


def _attention(name: str, names: tuple[str, ...], halves: int) -> Op:
    """Causal flash attention; `halves` counts half matrix products of tokens x tokens."""
    flops = halves * TOKENS * TOKENS * WIDTH
    kernel = Kernel(
        name=name,
        dur_ns=6_000 + flops // (FLOPS_PER_NS * 7 // 10),
        grid=(TOKENS // 128, 1, HEADS),
        block=128,
        registers=255,
        shared_bytes=114_688,
    )
    return Op(names=names, dims=((1, HEADS, TOKENS, WIDTH // HEADS),) * 3, kernels=(kernel,))


def _forward_layer(layer: int) -> tuple[Op, ...]:
    """Operators of a layer in forward order."""
    own = layer_parameters(layer)
    gelu = Op(
        names=("aten::gelu",),
        dims=((TOKENS, 4 * WIDTH),),
        kernels=(streaming(_GELU, 8 * _ACTIVATION_BYTES),),
    )
    attention = _attention(
        "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>",
        ("aten::scaled_dot_product_attention", "aten::_flash_attention_forward"),
        halves=4,
    )
    attend = (_norm(), _linear(own["qkv"]), attention, _linear(own["proj"]), _add())
    return (*attend, _norm(), _linear(own["fc1"]), gelu, _linear(own["fc2"]), _add())


def _forward_embedding() -> Op:
    """Rows of the embedding for the tokens of the batch."""
    name = "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long>"
    return Op(
        names=("aten::embedding", "aten::index_select"),
        dims=((VOCABULARY, WIDTH), (TOKENS,)),
        kernels=(streaming(name, 2 * _ACTIVATION_BYTES),),
    )


def _forward_head() -> tuple[Op, ...]:
    """Final norm, logits and loss."""
    softmax = "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, c10::BFloat16>"
    logits = (TOKENS, VOCABULARY)
    return (
        _norm(),
        _linear(EMBEDDING),
        Op(
            names=("aten::log_softmax", "aten::_log_softmax"),
            dims=(logits,),
            kernels=(streaming(softmax, 2 * _LOGIT_BYTES),),
        ),
        Op(
            names=("aten::nll_loss", "aten::nll_loss_forward"),
            dims=(logits, (TOKENS,)),
            kernels=(streaming("nll_loss_forward_reduce_cuda_kernel_2d", 65_536),),
        ),
    )


def forward() -> Iterator[Op]:
    """Operators of the forward pass and the loss."""
    yield _forward_embedding()
    for layer in range(LAYERS):
        yield from _forward_layer(layer)
    yield from _forward_head()


def backward() -> Iterator[Backward]:
    """Nodes of the autograd graph in the order in which they run."""
    softmax = "void at::native::(anonymous namespace)::cunn_SoftMaxBackward<4, c10::BFloat16>"
    nll = "nll_loss_backward_reduce_cuda_kernel_2d"
    yield Backward(node="NllLossBackward0", ops=(_single("aten::nll_loss_backward", nll, 65_536),))
    yield Backward(
        node="LogSoftmaxBackward0",
        ops=(_single("aten::_log_softmax_backward_data", softmax, 3 * _LOGIT_BYTES),),
    )
    yield _linear_backward(EMBEDDING, complete=False)
    yield _norm_backward(FINAL_NORM)
    for layer in reversed(range(LAYERS)):
        yield from _layer_backward(layer_parameters(layer))
    scatter = "void at::native::(anonymous namespace)::embedding_backward_feature_kernel"
    yield Backward(
        node="EmbeddingBackward0",
        ops=(
            _single("aten::embedding_dense_backward", scatter, 3 * _ACTIVATION_BYTES),
            _single("aten::add_", _ADD, 3 * EMBEDDING.elements * BF16_BYTES),
        ),
        completes=EMBEDDING,
    )


def _layer_backward(own: dict[str, Parameter]) -> Iterator[Backward]:
    yield _linear_backward(own["fc2"])
    yield Backward(
        node="GeluBackward0",
        ops=(_single("aten::gelu_backward", _GELU_BACKWARD, 12 * _ACTIVATION_BYTES),),
    )
    yield _linear_backward(own["fc1"])
    yield _norm_backward(own["norm2"])
    yield _linear_backward(own["proj"])
    attention = "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<128, 64, 128, 8, 4>"
    yield Backward(
        node="ScaledDotProductFlashAttentionBackward0",
        ops=(_attention(attention, ("aten::_flash_attention_backward",), halves=10),),
    )
    yield _linear_backward(own["qkv"])
    yield _norm_backward(own["norm1"])


def _single(op: str, kernel: str, moved_bytes: int) -> Op:
    return Op(names=(op,), dims=(_ACTIVATION,), kernels=(streaming(kernel, moved_bytes),))


def _linear_backward(parameter: Parameter, *, complete: bool = True) -> Backward:
    """Gradient of the weight, then of the input."""
    out, inner = parameter.dims
    weight = Op(
        names=("aten::mm",),
        dims=((out, TOKENS), (TOKENS, inner)),
        kernels=(gemm(out, inner, TOKENS, "NTN"),),
    )
    source = Op(
        names=("aten::mm",),
        dims=((TOKENS, out), (out, inner)),
        kernels=(gemm(TOKENS, inner, out, "NNN"),),
    )
    done = parameter if complete else None
    return Backward(node="MmBackward0", ops=(weight, source), completes=done)


def _norm_backward(parameter: Parameter) -> Backward:
    data = streaming(_NORM.format("layer_norm_grad_input_kernel"), 3 * _ACTIVATION_BYTES)
    weight = streaming(_NORM.format("GammaBetaBackwardCUDAKernel"), 2 * _ACTIVATION_BYTES)
    op = Op(
        names=("aten::native_layer_norm_backward",),
        dims=(_ACTIVATION, _ACTIVATION, (WIDTH,)),
        kernels=(data, weight),
    )
    return Backward(node="NativeLayerNormBackward0", ops=(op, _add()), completes=parameter)


def first_gradient() -> Op:
    """The gradient of the loss, on the thread that calls `backward()`."""
    kernel = streaming(_ELEMENTWISE.format("FillFunctor<c10::BFloat16>", 1), 2)
    return Op(names=("aten::ones_like", "aten::fill_"), dims=((),), kernels=(kernel,))


def into_bucket(parameter: Parameter) -> Op:
    """Divide the gradient by the number of ranks and put it in its place of the bucket."""
    return _gradient_copy("torch::distributed::reducer::mul_out", "aten::mul", _MUL, parameter)


def out_of_bucket(parameter: Parameter) -> Op:
    """Copy the averaged gradient back."""
    name = "torch.distributed.ddp.reducer::copy_bucket_to_grad"
    return _gradient_copy(name, "aten::copy_", _COPY, parameter)


def _gradient_copy(outer: str, inner: str, kernel: str, parameter: Parameter) -> Op:
    moved_bytes = 2 * parameter.elements * BF16_BYTES
    kernels = (streaming(kernel, moved_bytes),)
    return Op(names=(outer, inner), dims=(parameter.dims,), kernels=kernels)


def buckets() -> tuple[tuple[Parameter, ...], ...]:
    """Parameters by bucket, in the order in which their gradients become ready, as DDP does."""
    closed: list[tuple[Parameter, ...]] = []
    current: list[Parameter] = []
    for node in backward():
        if node.completes is None:
            continue
        current.append(node.completes)
        limit = BUCKET_BYTES if closed else FIRST_BUCKET_BYTES
        if sum(parameter.elements for parameter in current) * BF16_BYTES >= limit:
            closed.append(tuple(current))
            current = []
    if current:
        closed.append(tuple(current))
    return tuple(closed)


def optimizer() -> Op:
    """Fused AdamW with bf16 states, 12 bytes read and written per parameter, in four chunks."""
    elements = sum(parameter.elements for bucket in buckets() for parameter in bucket)
    chunk = streaming(_ADAM, elements * 12 // 4)
    return Op(names=("aten::_fused_adamw_",), dims=((elements,),), kernels=(chunk,) * 4)
