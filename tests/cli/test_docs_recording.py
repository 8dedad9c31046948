"""The page on recording: its Python is run or at least valid, its options are torch's."""

import ast
import inspect
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from replay.capture import capture
from replay.recording.head import read_head
from tests.cli.calls import ROOT

PAGE = (ROOT / "docs" / "recording.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="recording needs torch")


def _block(word: str) -> str:
    (found,) = [block for block in BLOCKS if word in block]
    return found


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_is_python(block: str) -> None:
    ast.parse(block)


@needs_torch
def test_the_options_of_the_profiler_are_torchs() -> None:
    from torch.profiler import profile

    named = set(re.findall(r"^\| `(\w+)=", PAGE, re.MULTILINE))
    assert named == {
        *("activities", "record_shapes", "experimental_config", "with_stack", "profile_memory"),
    }
    assert named <= set(inspect.signature(profile).parameters)


def test_the_numbers_in_the_text_are_the_defaults() -> None:
    defaults = {name: one.default for name, one in inspect.signature(capture).parameters.items()}
    (told,) = re.findall(
        r"(\d+) steps are left alone \(`--skip`\), (\d+) warm the profiler up \(`--warmup`\), "
        r"(\d+) are recorded",
        PAGE,
    )
    assert [int(number) for number in told] == [
        defaults[name] for name in ("skip", "warmup", "steps")
    ]


@needs_torch
def test_the_context_manager_of_the_page_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"loader": range(24), "train": lambda _: torch.ones(8).sum()}
    exec(_block("for batch in loader"), names)
    head = read_head(tmp_path / "traces" / "run1" / "rank0.json.gz")
    assert head["metadata"] == {"tokens_per_step": 8 * 4096}
    assert "is written" in capsys.readouterr().err


@needs_torch
def test_the_profiler_of_the_page_records_without_this_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    block = _block("skip_first=10")
    assert "replay" not in block
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traces").mkdir()
    names: dict[str, Any] = {}
    exec(block, names)
    with names["profiler"] as profiler:
        for _ in range(17):
            torch.ones(8).sum()
            profiler.step()
    assert (tmp_path / "traces" / "rank0.json.gz").stat().st_size > 0
