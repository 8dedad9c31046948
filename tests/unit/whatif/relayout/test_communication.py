"""Collectives of other layouts on a small run of two layers, against the closed forms."""

import numpy as np
import pytest
from msgspec.structs import replace as edited

from ingest.errors import ScenarioError
from ingest.vocab import CollectiveKind, EdgeKind, TaskKind
from replay.engine.run import replay
from replay.graph.arrays import TaskGraph
from tests.builders import GraphBuilder
from whatif.description.described import Described, Kind
from whatif.description.labels import Labels
from whatif.models.bound import Bound
from whatif.models.exchanges.volume import Along
from whatif.models.places import Part, Pass, Place
from whatif.models.shape import (
    Batch,
    ContextKind,
    Degrees,
    Elements,
    ModelShape,
    Options,
    RunShape,
)
from whatif.models.transformer.parameters import model_parameters
from whatif.models.volumes import calls_per_step, volumes
from whatif.parallelism import layout_of
from whatif.tape.cut import cut
from whatif.tape.segments import Tape
from whatif.transforms.base import Context
from whatif.transforms.machine import known
from whatif.transforms.relayout.communication import recommunicated
from whatif.transforms.relayout.exchanges.inside import LAUNCH_NS
from whatif.transforms.relayout.parts import Ask
from whatif.transforms.relayout.parts import Part as Made

US = 1_000
MODEL = ModelShape(layers=2, hidden=1024, heads=16, ffn=4096, vocab=4096)
BATCH = Batch(micro_batches=2, samples=1, sequence=2048)
ELEMENTS = Elements(parameter=2, gradient=2)
PLACES = (Place.NORM, Place.QKV, Place.ATTENTION, Place.PROJECTION, Place.UP, Place.DOWN)
"""Kernels of a layer in forward; backward has them in reverse, each twice."""


def _run(ranks: tuple[int, ...] = (0,)) -> tuple[TaskGraph, Labels]:  # noqa: C901  (a step)
    """Two micro-batches through embedding, two layers and head, then the optimizer."""
    make = GraphBuilder(ranks=ranks)
    labels: list[tuple[int, ...]] = []
    last: dict[int, int] = {}

    def kernel(label: tuple[int, ...], us: int) -> None:
        for rank in ranks:
            call = make.call(rank, "cudaLaunchKernel", 1 * US)
            last[rank] = make.kernel(rank, "kernel", us * US, caller=call)
            labels.extend([label, label])

    def reduced(label: tuple[int, ...]) -> None:
        calls = {rank: make.call(rank, "ncclAllReduce", 1 * US) for rank in ranks}
        before = len(make.rows)
        make.collective(700 * US, callers=calls, after=dict(last), size_bytes=30_000_000)
        labels.extend([label] * (len(calls) + len(make.rows) - before))

    for batch in range(2):
        kernel((Part.EMBEDDING, Pass.FORWARD, -1, batch, Place.EMBEDDING), 50)
        for layer in range(2):
            for place in PLACES:
                kernel((Part.LAYER, Pass.FORWARD, layer, batch, place), 100)
        kernel((Part.HEAD, Pass.FORWARD, -1, batch, Place.LOGITS), 100)
        kernel((Part.HEAD, Pass.BACKWARD, -1, batch, Place.LOGITS), 200)
        for layer in reversed(range(2)):
            for place in reversed(PLACES):
                for _ in range(2):
                    kernel((Part.LAYER, Pass.BACKWARD, layer, batch, place), 100)
            if len(ranks) > 1 and batch == 1:
                reduced((Part.LAYER, Pass.BACKWARD, layer, batch, Place.COMMUNICATION))
        kernel((Part.EMBEDDING, Pass.BACKWARD, -1, batch, Place.EMBEDDING), 50)
    kernel((Part.OPTIMIZER, Pass.NONE, -1, -1, Place.OPTIMIZER), 300)
    part, direction, layer, micro_batch, place = np.array(labels).T
    return make.build(), Labels(
        part=part.astype(np.int8),
        direction=direction.astype(np.int8),
        layer=layer.astype(np.int32),
        micro_batch=micro_batch.astype(np.int32),
        place=place.astype(np.int8),
    )


