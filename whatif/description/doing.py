"""What an operator or kernel does, from its names: the stack around it, and the kernel's own."""

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import cache

from ingest.vocab import KernelClass


class Doing(IntEnum):
    """What one stroke of work does."""

    OTHER = 0
    PRODUCT = 1
    ATTENTION = 2
    """Fused."""
    NORM = 3
    EMBEDDING = 4
    LOSS = 5
    ACTIVATION = 6
    ROTARY = 7
    SUM = 8
    """Residual sums, dropout."""
    COPY = 9
    GRADIENT = 10
    """Copies, casts, sums and accumulations of gradients and parameters."""
    OPTIMIZER = 11
    EXCHANGE = 12
    """A collective."""
    MESSAGE = 13
    """Send or receive."""
    ROUTING = 14
    """Choice of experts, and moving tokens to and from them."""
    ELEMENTS = 15
    """Element by element, of an unknown kind."""
    NOTHING = 16
    """Views, allocations, guards: host work of no weight."""
    SOFTMAX = 17
    """Of an attention that is made of parts, or of a router."""


ENGINE = "autograd::engine::"
_WRAPPERS = (
    *("Torch-Compiled Region", "TorchDynamo", "Pregraph", "AOTDispatcher", "CompiledFunction"),
    *(ENGINE, "## Call", "PythonSubclass", "torch_dispatch", "CheckpointFunction"),
)
_HOST_CALLS = ("c10d::", "_c10d_functional::")
_MESSAGES = ("c10d::send", "c10d::recv_")
_NOTHING = frozenset(
    {"as_strided", "view", "empty", "empty_strided", "empty_like", "transpose", "t", "expand"}
    | {"reshape", "_unsafe_view", "detach", "detach_", "slice", "select", "unsqueeze", "squeeze"}
    | {"view_as", "permute", "alias", "resize_", "result_type", "resolve_conj", "resolve_neg"}
    | {"split", "split_with_sizes", "chunk", "narrow", "unbind", "flatten", "unflatten", "set_"}
    | {"lift_fresh", "item", "_local_scalar_dense", "is_nonzero", "_reshape_alias", "new_empty"}
    | {"view_as_complex", "view_as_real", "expand_as", "movedim", "new_empty_strided"}
)
_RULES: tuple[tuple[Doing, tuple[str, ...]], ...] = (
    (Doing.GRADIENT, ("accumulategrad", "reducer::", "fsdp::", "_foreach_copy", "_chunk_cat")),
    (Doing.GRADIENT, ("split_with_sizes_copy",)),
    (Doing.OPTIMIZER, ("optimizer.step", "_fused_adam", "_fused_sgd", "multi_tensor_apply")),
    (Doing.GRADIENT, ("clip_grad", "_foreach_norm", "linalg_vector_norm", "clip_coef")),
    (Doing.ATTENTION, ("scaled_dot_product", "attention", "flash_attn", "flash_fwd", "flash_bwd")),
    (Doing.ATTENTION, ("fmha", "attn_fwd", "attn_bwd", "fusedattn", "paged_attn", "mha_")),
    (Doing.ROUTING, ("moe_align", "topk", "router", "permute_tokens", "unpermute", "moe_sum")),
    (Doing.ROTARY, ("rotary", "rope", "view_as_complex")),
    (Doing.EMBEDDING, ("embedding",)),
    (Doing.LOSS, ("cross_entropy", "nll_loss", "log_softmax", "logsoftmax", "nllloss")),
    (Doing.SOFTMAX, ("softmax",)),
    (Doing.NORM, ("layer_norm", "layernorm", "rms_norm", "rmsnorm", "group_norm", "groupnorm")),
    (Doing.ACTIVATION, ("gelu", "silu", "swiglu", "geglu", "relu", "sigmoid", "threshold")),
)
"""The first that has one of its words in the names of the operators or the kernel."""
_FUSED = re.compile(r"triton_(?:poi|red|per|for)_")
_BESIDE = (Doing.EMBEDDING, Doing.ATTENTION, Doing.LOSS, Doing.SOFTMAX)
"""A compiler names what it fused element by element after all the operators next to it."""
_PRODUCTS = ("mm", "addmm", "linear", "matmul", "bmm", "baddbmm", "_scaled_mm", "einsum")
_SUMS = ("add", "add_", "dropout", "native_dropout", "sub")
_COPIES = ("copy_", "clone", "contiguous", "cat", "to", "_to_copy", "repeat", "stack", "pad")
_ELEMENTS = ("mul", "mul_", "div", "div_", "pow", "neg", "sum", "mean", "rsqrt", "tanh", "abs")
_BY_CLASS = {
    KernelClass.GEMM: Doing.PRODUCT,
    KernelClass.CONVOLUTION: Doing.PRODUCT,
    KernelClass.ATTENTION: Doing.ATTENTION,
    KernelClass.NORMALISATION: Doing.NORM,
    KernelClass.EMBEDDING: Doing.EMBEDDING,
    KernelClass.OPTIMIZER: Doing.OPTIMIZER,
    KernelClass.COLLECTIVE: Doing.EXCHANGE,
    KernelClass.ELEMENTWISE: Doing.ELEMENTS,
    KernelClass.MEMCPY: Doing.COPY,
    KernelClass.REDUCTION: Doing.ELEMENTS,
}


@cache
def doing_of(ops: tuple[str, ...], kernel: str, kernel_class: int) -> Doing:
    """What a stroke does.

    Args:
        ops: names of the operators around it, the outermost first, wrappers left out.
        kernel: name of the kernel; "" on the host.
        kernel_class: KernelClass; of host work OTHER.
    """
    if kernel_class == KernelClass.COLLECTIVE:
        sends = any(word in kernel.lower() for word in ("sendrecv", "send_recv", ":send", ":recv"))
        return Doing.MESSAGE if sends else Doing.EXCHANGE
    if not ops and not kernel:
        return Doing.NOTHING
    if not kernel and any(name.startswith(_HOST_CALLS) for name in ops):
        return Doing.MESSAGE if any(name in _MESSAGES for name in ops) else Doing.EXCHANGE
    shown = _by_words(" ".join(ops)) or _by_op(ops, on_device=bool(kernel))
    if shown is None and kernel_class == KernelClass.GEMM:
        return Doing.PRODUCT
    shown = shown or _by_words(kernel)
    return shown or _BY_CLASS.get(KernelClass(kernel_class), Doing.OTHER)


def _by_words(text: str) -> Doing | None:
    text = text.lower()
    fused = _FUSED.search(text) is not None
    for doing, words in _RULES:
        if any(word in text for word in words):
            return Doing.ELEMENTS if fused and doing in _BESIDE else doing
    return None


def _by_op(ops: tuple[str, ...], *, on_device: bool) -> Doing | None:
    """By the names of the operators as they are, the outermost that says something first."""
    short = [name.rpartition("::")[2] for name in ops]
    if short and not on_device and all(name in _NOTHING for name in short):
        return Doing.NOTHING
    for names, doing in (
        (_PRODUCTS, Doing.PRODUCT),
        (_SUMS, Doing.SUM),
        (_COPIES, Doing.COPY),
        (_ELEMENTS, Doing.ELEMENTS),
    ):
        if any(name in names for name in short[:2]):
            return doing
    return None


def operators(stack: Sequence[str]) -> tuple[str, ...]:
    """Operators of a stack below the last wrapper that says nothing."""
    return tuple(name for name in stack if not name.startswith(_WRAPPERS))
