"""Kernels of small runs in other layouts: which change, by how much, and which stay to the ns."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from msgspec.structs import replace as edited

from ingest.vocab import ElementType, KernelClass, Phase
from replay.graph.arrays import TaskGraph
from replay.graph.scopes import NO_SCOPES
from replay.graph.work import KernelWork
from tests.builders import GraphBuilder
from whatif.description.described import Described, Kind
from whatif.description.labels import Labels
from whatif.models.bound import Bound
from whatif.models.hardware import require
from whatif.models.places import Part, Pass, Place
from whatif.models.shape import Batch, ContextKind, Degrees, ModelShape, Options, RunShape
from whatif.parallelism import layout_of
from whatif.tape.segments import Segments, Tape
from whatif.transforms.base import Context
from whatif.transforms.relayout.factors import factor_of
from whatif.transforms.relayout.grouped import factors_of
from whatif.transforms.relayout.kernels import reshaped
from whatif.transforms.relayout.parts import Ask
from whatif.transforms.relayout.parts import Part as Made
from whatif.transforms.relayout.product_sizes import product_sizes
from whatif.transforms.relayout.sizes import sizes_of

GEMM, MOVES = KernelClass.GEMM, KernelClass.ELEMENTWISE
MODEL = ModelShape(layers=2, hidden=4096, heads=32, ffn=16384, vocab=50304)
SHAPE = RunShape(model=MODEL, batch=Batch(samples=4, sequence=2048))
TOKENS = 4 * 2048


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One kernel and its label."""

    place: Place
    direction: Pass = Pass.FORWARD
    part: Part = Part.LAYER
    kernel_class: KernelClass = MOVES
    dur_ns: int = 1_000_000
    product: tuple[int, int, int] | None = None
    phase: Phase = Phase.FORWARD
    layer: int = 0


@dataclass(frozen=True)
class Run:
    """Kernels of one rank, launched one by one."""

    kernels: tuple[Kernel, ...]
    shape: RunShape = SHAPE
    host: list[int] = field(default_factory=list)
    device: list[int] = field(default_factory=list)

    def tape(self) -> Tape:
        """Graph and labels; no segment is asked for here."""
        make = GraphBuilder()
        labels: list[tuple[int, int, int, int, int]] = []
        for kernel in self.kernels:
            label = (kernel.part, kernel.direction, kernel.layer, 0, kernel.place)
            self.host.append(make.call(0, "cudaLaunchKernel", 5_000))
            self.device.append(
                make.kernel(
                    0,
                    "kernel",
                    kernel.dur_ns,
                    caller=self.host[-1],
                    kernel_class=kernel.kernel_class,
                    phase=kernel.phase,
                )
            )
            labels += [label, label]
        columns = np.array(labels).T
        graph = replace(make.build(), work=self._work())
        empty = np.zeros(0, np.int32)
        return Tape(
            graph=graph,
            labels=Labels(
                part=columns[0].astype(np.int8),
                direction=columns[1].astype(np.int8),
                layer=columns[2].astype(np.int32),
                micro_batch=columns[3].astype(np.int32),
                place=columns[4].astype(np.int8),
            ),
            segments=Segments(
                rank=empty,
                step=empty,
                part=empty.astype(np.int8),
                direction=empty.astype(np.int8),
                layer=empty,
                micro_batch=empty,
            ),
            segment=np.full(graph.n_tasks, -1, np.int32),
        )

    def _work(self) -> KernelWork:
        n = len(self.device)
        sizes = [(1, *each.product) if each.product else (0, 0, 0, 0) for each in self.kernels]
        product = np.array(sizes, np.int64)
        return KernelWork(
            slice_id=np.array(self.device, np.int64),
            flops=2.0 * product.prod(axis=1),
            bytes=np.full(n, np.nan),
            operand_bytes=np.full(n, np.nan),
            dtype=np.full(n, ElementType.BF16, np.int8),
            tiles=np.full(n, -1, np.int64),
            product=product,
        )


def ask_for(run: Run, tape: Tape, target: RunShape, bound: Bound = Bound.NOMINAL) -> Ask:
    """What a relayout hands on."""
    return Ask(
        described=Described(
            kind=Kind.TRAINING,
            shape=run.shape,
            layout=layout_of(tape.graph),
            labels=tape.labels,
            stage_of_rank={0: 0},
            stage_layers=((0, 1),),
        ),
        target=target,
        context=Context(bound=bound, device=require("H100")),
    )


