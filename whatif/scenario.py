"""A scenario: what-ifs in the order in which they stack, from flags or from a YAML file."""

from pathlib import Path

import msgspec
from msgspec import Struct

from ingest.errors import ScenarioError, nearest
from whatif.documents import as_struct, read_yaml, write_yaml, yaml_text
from whatif.recorded import NOTHING_SAID, Recorded
from whatif.transforms.registry import KINDS, Transform


class Scenario(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named stack of what-ifs; the empty one is the recording as it is."""

    name: str = ""
    base: Recorded = NOTHING_SAID
    """What is said of the recorded machine."""
    transforms: tuple[Transform, ...] = ()

    def then(self, *transforms: Transform) -> "Scenario":
        """The same with more what-ifs on top, as flags after a file add them."""
        return Scenario(name=self.name, base=self.base, transforms=(*self.transforms, *transforms))

    def followed_by(self, other: "Scenario") -> "Scenario":
        """Both stacks, the other on top; what the other says of the recorded machine goes first."""
        return Scenario(
            name=" + ".join(name for name in (self.name, other.name) if name),
            base=other.base.over(self.base),
            transforms=(*self.transforms, *other.transforms),
        )


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file.

    It has a `name`, a `base` (what the trace does not tell of the recorded machine) and
    `transforms`, a list of what-ifs with their `kind`.

    Raises:
        UsageError: the file cannot be read.
        ScenarioError: it is no scenario; the message names file and place.
    """
    document = read_yaml(path, "a scenario")
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


def save_scenario(scenario: Scenario, path: Path) -> None:
    """Write the file that `load_scenario` reads; fields at their default are left out.

    Raises:
        UsageError: the file cannot be written.
    """
    write_yaml(_document(scenario, scenario.name or path.stem), path)


def scenario_text(scenario: Scenario) -> str:
    """The text of that file."""
    return yaml_text(_document(scenario, scenario.name))


def _document(scenario: Scenario, name: str) -> dict[str, object]:
    base = msgspec.to_builtins(scenario.base)
    if "topology" in base:
        base["topology"] = str(Path(base["topology"]).resolve())
    document = {
        "name": name,
        "base": base,
        "transforms": [_written(change) for change in scenario.transforms],
    }
    return {name: value for name, value in document.items() if value}


def _written(change: Transform) -> dict[str, object]:
    given = change.__struct_fields__[::-1]
    defaults = dict(zip(given, change.__struct_defaults__[::-1], strict=False))
    fields: dict[str, object] = msgspec.to_builtins(change)
    return {
        name: value
        for name, value in fields.items()
        if name not in defaults or getattr(change, name) != defaults[name]
    }


def _base(item: object, path: Path) -> Recorded:
    """What a scenario says of the recorded machine; its topology lies beside the scenario."""
    said = as_struct(item, Recorded, f"{path}, at `$.base`")
    if said.topology is None:
        return said
    return msgspec.structs.replace(said, topology=str(path.parent / said.topology))


def _transform(item: object, place: str) -> Transform:
    kind = item.get("kind") if isinstance(item, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        lack = "no `kind`" if kind is None else f"no what-if of kind `{kind}`"
        raise ScenarioError(f"{place}: {lack}", hint=nearest(str(kind), sorted(KINDS)))
    return as_struct(item, KINDS[kind], place)
