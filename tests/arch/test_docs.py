"""What the documents tell to type can be typed, and their links lead somewhere."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from replay.cli.app import OWN_OPTIONS, make_app, with_command

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "ingest/*.md", "replay/*.md", "whatif/*.md")
    for path in ROOT.glob(pattern)
)
BLOCK = re.compile(r"^```(?:sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]+\]\((?!https?:|#)([^)#]+)")
SET_UP = re.compile(r"^python3 -m venv .*$", re.MULTILINE)


def _commands(path: Path) -> list[str]:
    """Lines of shell blocks (after `$ ` where output follows), set-up and comments taken off."""
    lines = []
    for block in BLOCK.findall(path.read_text(encoding="utf-8")):
        prompts = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
        lines += prompts or block.splitlines()
    parts = [part.strip() for line in lines for part in line.split("&&")]
    calls = [re.sub(r"^\.venv/bin/", "", part) for part in parts]
    return [call for call in calls if call.startswith("replay ")]


ALL = [
    pytest.param(command, id=f"{path.relative_to(ROOT)}: {command}")
    for path in DOCUMENTS
    for command in _commands(path)
]


@pytest.mark.parametrize("command", ALL)
def test_a_command_in_a_document_can_be_parsed(command: str) -> None:
    require_parsable(command)


def require_parsable(command: str) -> None:
    """Fail where the program would refuse the line without looking at a trace."""
    arguments = with_command(shlex.split(command, comments=True)[1:])
    if arguments[0] in OWN_OPTIONS:
        return
    group = typer.main.get_command(make_app())
    name, *rest = arguments
    chosen = group.commands[name]
    context = typer.Context(chosen, info_name=name)
    if "--help" not in rest:
        chosen.parse_args(context, rest)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    targets = LINK.findall(path.read_text(encoding="utf-8"))
    assert [target for target in targets if not (path.parent / target).exists()] == []


def test_the_readme_sets_up_with_two_commands() -> None:
    """The first runs the main job on the samples, the second passes the tests."""
    first, second = SET_UP.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert "sample_traces/" in first
    assert "--nvlink" in first
    assert second.endswith("/pytest")


def test_documents_name_only_samples_that_are_there() -> None:
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        for sample in re.findall(r"sample_traces/[\w/.]*[\w]", text):
            assert (ROOT / sample).exists(), f"{path.name}: {sample}"
