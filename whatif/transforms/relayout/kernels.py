"""Times of kernels (and of operators of CPU runs) whose shapes another layout changes."""

from dataclasses import replace

import numpy as np

from replay.graph.arrays import Bool, TaskGraph
from replay.graph.work import Float64, KernelWork
from whatif.models.places import Part as ModelPart
from whatif.models.places import Place
from whatif.tape.segments import Tape
from whatif.transforms.base import with_durations
from whatif.transforms.relayout.factors import Scaling, Where
from whatif.transforms.relayout.measured import Changed, kernels_ns
from whatif.transforms.relayout.operators import operators_ns
from whatif.transforms.relayout.parts import DEVICE_WORK, Ask, Part
from whatif.transforms.relayout.sizes import sizes_of

PRODUCTS_ERROR = (
    "ratios of two products 4% on A100 and 12% on B200 at the median of 697 published ones"
)
OPERATORS_ERROR = "operators of CPU runs not judged apart from their steps (docs/accuracy.md)"
KERNELS, OPERATORS = "kernels", "operators"
LITTLE = 0.005
"""Share of time that is not worth a sentence."""


def reshaped(tape: Tape, ask: Ask) -> Part:
    """The tape with new durations where tp, sp, cp, ep, micro-batch size or sequence change.

    Kernels of what stays as it was keep their time to the ns. On a device host work stays: it
    launches the same kernels. Without a device the operators of the host are the work.
    """
    sizes = sizes_of(ask.before, ask.target)
    if sizes.is_same:
        return Part(tape=tape)
    graph = tape.graph
    on_device = bool(np.isin(graph.tasks.kind, DEVICE_WORK).any())
    made = kernels_ns(tape, ask, sizes) if on_device else operators_ns(tape, ask, sizes)
    dur_ns = graph.tasks.dur_ns.copy()
    dur_ns[made.task] = made.dur_ns
    scaled: Bool = ~made.factors.same
    changed = replace(with_durations(graph, dur_ns), work=_work(graph, made))
    return Part(
        tape=replace(tape, graph=changed),
        assumptions=_told(graph, made, scaled, KERNELS if on_device else OPERATORS),
        known_errors=_known_errors(made, scaled, on_device=on_device),
    )


def _work(graph: TaskGraph, made: Changed) -> KernelWork:
    """What kernels compute and move, as the next what-if and utilisation find it."""
    work = graph.work
    row = work.rows_of(graph.tasks.slice_id[made.task])
    seen = row >= 0
    row, size = row[seen], made.factors.of("size")[seen]
    flops, moved, operands = work.flops.copy(), work.bytes.copy(), work.operand_bytes.copy()
    flops[row] *= size
    moved[row] *= size
    operands[row] *= size
    tiles = work.tiles.copy()
    tiles[row] = np.where(tiles[row] > 0, np.maximum(np.rint(tiles[row] * size), 1), tiles[row])
    product = work.product.copy()
    if len(product) and made.product_after is not None:
        product[row] = made.product_after[seen]
    return replace(
        work, flops=flops, bytes=moved, operand_bytes=operands, tiles=tiles, product=product
    )


def _told(graph: TaskGraph, made: Changed, scaled: Bool, what: str) -> tuple[str, ...]:
    """What was scaled by what, in shares of the time as recorded."""
    time = graph.tasks.dur_ns[made.task].astype(float)
    products = scaled & (made.factors.of("scaling") == Scaling.PRODUCT)
    by_habit = scaled & ~(products & made.modelled)
    unplaced = by_habit & made.factors.which(_is_unplaced)
    unlabelled = by_habit & made.factors.which(lambda where: where.part is ModelPart.OTHER)
    recorded = _share(time, products & made.from_sizes)
    modelled = _share(time, products & ~made.from_sizes & made.modelled)
    how = (
        f"products by tiles and waves ({recorded:.0%} from recorded sizes, {modelled:.0%} from the "
        "model's), attention by its blocks, others by bytes"
        if what == KERNELS
        else "products and attention by FLOPs, others by bytes; half of what each takes beyond the "
        "run's best rate stays"
    )
    told = [f"{_share(time, scaled):.0%} of the time of {what} was scaled to other sizes: {how}"]
    if _share(time, unplaced) > LITTLE:
        told.append(
            f"{_share(time, unplaced):.0%} of it has no place in a layer: taken as most {what} of "
            "its class; the range holds what stays and what scales"
        )
    if _share(time, unlabelled) > LITTLE:
        told.append(
            f"{_share(time, unlabelled):.0%} of it belongs to no part of the model that was "
            "understood: taken to follow tokens; the range holds that it stays"
        )
    return tuple(told)


def _is_unplaced(where: Where) -> bool:
    return where.part is not ModelPart.OTHER and where.place is Place.UNKNOWN


def _share(time: Float64, chosen: Bool) -> float:
    return float(time[chosen].sum() / max(time.sum(), 1.0))


def _known_errors(made: Changed, scaled: Bool, *, on_device: bool) -> tuple[str, ...]:
    if not scaled.any():
        return ()
    if not on_device:
        return (OPERATORS_ERROR,)
    products = scaled & (made.factors.of("scaling") == Scaling.PRODUCT) & made.modelled
    return (PRODUCTS_ERROR,) if products.any() else ()
