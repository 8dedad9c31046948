"""A scenario: what-ifs in the order in which they stack, from flags or from a YAML file."""

import re
from pathlib import Path
from typing import TypeVar

import msgspec
import yaml
from msgspec import Struct

from ingest.errors import ScenarioError, UsageError, UserError, nearest
from whatif.recorded import NOTHING_SAID, Recorded
from whatif.transforms.registry import KINDS, Transform

_S = TypeVar("_S", bound=Struct)
_UNKNOWN_FIELD = re.compile(r"unknown field `(?P<field>[^`]*)`")


class Scenario(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named stack of what-ifs; the empty one is the recording as it is."""

    name: str = ""
    base: Recorded = NOTHING_SAID
    """What is said of the recorded machine."""
    transforms: tuple[Transform, ...] = ()

    def then(self, *transforms: Transform) -> "Scenario":
        """The same with more what-ifs on top, as flags after a file add them."""
        return Scenario(name=self.name, base=self.base, transforms=(*self.transforms, *transforms))


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file.

    It has a `name`, a `base` (what the trace does not tell of the recorded machine) and
    `transforms`, a list of what-ifs with their `kind`.

    Raises:
        UsageError: the file cannot be read.
        ScenarioError: it is no scenario; the message names file and place.
    """
    document = _read(path)
    if not isinstance(document, dict):
        raise ScenarioError(
            f"{path}: no scenario", hint="write `transforms:` and a list of what-ifs under it"
        )
    unknown = sorted(set(map(str, document)) - {"name", "base", "transforms"})
    if unknown:
        raise ScenarioError(
            f"{path}, at `$`: unknown field `{unknown[0]}`",
            hint="a scenario has `name`, `base` and `transforms`",
        )
    items = document.get("transforms") or []
    if not isinstance(items, list):
        raise ScenarioError(
            f"{path}, at `$.transforms`: no list", hint="begin each what-if with `- kind:`"
        )
    return Scenario(
        name=str(document.get("name") or path.stem),
        base=_base(document.get("base") or {}, path),
        transforms=tuple(
            _transform(item, f"{path}, at `$.transforms[{index}]`")
            for index, item in enumerate(items)
        ),
    )


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


def _base(item: object, path: Path) -> Recorded:
    """What a scenario says of the recorded machine; its topology lies beside the scenario."""
    said = _convert(item, Recorded, f"{path}, at `$.base`")
    if said.topology is None:
        return said
    return msgspec.structs.replace(said, topology=str(path.parent / said.topology))


def _transform(item: object, place: str) -> Transform:
    kind = item.get("kind") if isinstance(item, dict) else None
    if kind not in KINDS:
        raise ScenarioError(
            f"{place}: no what-if of kind `{kind}`", hint=nearest(str(kind), sorted(KINDS))
        )
    return _convert(item, KINDS[kind], place)


def _convert(item: object, struct: type[_S], place: str) -> _S:
    try:
        return msgspec.convert(item, struct)
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{place}: {error}", hint=_field_hint(str(error), struct)) from error
    except UserError as error:
        raise ScenarioError(f"{place}: {error}", hint=error.hint) from error


def _field_hint(message: str, struct: type[Struct]) -> str:
    fields = list(struct.__struct_fields__)
    if not fields:
        return "this what-if has no fields but `kind`"
    if unknown := _UNKNOWN_FIELD.search(message):
        return nearest(unknown["field"], fields)
    return f"fields: {', '.join(fields)}"
