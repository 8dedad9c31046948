"""The page in one piece: its policy, and its colours, which are those of all pages."""

import base64
import hashlib
import re
from pathlib import Path

import replay.serve
from replay.serve.document import document
from whatif.report.charts.palette import PAGE, ROLES

FOLDER = Path(replay.serve.__path__[0]) / "page"
OWN = {"c", "hatch"}
"""Variables that the style sheet sets itself, on the marks."""


def _text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def test_every_colour_is_one_of_the_palette() -> None:
    style = _text("page.css")
    assert set(re.findall(r"var\(--([\w-]+)\)", style)) - OWN <= PAGE.keys() | ROLES.keys()
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[\s;,)])", style)


def test_every_part_of_a_bar_has_a_colour() -> None:
    assert set(re.findall(r'"c-(\w+)"', _text("page.js"))) <= ROLES.keys()


def test_the_policy_allows_the_style_and_the_script_of_the_page_alone() -> None:
    page = document()
    for tag in ("style", "script"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page.html.decode(), re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in page.policy
