"""Runs that were put together anew, asked what scenarios ask."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingest.pipeline import IngestOptions
from ingest.vocab import TaskKind
from replay import api
from replay.engine.run import replay
from replay.graph.arrays import TaskGraph
from tests.builders import baseline_of
from tests.replayed import read
from tests.unit.whatif.tape.layered import again, rows_of, training
from tests.unit.whatif.test_contention import two_transfers
from whatif.answers import Answers
from whatif.couplings.copies import found_in
from whatif.description.labels import unlabelled
from whatif.scenario import Scenario
from whatif.study import HIDDEN, why_unmoved
from whatif.tape.assemble import assemble, original
from whatif.tape.cut import cut
from whatif.transforms.base import with_durations
from whatif.transforms.layers import Layers

ROOT = Path(__file__).resolve().parents[4]
SAMPLES = ROOT / "sample_traces"
DLRM = ROOT.parent / "shared" / "traces" / "v100x8_dlrm"
DDP = ROOT.parent / "shared" / "groundtruth" / "ddp" / "500m"


def _graph(name: str) -> TaskGraph:
    if name == "two transfers":
        return two_transfers(apart_us=250)
    path = {"dlrm": DLRM, "gloo": DDP}[name]
    if not path.exists():
        pytest.skip("no shared beside this checkout")
    return read([path]).graph


def _put_together(graph: TaskGraph) -> TaskGraph:
    return again(cut(graph, unlabelled(graph.n_tasks))).tape.graph


def _slower(graph: TaskGraph) -> TaskGraph:
    """Transfers take three times as long, and kernels two thirds: other things overlap."""
    kind, dur_ns = graph.tasks.kind, graph.tasks.dur_ns
    factor = np.where(kind == TaskKind.TRANSFER, 3.0, np.where(kind == TaskKind.KERNEL, 0.66, 1.0))
    factor = np.where(graph.tasks.fixed, 1.0, factor)
    return with_durations(graph, np.rint(dur_ns * factor).astype(np.int64))


@pytest.mark.parametrize("name", ["two transfers", "dlrm", "gloo"])
def test_what_runs_at_the_same_time_is_found_in_copies(name: str) -> None:
    graph = _graph(name)
    answers = Answers.of(graph, replay(graph))
    assert answers.couplings
    made = _put_together(graph)
    assert made.origin is not None
    unchanged, _ = answers.settled(made)
    assert (unchanged.tasks.dur_ns == graph.tasks.dur_ns[made.origin]).all()
    plain, copied = (answers.settled(_slower(one)) for one in (graph, made))
    assert (plain[0].tasks.dur_ns != _slower(graph).tasks.dur_ns).any()
    assert (copied[0].tasks.dur_ns == plain[0].tasks.dur_ns[made.origin]).all()
    assert (copied[1].end_ns == plain[1].end_ns[made.origin]).all()


def test_recorded_tasks_are_found_as_often_as_they_were_copied() -> None:
    tape = training(n_layers=2, steps=1).tape()
    (program,) = original(tape)
    graph = assemble(tape, [rows_of(program, [0, 0, 2, 4])], world_size=1).tape.graph
    kernels = np.flatnonzero(tape.graph.tasks.kind == TaskKind.KERNEL)
    found = found_in(graph, kernels)
    assert found.row.tolist() == [0, 0, 2, 4]
    assert (graph.tasks.dur_ns[found.task] == tape.graph.tasks.dur_ns[kernels[found.row]]).all()
    assert found_in(tape.graph, kernels).task.tolist() == kernels.tolist()


def test_why_a_step_did_not_move_is_asked_of_copies() -> None:
    graph = training(ranks=(0, 1), n_layers=2, steps=2).built()[0]
    made = _put_together(graph)
    base = baseline_of(graph)
    first = np.flatnonzero(made.tasks.kind == TaskKind.TRANSFER)[0]
    dur_ns = made.tasks.dur_ns.copy()
    dur_ns[first] += 1
    assert why_unmoved(graph, with_durations(made, dur_ns), base) == HIDDEN


def test_a_graph_has_one_origin_per_task() -> None:
    graph = training(steps=1).built()[0]
    with pytest.raises(AssertionError, match="one per task"):
        replace(graph, origin=np.zeros(graph.n_tasks + 1, np.int64))


def test_timelines_of_another_layout_are_read_back(tmp_path: Path) -> None:
    scenario = Scenario(transforms=(Layers(layers=8),))
    options = IngestOptions(cache=False)
    folder = tmp_path / "timelines"
    api.export_timeline([SAMPLES / "ddp8_h100"], scenario, output=folder, options=options)
    found = api.examine([SAMPLES / "ddp8_h100"], scenario, options=options)
    assert found.study is not None
    predicted_ns = int(found.study.step_ns)
    kernels = np.flatnonzero(found.study.graph.tasks.kind == TaskKind.KERNEL)
    back = read([folder / "predicted"])
    assert abs(int(back.base.measured.mean_ns) - predicted_ns) <= 1_000
    assert (back.graph.tasks.kind == TaskKind.KERNEL).sum() == len(kernels)
    assert len(back.graph.ranks) == 8
