"""What kernels compute and move, read from a store."""

from pathlib import Path

import numpy as np
import pytest

from ingest.pipeline import IngestOptions, open_run
from ingest.vocab import ElementType
from replay.graph.build import build
from replay.graph.work import NO_WORK, KernelWork
from replay.results.flops import find_flops
from replay.results.kernel_work import find_kernel_work
from tests.kineto import KinetoFile

SHARED = Path(__file__).parents[2] / "../shared/traces"
PRODUCT = "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn"
HALF = '"c10::Half"'


def read(path: Path) -> tuple[KernelWork, dict[str, int], float]:
    """The work, row by kernel name, and the FLOPs of the whole run."""
    with open_run([path], options=IngestOptions(cache=False)) as run:
        built = build(run.store)
        work = find_kernel_work(run.store, built.graph.names, built.facts)
        flops = find_flops(run.store, built.graph, built.facts).per_step
    tasks = built.graph.tasks
    row = work.rows_of(tasks.slice_id)
    names = {
        built.graph.names[name]: int(at)
        for name, at in zip(tasks.name, row, strict=True)
        if at >= 0
    }
    return work, names, flops


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[KernelWork, dict[str, int], float]:
    """A product in two kernels and one beside it, an addition, and a kernel without operator."""
    file = KinetoFile()
    shapes = {
        "Input Dims": [[256, 512], [512, 192]],
        "Input type": ["c10::Half", "c10::Half"],
    }
    file.op("aten::mm", (0, 50), **shapes)
    file.launched(PRODUCT, (5, 8), (60, 90))
    file.launched(PRODUCT + "_second", (10, 13), (90, 100))
    file.launched("batched_transpose_32x16_half", (15, 18), (100, 105))
    file.op(
        "aten::add",
        (60, 70),
        **{"Input Dims": [[256, 192], [256, 192]], "Input type": ["float", "float"]},
    )
    file.launched("vectorized_elementwise_kernel", (62, 65), (105, 110))
    file.launched("volta_sgemm_128x32_tn", (80, 82), (110, 120))
    return read(file.write(tmp_path / "rank0.json"))


def test_flops_go_to_the_matrix_kernels_of_the_operator_by_their_time(
    recorded: tuple[KernelWork, dict[str, int], float],
) -> None:
    work, row, total = recorded
    product = 2 * 256 * 512 * 192
    assert total == product
    assert work.flops[row[PRODUCT]] == pytest.approx(product * 0.75)
    assert work.flops[row[PRODUCT + "_second"]] == pytest.approx(product * 0.25)
    assert np.isnan(work.flops[row["batched_transpose_32x16_half"]])


def test_bytes_are_those_of_all_tensors(
    recorded: tuple[KernelWork, dict[str, int], float],
) -> None:
    work, row, _ = recorded
    moved = 2 * (256 * 512 + 512 * 192 + 256 * 192)
    assert work.bytes[row[PRODUCT]] == pytest.approx(moved * 0.75)
    assert work.bytes[row["vectorized_elementwise_kernel"]] == 3 * 4 * 256 * 192
    assert np.isnan(work.bytes[row["batched_transpose_32x16_half"]])
    assert np.isnan(work.bytes[row["volta_sgemm_128x32_tn"]])


def test_types_and_tiles_come_from_shapes_and_names(
    recorded: tuple[KernelWork, dict[str, int], float],
) -> None:
    work, row, _ = recorded
    assert work.dtype[row[PRODUCT]] == ElementType.FP16
    assert work.tiles[row[PRODUCT]] == 2 * 3
    assert work.dtype[row["vectorized_elementwise_kernel"]] == ElementType.SINGLE
    assert work.dtype[row["volta_sgemm_128x32_tn"]] == ElementType.FP32


def test_unknown_rows_have_no_work() -> None:
    assert NO_WORK.rows_of(np.array([3, 4])).tolist() == [-1, -1]


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the public traces in ../shared")
def test_flops_of_kernels_add_up_to_those_of_operators() -> None:
    path = SHARED / "pair_hf_infer_h100_vs_mi300/Falconsai_nsfw_image_detection.h100.json.gz"
    work, _, total = read(path)
    assert np.nansum(work.flops) == pytest.approx(total, rel=1e-6)
    assert work.peak_bytes == 231_332_864
    assert work.memory_bytes == 85_018_279_936


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the public traces in ../shared")
def test_both_makers_move_the_same_bytes() -> None:
    """The same model on H100 and MI300X: what shapes tell does not depend on the kernels."""
    folder = SHARED / "pair_hf_infer_h100_vs_mi300"
    model = "Falconsai_nsfw_image_detection"
    found = [read(folder / f"{model}.{device}.json.gz")[0] for device in ("h100", "mi300")]
    moved = [float(np.nansum(work.bytes)) for work in found]
    assert moved[0] == pytest.approx(moved[1], rel=0.1)
