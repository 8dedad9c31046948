"""Runs that are made, read back like recordings."""

from pathlib import Path

import pytest

from ingest.errors import ScenarioError
from ingest.pipeline import IngestOptions, open_run
from ingest.vocab import CollectiveKind
from replay.calls.answered import analyse
from replay.graph.arrays import TaskGraph
from replay.graph.build import build
from replay.graph.facts import GraphFacts
from replay.results.fidelity import baseline
from whatif.models.shape import (
    Batch,
    Degrees,
    ModelShape,
    Options,
    Recompute,
    RunShape,
    Schedule,
)
from whatif.models.volumes import calls_per_step, volumes
from whatif.scenario import Scenario
from whatif.synth.calibrate import calibrated, step_ns
from whatif.synth.document import MachineSaid, Measured, Wanted, load_wanted
from whatif.synth.machine import site_of
from whatif.synth.make import make
from whatif.transforms.grad_accum import GradAccum

MODEL = ModelShape(layers=4, hidden=2048, heads=16, kv_heads=4, ffn=5632, gated=True, vocab=32_000)
MACHINE = MachineSaid(gpu="H100", net_gb_per_s=50)
BATCH = Batch(samples=1, sequence=4096, micro_batches=4)
LAYOUTS = {
    "one": (Degrees(), Options()),
    "data": (Degrees(dp=8), Options()),
    "optimizer shards": (Degrees(dp=8, zero=1), Options()),
    "full shards": (Degrees(dp=8, zero=3), Options()),
    "tensor": (Degrees(tp=4, dp=2), Options()),
    "sequence": (Degrees(tp=4, sp=True, dp=2), Options(recompute=Recompute.FULL)),
    "context": (Degrees(cp=4, dp=2), Options()),
    "gpipe": (Degrees(pp=2, dp=4), Options(schedule=Schedule.GPIPE)),
    "1f1b": (Degrees(pp=4), Options(schedule=Schedule.ONE_F_ONE_B)),
    "interleaved": (
        Degrees(pp=2, virtual_stages=2),
        Options(schedule=Schedule.INTERLEAVED),
    ),
}


def wanted(name: str, **more: object) -> Wanted:
    degrees, options = LAYOUTS[name]
    fields = {"model": MODEL, "machine": MACHINE, "batch": BATCH} | more
    return Wanted(degrees=degrees, options=options, **fields)  # type: ignore[arg-type]


def test_nobody_takes_it_for_a_recording(tmp_path: Path) -> None:
    make(wanted("one"), tmp_path)
    told = analyse([tmp_path], options=IngestOptions(cache=False))
    assert told.trace.made.startswith("made by replay synth, not recorded")
    asked = Scenario(transforms=(GradAccum(micro_batches=8),))
    with_what_if = analyse([tmp_path], asked, options=IngestOptions(cache=False))
    assert with_what_if.prediction is not None
    assert with_what_if.prediction.assumptions[0] == told.trace.made


def read(folder: Path) -> tuple[TaskGraph, GraphFacts]:
    with open_run([folder], options=IngestOptions(cache=False)) as run:
        built = build(run.store)
    return built.graph, built.facts


@pytest.mark.parametrize("name", LAYOUTS)
def test_replay_of_a_made_run_takes_what_was_played(name: str, tmp_path: Path) -> None:
    made = make(wanted(name), tmp_path)
    assert len(made.files) == LAYOUTS[name][0].pp
    graph, facts = read(tmp_path)
    step_ns_ = baseline(graph, facts).replayed.mean_ns
    assert step_ns_ / 1e6 == pytest.approx(made.step_ms, rel=2e-3)


