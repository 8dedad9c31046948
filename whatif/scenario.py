"""A scenario: what-ifs in the order in which they stack, from flags or from a YAML file."""

import re
from pathlib import Path

import msgspec
import yaml
from msgspec import Struct

from ingest.errors import ScenarioError, UsageError, UserError, nearest
from whatif.transforms.registry import KINDS, Transform

_PLACE = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_UNKNOWN_FIELD = re.compile(r"unknown field `(?P<field>[^`]*)`")


class Scenario(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named stack of what-ifs; the empty one is the recording as it is."""

    name: str = ""
    transforms: tuple[Transform, ...] = ()

    def then(self, *transforms: Transform) -> "Scenario":
        """The same with more what-ifs on top, as flags after a file add them."""
        return Scenario(name=self.name, transforms=(*self.transforms, *transforms))


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file: `name`, and `transforms`, a list of what-ifs with their `kind`.

    Raises:
        UsageError: the file cannot be read.
        ScenarioError: it is no scenario; the message names file and place.
    """
    document = _read(path)
    if not isinstance(document, dict):
        raise ScenarioError(
            f"{path}: no scenario", hint="write `transforms:` and a list of what-ifs under it"
        )
    unknown = sorted(set(map(str, document)) - {"name", "transforms"})
    if unknown:
        raise ScenarioError(
            f"{path}, at `$`: unknown field `{unknown[0]}`",
            hint="a scenario has `name` and `transforms`",
        )
    items = document.get("transforms") or []
    if not isinstance(items, list):
        raise ScenarioError(
            f"{path}, at `$.transforms`: no list", hint="begin each what-if with `- kind:`"
        )
    return Scenario(
        name=str(document.get("name") or path.stem),
        transforms=tuple(
            _transform(item, f"{path}, at `$.transforms[{index}]")
            for index, item in enumerate(items)
        ),
    )


def save_scenario(scenario: Scenario, path: Path) -> None:
    """Write the file that `load_scenario` reads; fields at their default are left out.

    Raises:
        UsageError: the file cannot be written.
    """
    document = msgspec.to_builtins(scenario)
    document["transforms"] = [_written(change) for change in scenario.transforms]
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}", hint="give another path") from error


def _written(change: Transform) -> dict[str, object]:
    given = change.__struct_fields__[::-1]
    defaults = dict(zip(given, change.__struct_defaults__[::-1], strict=False))
    fields = msgspec.to_builtins(change)
    return {
        name: value
        for name, value in fields.items()
        if name not in defaults or getattr(change, name) != defaults[name]
    }


def _read(path: Path) -> object:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}", hint="is the path right?") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: no text in UTF-8", hint="a scenario is a YAML file") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "cannot be read"
        raise ScenarioError(f"{path}{place}: no YAML: {problem}") from error


def _transform(item: object, place: str) -> Transform:
    kind = item.get("kind") if isinstance(item, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        lack = "no `kind`" if kind is None else f"no what-if of kind `{kind}`"
        raise ScenarioError(f"{place}`: {lack}", hint=nearest(str(kind), sorted(KINDS)))
    change = KINDS[kind]
    try:
        return msgspec.convert(item, change)
    except msgspec.ValidationError as error:
        told, inside = _split(str(error))
        hint = _field_hint(told, change)
        raise ScenarioError(f"{place}{inside}`: {told}", hint=hint) from error
    except UserError as error:
        raise ScenarioError(f"{place}`: {error}", hint=error.hint) from error


def _split(message: str) -> tuple[str, str]:
    """What is wrong, and the place inside the what-if."""
    found = _PLACE.search(message)
    return (message[: found.start()], found["path"]) if found else (message, "")


def _field_hint(message: str, change: type[Transform]) -> str:
    fields = list(change.__struct_fields__)
    if not fields:
        return "this what-if has no fields but `kind`"
    if unknown := _UNKNOWN_FIELD.search(message):
        return nearest(unknown["field"], fields)
    return f"fields: {', '.join(fields)}"