def made(run: Run, target: RunShape, bound: Bound = Bound.NOMINAL) -> tuple[Made, list[int]]:
    """The part, and the new times of the kernels."""
    tape = run.tape()
    part = reshaped(tape, ask_for(run, tape, target, bound))
    return part, part.tape.graph.tasks.dur_ns[run.device].tolist()


def on(target: RunShape | None = None, **degrees: object) -> RunShape:
    """The shape with other degrees."""
    shape = target or SHAPE
    return edited(shape, degrees=edited(shape.degrees, **degrees))


LAYER = (
    Kernel(place=Place.NORM, kernel_class=KernelClass.NORMALISATION),
    Kernel(place=Place.QKV, kernel_class=GEMM, product=(TOKENS, 3 * 4096, 4096)),
    Kernel(place=Place.ATTENTION, kernel_class=KernelClass.ATTENTION),
    Kernel(place=Place.PROJECTION, kernel_class=GEMM, product=(TOKENS, 4096, 4096)),
    Kernel(place=Place.RESIDUAL),
    Kernel(place=Place.UP, kernel_class=GEMM, product=(TOKENS, 16384, 4096)),
    Kernel(place=Place.ACTIVATION),
    Kernel(place=Place.DOWN, kernel_class=GEMM, product=(TOKENS, 4096, 16384)),
    Kernel(
        place=Place.OPTIMIZER,
        part=Part.OPTIMIZER,
        direction=Pass.NONE,
        kernel_class=KernelClass.OPTIMIZER,
        phase=Phase.OPTIMIZER,
    ),
)
WHOLE = (0, 4)
DIVIDED = (1, 2, 3, 5, 6, 7)


def test_the_recorded_layout_is_the_recorded_run_itself() -> None:
    run = Run(LAYER)
    tape = run.tape()
    assert reshaped(tape, ask_for(run, tape, SHAPE)).tape is tape


def test_tensor_parallel_divides_what_it_divides_and_leaves_the_rest_to_the_ns() -> None:
    _, times = made(Run(LAYER), on(tp=2))
    assert [times[row] for row in WHOLE] == [1_000_000, 1_000_000]
    for row in DIVIDED:
        assert times[row] == pytest.approx(500_000, rel=0.08), LAYER[row].place


def test_sequence_parallel_divides_rows_too() -> None:
    _, times = made(Run(LAYER), on(tp=4, sp=True))
    assert [times[row] for row in WHOLE] == pytest.approx([250_000] * 2, rel=0.02)


def test_context_parallel_divides_tokens_and_not_the_optimizer() -> None:
    _, times = made(Run(LAYER), on(cp=2))
    assert times[:-1] == pytest.approx([500_000] * 8, rel=0.1)
    assert times[-1] == 1_000_000


@pytest.mark.parametrize("kind", list(ContextKind))
@pytest.mark.parametrize("ranks", [2, 8])
def test_context_ranks_divide_attention_and_lose_little(kind: ContextKind, ranks: int) -> None:
    core = (Kernel(place=Place.ATTENTION, kernel_class=KernelClass.ATTENTION),)
    long = edited(SHAPE, batch=edited(SHAPE.batch, sequence=65_536))
    _, (time,) = made(Run(core, shape=long), on(long, cp=ranks, cp_kind=kind))
    assert 1_000_000 / ranks < time * 1.02 < 1.1 * 1_000_000 / ranks


def test_a_larger_batch_grows_all_but_host_and_optimizer() -> None:
    run = Run(LAYER)
    part, times = made(run, edited(SHAPE, batch=edited(SHAPE.batch, samples=8)))
    assert times[:-1] == pytest.approx([2_000_000] * 8, rel=0.05)
    assert times[-1] == 1_000_000
    assert (part.tape.graph.tasks.dur_ns[run.host] == 5_000).all()


def test_attention_grows_with_the_square_of_the_sequence_and_products_with_it() -> None:
    _, times = made(Run(LAYER), edited(SHAPE, batch=edited(SHAPE.batch, sequence=4096)))
    assert 3_400_000 < times[2] < 4_000_000  # longer rows of scores waste less
    assert times[1] == pytest.approx(2_000_000, rel=0.05)


def test_shards_change_the_optimizer_and_nothing_else() -> None:
    recorded = on(dp=8)
    _, times = made(Run(LAYER, shape=recorded), on(recorded, zero=1))
    assert times[:-1] == [1_000_000] * 8
    assert times[-1] == pytest.approx(125_000, rel=0.05)  # 4 us of it are latency


