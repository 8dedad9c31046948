"""Text in columns that never run together, and names short enough to stand in one."""

import re
from collections.abc import Iterator, Sequence

GAP = "  "
NO_NAME = "(no name)"
"""What stands for the empty name of a kernel: it must be seen, and be no empty code span."""
LONGEST_NAME = 48
_FOR_SHELLS = re.compile(r"[*?\[\]|<>;&$()!#~ ]")
_ARGUMENTS = re.compile(r"<|(?<! )\(")


def aligned(rows: Sequence[Sequence[str]], sides: str) -> Iterator[str]:
    """Rows as lines, every column as wide as its widest cell.

    Args:
        rows: cells; all rows have the same number of them.
        sides: one of `<` (text) and `>` (numbers) per column.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, sides, widths, strict=True)
        yield GAP.join(f"{cell:{side}{width}}" for cell, side, width in cells).rstrip()


def to_type(flag: str) -> str:
    """A what-if as it is typed in a shell: a value that a shell would change stands in quotes."""
    option, _, value = flag.partition(" ")
    return f"{option} '{value}'" if _FOR_SHELLS.search(value) else flag


def short_name(name: str) -> str:
    """A kernel without return type, template arguments and parameters; cut where still long."""
    plain = " ".join(name.split()).replace("(anonymous namespace)::", "").removeprefix("void ")
    plain = _ARGUMENTS.split(plain, maxsplit=1)[0] or plain
    return plain if len(plain) <= LONGEST_NAME else plain[: LONGEST_NAME - 1] + "…"
