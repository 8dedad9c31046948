"""Kernels of a report: sums by hand, rates by shapes, what is slower than need be."""

from pathlib import Path

import numpy as np
import pytest

from ingest.vocab import ElementType
from replay.api import Window
from tests.kineto import AUTOGRAD, MAIN, KinetoFile
from tests.material import block_of, column_of, is_whole, keys_of, material_of, table_of
from whatif.models.hardware import require
from whatif.models.kernels.machine import machine_of
from whatif.postmortem.kernel_rates import (
    NOT_TOLD,
    ON_MATRIX_UNITS,
    ON_VECTOR_UNITS,
    KernelRate,
    kernel_rates,
    matrix_units,
    peak_flops_per_s,
    reached,
    shape_text,
)
from whatif.postmortem.sections import kernels
from whatif.report.blocks import Scatter, StackedBars

SAMPLE = Path("sample_traces/ddp8_h100")
GEMM = "nvjet_tst_128x128_64x4_1x2_h_bz_NNT"
H100 = machine_of(require("NVIDIA H100 80GB HBM3"))


def _two_steps(folder: Path) -> Path:
    """Steps of 100 us with a product of 20 us each; the second has 4 us of an addition too."""
    file = KinetoFile()
    for number, start in ((1, 0), (2, 100)):
        file.step(number, (start, start + 100))
        inputs = {"Input Dims": [[256, 512], [512, 1024]], "Input type": ["c10::BFloat16"] * 2}
        file.op("aten::mm", (start + 2, start + 12), **inputs)
        file.launched(GEMM, (start + 4, start + 8), (start + 12, start + 32))
    file.op("aten::add", (140, 150), **{"Input Dims": [[64], [64]], "Input type": ["float"] * 2})
    file.launched("vectorized_elementwise_kernel", (142, 146), (150, 154))
    file.launched("late", (160, 164), (196, 200))
    return file.write(folder / "rank0.json")


def test_time_of_a_step_is_that_of_its_device_and_shares_add_up(tmp_path: Path) -> None:
    with material_of(_two_steps(tmp_path)) as material:
        section = kernels.section(material)
    top = table_of(section, "kernels.top")
    assert column_of(top, "kernel") == [GEMM, "late", "vectorized_elementwise_kernel"]
    assert column_of(top, "per step") == [20_000, 2_000, 2_000]
    assert column_of(top, "count") == [2, 1, 1]
    assert column_of(top, "operator") == ["aten::mm", None, "aten::add"]
    assert sum(float(str(share)) for share in column_of(top, "share")) == pytest.approx(1)
    assert section.summary.startswith("24.00 us of device work per step and device")


def test_a_window_of_steps_holds_for_every_table(tmp_path: Path) -> None:
    with material_of(_two_steps(tmp_path), window=Window(steps=range(1, 2))) as material:
        section = kernels.section(material)
    top = table_of(section, "kernels.top")
    assert column_of(top, "kernel") == [GEMM]
    assert column_of(top, "per step") == [20_000]
    assert column_of(table_of(section, "kernels.ops"), "operator") == ["aten::mm"]
    assert top.query is not None
    assert top.query.command.endswith("--param first_step=1 --param last_step=1")


def test_rates_are_flops_and_bytes_of_the_shapes_over_the_time(tmp_path: Path) -> None:
    with material_of(_two_steps(tmp_path)) as material:
        section = kernels.section(material)
    rates = table_of(section, "kernels.rates")
    flops = 2 * 256 * 512 * 1024
    moved = 2 * (256 * 512 + 512 * 1024 + 256 * 1024)
    assert rates.rows[0][:5] == (GEMM, "gemm", "aten::mm", "256x512, 512x1024", "bf16")
    assert column_of(rates, "FLOP/s")[0] == pytest.approx(flops / 20e-6)
    assert column_of(rates, "B/s")[0] == pytest.approx(moved / 20e-6)
    chart = block_of(section, "kernels.roofline")
    assert isinstance(chart, Scatter)
    assert [(dot.x, dot.y) for dot in chart.dots] == [
        (pytest.approx(flops / moved), pytest.approx(flops / 20e-6))
    ]
    (roof,) = chart.roofs
    assert roof.points[1] == (
        pytest.approx(H100.flops_per_s[ElementType.BF16] / H100.memory_bytes_per_s),
        H100.flops_per_s[ElementType.BF16],
    )