def test_there_and_back_is_the_run_itself_but_for_rounding() -> None:
    _, halves = made(Run(LAYER), on(tp=2))
    back = tuple(
        replace(kernel, dur_ns=time, product=None)
        for kernel, time in zip(LAYER, halves, strict=True)
    )
    _, times = made(Run(back, shape=on(tp=2)), SHAPE)
    assert times == pytest.approx([1_000_000] * 9, rel=0.02)


def test_a_kernel_that_does_nothing_does_not_shrink() -> None:
    tiny = (
        Kernel(place=Place.ACTIVATION, dur_ns=2_100),
        Kernel(place=Place.ACTIVATION, dur_ns=2_500),
    )
    _, times = made(Run(tiny), on(tp=8))
    assert times[0] == 2_100
    assert 2_300 <= times[1] < 2_500


def test_the_range_of_an_unplaced_kernel_holds_what_stays_and_what_scales() -> None:
    run = (Kernel(place=Place.UNKNOWN),)
    ends = [made(Run(run), on(tp=4), bound)[1][0] for bound in (Bound.LOW, Bound.HIGH)]
    assert ends[0] <= 250_000
    assert ends[1] == 1_000_000
    part, (time,) = made(Run(run), on(tp=4))
    assert ends[0] < time < ends[1]
    assert any("no place in a layer" in told for told in part.assumptions)


def test_what_was_not_understood_may_stay() -> None:
    run = (Kernel(place=Place.UNKNOWN, part=Part.OTHER, kernel_class=GEMM),)
    target = edited(SHAPE, batch=edited(SHAPE.batch, samples=8))
    low, nominal, high = (
        made(Run(run), target, bound)[1][0] for bound in (Bound.LOW, Bound.NOMINAL, Bound.HIGH)
    )
    assert low == 1_000_000
    assert nominal == pytest.approx(2_000_000, rel=0.01)
    assert high > nominal


