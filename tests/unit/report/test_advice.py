"""What a recording lacks is told with the option that supplies it, and nothing else is."""

from dataclasses import replace

import pytest

from ingest.vocab import EdgeKind, Evidence
from replay.graph.facts import GraphFacts
from tests.builders import GraphBuilder, data_parallel, facts_of
from tests.unit.report.findings import file_of, findings_of
from whatif.report.advice import advice

WHOLE = replace(facts_of(data_parallel()), files=(file_of(0), file_of(1)))


def _lacks(facts: GraphFacts) -> list[str]:
    """What a run of three steps with these facts lacks."""
    builder = GraphBuilder(ranks=(0, 1))
    for step in range(3):
        for rank in builder.ranks:
            call = builder.call(rank, "launch", 1_000, step=step)
            builder.kernel(rank, "k", 1_000_000, caller=call, step=step)
    graph = replace(builder.build(), steps_recorded=True)
    return list(advice(findings_of(graph, facts=facts)))


def test_whole_recording_lacks_nothing() -> None:
    assert _lacks(WHOLE) == []


@pytest.mark.parametrize(
    ("changed", "option"),
    [
        ({"has_device": False}, "ProfilerActivity.CUDA"),
        ({"unlinked_frac": 0.2}, "warmup=2"),
        ({"files": (file_of(0), file_of(1, complete=False))}, "export the trace again"),
        ({"files": (replace(file_of(0), has_shapes=False),)}, "record_shapes=True"),
    ],
)
def test_each_lack_names_its_option(changed: dict[str, object], option: str) -> None:
    (lack,) = _lacks(replace(WHOLE, **changed))
    assert option in lack


@pytest.mark.parametrize("has_rows", [True, False])
def test_sync_events_are_asked_for_where_waits_are_guessed_without_them(has_rows: bool) -> None:  # noqa: FBT001
    edges = {(EdgeKind.EVENT_WAIT, Evidence.ORDERED): 3, (EdgeKind.HOST_SYNC, Evidence.RECORDED): 4}
    file = replace(file_of(0), has_sync_events=has_rows)
    found = _lacks(replace(WHOLE, edges=edges, files=(file,)))
    assert [("3 waits" in lack, "enable_cuda_sync_events=True" in lack) for lack in found] == (
        [] if has_rows else [(True, True)]
    )


def test_stacks_are_asked_for_where_silence_is_unexplained() -> None:
    builder = GraphBuilder()
    builder.host(0, "work", 1_000_000)
    builder.kernel(0, "k", 1_000_000, caller=0, residual_ns=500_000)
    graph = builder.build()
    file = replace(file_of(0), has_stacks=False)
    found = list(advice(findings_of(graph, facts=replace(WHOLE, files=(file,)))))
    assert any("with_stack=True" in lack for lack in found)


def test_files_of_other_ranks_are_asked_for_only_where_there_are_more_ranks() -> None:
    """A collective that one file's window cuts off lacks a member, and no file supplies it."""
    asked = "the other members of the collectives: give the files of all ranks"
    cut = GraphBuilder(ranks=(0, 1))
    call = cut.call(0, "launch", 1_000)
    cut.call(1, "launch", 1_000)
    cut.collective(50_000, callers={0: call}, group=(0, 1), expected=2)
    assert asked not in list(advice(findings_of(cut.build())))
    alone = GraphBuilder()
    call = alone.call(0, "launch", 1_000)
    alone.collective(50_000, callers={0: call}, group=(0, 1), expected=2)
    assert asked in list(advice(findings_of(alone.build())))


def test_recording_without_cpu_rows_says_that_nothing_tells_what_the_device_waited_for() -> None:
    builder = GraphBuilder()
    builder.kernel(0, "k", 1_000_000)
    assert any("CPU rows" in lack for lack in advice(findings_of(builder.build())))
