"""Facts about tokens per second, MFU and GPU-hours."""

from dataclasses import replace

import numpy as np
import pytest

from ingest.units import Nanos
from replay.graph.work import KernelWork
from replay.results.flops import RecordedFlops
from tests.builders import GraphBuilder, data_parallel, facts_of
from tests.unit.report.findings import findings_of
from whatif.report.findings import Findings
from whatif.report.flops import flops_after
from whatif.report.rates import (
    Workload,
    accelerators,
    peak_of,
    rate_lines,
    rates,
    step_flops,
)
from whatif.report.text import render
from whatif.report.view import answer_of
from whatif.transforms.network import NetworkScale

SECOND = Nanos(1_000_000_000)
EVERYTHING = Workload(
    tokens_per_step=8_192, samples_per_step=4, flops_per_step=1.979e15, steps_total=7_200
)


def test_two_h100_at_their_peak_have_an_mfu_of_one() -> None:
    machine = accelerators(data_parallel(), has_device=True)
    assert machine is not None
    assert (machine.count, machine.assumed) == (2, "")
    found = rates(EVERYTHING, SECOND, machine)
    assert (found.tokens_per_s, found.samples_per_s) == (8_192, 4)
    assert found.mfu_frac == pytest.approx(1)
    assert (found.run_s, found.gpu_hours) == (7_200, 4)


