"""Named queries read from their files: header, parameters with types and defaults, values."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path

from ingest.errors import UsageError, nearest

FOLDER = Path(__file__).parent

_HEADER = re.compile(r"--\s*(?P<key>name|description|param)\s+(?P<rest>.+)")
_MORE = re.compile(r"--\s{3,}(?P<rest>.+)")
_PARAM = re.compile(
    r"(?P<name>[a-z_]\w*)\s+(?P<type>\w+)\s+(?P<default>'[^']*'|\S+)(?:\s+(?P<meaning>.+))?"
)
_PLACE = re.compile(r"\$(?P<name>[a-z_]\w*)")
_TRUTHS = {"true": True, "false": False}

Value = int | float | bool | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """A value that a query asks for; it is bound, never written into the text."""

    name: str
    type: str
    default: Value
    meaning: str

    def value(self, given: Value) -> Value:
        """The value in the parameter's type; a text is read, `NULL` is none.

        Raises:
            UsageError: the text is no value of the type.
        """
        if not isinstance(given, str):
            return given
        try:
            return _read(self.type, given)
        except (KeyError, ValueError) as error:
            raise UsageError(
                f"`{self.name}={given}` is no {self.type}", hint=f"{self.name}: {self.meaning}"
            ) from error

    def __str__(self) -> str:
        return f"{self.name}={'NULL' if self.default is None else self.default}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query with the header of its file."""

    name: str
    description: str
    params: tuple[Param, ...]
    text: str

    def values(self, given: Mapping[str, Value]) -> dict[str, Value]:
        """Values of all parameters: the given ones, else the defaults.

        Raises:
            UsageError: an unknown parameter, or a value of another type.
        """
        known = {param.name: param for param in self.params}
        for name in given:
            if name not in known:
                hint = nearest(name, list(known)) if known else "it has no parameters"
                raise UsageError(f"query `{self.name}` has no parameter `{name}`", hint=hint)
        return {
            name: param.value(given[name]) if name in given else param.default
            for name, param in known.items()
        }

    def written(self, given: Mapping[str, Value]) -> str:
        """The text with its values in it and without its header, which runs as it stands.

        For people to read and copy: this program binds values.

        Raises:
            UsageError: as `values`.
        """
        values = self.values(given)
        types = {param.name: param.type for param in self.params}
        lines = dropwhile(lambda line: line.startswith("--"), self.text.splitlines())
        return _PLACE.sub(
            lambda found: _literal(values[found["name"]], types[found["name"]]), "\n".join(lines)
        )


def _literal(value: Value, type_: str) -> str:
    if value is None:
        return f"NULL::{type_}"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        quoted = value.replace("'", "''")
        return f"'{quoted}'"
    return f"{value}" if value >= 0 else f"({value})"


def names() -> list[str]:
    """Names of the queries that come with the program."""
    return sorted(path.stem for path in FOLDER.glob("*.sql"))


def load(name: str) -> Query:
    """The query of that name.

    Raises:
        UsageError: there is none.
    """
    if name not in names():
        raise UsageError(f"no query `{name}`", hint=nearest(name, names()))
    return parse((FOLDER / f"{name}.sql").read_text(encoding="utf-8"), name=name)


def parse(text: str, *, name: str) -> Query:
    """A query with its header: `-- name`, `-- description`, `-- param NAME TYPE DEFAULT meaning`.

    All of it may be missing. A comment line that is indented by three goes on the entry above.

    Raises:
        UsageError: a `-- param` line of another form, or a default of another type.
    """
    entries = _entries(text)
    told = {key: rest for key, rest in entries if key != "param"}
    return Query(
        name=told.get("name", name),
        description=told.get("description", ""),
        params=tuple(_param(rest, name) for key, rest in entries if key == "param"),
        text=text,
    )


def loose(text: str) -> Value:
    """A value without a declared type: a number or a truth where it reads as one, else text."""
    readers: tuple[Callable[[str], Value], ...] = (
        lambda word: _read("BIGINT", word),
        lambda word: _read("DOUBLE", word),
        lambda word: _read("BOOLEAN", word),
    )
    for read in readers:
        try:
            return read(text)
        except (KeyError, ValueError):
            continue
    return text


def _entries(text: str) -> list[tuple[str, str]]:
    entries: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("--"):
            break
        if found := _HEADER.fullmatch(line.rstrip()):
            entries.append((found["key"], found["rest"]))
        elif entries and (more := _MORE.fullmatch(line.rstrip())):
            key, rest = entries.pop()
            entries.append((key, f"{rest} {more['rest']}"))
    return entries


def _param(rest: str, query: str) -> Param:
    found = _PARAM.fullmatch(rest)
    if not found:
        raise UsageError(
            f"query `{query}`: `-- param {rest}` is malformed",
            hint="write -- param NAME TYPE DEFAULT meaning",
        )
    param = Param(
        name=found["name"],
        type=found["type"].upper(),
        default=None,
        meaning=found["meaning"] or "",
    )
    default = param.value(found["default"].strip("'"))
    return Param(name=param.name, type=param.type, default=default, meaning=param.meaning)


def _read(kind: str, text: str) -> Value:
    if text.upper() == "NULL":
        return None
    if kind in {"BIGINT", "INTEGER"}:
        return int(text)
    if kind == "DOUBLE":
        return float(text)
    if kind == "BOOLEAN":
        return _TRUTHS[text.lower()]
    if kind == "VARCHAR":
        return text
    raise ValueError(kind)
