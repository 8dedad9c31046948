"""Memory before and after another layout: anchored where recorded, judged by the device."""

from dataclasses import replace

import numpy as np
import pytest
from msgspec.structs import replace as with_fields

from replay.graph.arrays import TaskGraph
from replay.graph.work import NO_WORK
from tests.builders import GraphBuilder
from whatif.description.described import Described, Kind
from whatif.description.infer import describe
from whatif.models.hardware import require
from whatif.models.memory.rank import fullest
from whatif.models.shape import Batch, Degrees, ModelShape, RunShape
from whatif.report.layout import memory_facts
from whatif.transforms.base import Context
from whatif.transforms.relayout.coverage import coverage
from whatif.transforms.relayout.memory import NOT_TOLD, fits, judged
from whatif.transforms.relayout.parts import Ask

GIB = 2**30
H100 = require("H100")
LLAMA = ModelShape(
    layers=32, hidden=4096, heads=32, kv_heads=8, ffn=14336, gated=True, vocab=128256
)
SHARDED = RunShape(
    model=LLAMA, degrees=Degrees(dp=8, zero=3), batch=Batch(samples=1, sequence=8192)
)
ALONE = with_fields(SHARDED, degrees=Degrees(dp=8))


def graph_of_two_kernels() -> TaskGraph:
    build = GraphBuilder()
    for dur_ns in (300, 700):
        build.kernel(0, "gemm", dur_ns, caller=build.call(0, "launch", 10))
    return build.build()


def described(shape: RunShape, kind: Kind = Kind.TRAINING) -> Described:
    return replace(describe(graph_of_two_kernels()), shape=shape, kind=kind)


def ask(before: RunShape, target: RunShape, kind: Kind = Kind.TRAINING) -> Ask:
    return Ask(described=described(before, kind), target=target, context=Context(device=H100))


def test_without_memory_events_both_sides_are_by_formula() -> None:
    told = judged(ask(SHARDED, ALONE), NO_WORK, H100)
    assert told is not None
    assert not told.is_recorded
    assert told.before.peak_bytes == fullest(SHARDED).peak_bytes
    assert told.after.peak_bytes == fullest(ALONE).peak_bytes
    assert told.device_bytes == H100.memory_bytes.value


def test_a_recorded_peak_is_the_base_and_formulas_tell_the_difference() -> None:
    work = replace(NO_WORK, peak_bytes=60 * GIB, memory_bytes=79 * GIB)
    told = judged(ask(SHARDED, ALONE), work, H100)
    assert told is not None
    difference = fullest(ALONE).peak_bytes - fullest(SHARDED).peak_bytes
    assert told.before.peak_bytes == 60 * GIB
    assert told.after.peak_bytes == pytest.approx(60 * GIB + difference)
    assert told.device_bytes == 79 * GIB


def test_what_does_not_fit_says_so_with_what_would() -> None:
    told = judged(ask(SHARDED, ALONE), NO_WORK, H100)
    assert told is not None
    assert told.before.fits(told.device_bytes) is True
    assert told.fits is False
    *_, verdict = fits(told)
    assert verdict.startswith("warning: does not fit in memory: ")
    assert "fits with --zero 3 (" in verdict
    facts = memory_facts(told)
    assert facts is not None
    assert (facts.baseline.fits, facts.predicted.fits) == (True, False)
    assert "--zero 3" in [one.flags for one in facts.suggestions]


def test_on_a_device_with_more_memory_the_same_layout_fits() -> None:
    told = judged(ask(SHARDED, ALONE), NO_WORK, H100)
    assert told is not None
    assert told.on(require("MI355X")).fits is True


def test_of_inference_only_the_parameters_are_told() -> None:
    told = judged(ask(ALONE, ALONE, Kind.INFERENCE), NO_WORK, H100)
    assert told is not None
    assert told.after.parameters_bytes == pytest.approx(2 * 8.03e9, rel=0.01)
    assert (told.after.gradients_bytes, told.after.peak_bytes) == (0, None)
    assert told.fits is None
    assert "its caches" in told.verdict


def test_what_is_missing_is_named() -> None:
    unknown = with_fields(ALONE, batch=Batch(samples=1))
    told = judged(ask(unknown, unknown), NO_WORK, H100)
    assert told is not None
    assert told.after.peak_bytes is None
    assert "batch.sequence were not found" in told.verdict


def test_of_an_unknown_model_nothing_is_told() -> None:
    assert judged(ask(RunShape(), RunShape()), NO_WORK, H100) is None
    assert fits(None) == (NOT_TOLD,)


def test_coverage_is_in_shares_of_device_work() -> None:
    graph = graph_of_two_kernels()
    kernels = np.flatnonzero(graph.tasks.dur_ns >= 300)
    dur_ns = graph.tasks.dur_ns.copy()
    dur_ns[kernels[0]] = 100
    origin = np.arange(graph.n_tasks)
    origin[kernels[1]] = -1
    made = replace(graph, tasks=replace(graph.tasks, dur_ns=dur_ns), origin=origin)
    found = coverage(graph, made)
    assert (found.measured_frac, found.scaled_frac, found.made_frac) == pytest.approx(
        (0, 1 / 8, 7 / 8)
    )
    as_it_was = coverage(graph, graph)
    assert as_it_was.measured_frac == 1
