"""What pipeline stages hand to one another, and what they hold."""

from dataclasses import replace as replaced

import pytest
from msgspec.structs import replace

from ingest.errors import ScenarioError
from ingest.vocab import CollectiveKind
from tests.builders import GraphBuilder
from tests.layered import Layered, ask
from whatif.models.shape import Batch, Degrees, ModelShape, RunShape
from whatif.transforms.relayout.messages import messages_of
from whatif.transforms.relayout.network import networked
from whatif.transforms.relayout.parts import Ask
from whatif.transforms.relayout.programs import programs_of
from whatif.transforms.relayout.stage_weights import parameters_of, shares_of

KNOWN = ModelShape(layers=4, hidden=64, heads=4, ffn=256, vocab=1000)


def _two_stages(run: Layered, **degrees: object) -> Ask:
    tape = run.tape()
    target = replace(run.shape, degrees=Degrees(pp=2, **degrees))
    return ask(tape, run.shape, target)


def test_messages_have_the_samples_tokens_and_width_of_a_micro_batch() -> None:
    run = Layered()
    graph = run.tape().graph
    whole = messages_of(graph, _two_stages(run)).size_bytes
    assert whole == 1 * 1024 * 1024 * 2
    halved = messages_of(graph, _two_stages(run, tp=2, sp=True)).size_bytes
    assert halved == whole // 2
    assert messages_of(graph, _two_stages(run, tp=2)).size_bytes == whole


def test_a_model_of_unknown_width_has_no_messages() -> None:
    run = Layered()
    tape = run.tape()
    shape = replace(run.shape, model=ModelShape(layers=4))
    with pytest.raises(ScenarioError, match="bytes that a stage hands") as caught:
        messages_of(tape.graph, ask(tape, shape, replace(shape, degrees=Degrees(pp=2))))
    assert "--describe" in caught.value.hint


def test_recorded_messages_tell_size_and_time_of_those_of_twice_the_samples() -> None:
    builder = GraphBuilder(ranks=(0, 1))
    calls = {rank: builder.call(rank, "cudaLaunchKernel", 100) for rank in (0, 1)}
    builder.kernel(0, "gemm", 1_000, caller=calls[0])
    builder.collective(
        50_000, callers=calls, kind=CollectiveKind.SEND_RECV, size_bytes=1 << 20, stream=9
    )
    graph = builder.build()
    batch = Batch(samples=1, sequence=128)
    before = RunShape(model=ModelShape(layers=2), degrees=Degrees(pp=2), batch=batch)
    after = replace(before, batch=replace(batch, samples=2))
    run = Layered(layers=2)
    asked = ask(run.tape(), before, after)
    same = messages_of(graph, replaced(asked, target=before))
    twice = messages_of(graph, asked)
    assert (same.size_bytes, same.inside_ns) == (1 << 20, 50_000)
    assert twice.size_bytes == 2 << 20
    assert 50_000 < twice.inside_ns <= 100_000


def test_stages_on_other_nodes_have_the_network_between_them() -> None:
    run = Layered(ranks=8)
    tape = run.tape()
    target = replace(run.shape, degrees=Degrees(pp=2, dp=8))
    asked = ask(tape, run.shape, target)
    context, told = networked(tape.graph, asked.context, target.degrees.world)
    assert any("2 nodes" in line for line in told)
    far = messages_of(tape.graph, replaced(asked, context=context))
    assert far.across_ns > far.inside_ns
    alone, nothing = networked(tape.graph, asked.context, 8)
    assert alone == asked.context
    assert nothing == ()


def test_parameters_of_a_stage_are_its_layers_table_and_head() -> None:
    each = parameters_of(KNOWN, [0], first=False, last=False)
    assert parameters_of(KNOWN, [0, 1, 2], first=False, last=False) == 3 * each
    table = parameters_of(KNOWN, [], first=True, last=False)
    assert table == 1000 * 64
    assert parameters_of(KNOWN, [], first=False, last=True) >= table
    tied = replace(KNOWN, tied=True)
    both = parameters_of(tied, range(4), first=True, last=True)
    assert both == pytest.approx(4 * each + table, rel=0.01)
    unknown = ModelShape(layers=4)
    assert parameters_of(unknown, range(3), first=True, last=True) == 3


def test_shares_of_all_stages_make_the_whole() -> None:
    run = Layered()
    tape = run.tape()
    before = replace(run.shape, model=KNOWN)
    asked = ask(tape, before, replace(before, degrees=Degrees(pp=2)))
    programs, _ = programs_of(tape, asked)
    shares = shares_of(programs, asked)
    assert sum(share.whole for share in shares.values()) == pytest.approx(1)
    assert sum(share.beside_mean for share in shares.values()) == pytest.approx(2)
