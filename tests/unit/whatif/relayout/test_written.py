"""Programs written anew for the layout that a run has replay as it was recorded."""

from pathlib import Path

import pytest

from replay.calls.replayed import replay_run
from replay.engine.run import replay
from whatif.description.infer import describe
from whatif.tape.assemble import assemble
from whatif.tape.cut import cut
from whatif.transforms.base import Context
from whatif.transforms.machine import known
from whatif.transforms.relayout.columns import columns_of
from whatif.transforms.relayout.parts import Ask
from whatif.transforms.relayout.programs import written

ROOT = Path(__file__).resolve().parents[4]
RUNS = (
    ROOT / "sample_traces" / "ddp8_h100",
    ROOT.parent / "shared" / "traces" / "h100x4_torchtitan_fsdp_A",
)


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_the_recorded_layout_written_anew_is_the_recording(path: Path) -> None:
    if not path.exists():
        pytest.skip("shared material is absent")
    graph = replay_run([path]).graph
    found = describe(graph)
    tape = cut(graph, found.labels)
    ask = Ask(described=found, target=found.shape, context=known(graph, Context()))
    degrees = found.shape.degrees
    ranks = [info.rank for info in graph.ranks]
    columns = columns_of(found.stage_of_rank, ranks, degrees, degrees)
    programs, told = written(tape, ask, columns)
    assert told == ()
    made = assemble(tape, programs, world_size=len(ranks)).tape.graph
    assert made.origin is not None
    was, now = replay(graph), replay(made)
    assert (was.start_ns[made.origin] == now.start_ns).all()
    assert (was.end_ns[made.origin] == now.end_ns).all()
    assert sorted(made.origin.tolist()) == list(range(graph.n_tasks))
