"""Help texts: commands in groups, and the examples of a command at the end of its help."""

import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from typer.core import TyperGroup

GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("What if", ("whatif", "levers", "sweep", "solve", "plan", "serve", "scenario", "synth")),
    ("What was", ("report", "describe", "check")),
    ("Two runs", ("diff", "verify")),
    ("Record", ("capture",)),
    ("Tables and files", ("ingest", "sql", "tables", "schema", "queries", "export")),
    ("Around it", ("hardware", "completion")),
)
"""Commands by what they are for; one that is in none is shown at the end."""
LAST_GROUP = "More"

_EXAMPLES = re.compile(r'\n\n\x08\n((?:replay |eval "\$\(replay )[^\n]*(?:\n[^\n]+)*)')
"""A paragraph that is not refilled and shows what to type."""


class GroupedCommands(TyperGroup):
    """The program, with its commands listed by group."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002  (as typer has it)
        """One section for each group, one line for each command."""
        grouped = {name for _, names in GROUPS for name in names}
        others = tuple(name for name in self.commands if name not in grouped)
        longest = max(len(name) for name in self.commands)
        room = formatter.width - longest - 6
        for title, names in (*GROUPS, (LAST_GROUP, others)):
            there = [(name, self.commands[name]) for name in names if name in self.commands]
            if there:
                rows = [(f"{name:{longest}}", one.get_short_help_str(room)) for name, one in there]
                with formatter.section(title):
                    formatter.write_dl(rows)


class Help(NamedTuple):
    """What typer wants of a command."""

    help: str
    epilog: str | None = None


def help_of(function: Callable[..., None]) -> Help:
    """The docstring, with its examples at the end."""
    text = inspect.getdoc(function) or ""
    found = _EXAMPLES.search(text)
    if not found:
        return Help(text)
    lines = "\n".join(f"  {line}" for line in found[1].splitlines())
    return Help(text[: found.start()] + text[found.end() :], f"\b\nExamples:\n{lines}")