def test_updated_parameters_are_gathered_once_beside_the_first_forward(tmp_path: Path) -> None:
    """Of optimizer shards: as many bytes as the volumes say."""
    made = wanted("optimizer shards")
    make(made, tmp_path)
    calls = read(tmp_path)[0].collectives
    gathered = calls.size_bytes[calls.kind == CollectiveKind.ALL_GATHER]
    expected = [
        row.size_bytes * calls_per_step(row, made.shape)
        for row in volumes(made.shape)
        if row.kind is CollectiveKind.ALL_GATHER
    ]
    assert gathered.sum() == sum(expected) > 0


def test_stages_that_play_in_brief_take_as_long_as_written_out(tmp_path: Path) -> None:
    for name in LAYOUTS:
        made = make(wanted(name), tmp_path / name)
        brief = step_ns(wanted(name).shape, site_of(MACHINE))
        assert brief / 1e6 == pytest.approx(made.step_ms, rel=0.02), name


def test_a_step_is_brought_to_the_measured_time() -> None:
    shape = wanted("sequence").shape
    site = site_of(MACHINE)
    found = calibrated(shape, site, 2.0 * step_ns(shape, site))
    assert found.compute_factor > 2.0  # what ranks exchange does not take longer
    assert step_ns(shape, site, found.factors) == pytest.approx(found.measured_ns, rel=1e-3)


def test_the_bubble_is_that_of_the_closed_form() -> None:
    """Of stages alike and messages that take next to nothing: m + p - 1 turns for m."""
    site = site_of(MachineSaid(gpu="H100", nvlink_gb_per_s=1e6))
    model = ModelShape(layers=8, hidden=4096, heads=32, ffn=16384, vocab=256)
    batch = Batch(samples=1, sequence=8192, micro_batches=8)

    def lasts(stages: int, schedule: Schedule) -> float:
        shape = RunShape(
            model=model,
            degrees=Degrees(pp=stages),
            batch=batch,
            options=Options(schedule=schedule),
        )
        return step_ns(shape, site)

    alone = lasts(1, Schedule.NONE)
    for schedule in (Schedule.GPIPE, Schedule.ONE_F_ONE_B):
        assert lasts(4, schedule) / (alone / 4) == pytest.approx(11 / 8, rel=0.03)


def test_what_is_missing_is_told() -> None:
    with pytest.raises(ScenarioError, match="layers, hidden, heads, vocab is not said"):
        step_ns(RunShape(batch=BATCH), site_of(MACHINE))
    far = RunShape(model=MODEL, degrees=Degrees(dp=16), batch=BATCH)
    with pytest.raises(ScenarioError, match="network is not said"):
        step_ns(far, site_of(MachineSaid(gpu="H100")))
    with pytest.raises(ScenarioError, match="no factor"):
        calibrated(RunShape(model=MODEL, batch=BATCH), site_of(MACHINE), 1e3)


def test_a_file_says_what_to_make(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(
        "model: {layers: 4, hidden: 2048, heads: 16, ffn: 8192, vocab: 32000}\n"
        "machine: {gpu: A100}\n"
        "batch: {samples: 1, sequence: 2048}\n"
        "calibrate: {step_ms: 90, degrees: {tp: 2}}\n"
    )
    said = load_wanted(path)
    assert said.shape.model.hidden == 2048
    assert isinstance(said.calibrate, Measured)
    assert said.calibrate.of(said.shape).degrees == Degrees(tp=2)
    path.write_text("model: {layers: 4}\n")
    with pytest.raises(ScenarioError, match="machine"):
        load_wanted(path)


def test_bytes_of_gradients_are_those_of_the_parameters(tmp_path: Path) -> None:
    """DDP: what all ranks reduce together is every parameter once, in fp32."""
    make(wanted("data"), tmp_path)
    graph, _ = read(tmp_path)
    reduced = graph.collectives.kind == CollectiveKind.ALL_REDUCE
    attention = 2048 * (16 + 4 * 2 + 16) * 128
    held = 4 * (attention + 3 * 2048 * 5632 + 2 * 2048) + 2 * 32_000 * 2048
    assert graph.collectives.size_bytes[reduced].sum() == pytest.approx(4 * held, rel=0.001)