def _shape(**degrees: object) -> RunShape:
    return RunShape(model=MODEL, degrees=Degrees(**degrees), batch=BATCH, elements=ELEMENTS)


def _made(target: RunShape, ranks: tuple[int, ...] = (0,)) -> tuple[Tape, Made]:
    graph, labels = _run(ranks)
    before = _shape(dp=len(ranks))
    ask = Ask(
        described=Described(
            kind=Kind.TRAINING,
            shape=before,
            layout=layout_of(graph),
            labels=labels,
            stage_of_rank=dict.fromkeys(ranks, 0),
            stage_layers=((0, 1),),
        ),
        target=target,
        context=known(graph, Context()),
    )
    tape = cut(graph, labels)
    return tape, recommunicated(tape, ask)


def _end_us(graph: TaskGraph) -> float:
    schedule = replay(graph)
    return int((schedule.start_ns + graph.tasks.dur_ns).max()) / US


def _put_in(tape: Tape) -> dict[tuple[str, CollectiveKind], list[int]]:
    """Sizes of the new collectives by axis and kind."""
    found: dict[tuple[str, CollectiveKind], list[int]] = {}
    calls = tape.graph.collectives
    for number in range(len(calls.kind)):
        group = tape.graph.groups[calls.group[number]]
        key = (group.description, CollectiveKind(int(calls.kind[number])))
        found.setdefault(key, []).append(int(calls.size_bytes[number]))
    return found


def _expected(target: RunShape, along: Along) -> dict[CollectiveKind, list[int]]:
    found: dict[CollectiveKind, list[int]] = {}
    for row in volumes(target):
        if row.along is along:
            found.setdefault(row.kind, []).extend([row.size_bytes] * calls_per_step(row, target))
    return {kind: sorted(sizes) for kind, sizes in found.items()}


@pytest.mark.parametrize(
    ("degrees", "along"),
    [
        ({"tp": 4}, Along.TENSOR),
        ({"tp": 4, "sp": True}, Along.TENSOR),
        ({"cp": 4}, Along.CONTEXT),
        ({"cp": 4, "cp_kind": ContextKind.ALL_TO_ALL}, Along.CONTEXT),
    ],
)
def test_an_axis_inside_a_replica_brings_what_the_closed_forms_say(
    degrees: dict[str, object], along: Along
) -> None:
    """Kinds, counts and bytes of a step of one rank."""
    target = _shape(**degrees)
    _, part = _made(target)
    found = {
        kind: sorted(sizes)
        for (name, kind), sizes in _put_in(part.tape).items()
        if name == str(along)
    }
    assert found == _expected(target, along)


def _added_ns(tape: Tape) -> int:
    """Transfers that were put in, all together."""
    tasks = tape.graph.tasks
    assert tape.graph.origin is not None
    added = (tape.graph.origin < 0) & (tasks.kind == TaskKind.TRANSFER)
    return int(tasks.dur_ns[added].sum())


def test_sums_of_a_layer_hold_up_its_stream() -> None:
    """The step is as much longer as all of them take, and the first launch before them."""
    tape, part = _made(_shape(tp=4))
    added_us = _added_ns(part.tape) / US
    assert added_us > 0
    assert _end_us(part.tape.graph) == pytest.approx(
        _end_us(tape.graph) + added_us + LAUNCH_NS[Bound.NOMINAL] / US
    )


def test_asynchronous_sums_hide_behind_their_products_but_for_a_piece() -> None:
    """A product of 100 us hides three quarters of its time; a quarter of the sum always shows."""
    plain, hidden = (
        _made(edited(_shape(tp=4), options=Options(async_tp=is_async)))[1].tape.graph
        for is_async in (False, True)
    )
    whole_us, left_us = (graph.collectives.transfer_ns / US for graph in (plain, hidden))
    expected = np.maximum(whole_us - 75, whole_us / 4)
    is_hidden = left_us != whole_us
    assert left_us[is_hidden] == pytest.approx(expected[is_hidden], abs=0.01)
    assert is_hidden.sum() == 2 * (2 * 4 + 1), "of both micro-batches: four a layer, and the head's"


