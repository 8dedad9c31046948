"""The comparison as one page that needs no network."""

from collections.abc import Iterator

from whatif.compare.blocks import blocks
from whatif.compare.contract import Diff
from whatif.compare.words import (
    explained_words,
    gate_words,
    match_words,
    run_words,
    step_words,
)
from whatif.report.blocks import Words
from whatif.report.page.single import SinglePage, single_page


def render_page(found: Diff) -> str:
    """Verdict, gate and both runs; then the waterfall and its tables, as in a report."""
    return single_page(
        SinglePage(
            program="trace-replay",
            what="Two runs compared",
            title=f"{found.b.name} against {found.a.name}",
            facts=tuple(
                f"{letter}: {run.name} ({run_words(run)})"
                for letter, run in (("A", found.a), ("B", found.b))
            ),
            verdict=f"{found.sentence}.",
            shown=(Words(paragraphs=tuple(_lines(found))), *blocks(found)),
        )
    )


def _lines(found: Diff) -> Iterator[str]:
    if found.gate is not None:
        yield f"Gate {gate_words(found.gate)}."
    yield f"Step: {step_words(found)}."
    for told in filter(None, (explained_words(found), match_words(found))):
        yield f"{told[0].upper()}{told[1:]}."
