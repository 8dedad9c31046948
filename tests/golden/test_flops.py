"""FLOPs in the store and per step: every call once, what they cover, and the MFU from them."""

from pathlib import Path

import pytest

from replay.api import Window, examine, sql
from replay.results.flops import NO_FLOPS
from tests.kineto import AUTOGRAD, KinetoFile
from whatif.report.check import render_check
from whatif.report.view import answer_of

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_nn"
FLASH = "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128>>(flash::Flash_fwd_params)"
HALF = ["c10::Half", "c10::Half"]
MM = {"Input Dims": [[200, 300], [300, 500]], "Input type": ["float", "c10::BFloat16"]}
MM_FLOPS = 2 * 200 * 300 * 500


def _write(file: KinetoFile, folder: Path) -> Path:
    return file.write(folder / "rank0.json")


def test_the_innermost_operator_that_tells_has_the_figure(tmp_path: Path) -> None:
    file = KinetoFile()
    shape = {"Input Dims": [[2, 3], [5, 3]], "Input type": HALF}
    file.op("aten::linear", (0, 50), **shape)
    file.op("aten::t", (1, 9), **{"Input Dims": [[5, 3]]})
    file.op("aten::mm", (10, 40), **{"Input Dims": [[2, 3], [3, 5]], "Input type": HALF})
    file.op("aten::linear", (60, 90), **shape)
    file.op("aten::mm", (61, 80), **{"Input Dims": [[], []], "Input type": ["", ""]})
    found = sql(
        [_write(file, tmp_path)], "SELECT name, ts, flops FROM cpu_op JOIN slice USING (id)"
    )
    known = [(name, ts, flops) for name, ts, flops in found.rows if flops is not None]
    assert known == [("aten::mm", 10_000, 60.0), ("aten::linear", 60_000, 60.0)]


def _two_steps() -> KinetoFile:
    """Steps of 1 ms with a product on the main and one on the autograd thread, and one before."""
    file = KinetoFile()
    file.kernel(GEMM, (5, 400))
    file.op("aten::mm", (10, 30), **MM)
    file.launched(GEMM, (12, 20), (400, 450))
    for number in (1, 2):
        at = 1_000 * number
        file.step(number, (at, at + 1_000))
        file.op("aten::mm", (at + 10, at + 50), **MM)
        file.launched(GEMM, (at + 20, at + 30), (at + 100, at + 300))
        file.op("aten::mm", (at + 60, at + 100), thread=AUTOGRAD, **{**MM, "Input type": HALF})
        file.launched(GEMM, (at + 70, at + 80), (at + 300, at + 560), thread=AUTOGRAD)
        file.op("flash_attn_3::fwd", (at + 110, at + 150))
        file.launched(FLASH, (at + 120, at + 130), (at + 600, at + 640))
    return file


def test_operators_count_in_the_step_in_which_the_host_ran_them(tmp_path: Path) -> None:
    found = examine([_write(_two_steps(), tmp_path)], with_levers=False).flops
    assert found.per_step == 2 * MM_FLOPS
    assert found.by_dtype == {"c10::BFloat16": 0.5, "c10::Half": 0.5}
    assert (found.matrix_ns, found.counted_ns) == (1_000_000, 920_000)
    assert found.devices == 1


def test_fp32_that_ran_on_matrix_units_counts_as_tf32(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 1_000))
    single = {**MM, "Input type": ["float", "float"]}
    names = (
        "ampere_sgemm_128x64_nn",
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x6_nn_align1>(Params)",
        "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32",
        "cutlass_80_simt_sgemm_128x32_8x5_nn_align1",
    )
    for place, name in enumerate(names):
        at = 100 * place
        file.op("aten::mm", (at + 10, at + 50), **single)
        file.launched(name, (at + 20, at + 30), (at + 40, at + 90))
    file.launched(names[1], (500, 510), (520, 530))
    found = examine([_write(file, tmp_path)], with_levers=False).flops
    assert found.by_dtype == {"float": 0.5, "tf32": 0.5}


def test_a_part_of_the_steps_has_its_own(tmp_path: Path) -> None:
    trace = _write(_two_steps(), tmp_path)
    found = examine([trace], window=Window(steps=range(2, 3)), with_levers=False).flops
    assert (found.per_step, found.matrix_ns) == (2 * MM_FLOPS, 500_000)


def test_without_steps_all_counts_but_what_was_launched_before_the_recording(
    tmp_path: Path,
) -> None:
    file = KinetoFile()
    file.kernel(GEMM, (5, 400))
    file.op("aten::mm", (10, 30), **MM)
    file.launched(GEMM, (12, 20), (400, 450))
    file.kernel(GEMM, (460, 470))
    found = examine([_write(file, tmp_path)], with_levers=False).flops
    assert (found.per_step, found.matrix_ns, found.counted_ns) == (MM_FLOPS, 60_000, 50_000)


def test_the_answer_tells_the_mfu_without_being_given_a_figure(tmp_path: Path) -> None:
    found = examine([_write(_two_steps(), tmp_path)], with_levers=False)
    told = answer_of(found).rates
    assert told is not None
    assert told.mfu_frac == pytest.approx(2 * MM_FLOPS / 989.5e12 / (told.step_ns / 1e9))
    assert (told.flops_per_step, told.flops_gpus) == (2 * MM_FLOPS, 1)
    assert told.flops_covered_frac == pytest.approx(0.92)
    assert told.tokens_per_s is None
    assert "MFU by operators' shapes, recomputation included (92% of gemm" in render_check(found)


def test_shapes_that_cover_little_give_no_mfu_and_check_says_why(tmp_path: Path) -> None:
    file = _two_steps()
    for number in (1, 2):
        at = 1_000 * number
        file.launched(FLASH, (at + 160, at + 170), (at + 650, at + 900))
    found = examine([_write(file, tmp_path)], with_levers=False)
    assert answer_of(found).rates is None
    told = render_check(found)
    assert "\nrates" not in told
    assert "known for 61.3% of 0.75 ms per step over all ranks" in told
    assert "no MFU from them: that is less than 80%" in told


def test_a_recording_without_shapes_says_so(tmp_path: Path) -> None:
    file = KinetoFile()
    file.op("aten::mm", (10, 30))
    file.launched(GEMM, (12, 20), (400, 450))
    found = examine([_write(file, tmp_path)], with_levers=False)
    assert found.flops == NO_FLOPS
    assert "not known: shapes were not recorded (record_shapes=True)" in render_check(found)
