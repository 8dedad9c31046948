"""YAML files that people write: read, turned into structs, and mistakes named by their place."""

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml
from msgspec import Struct

from ingest.errors import ScenarioError, UsageError, UserError, nearest

_S = TypeVar("_S", bound=Struct)
_PLACE = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same in C: 20 times faster
UNKNOWN_FIELD = re.compile(r"unknown field `(?P<field>[^`]*)`")


class _Loader(_SAFE):  # type: ignore[misc]
    """Reads plain values, and no key twice: the last one would win without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002  (as the library calls it)
        keys: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if (key.tag, key.value) in keys:
                raise yaml.constructor.ConstructorError(
                    problem=f"`{key.value}` stands there twice", problem_mark=key.start_mark
                )
            keys.add((key.tag, key.value))
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def read_yaml(path: Path, what: str, hint: str = "is the path right?") -> object:
    """The document of a file.

    Args:
        path: of the file.
        what: it is meant to be, with its article: `a scenario`.
        hint: where it cannot be read.

    Raises:
        UsageError: the file cannot be read.
        ScenarioError: it is no YAML, or has a key twice.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}", hint=hint) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: no text in UTF-8", hint=f"{what} is a YAML file") from error
    except RecursionError as error:
        raise ScenarioError(f"{path}: no YAML: nested too deeply", hint=f"it is {what}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "cannot be read"
        raise ScenarioError(f"{path}{place}: no YAML: {problem}") from error


def write_yaml(document: object, path: Path) -> None:
    """Write a document of plain values, in the order of its keys, as a whole or not at all.

    Raises:
        UsageError: the file cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        try:
            part.write_text(yaml_text(document), encoding="utf-8")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}", hint="give another path") from error


def yaml_text(document: object) -> str:
    """A document of plain values as YAML, in the order of its keys."""
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    return text


def as_struct(item: object, struct: type[_S], place: str) -> _S:
    """A part of a document as a struct.

    Args:
        item: the part.
        struct: what it shall be.
        place: where it stands: a file, and a path in backticks unless it is the whole of it.

    Raises:
        ScenarioError: it does not fit; the message begins with the place of the mistake.
    """
    try:
        return msgspec.convert(item, struct)
    except msgspec.ValidationError as error:
        told, inside = without_place(str(error))
        cause = error.__cause__
        hint = cause.hint if isinstance(cause, UserError) else _field_hint(told, struct)
        raise ScenarioError(f"{_exactly(place, inside)}: {told}", hint=hint) from error
    except UserError as error:
        raise ScenarioError(f"{place}: {error}", hint=error.hint) from error


def without_place(message: str) -> tuple[str, str]:
    """What is wrong, and the place inside the struct, which begins with a dot or a bracket."""
    found = _PLACE.search(message)
    return (message[: found.start()], found["path"]) if found else (message, "")


def _exactly(place: str, inside: str) -> str:
    if place.endswith("`"):
        return f"{place[:-1]}{inside}`"
    return f"{place}, at `${inside}`" if inside else place


def _field_hint(message: str, struct: type[Struct]) -> str:
    fields = list(struct.__struct_encode_fields__)
    if not fields:
        return "this what-if has no fields but `kind`"
    if unknown := UNKNOWN_FIELD.search(message):
        return nearest(unknown["field"], fields)
    return f"fields: {', '.join(fields)}"
