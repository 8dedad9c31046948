"""Element types of products, parameters and gradients, and how many parameters are reduced."""

import numpy as np
from msgspec import structs

from ingest.vocab import CollectiveKind, ElementType, KernelClass, Phase, TaskKind
from replay.graph.arrays import Bool, Float64, TaskGraph
from whatif.description.described import Finding, Sure
from whatif.models.shape import SHARDS_GRADIENTS, SHARDS_PARAMETERS, Degrees, Elements, ModelShape
from whatif.models.transformer.dims import is_known
from whatif.models.transformer.parameters import model_parameters
from whatif.parallelism import REPLICATED, Axis, Layout

_REDUCTIONS = (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER, CollectiveKind.REDUCE)
_NAMES = {
    ElementType.FP32: "fp32",
    ElementType.TF32: "tf32",
    ElementType.SINGLE: "fp32",
    ElementType.FP16: "fp16",
    ElementType.BF16: "bf16",
    ElementType.FP8: "fp8",
}
_SINGLE = ("fp32", "tf32")
_SINGLE_BYTES = 4.0
LITTLE_FRAC = 0.05
"""Reductions of unknown size take less of their time: flags and norms."""
NEAR_FRAC = 0.03
"""Norms and biases, which the shapes of products do not tell, are fewer of the parameters."""
_CASTS = ("bfloat16_copy_kernel", "float16_copy_kernel", "half_copy_kernel", "_to_copy")
"""In names of kernels that write narrower elements: PyTorch's own, and those of its compiler."""
CASTS_FRAC = 0.25
"""Casts for each product of forward: autocast has one for a weight, and q, k, v may be one."""
_MOMENTS_BYTES = 8
"""Two moments in single precision (Adam), per parameter."""
_MASTER_BYTES = 12
"""And a copy of the parameter in single precision."""


def elements_of(graph: TaskGraph, layout: Layout) -> tuple[Elements, tuple[Finding, ...]]:
    """Element types as recorded; for the rest the habits of the type of matrix products."""
    findings: list[Finding] = []
    product, told = _product(graph)
    if told:
        findings.append(_finding("elements.product", product, Sure.MEASURED, told))
    elif not (graph.tasks.kind == TaskKind.KERNEL).any():
        product = "fp32"
        findings.append(_finding("elements.product", product, Sure.GUESSED, "no GPU in the run"))
    single = product in _SINGLE
    gradient = _usual_bytes(graph, _of_replicas(graph, layout, _REDUCTIONS))
    parameter = _usual_bytes(graph, _of_replicas(graph, layout, (CollectiveKind.ALL_GATHER,)))
    if gradient:
        words = "type of what replicas reduce"
        findings.append(_finding("elements.gradient", f"{gradient:g}", Sure.MEASURED, words))
    if parameter:
        words = "type of the parameters that are gathered"
        findings.append(_finding("elements.parameter", f"{parameter:g}", Sure.MEASURED, words))
    held = parameter or _SINGLE_BYTES
    if not parameter:
        held, told = _held_bytes(graph, product, gradient)
        findings.append(_finding("elements.parameter", f"{held:g}", Sure.GUESSED, told))
    return (
        Elements(
            parameter=held,
            gradient=gradient or (_SINGLE_BYTES if single else Elements().gradient),
            optimizer=_MOMENTS_BYTES if held >= _SINGLE_BYTES else _MASTER_BYTES,
            activation=_SINGLE_BYTES if single else Elements().activation,
            product=product,
        ),
        tuple(findings),
    )


def _held_bytes(graph: TaskGraph, product: str, gradient: float | None) -> tuple[float, str]:
    """Bytes of a parameter that no communicator gathers, and why.

    Narrow products of gradients reduced in single precision are either of parameters that each
    forward casts (autocast) or of narrow ones with a master copy (Megatron-LM's main gradients):
    kernels that cast in forward tell which.
    """
    if product in _SINGLE:
        return gradient or _SINGLE_BYTES, "as gradients and products"
    if gradient is None:
        return Elements().parameter, f"as {product} products read them"
    if gradient < _SINGLE_BYTES:
        return gradient, "as gradients"
    tasks = graph.tasks
    forward = (tasks.phase == Phase.FORWARD) & (tasks.kind == TaskKind.KERNEL)
    products = int((forward & (tasks.kernel_class == KernelClass.GEMM)).sum())
    if not products:
        return gradient, "as gradients; no products of forward were seen"
    casting = [number for number, name in enumerate(graph.names) if any(w in name for w in _CASTS)]
    casts = int((forward & np.isin(tasks.name, casting)).sum())
    counted = f"{casts:,} casts beside {products:,} {product} products of forward"
    if casts >= CASTS_FRAC * products:
        return gradient, f"{counted}: held as gradients are, cast for them"
    return Elements().parameter, f"{counted}: held as these read them, with a master copy"


