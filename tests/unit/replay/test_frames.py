"""Python frames around what host threads do outside of operators."""

from pathlib import Path

from replay import api
from replay.api import IngestOptions
from tests.kineto import KinetoFile
from whatif.compare.account import account
from whatif.compare.leaves import Idle


def recorded(folder: Path, *, with_stacks: bool) -> Path:
    """A step of 20 ms: 8 ms in a frame without any operator, then a kernel; twice."""
    file = KinetoFile()
    file.step(1, (0, 20_000))
    file.op("aten::ones", (10, 60))
    if with_stacks:
        file.host_row("python_function", "train.py(3): main", (0, 20_000))
        file.host_row("python_function", "resize.py(7): resize", (70, 8_000))
        file.host_row("python_function", "nn.Module: Linear_12", (8_000, 9_050))
        file.host_row("python_function", "<built-in f at 0x7f00>", (9_100, 9_600))
    file.op("aten::mm", (9_000, 9_050))
    file.launched("gemm", (9_010, 9_020), (9_022, 9_100))
    file.op("aten::mm", (9_700, 9_800))
    file.launched("gemm", (9_710, 9_720), (9_722, 19_900))
    return file.write(folder / "rank0.json")


def frames(path: Path) -> set[str]:
    return set(api.side([path], options=IngestOptions(cache=False)).frames.values())


def test_the_innermost_frame_that_covers_most_is_told(tmp_path: Path) -> None:
    found = frames(recorded(tmp_path, with_stacks=True))
    assert found >= {"resize.py(7): resize", "<built-in f>"}


def test_without_stacks_there_are_none(tmp_path: Path) -> None:
    assert frames(recorded(tmp_path, with_stacks=False)) == set()


def test_the_account_tells_the_frame(tmp_path: Path) -> None:
    side = api.side([recorded(tmp_path, with_stacks=True)], options=IngestOptions(cache=False))
    spent = {
        leaf.key.cause: leaf.spent_ns
        for leaf in account(side).leaves
        if leaf.key.name == "resize.py(7): resize"
    }
    assert spent == {Idle.SILENT: 8_940_000, Idle.HOST: 70_000}