def test_the_sum_of_attention_comes_before_the_feed_forward() -> None:
    """Behind the projection of each layer, not at its end."""
    _, part = _made(_shape(tp=4))
    graph, labels = part.tape.graph, part.tape.labels
    transfer = np.flatnonzero(graph.tasks.kind == TaskKind.TRANSFER)
    forward = transfer[
        (labels.direction[transfer] == Pass.FORWARD) & (labels.part[transfer] == Part.LAYER)
    ]
    before = {int(labels.place[task - 2]) for task in forward}
    assert before == {Place.PROJECTION, Place.DOWN}


def test_a_ring_is_hidden_beside_attention_as_far_as_that_lasts() -> None:
    """It may add no more than its whole time, and adds less than that."""
    tape, part = _made(_shape(cp=2))
    more_us = _end_us(part.tape.graph) - _end_us(tape.graph)
    assert more_us < _added_ns(part.tape) / US


def test_gradients_of_new_replicas_go_with_the_last_micro_batch() -> None:
    """Once per step, all bytes of the model, and the optimizer waits for them."""
    target = _shape(dp=8)
    _, part = _made(target)
    sizes = _put_in(part.tape)["data", CollectiveKind.ALL_REDUCE]
    expected = _expected(target, Along.REPLICAS)[CollectiveKind.ALL_REDUCE]
    assert sum(sizes) == sum(expected)
    graph = part.tape.graph
    transfer = np.flatnonzero(graph.tasks.kind == TaskKind.TRANSFER)
    assert set(part.tape.labels.micro_batch[transfer].tolist()) == {1}
    ends = replay(graph).start_ns[transfer] + graph.tasks.dur_ns[transfer]
    (optimizer,) = np.flatnonzero(
        (part.tape.labels.part == Part.OPTIMIZER) & (graph.tasks.kind == TaskKind.KERNEL)
    )
    assert replay(graph).start_ns[optimizer] >= ends.max()


def test_buckets_gather_gradients_up_to_their_size() -> None:
    """A layer has 25 MB: of 60 MB of bucket three parts of the model fill one."""
    options = Options(bucket_bytes=60e6)
    _, part = _made(edited(_shape(dp=8), options=options))
    assert len(_put_in(part.tape)["data", CollectiveKind.ALL_REDUCE]) == 2


def test_fully_sharded_state_is_gathered_for_every_pass() -> None:
    """Two micro-batches, forward and backward; gradients scattered behind each backward."""
    target = _shape(dp=8, zero=3)
    _, part = _made(target)
    put_in = _put_in(part.tape)
    expected = _expected(target, Along.SHARDS)
    for kind in (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER):
        assert sorted(put_in["shard", kind]) == expected[kind]


def test_gathers_run_ahead_of_the_layers_that_need_them() -> None:
    """Beside the computation: the step is shorter than with each in its way."""
    tape, part = _made(_shape(dp=8, zero=3))
    more_us = _end_us(part.tape.graph) - _end_us(tape.graph)
    assert 0 < more_us < _added_ns(part.tape) / US
    edges = part.tape.graph.edges
    assert (edges.kind == EdgeKind.EVENT_WAIT).any()


def test_shards_of_optimizer_state_bring_parameters_back() -> None:
    """A reduce-scatter and, behind the optimizer, an all-gather of as many bytes."""
    put_in = _put_in(_made(_shape(dp=8, zero=1))[1].tape)
    sizes = [
        sum(put_in["shard", kind])
        for kind in (CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_GATHER)
    ]
    assert sizes[0] == sizes[1] > 0


def test_recorded_exchanges_stay_with_their_measured_time() -> None:
    """Tensor parallel over the same replicas: half the bytes (norms stay whole), no others."""
    tape, part = _made(_shape(dp=2, tp=2), ranks=(0, 1))
    calls = part.tape.graph.collectives
    recorded = slice(0, len(tape.graph.collectives.kind))
    assert calls.size_bytes[recorded].tolist() == pytest.approx([15_000_000] * 2, rel=1e-3)
    before, after = (each.graph.tasks for each in (tape, part.tape))
    longest = [int(each.dur_ns[each.kind == TaskKind.TRANSFER].max()) for each in (before, after)]
    assert 0.4 < longest[1] / longest[0] < 1
    assert calls.members_expected[recorded].tolist() == [2, 2]


