"""A page of one column, for answers that are no report: a sweep, a comparison."""

from collections.abc import Sequence
from dataclasses import dataclass

from whatif.report.blocks import Block
from whatif.report.page.environment import HERE, render


@dataclass(frozen=True, slots=True, kw_only=True)
class SinglePage:
    """What stands on it, from top to bottom."""

    program: str
    """That wrote it."""
    what: str
    """Kind of the page, in a few words."""
    title: str
    facts: Sequence[str]
    """Lines under the title."""
    verdict: str
    shown: Sequence[Block]
    assumptions: Sequence[str] = ()


def single_page(page: SinglePage) -> str:
    """The page, which needs no network."""
    return render(
        HERE / "templates",
        "single.html.j2",
        program=page.program,
        what=page.what,
        title=page.title,
        facts=page.facts,
        verdict=page.verdict,
        shown=page.shown,
        assumptions=page.assumptions,
    )