def test_half_the_step_is_twice_the_rate() -> None:
    machine = accelerators(data_parallel(), has_device=True)
    whole, half = (rates(EVERYTHING, Nanos(ns), machine) for ns in (SECOND, SECOND // 2))
    assert half.tokens_per_s == 2 * whole.tokens_per_s
    assert half.mfu_frac == 2 * whole.mfu_frac
    assert half.gpu_hours == whole.gpu_hours / 2


def test_what_is_not_given_is_not_known() -> None:
    found = rates(Workload(), SECOND, accelerators(data_parallel(), has_device=True))
    assert (found.tokens_per_s, found.mfu_frac, found.gpu_hours) == (None, None, None)


def test_a_job_of_more_ranks_than_files_counts_all_of_its_devices() -> None:
    graph = replace(data_parallel(), world_size=64)
    machine = accelerators(graph, has_device=True)
    assert machine is not None
    assert machine.count == 64


def test_a_world_size_that_no_file_records_is_said_to_be_assumed() -> None:
    graph = replace(data_parallel(), world_size=None)
    machine = accelerators(graph, has_device=True)
    assert machine is not None
    assert machine.count == 2
    lines = list(rate_lines(EVERYTHING, (("measured", SECOND),), machine))
    assert "of 2 GPUs, if the job has no other ranks than those of these files" in lines


def test_a_device_without_a_known_peak_has_no_mfu() -> None:
    made = GraphBuilder(gpu="Unheard-of 3000")
    made.kernel(0, "k", 1_000, caller=made.call(0, "launch", 10))
    machine = accelerators(made.build(), has_device=True)
    assert rates(EVERYTHING, SECOND, machine).mfu_frac is None
    text = "\n".join(rate_lines(EVERYTHING, (("measured", SECOND),), machine))
    assert "MFU is not known" in text
    assert "MFU 1" not in text


def test_without_gpu_rows_there_are_neither_mfu_nor_gpu_hours() -> None:
    graph = data_parallel()
    facts = replace(facts_of(graph), has_device=False)
    text = render(findings_of(graph, facts=facts, workload=EVERYTHING))
    assert "tokens/s" in text
    assert "no GPU rows: neither MFU nor GPU-hours" in text
    assert "GPU-hours\n" not in text.replace("nor GPU-hours\n", "")


def test_measured_and_predicted_step_have_a_line_each() -> None:
    text = render(findings_of(data_parallel(), NetworkScale(factor=2), workload=EVERYTHING))
    assert "rates    measured   " in text
    assert "         predicted  " in text
    assert "dense bf16 of H100 SXM5 80 GB" in text


def test_nothing_said_shows_nothing() -> None:
    findings = findings_of(data_parallel())
    assert "rates" not in render(findings)
    assert answer_of(findings).rates is None


def test_the_answer_holds_the_rates_of_the_predicted_step() -> None:
    asked = answer_of(findings_of(data_parallel(), NetworkScale(factor=2), workload=EVERYTHING))
    assert asked.rates is not None
    assert asked.prediction is not None
    assert asked.rates.step_ns == asked.prediction.step_ns
    assert asked.rates.tokens_per_s == pytest.approx(8_192e9 / asked.prediction.step_ns)
    assert (asked.rates.gpus, asked.rates.peak_dtype) == (2, "bf16")


RECORDED = RecordedFlops(
    per_step=0.9895e12,
    by_dtype={"c10::BFloat16": 0.75, "c10::Float8_e4m3fn": 0.25},
    matrix_ns=1_000,
    counted_ns=900,
    devices=2,
)


def _recorded(flops: RecordedFlops) -> Findings:
    return replace(findings_of(data_parallel()), flops=flops)


def test_recorded_flops_are_set_against_the_devices_that_did_them() -> None:
    machine = accelerators(replace(data_parallel(), world_size=64), has_device=True)
    found = rates(Workload(), Nanos(SECOND // 1_000), machine, RECORDED)
    least_s = 0.9895e12 * (0.75 / 989.5e12 + 0.25 / 1979e12)
    assert found.mfu_frac == pytest.approx(least_s / (2 * 1e-3))


@pytest.mark.parametrize(
    ("by_dtype", "flops_per_s", "dtype"),
    [
        ({"c10::BFloat16": 0.5, "c10::Half": 0.5}, 989.5e12, "50% bf16, 50% fp16"),
        ({"c10::Float8_e4m3fn": 1.0}, 1979e12, "fp8"),
        ({"float": 1.0}, 67e12, "fp32"),
        (
            {"float": 0.5, "c10::Float8_e5m2": 0.5},
            2 / (1 / 67e12 + 1 / 1979e12),
            "50% fp32, 50% fp8",
        ),
        ({"unknown": 1.0}, 989.5e12, "bf16"),
        ({"c10::BFloat16": 0.999, "float": 0.001}, 989.5e12 / (0.999 + 0.001 * 989.5 / 67), "bf16"),
        ({}, 989.5e12, "bf16"),
    ],
)
def test_the_peak_is_that_of_the_element_types_of_the_flops(
    by_dtype: dict[str, float], flops_per_s: float, dtype: str
) -> None:
    machine = accelerators(data_parallel(), has_device=True)
    recorded = step_flops(Workload(), replace(RECORDED, by_dtype=by_dtype), machine)
    found = peak_of(machine, recorded)
    assert found is not None
    assert found.flops_per_s == pytest.approx(flops_per_s)
    assert found.dtype == dtype


def test_flops_that_were_given_win_over_recorded_ones() -> None:
    machine = accelerators(data_parallel(), has_device=True)
    assert rates(EVERYTHING, SECOND, machine, RECORDED) == rates(EVERYTHING, SECOND, machine)


def test_recorded_flops_are_told_with_what_they_rest_on() -> None:
    text = " ".join(render(_recorded(RECORDED)).split())
    assert "recomputation included (90% of gemm, convolution, attention time): 495 GFLOP" in text
    assert "against 1,130.9 TFLOP/s per GPU: dense 75% bf16, 25% fp8 of H100 SXM5 80 GB" in text
    assert "of 2 GPUs" not in text


def test_flops_that_cover_too_little_are_not_told() -> None:
    findings = _recorded(replace(RECORDED, counted_ns=799))
    assert "MFU" not in render(findings)
    assert answer_of(findings).rates is None


def test_an_mfu_that_does_not_show_is_told_as_a_bound() -> None:
    text = render(_recorded(replace(RECORDED, per_step=1.0)))
    assert "MFU below 0.1%" in text


def test_a_scenario_that_doubles_flops_on_the_same_devices_doubles_them() -> None:
    make = GraphBuilder()
    task = make.kernel(0, "gemm", 1_000, caller=make.call(0, "launch", 10))
    before = replace(make.build(), work=work_of(task, flops=100.0))
    after = replace(before, work=work_of(task, flops=200.0))
    recorded = RecordedFlops(per_step=100.0, by_dtype={}, matrix_ns=1, counted_ns=1, devices=1)
    assert flops_after(recorded, before, after) == replace(recorded, per_step=200.0)
    assert flops_after(recorded, before, before) == recorded


def work_of(task: int, flops: float) -> KernelWork:
    one = np.ones(1)
    return KernelWork(
        slice_id=np.array([task]),
        flops=one * flops,
        bytes=one,
        operand_bytes=one.copy(),
        dtype=np.zeros(1, np.int8),
        tiles=np.zeros(1, np.int64),
    )
