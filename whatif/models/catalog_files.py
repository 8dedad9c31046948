"""Files of the catalog: read, laid over one another, and errors that name file and field."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from ingest.errors import ScenarioError, UsageError, nearest

SECTIONS = ("accelerators", "links")
SOURCES = "sources"
"""A section for YAML anchors, so that a page is written once; nothing else reads it."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same in C: 20 times faster
_UNKNOWN_FIELD = re.compile(r"unknown field `(?P<field>[^`]*)`")
_PLACE = re.compile(r" - at `\$(?P<place>[^`]*)`$")

Entries = list[tuple[str, dict[str, Any]]]
"""Place in the file (`$.accelerators[0]`) and fields."""
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one file holds."""

    accelerators: Entries
    links: Entries


def read_part(path: Path) -> Part:
    """The entries of a file, unchecked but for their being mappings with a name.

    Raises:
        UsageError: the file cannot be read.
        ScenarioError: it is no YAML, or has other sections.
    """
    document = _read(path)
    if not isinstance(document, dict):
        raise ScenarioError(
            f"{path}: no catalog", hint="write `accelerators:` and a list of devices under it"
        )
    unknown = sorted(set(map(str, document)) - {*SECTIONS, SOURCES})
    if unknown:
        raise ScenarioError(
            f"{path}, at `$`: unknown field `{unknown[0]}`",
            hint=f"a catalog has {', '.join((*SECTIONS, SOURCES))}",
        )
    accelerators, links = (_entries(document, section, path) for section in SECTIONS)
    return Part(accelerators=accelerators, links=links)


def laid_over(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `own` in place of those of `base`; groups field by field, aliases added.

    A number is replaced with all that belongs to it: range and source are of the old one.
    """
    result = dict(base)
    for field, value in own.items():
        before = base.get(field)
        if field == "aliases" and isinstance(value, list):
            result[field] = list(dict.fromkeys([*(before or ()), *value]))
        elif isinstance(value, dict) and isinstance(before, Mapping) and "value" not in value:
            result[field] = laid_over(before, value)
        else:
            result[field] = value
    return result


def as_struct(entry: Mapping[str, Any], kind: type[_Struct], where: str) -> _Struct:
    """The entry as a struct; text that is a number (`989e12` is text in YAML) counts as one.

    Args:
        entry: its fields.
        kind: the struct.
        where: file and place, as errors print it, without the closing quote.

    Raises:
        ScenarioError: an unknown field or a wrong value.
    """
    try:
        return msgspec.convert(entry, kind, strict=False)
    except msgspec.ValidationError as error:
        message = str(error)
        found = _PLACE.search(message)
        inside = found["place"] if found else ""
        raise ScenarioError(
            f"{where}{inside}`: {_PLACE.sub('', message)}", hint=_hint(message, kind)
        ) from error


def _read(path: Path) -> object:
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _LOADER)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}", hint="is the path right?") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: no text in UTF-8", hint="a catalog is a YAML file") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "cannot be read"
        raise ScenarioError(f"{path}{place}: no YAML: {problem}") from error


def _entries(document: Mapping[str, Any], section: str, path: Path) -> Entries:
    items = document.get(section) or []
    if not isinstance(items, list):
        raise ScenarioError(
            f"{path}, at `$.{section}`: no list", hint="begin each entry with `- name:`"
        )
    found = []
    for index, item in enumerate(items):
        place = f"$.{section}[{index}]"
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise ScenarioError(
                f"{path}, at `{place}`: no `name`", hint="begin each entry with `- name:`"
            )
        found.append((place, item))
    return found


def _hint(message: str, kind: type[msgspec.Struct]) -> str:
    if unknown := _UNKNOWN_FIELD.search(message):
        return nearest(unknown["field"], list(_field_names(kind)))
    return "docs/hardware.md has an example of each field"


def _field_names(kind: type[msgspec.Struct]) -> set[str]:
    """Of a struct and of those within it: the message does not tell which one it was."""
    names: set[str] = set()
    todo = [msgspec.inspect.type_info(kind)]
    while todo:
        found = todo.pop()
        if isinstance(found, msgspec.inspect.StructType):
            names |= {field.name for field in found.fields}
            todo += [field.type for field in found.fields]
        elif isinstance(found, msgspec.inspect.UnionType):
            todo += found.types
        elif isinstance(found, msgspec.inspect.VarTupleType):
            todo.append(found.item_type)
        elif isinstance(found, msgspec.inspect.DictType):
            todo.append(found.value_type)
    return names