def test_kernels_by_length_are_cut_at_five_and_ten_microseconds(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 400))
    for number, length in enumerate((4.999, 5, 9.999, 10, 100)):
        start = 40 * number
        file.launched("k", (start, start + 2), (start + 5, start + 5 + length))
    with material_of(file.write(tmp_path / "rank0.json")) as material:
        lengths = table_of(kernels.section(material), "kernels.lengths")
    assert column_of(lengths, "length") == [
        "below 5 us",
        "5 to 10 us",
        "10 to 100 us",
        "0.1 to 1 ms",
    ]
    assert column_of(lengths, "count") == [1, 2, 1, 1]
    assert column_of(lengths, "time per step") == [4_999, 14_999, 10_000, 100_000]


def test_a_tail_is_the_time_above_the_median_of_equals(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 1_000))
    for number in range(8):
        start, length = 100 * number, 30 if number == 5 else 10
        file.launched("k", (start, start + 2), (start + 5, start + 5 + length))
    with material_of(file.write(tmp_path / "rank0.json")) as material:
        tails = table_of(kernels.section(material), "kernels.tails")
    assert column_of(tails, "slow") == [1]
    assert column_of(tails, "longest / p50") == [pytest.approx(3)]
    assert column_of(tails, "above the median") == [20_000]


def test_kernels_beside_communication_are_told_by_class(tmp_path: Path) -> None:
    files = []
    for rank in (0, 1):
        file = KinetoFile(rank=rank, ranks=(0, 1))
        file.step(1, (0, 100))
        file.launched("gemm", (2, 4), (10, 40))
        file.all_reduce(1, (5, 8), (20, 50))
        files.append(file.write(tmp_path / f"rank{rank}.json"))
    with material_of(*files) as material:
        beside = table_of(kernels.section(material), "kernels.beside_comm")
    assert column_of(beside, "per step") == [30_000]
    assert column_of(beside, "beside communication") == [20_000]


def test_recomputed_is_what_a_checkpoint_launches_outside_of_the_engine(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 100))
    file.op("aten::mm", (0, 4))
    file.launched("forward", (1, 3), (5, 8))
    file.op("CheckpointFunctionBackward", (20, 60), thread=AUTOGRAD)
    file.launched("again", (22, 24), (26, 36), thread=AUTOGRAD)
    file.op("autograd::engine::evaluate_function: MmBackward0", (30, 50), thread=AUTOGRAD)
    file.launched("backward", (32, 34), (40, 55), thread=AUTOGRAD)
    file.launched("after", (62, 64), (66, 70), thread=AUTOGRAD)
    with material_of(file.write(tmp_path / "rank0.json")) as material:
        again = table_of(kernels.section(material), "kernels.recomputation")
    assert column_of(again, "count") == [1]
    assert column_of(again, "per step") == [10_000]
    assert column_of(again, "launched inside") == ["CheckpointFunctionBackward"]


def test_operators_count_the_backward_thread_too(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 100))
    file.op("aten::mm", (0, 10), thread=MAIN)
    file.op("aten::mm", (50, 56), thread=AUTOGRAD)
    file.launched("gemm", (52, 54), (60, 70), thread=AUTOGRAD)
    with material_of(file.write(tmp_path / "rank0.json")) as material:
        ops = table_of(kernels.section(material), "kernels.ops")
    assert column_of(ops, "calls") == [2]
    assert column_of(ops, "own host time") == [14_000]
    assert column_of(ops, "launched device time") == [10_000]


def test_rates_of_the_sample_are_the_work_that_what_ifs_rest_on() -> None:
    with material_of(SAMPLE) as material:
        rates = kernel_rates(material.ask("kernel_rates").dicts())
        work = material.findings.graph.work
        boundary_ns = material.findings.baseline.measured.boundary_ns
        tasks = material.findings.graph.tasks
        inside = (tasks.ts_ns >= boundary_ns[0]) & (tasks.ts_ns < boundary_ns[-1])
        rows = work.rows_of(tasks.slice_id[inside])
        rows = np.unique(rows[rows >= 0])
    assert sum(rate.flops or 0 for rate in rates) == pytest.approx(np.nansum(work.flops[rows]))
    assert sum(rate.bytes or 0 for rate in rates) == pytest.approx(np.nansum(work.bytes[rows]))


def test_classes_of_a_rank_add_up_to_its_device_work() -> None:
    with material_of(SAMPLE) as material:
        section = kernels.section(material)
        times = material.ask("kernel_times", ranks="3").dicts()
    chart = block_of(section, "kernels.classes")
    assert isinstance(chart, StackedBars)
    at = chart.categories.index("rank 3")
    assert sum(part.values[at] or 0 for part in chart.parts) == pytest.approx(
        sum(record["step_dur"] for record in times), rel=1e-6
    )


def test_types_add_up_to_all_matrix_time() -> None:
    with material_of(SAMPLE) as material:
        types = table_of(kernels.section(material), "kernels.types")
    assert sum(float(str(share)) for share in column_of(types, "share")) == pytest.approx(1)


