"""Words in Markdown: names in traces are written by anybody, and mean nothing to it or to HTML."""

import re

from whatif.report.charts.amounts import printable
from whatif.report.columns import NO_NAME

_MARKS = re.compile(r"([\\`*_\[\]|~])")
_BACKTICKS = re.compile(r"`+")


def plain(text: str) -> str:
    """Words that mean nothing to Markdown or HTML, on one line."""
    return _escaped(_one_line(text))


def prose(text: str) -> str:
    """Our own words, in which backticks mark what is typed."""
    flat = _one_line(text)
    parts = flat.split("`")
    if len(parts) % 2 == 0:
        return _escaped(flat)
    told_ = (code(part) if at % 2 else _escaped(part) for at, part in enumerate(parts))
    return "".join(told_)


def code(text: str) -> str:
    """Text as typed; pipes are escaped also here, or they would end the cell of a table."""
    flat = (_one_line(text) or NO_NAME).replace("|", "\\|")
    runs = [len(run) for run in _BACKTICKS.findall(flat)]
    fence = "`" * next(size for size in range(1, len(runs) + 2) if size not in runs)
    edge = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{edge}{flat}{edge}{fence}"


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _escaped(text: str) -> str:
    marked = _MARKS.sub(r"\\\1", text)
    return marked.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
