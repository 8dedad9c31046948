"""What could stand next in a line of SQL: tables, columns, keywords, commands of the shell."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[\w.]*$")
_SOURCE = re.compile(r"\b(?:from|join)\s+(?P<table>\w+)(?:\s+(?:as\s+)?(?P<alias>\w+))?", re.I)
_AFTER_SOURCE = re.compile(r"\b(?:from|join|table|describe|summarize)\s+\w*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """All that can be completed."""

    columns: Mapping[str, Sequence[str]]
    """Columns of each table."""
    keywords: Sequence[str]
    queries: Sequence[str]
    commands: Sequence[str]


def completions(text: str, words: Words, *, earlier: str = "") -> list[str]:
    """Words that the end of the text may grow into; `earlier` is what stands in lines before."""
    found = _WORD.search(text)
    word = found.group() if found else ""
    before = text[: len(text) - len(word)]
    if not before.strip() and word.startswith("."):
        return _beginning(word, words.commands)
    command = before.split()
    if command and command[0] == ".schema":
        return _beginning(word, sorted(words.columns))
    if command and command[0] == ".run":
        return _beginning(word, words.queries)
    if _AFTER_SOURCE.search(text):
        return _beginning(word, sorted(words.columns))
    tables = _tables(f"{earlier}\n{text}", words)
    prefix, dot, _ = word.rpartition(".")
    if dot:
        table = tables.get(prefix.lower(), prefix.lower())
        return _beginning(word, [f"{prefix}.{name}" for name in words.columns.get(table, ())])
    named = {name for table in tables.values() for name in words.columns.get(table, ())}
    return _beginning(word, [*sorted(named), *sorted(words.columns), *words.keywords])


def _tables(text: str, words: Words) -> dict[str, str]:
    """Names and aliases that stand after FROM and JOIN, and the tables that they mean."""
    meant: dict[str, str] = {}
    for found in _SOURCE.finditer(text):
        table = found["table"].lower()
        if table in words.columns:
            meant[table] = table
            meant[(found["alias"] or table).lower()] = table
    return meant


def _beginning(word: str, names: Sequence[str]) -> list[str]:
    """Those that begin with the word; in capitals where it is typed in capitals."""
    is_loud = word.isupper()
    fitting = [name for name in names if name.lower().startswith(word.lower())]
    return list(dict.fromkeys(name.upper() if is_loud else name for name in fitting))
