"""The page for notebooks does what it says: its blocks are run, and the values shown compared."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calls import ROOT

PAGE = ROOT / "docs" / "python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^(?P<code>[^#\s][^#]*?)  # (?P<value>.+)$")


def _run(block: str, names: dict[str, Any]) -> int:
    """Run each statement; where its line ends in a comment, its value is what the comment says."""
    compared = 0
    lines = block.splitlines()
    for statement in ast.parse(block).body:
        code = ast.unparse(statement)
        shown = SHOWN.match(lines[(statement.end_lineno or 0) - 1])
        if isinstance(statement, ast.Expr) and shown:
            assert eval(code, names) == ast.literal_eval(shown["value"]), code
            compared += 1
        else:
            exec(compile(code, str(PAGE), "exec"), names)
    return compared


def test_the_blocks_run_and_show_what_they_give(
    monkeypatch: pytest.MonkeyPatch, cache_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_home))
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert sum(_run(block, names) for block in blocks) >= 8
    assert "Candidate bindings" in capsys.readouterr().out