def test_ranks_of_replicas_lie_apart_by_the_ranks_of_one() -> None:
    """Of 2 x 2 ranks 0 and 2 share gradients, 0 and 1 a layer."""
    _, part = _made(_shape(dp=2, tp=2), ranks=(0, 1))
    groups = {group.description or group.name: group.ranks for group in part.tape.graph.groups}
    assert groups["g"] == (0, 2)
    assert groups["tensor"] == (0, 1)


def test_sharding_recorded_replicas_replaces_their_exchange() -> None:
    """All-reduces take no time any more; gathers and scatters of both ranks meet."""
    tape, part = _made(_shape(dp=2, zero=3), ranks=(0, 1))
    calls = part.tape.graph.collectives
    recorded = len(tape.graph.collectives.kind)
    assert calls.members_expected[:recorded].tolist() == [1, 1]
    transfer = np.flatnonzero(part.tape.graph.tasks.kind == TaskKind.TRANSFER)
    number = part.tape.graph.tasks.collective[transfer]
    assert (np.bincount(number)[recorded:] == 2).all()


def test_the_recorded_layout_is_left_alone() -> None:
    """The very tape."""
    tape, part = _made(_shape(dp=2), ranks=(0, 1))
    assert part.tape is tape


def test_sizes_that_nothing_tells_are_not_guessed() -> None:
    """A model of unknown width, and no batch."""
    nothing = RunShape(model=ModelShape(layers=2), degrees=Degrees(tp=2), batch=Batch())
    with pytest.raises(ScenarioError, match="not told"):
        _made(nothing)
    with pytest.raises(ScenarioError, match="not told"):
        _made(edited(nothing, degrees=Degrees(dp=2)))


def test_local_sgd_averages_parameters_behind_the_optimizer() -> None:
    """Every fourth step: a quarter of the bytes in each, nothing beside backward any more."""
    target = edited(_shape(dp=2), options=Options(sync_every=4))
    tape, part = _made(target, ranks=(0, 1))
    new = slice(len(tape.graph.collectives.kind), None)
    whole = sum(_expected(_shape(dp=2), Along.REPLICAS)[CollectiveKind.ALL_REDUCE])
    found = part.tape.graph.collectives.size_bytes[new].sum()
    assert found == pytest.approx(whole / 4, rel=1e-6)
    graph = part.tape.graph
    transfer = np.flatnonzero(graph.tasks.kind == TaskKind.TRANSFER)[2 * 2 :]
    (optimizer, _) = np.flatnonzero(
        (part.tape.labels.part == Part.OPTIMIZER) & (graph.tasks.kind == TaskKind.KERNEL)
    )
    ends_ns = replay(graph).start_ns[optimizer] + graph.tasks.dur_ns[optimizer]
    assert (replay(graph).start_ns[transfer] >= ends_ns).all()


def test_shards_cannot_train_apart() -> None:
    """State that is shared is needed in every step."""
    with pytest.raises(ScenarioError, match="share state"):
        _made(edited(_shape(dp=2, zero=1), options=Options(sync_every=4)), ranks=(0, 1))


def test_an_offloaded_optimizer_takes_what_host_and_copies_take() -> None:
    """A quarter of a nanosecond per parameter, and two bytes of each over PCIe."""
    target = edited(_shape(), options=Options(offload=True))
    tape, part = _made(target)
    parameters = model_parameters(MODEL).total
    pcie = known(tape.graph, Context()).links.pcie_bytes_per_s
    expected = parameters * 0.25 + 2 * parameters * 1e9 / pcie
    (optimizer,) = np.flatnonzero(
        (part.tape.labels.part == Part.OPTIMIZER) & (part.tape.graph.tasks.kind == TaskKind.KERNEL)
    )
    assert part.tape.graph.tasks.dur_ns[optimizer] == pytest.approx(expected)
