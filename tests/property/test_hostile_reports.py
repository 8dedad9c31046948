"""Reports of small recordings in which something is zero, alone or nowhere."""

import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ingest.pipeline import IngestOptions
from replay import api
from tests.kineto import KinetoFile
from whatif.postmortem.contract import Report
from whatif.postmortem.render.html import page
from whatif.postmortem.render.markdown import markdown

NO_CACHE = IngestOptions(cache=False)
SHAPES = {"Input Dims": [[256, 512], [512, 1024]], "Input type": ["float", "float"]}


def _training(
    *, kernel_us: float = 20.0, comm_us: float = 30.0, name: str = "gemm", step_us: float = 100.0
) -> KinetoFile:
    """Two steps, each with an operator, its kernel, a copy and an all-reduce."""
    file = KinetoFile()
    for number, at in ((1, 0.0), (2, step_us)):
        file.step(number, (at, at + step_us))
        file.op("aten::mm", (at + 2, at + 12), **SHAPES)
        file.launched(name, (at + 4, at + 8), (at + 10, at + 10 + kernel_us))
        file.copy("DtoH (Device -> Pinned)", (at + 13, at + 15), (at + 35, at + 35 + kernel_us / 4))
        file.all_reduce(number, (at + 16, at + 20), (at + 50, at + 50 + comm_us))
    return file


def _alone(write: Callable[[KinetoFile], object]) -> KinetoFile:
    file = KinetoFile()
    write(file)
    return file


RECORDINGS = {
    "as it should be": _training(),
    "no kernel takes time": _training(kernel_us=0),
    "no collective takes time": _training(comm_us=0),
    "no device row takes time": _training(kernel_us=0, comm_us=0),
    "no name": _training(name=""),
    "a name of Markdown and HTML": _training(name="<b>`a|b`[c](d)&</b>"),
    "one operator": _alone(lambda file: file.op("aten::mm", (0, 10))),
    "one operator without time": _alone(lambda file: file.op("aten::mm", (0, 0))),
    "one kernel": _alone(lambda file: file.kernel("gemm", (0, 10))),
    "one kernel without time": _alone(lambda file: file.kernel("gemm", (0, 0))),
    "one collective": _alone(lambda file: file.member(1, (0, 10))),
    "one collective without time": _alone(lambda file: file.member(1, (0, 0))),
    "steps alone": _alone(lambda file: (file.step(1, (0, 10)), file.step(2, (10, 20)))),
    "a call alone": _alone(lambda file: file.call("cudaLaunchKernel", (1, 1))),
}  # fmt: skip


@pytest.mark.parametrize("file", RECORDINGS.values(), ids=RECORDINGS)
def test_a_report_is_made_of_whatever_was_recorded(file: KinetoFile, tmp_path: Path) -> None:
    trace = file.write(tmp_path / "rank0.json")
    made = api.report([trace], command="replay report", options=NO_CACHE)
    assert msgspec.json.decode(msgspec.json.encode(made), type=Report) == made
    assert "nan" not in made.verdict.sentence
    shown, text = page(made), markdown(made)
    assert "<b>`" not in shown
    assert "| `` |" not in text
    assert "<b>" not in re.sub(r"(`+).+?\1", "", text)


def test_a_kernel_without_a_name_is_told_as_that(tmp_path: Path) -> None:
    trace = RECORDINGS["no name"].write(tmp_path / "rank0.json")
    made = api.report([trace], command="replay report", options=NO_CACHE)
    assert "<code>(no name)</code>" in page(made)
    assert "`(no name)`" in markdown(made)
