"""Slowing beside collectives on the host, and waits for them, read off files of two ranks."""

from pathlib import Path

import numpy as np
import pytest

from ingest.vocab import EdgeKind
from replay.graph.host_overlap import beside_frac
from tests.kineto import KinetoFile
from tests.replayed import Replayed, written

WORKER = 501
MS = 1_000.0
DIMS = [[512, 512], [512, 512]]


def rank_file(rank: int, *, beside_ms: float, late_ms: float = 0.1) -> KinetoFile:
    """Products of 10 ms alone, then as many of `beside_ms` beside a transfer, then a wait."""
    file = KinetoFile(rank=rank, ranks=(0, 1), gpus=0)
    now_ms = 1.0
    for _ in range(4):
        file.op("aten::mm", (now_ms * MS, (now_ms + 10) * MS), **{"Input Dims": DIMS})
        now_ms += 10
    file.op("c10d::allreduce_", (now_ms * MS, (now_ms + 0.1) * MS), **{"Input Dims": [[[1000]]]})
    begin_ms = now_ms + 0.2
    for _ in range(4):
        file.op("aten::mm", (begin_ms * MS, (begin_ms + beside_ms) * MS), **{"Input Dims": DIMS})
        begin_ms += beside_ms
    end_ms = begin_ms + 60
    file.annotation(
        "gloo:all_reduce", ((now_ms + 0.15) * MS, end_ms * MS), thread=WORKER,
        **{"Input Dims": [[1000]]},
    )  # fmt: skip
    after_ms = end_ms + late_ms
    file.op("aten::add", (after_ms * MS, (after_ms + 10) * MS), **{"Input Dims": DIMS})
    file.step(1, (0.0, (after_ms + 11) * MS))
    return file


def read_ranks(folder: Path, **more: float) -> Replayed:
    return written(folder, *(rank_file(rank, beside_ms=15.0, **more) for rank in (0, 1)))


def test_equal_operators_alone_and_beside_tell_the_slowing_of_what_they_cover(
    tmp_path: Path,
) -> None:
    replayed = read_ranks(tmp_path)
    # 110 ms of operators in 112.3 ms of work.
    for info in replayed.graph.ranks:
        assert info.host_slowdown == pytest.approx(1 + 0.5 * 110 / 112.3, rel=0.005)


@pytest.mark.parametrize(("late_ms", "waits"), [(0.1, True), (1.5, True), (9.0, False)])
def test_a_long_wait_may_end_a_little_after_its_row(
    tmp_path: Path,
    late_ms: float,
    waits: bool,  # noqa: FBT001
) -> None:
    replayed = read_ranks(tmp_path, late_ms=late_ms)
    kinds = replayed.graph.edges.kind
    assert (kinds == EdgeKind.HOST_SYNC).any() == waits


def test_part_of_a_stretch_beside_others_that_overlap() -> None:
    found = beside_frac(
        np.array([0, 0, 90, 200]),
        np.array([100, 40, 110, 300]),
        np.array([50, 60, 100]),
        np.array([80, 70, 120]),
    )
    assert found.tolist() == [0.3, 0.0, 0.5, 0.0]
    none = np.zeros(0, np.int64)
    assert beside_frac(np.array([0]), np.array([10]), none, none).tolist() == [0.0]
