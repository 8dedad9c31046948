"""Templates of pages, with everything escaped, and the style and script that go into each page."""

import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from whatif.report.charts.amounts import printable
from whatif.report.charts.palette import HATCHED, variables
from whatif.report.charts.svg import element
from whatif.report.page.views import view

HERE = Path(__file__).parent
_CODE = re.compile("`([^`\n]+)`")
"""Text as typed, inside of prose (after escaping)."""


@cache
def environment(folder: Path) -> Environment:
    """Templates of a folder, on top of those that all pages share."""
    made = Environment(
        loader=FileSystemLoader([folder, HERE / "templates"]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"view": view, "prose": prose}
    made.globals |= {"style": _style(), "script": _script(), "hatches": _hatches()}
    return made


def render(folder: Path, template: str, **values: object) -> str:
    """A page, without characters that cannot be shown."""
    page = environment(folder).get_template(template).render(**values)
    return printable(page)


def prose(text: str) -> Markup:
    """Words in which backticks mark what is typed."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


def _style() -> Markup:
    """Our own text, in which nothing is escaped."""
    return Markup(variables() + (HERE / "style.css").read_text(encoding="utf-8"))


def _script() -> Markup:
    return Markup((HERE / "script.js").read_text(encoding="utf-8"))


def _hatches() -> Markup:
    """Patterns of what is hatched, for all charts of a page."""
    patterns = [
        element(
            "pattern",
            element("rect", width=6, height=6, class_="hatch-ground", style=f"fill:var(--{name})"),
            element("rect", width=2, height=6, class_="hatch-line"),
            id=f"hatch-{name}",
            width=6,
            height=6,
            patternUnits="userSpaceOnUse",
            patternTransform="rotate(45)",
        )
        for name in HATCHED
    ]
    return element(
        "svg", element("defs", *patterns), width=0, height=0, aria_hidden="true", class_="hatches"
    )
