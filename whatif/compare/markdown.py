"""The comparison for a pull request."""

from collections.abc import Iterator, Sequence

from whatif.compare.contract import Cause, Diff
from whatif.compare.words import (
    explained_words,
    gate_words,
    match_words,
    noise_ms,
    run_words,
    signed_ms,
    step_words,
    what,
    why,
)

CAUSES = 15
NAME = 80


def render_markdown(found: Diff) -> str:
    """Verdict, both runs, the waterfall, and what is in it."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Diff) -> Iterator[str]:
    yield f"## {_escaped(found.sentence)}"
    yield ""
    for run, words in ((found.a, "A"), (found.b, "B")):
        yield f"- **{words}** `{run.name}`: {run_words(run)}"
    yield f"- **step** {step_words(found)}"
    yield f"- **compared** {match_words(found)}"
    for reason in found.comparability.reasons:
        yield f"  - {_escaped(reason)}"
    if found.gate is not None:
        yield f"- **gate** {gate_words(found.gate)}"
    yield ""
    yield from _table(("where", "A", "B", "B - A", "noise"), _groups(found))
    yield ""
    if explained_words(found):
        yield f"{explained_words(found)}."
        yield ""
    shown = [cause for cause in found.causes[:CAUSES] if cause.change_ns]
    if shown:
        yield from _table(
            ("what", "where", "B - A", "how", "confidence"), (_cause(found, one) for one in shown)
        )


def _groups(found: Diff) -> Iterator[tuple[str, ...]]:
    for group in found.groups:
        yield (
            group.name,
            f"{group.a_ns / 1e6:,.2f} ms",
            f"{group.b_ns / 1e6:,.2f} ms",
            signed_ms(group.change_ns),
            noise_ms(group.noise_ns),
        )
    step = f"{found.a.step_ns / 1e6:,.2f} ms", f"{found.b.step_ns / 1e6:,.2f} ms"
    yield ("step", *step, signed_ms(found.change_ns), noise_ms(found.noise_ns))


def _cause(found: Diff, cause: Cause) -> tuple[str, ...]:
    group = next(group.name for group in found.groups if group.key == cause.group)
    return what(cause, NAME), group, signed_ms(cause.change_ns), why(cause), cause.confidence


def _table(head: Sequence[str], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield _row(head)
    yield _row(
        ["---", *("---:" if name in ("A", "B", "B - A", "noise") else "---" for name in head[1:])]
    )
    for row in rows:
        yield _row([_escaped(cell) for cell in row])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Names of kernels hold what Markdown takes for its own."""
    for sign in "\\|*_<>`":
        text = text.replace(sign, f"\\{sign}")
    return text
