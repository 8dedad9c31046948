"""Tables of the page of accuracy, as Markdown."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text under a head; the first column is text, the others are numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def lines(self) -> Iterator[str]:
        """As Markdown."""
        yield f"| {' | '.join(self.head)} |"
        yield f"|---|{'---:|' * (len(self.head) - 1)}"
        yield from (f"| {' | '.join(row)} |" for row in self.rows)


def percent(frac: float | None) -> str:
    """Signed, two decimals."""
    return "-" if frac is None else f"{frac:+.2%}"