def parameters_of(
    graph: TaskGraph, layout: Layout, degrees: Degrees, micro_batches: int = 1
) -> tuple[int | None, tuple[Finding, ...]]:
    """Parameters of the whole model, by the gradients that a rank reduces in a step.

    Where gradients are scattered (ZeRO 2 and 3), each micro-batch of a step reduces them anew.
    """
    shards = layout.degree(Axis.SHARDED) > 1
    axes = (Axis.SHARDED,) if shards else REPLICATED
    mine = _of_replicas(graph, layout, _REDUCTIONS, axes)
    calls = graph.collectives
    known = mine & (calls.size_bytes > 0) & (calls.item_bytes > 0)
    unsized_ns = int(calls.transfer_ns[mine & ~known].sum())
    if not known.any() or unsized_ns > LITTLE_FRAC * int(calls.transfer_ns[mine].sum()):
        return None, ()
    per_rank = _per_rank_step(graph, known)
    if not len(per_rank):
        return None, ()
    times = micro_batches if shards and _is_reduced_each(graph, layout, degrees, known) else 1
    shard = float(per_rank.mean()) / times
    count = round(shard * degrees.tp * degrees.pp)
    words = f"a rank reduces {shard:,.0f} gradients in a step"
    if times > 1:
        words = f"a rank reduces {shard:,.0f} gradients in each of {times:,} micro-batches"
    if degrees.tp * degrees.pp > 1:
        words += f", of {degrees.tp * degrees.pp} parts of the model"
    return count, (_finding("model.parameters", f"{count:,}", Sure.MEASURED, words),)


def _is_reduced_each(graph: TaskGraph, layout: Layout, degrees: Degrees, reduced: Bool) -> bool:
    """Each micro-batch reduces gradients.

    ZeRO 2 says so. With sharded parameters a micro-batch gathers them once or twice: gathered
    more than twice for a reduction, micro-batches share one.
    """
    if degrees.zero != SHARDS_PARAMETERS:
        return degrees.zero == SHARDS_GRADIENTS
    gathers = _of_replicas(graph, layout, (CollectiveKind.ALL_GATHER,), (Axis.SHARDED,))
    calls = graph.collectives
    gathers &= (calls.size_bytes > 0) & (calls.item_bytes > 0)
    each = [_per_rank_step(graph, chosen).sum() for chosen in (gathers, reduced)]
    return bool(each[0] <= (2 + NEAR_FRAC) * each[1])


def is_tied(model: ModelShape) -> bool:
    """The logits have no table of their own, by the number of all parameters.

    That must be near what the formula has for it (norms and biases differ), and not near the other.
    """
    if model.parameters is None or not is_known(model):
        return False
    both, one = (
        model_parameters(structs.replace(model, tied=tied)).total for tied in (False, True)
    )
    off = [abs(model.parameters / formula - 1) for formula in (both, one)]
    return off[1] < NEAR_FRAC < off[0]


def _product(graph: TaskGraph) -> tuple[str, str]:
    """Type of the products by most of their FLOPs; of those without shapes by their number."""
    tasks, work = graph.tasks, graph.work
    row = work.rows_of(tasks.slice_id)
    at = (tasks.kernel_class == KernelClass.GEMM) & (row >= 0) & (tasks.step >= 0)
    if not at.any():
        return Elements().product, ""
    dtype, flops = work.dtype[row[at]], work.flops[row[at]]
    weight = np.where(np.isfinite(flops), flops, 0.0) + 1e-6
    by_type = np.bincount(np.maximum(dtype, 0), weight, minlength=len(ElementType))
    by_type[ElementType.UNKNOWN] = 0.0
    if not by_type.any():
        return Elements().product, ""
    best = ElementType(int(by_type.argmax()))
    if best not in _NAMES:
        return Elements().product, ""
    share = by_type[best] / weight.sum()
    return _NAMES[best], f"{share:.0%} of the work of matrix products"


def _of_replicas(
    graph: TaskGraph,
    layout: Layout,
    kinds: tuple[CollectiveKind, ...],
    axes: tuple[Axis, ...] = REPLICATED,
) -> Bool:
    """Collectives of some kinds over replicas, in the steps."""
    calls = graph.collectives
    tasks = graph.tasks
    ours = np.array([role.axis in axes for role in layout.roles] + [False])
    counted = np.zeros(len(calls.kind), bool)
    counted[tasks.collective[(tasks.collective >= 0) & (tasks.step >= 0) & ~tasks.fixed]] = True
    found: Bool = counted & ours[calls.group] & np.isin(calls.kind, [int(kind) for kind in kinds])
    return found


def _usual_bytes(graph: TaskGraph, chosen: Bool) -> float | None:
    """Bytes of an element by most of the volume; None where types are not recorded."""
    calls = graph.collectives
    known = chosen & (calls.item_bytes > 0) & (calls.size_bytes > 0)
    if not known.any():
        return None
    volume = np.bincount(calls.item_bytes[known], calls.size_bytes[known].astype(np.float64))
    return float(volume.argmax())


def _per_rank_step(graph: TaskGraph, chosen: Bool) -> Float64:
    """Elements that a rank hands in per step, of each rank that does; shape (ranks,)."""
    tasks, calls = graph.tasks, graph.collectives
    begun = np.flatnonzero((tasks.collective >= 0) & (tasks.step >= 0) & (tasks.rank >= 0))
    begun = begun[chosen[tasks.collective[begun]]]
    pairs = np.unique(np.stack([tasks.rank[begun], tasks.collective[begun]]), axis=1)
    elements = calls.size_bytes[pairs[1]] / calls.item_bytes[pairs[1]]
    total = np.bincount(pairs[0], elements)
    found: Float64 = total[total > 0] / len(graph.steps)
    return found


def _finding(what: str, value: str, sure: Sure, evidence: str) -> Finding:
    return Finding(what=what, value=value, sure=sure, evidence=evidence)