@pytest.mark.parametrize(
    ("place", "direction", "product"),
    [
        (Place.UP, Pass.BACKWARD_WEIGHT, (16384, 4096, TOKENS)),
        (Place.UP, Pass.BACKWARD_WEIGHT, (4096, 16384, TOKENS)),
        (Place.UP, Pass.BACKWARD, (16384, 4096, TOKENS)),
        (Place.DOWN, Pass.BACKWARD_WEIGHT, (4096, 16384, TOKENS)),
        (Place.UP, Pass.BACKWARD_INPUT, (TOKENS, 4096, 16384)),
        (Place.DOWN, Pass.BACKWARD, (TOKENS, 16384, 4096)),
        (Place.UP, Pass.RECOMPUTE, (TOKENS, 16384, 4096)),
    ],
)
def test_sixteen_ranks_divide_the_inner_width_whichever_dimension_it_is(
    place: Place, direction: Pass, product: tuple[int, int, int]
) -> None:
    kernel = Kernel(place=place, direction=direction, kernel_class=GEMM, product=product)
    run = Run((kernel,))
    tape, sizes = run.tape(), sizes_of(SHAPE, on(tp=16))
    factors = factors_of(
        tape,
        np.array(run.device),
        np.array([GEMM], np.int8),
        MODEL,
        lambda where: factor_of(where, sizes),
    )
    found = product_sizes(factors, tape.graph.work.product, SHAPE, sizes)
    divided = [size // 16 if size == 16384 else size for size in product]
    assert found.before.tolist() == [[1, *product]]
    assert found.after.tolist() == [[1, *divided]]


@pytest.mark.parametrize("place", [Place.UNKNOWN, Place.RESIDUAL, Place.ATTENTION])
@pytest.mark.parametrize(
    ("product", "after"),
    [
        ((TOKENS, 3 * 4096, 4096), (TOKENS, 3 * 1024, 4096)),
        ((TOKENS, 4096, 16384), (TOKENS, 4096, 4096)),
        ((16384, 4096, TOKENS), (4096, 4096, TOKENS)),
        ((4096, 16384, TOKENS), (4096, 4096, TOKENS)),
        ((16384, TOKENS, 4096), (4096, TOKENS, 4096)),
    ],
)
def test_sizes_alone_tell_what_is_divided(
    place: Place, product: tuple[int, int, int], after: tuple[int, int, int]
) -> None:
    run = Run((Kernel(place=place, kernel_class=GEMM, product=product),))
    part, _ = made(run, on(tp=4))
    assert part.tape.graph.work.product.tolist() == [[1, *after]]


MOE = RunShape(
    model=edited(MODEL, experts=8, top_k=2, expert_ffn=16384),
    batch=SHAPE.batch,
    degrees=Degrees(dp=4, ep=4),
)
EXPERTS = (
    Kernel(place=Place.EXPERT, kernel_class=GEMM),
    Kernel(place=Place.DISPATCH),
    Kernel(place=Place.QKV, kernel_class=GEMM),
)


def test_the_fullest_rank_of_experts_sets_the_pace() -> None:
    _, times = made(Run(EXPERTS, shape=MOE), edited(MOE, options=Options(imbalance=1.5)))
    assert times[0] == pytest.approx(1_500_000, rel=0.06)
    assert times[1] == pytest.approx(1_500_000, rel=0.01)
    assert times[2] == 1_000_000


def test_fewer_experts_on_a_rank_compute_the_same_tokens() -> None:
    _, times = made(Run(EXPERTS, shape=MOE), on(MOE, ep=8, dp=8))
    assert times[0] == pytest.approx(1_000_000, rel=0.06)
    assert times[2] == 1_000_000


def cpu_graph() -> tuple[TaskGraph, Labels]:
    """Two products of equal sizes, one slower, an optimizer, Python and small operators."""
    make = GraphBuilder(gpu=None)
    rows = [
        ("aten::addmm", 1_000_000, Part.LAYER, Place.UP),
        ("aten::addmm", 2_000_000, Part.LAYER, Place.UP),
        ("", 50_000, Part.LAYER, Place.UNKNOWN),
        ("aten::_fused_adamw_", 300_000, Part.OPTIMIZER, Place.OPTIMIZER),
        *[("aten::view", 10_000, Part.LAYER, Place.UNKNOWN)] * 20,
    ]
    for name, dur_ns, _, _ in rows:
        make.host(0, name or "python", dur_ns, op=name, phase=Phase.FORWARD)
    n = len(rows)
    scopes = replace(
        NO_SCOPES,
        slice_id=np.arange(n),
        shape=np.array([0, 0] + [-1] * (n - 2), np.int32),
        node=np.full(n, -1, np.int32),
        shapes=(("aten::addmm", "[[1536], [256, 384], [384, 1536], [], []]"),),
    )
    labels = Labels(
        part=np.array([row[2] for row in rows], np.int8),
        direction=np.full(n, Pass.FORWARD, np.int8),
        layer=np.zeros(n, np.int32),
        micro_batch=np.zeros(n, np.int32),
        place=np.array([row[3] for row in rows], np.int8),
    )
    return replace(make.build(), scopes=scopes), labels


CPU_SHAPE = RunShape(
    model=ModelShape(layers=1, hidden=384, heads=6, ffn=1536, vocab=4096),
    batch=Batch(samples=2, sequence=128),
)


def of_cpu(target: RunShape, bound: Bound = Bound.NOMINAL) -> list[int]:
    graph, labels = cpu_graph()
    run = Run((), shape=CPU_SHAPE)
    empty = np.zeros(0, np.int32)
    segments = Segments(
        rank=empty,
        step=empty,
        part=empty.astype(np.int8),
        direction=empty.astype(np.int8),
        layer=empty,
        micro_batch=empty,
    )
    nowhere = np.full(graph.n_tasks, -1, np.int32)
    tape = Tape(graph=graph, labels=labels, segments=segments, segment=nowhere)
    part = reshaped(tape, ask_for(run, tape, target, bound))
    times: list[int] = part.tape.graph.tasks.dur_ns.tolist()
    return times


TWICE = edited(CPU_SHAPE, batch=edited(CPU_SHAPE.batch, samples=4))


def test_operators_at_the_best_rate_of_the_run_follow_tokens() -> None:
    fast, _, python, optimizer, view, *_ = of_cpu(TWICE)
    assert fast == pytest.approx(1_990_000, abs=1_000)  # all but the dispatch of 10 us
    assert (python, optimizer, view) == (50_000, 300_000, 10_000)


def test_half_of_what_an_operator_takes_beyond_the_best_rate_stays() -> None:
    low, slow, high = (of_cpu(TWICE, bound)[1] for bound in (Bound.LOW, Bound.NOMINAL, Bound.HIGH))
    assert slow == pytest.approx(3_500_000, rel=0.02)
    assert low == pytest.approx(3_000_000, rel=0.03)
    assert high == pytest.approx(3_990_000, abs=1_000)
