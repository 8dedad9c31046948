"""The forms of a report, by the suffix of the file that it is written to."""

from collections.abc import Callable

from whatif.postmortem.contract import Report
from whatif.postmortem.render.html import page
from whatif.postmortem.render.markdown import markdown
from whatif.report.answer import to_json


def as_html(report: Report) -> bytes:
    """One page."""
    return page(report).encode()


def as_markdown(report: Report) -> bytes:
    """For a pull request."""
    return markdown(report).encode()


FORMS: dict[str, Callable[[Report], bytes]] = {
    ".html": as_html,
    ".md": as_markdown,
    ".json": to_json,
}
