"""Files of the catalog: read, laid over one another, found by name; errors name file and field."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeGuard, TypeVar

import msgspec

from ingest.errors import ScenarioError, nearest
from whatif.documents import UNKNOWN_FIELD, read_yaml, without_place

SECTIONS = ("accelerators", "links")
SOURCES = "sources"
"""A section for YAML anchors, so that a page is written once; nothing else reads it."""

Entries = list[tuple[str, dict[str, Any]]]
"""Where it stands (`own.yaml, at `$.accelerators[0]`, without the closing quote) and its fields."""


class Named(Protocol):
    """What has a name and others that mean the same."""

    @property
    def name(self) -> str:
        """As it is shown."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """The others."""


_Named = TypeVar("_Named", bound=Named)


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
    document = read_yaml(path, "a catalog", hint="--hardware or REPLAY_HARDWARE names it")
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


def extended(
    before: Sequence[_Named], known: Mapping[str, _Named], entries: Entries, kind: type[_Named]
) -> list[_Named]:
    """What was there before, changed and followed by the entries of a file.

    Args:
        before: structs, in their order.
        known: those of them that an entry changes where it has that key.
        entries: of the file.
        kind: their struct.

    Raises:
        ScenarioError: an entry has an unknown field or a wrong value.
    """
    result = {each.name: each for each in before}
    for where, fields in entries:
        base = known.get(key_of(fields["name"]))
        whole = fields
        if base is not None:
            now = msgspec.to_builtins(result[base.name])
            whole = laid_over(now, {**fields, "name": base.name})
        entry = _as_struct(whole, kind, where)
        result[entry.name] = entry
    return list(result.values())


def by_key(entries: Sequence[_Named], where: str) -> dict[str, _Named]:
    """Entries by the key of each of their names.

    Raises:
        ScenarioError: two entries have one name; `where` is what they stand in.
    """
    table: dict[str, _Named] = {}
    for entry in entries:
        for each in (entry.name, *entry.aliases):
            other = table.setdefault(key_of(each), entry)
            if other is not entry:
                raise ScenarioError(
                    f"{where}: `{each}` is a name of `{other.name}` and of `{entry.name}`",
                    hint="names and aliases are unique, whatever their case",
                )
    return table


def key_of(name: str) -> str:
    """Lower case, words joined by one dash."""
    return "-".join(name.lower().replace("-", " ").replace("_", " ").split())


def laid_over(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `own` in place of those of `base`; groups field by field, aliases added.

    A number is replaced with all that belongs to it: range and source are of the old one.
    """
    result = dict(base)
    for field, value in own.items():
        before = base.get(field)
        if field == "aliases" and isinstance(value, list):
            result[field] = list(dict.fromkeys([*(before or ()), *value]))
        elif _is_group(value) and _is_group(before):
            result[field] = laid_over(before, value)
        else:
            result[field] = value
    return result


def _is_group(value: object) -> TypeGuard[dict[str, Any]]:
    """Fields of their own, not a number with its source."""
    return isinstance(value, dict) and "value" not in value


def _as_struct(fields: Mapping[str, Any], kind: type[_Named], where: str) -> _Named:
    """The fields as a struct; text that is a number (`989e12` is text in YAML) counts as one."""
    try:
        return msgspec.convert(fields, kind, strict=False)
    except msgspec.ValidationError as error:
        told, inside = without_place(str(error))
        raise ScenarioError(f"{where}{inside}`: {told}", hint=_hint(told, kind)) from error


def _entries(document: Mapping[str, Any], section: str, path: Path) -> Entries:
    items = document.get(section) or []
    if not isinstance(items, list):
        raise ScenarioError(
            f"{path}, at `$.{section}`: no list", hint="begin each entry with `- name:`"
        )
    found: Entries = []
    names: set[str] = set()
    for index, item in enumerate(items):
        place = f"$.{section}[{index}]"
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise ScenarioError(
                f"{path}, at `{place}`: no `name`", hint="begin each entry with `- name:`"
            )
        if item["name"] in names:
            raise ScenarioError(
                f"{path}, at `{place}.name`: `{item['name']}` stands twice",
                hint="write what belongs to one name under one entry",
            )
        names.add(item["name"])
        found.append((f"{path}, at `{place}", item))
    return found


def _hint(message: str, kind: type) -> str:
    if unknown := UNKNOWN_FIELD.search(message):
        return nearest(unknown["field"], list(_field_names(kind)))
    return "docs/hardware.md has an example of each field"


def _field_names(kind: type) -> set[str]:
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