def test_without_device_rows_it_says_what_to_record() -> None:
    with material_of(Path("sample_traces/tiny/cpu_only.json")) as material:
        section = kernels.section(material)
    assert keys_of(section) == ["kernels.ops"]
    assert [one.how for one in section.missing] == [
        "Record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]."
    ]


@pytest.mark.parametrize(
    "name",
    ["graph_launch", "default_stream", "kernel_without_launch", "truncated", "old_categories"],
)
def test_odd_recordings_have_the_section_too(name: str) -> None:
    with material_of(Path(f"sample_traces/tiny/{name}.json")) as material:
        assert is_whole(kernels.section(material))


@pytest.mark.parametrize(
    ("name", "dtype", "units"),
    [
        ("ampere_sgemm_128x64_nn", ElementType.FP32, ON_VECTOR_UNITS),
        ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn", ElementType.FP16, ON_MATRIX_UNITS),
        ("ampere_bf16_s16816gemm_bf16_128x64_ldg8", ElementType.BF16, ON_MATRIX_UNITS),
        ("cutlass_80_simt_sgemm_128x64_8x5_nn_align1", ElementType.SINGLE, ON_VECTOR_UNITS),
        ("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI16x16x16x1", ElementType.FP16, ON_MATRIX_UNITS),
        ("flash_fwd_kernel", ElementType.BF16, ON_MATRIX_UNITS),
        ("gemm", ElementType.SINGLE, NOT_TOLD),
        ("gemm", ElementType.UNKNOWN, NOT_TOLD),
    ],
)
def test_what_multiplies_is_told_by_name_then_by_type(
    name: str, dtype: ElementType, units: str
) -> None:
    assert matrix_units(name, dtype) == units


@pytest.mark.parametrize(
    ("dims", "shown"),
    [
        ("[[16, 3], [3, 4], []]", "16x3, 3x4"),
        ("[[[8, 2], [8, 2]], []]", "8x2, 8x2"),
        ("[[1], [2], [3], [4], [5], [6], [7]]", "1, 2, 3, 4, 5 and 2 more"),
        ("[[], []]", None),
        (None, None),
    ],
)
def test_shapes_are_told_in_words(dims: str | None, shown: str | None) -> None:
    assert shape_text(dims) == shown


def _rate(kernel_class: str, *, flops: float | None, moved: float | None) -> KernelRate:
    return KernelRate(
        name="k",
        short_name="k",
        kernel_class=kernel_class,
        op=None,
        shape=None,
        dtype=ElementType.BF16,
        units="",
        instances=1,
        total_ns=1_000,
        step_ns=1_000.0,
        flops=flops,
        bytes=moved,
    )


@pytest.mark.parametrize(
    ("kernel_class", "compute", "memory", "expected"),
    [
        ("gemm", 0.5, 0.1, (0.5, "compute")),
        ("gemm", 0.1, 0.4, (0.4, "memory")),
        ("gemm", 0.5, None, (0.5, "compute")),
        ("gemm", None, 0.4, None),
        ("elementwise", None, 0.4, (0.4, "memory")),
        ("elementwise", None, None, None),
    ],
)
def test_the_roof_that_binds_is_the_one_that_is_nearest(
    kernel_class: str,
    compute: float | None,
    memory: float | None,
    expected: tuple[float, str] | None,
) -> None:
    second = 1e-6
    peak = peak_flops_per_s(H100, ElementType.BF16) or 0.0
    found = reached(
        _rate(
            kernel_class,
            flops=None if compute is None else compute * peak * second,
            moved=None if memory is None else memory * H100.memory_bytes_per_s * second,
        ),
        H100,
    )
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert (found.frac, found.roof) == (pytest.approx(expected[0]), expected[1])


def test_single_precision_has_no_peak_where_it_may_be_shortened() -> None:
    assert peak_flops_per_s(H100, ElementType.SINGLE) is None
    volta = machine_of(require("Tesla V100-SXM2-16GB"))
    assert peak_flops_per_s(volta, ElementType.SINGLE) == volta.flops_per_s[ElementType.FP32]


def test_an_occupancy_of_zero_is_not_known(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 100))
    for number, (name, percent) in enumerate((("gemm", 0), ("relu", 50))):
        file.launched(name, (10 * number, 10 * number + 5), (40 * number + 10, 40 * number + 40))
        file.rows[-1]["args"]["est. achieved occupancy %"] = percent  # type: ignore[index]
    with material_of(file.write(tmp_path / "rank0.json")) as material:
        records = material.ask("kernel_times").dicts()
    assert {one["short_name"]: one["occupancy_frac"] for one in records} == {
        "gemm": None,
        "relu": 0.5,
    }
