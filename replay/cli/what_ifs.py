"""Options as typed -> a scenario: each what-if flag is one transform, each file its transforms."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ingest.errors import UsageError
from replay.cli.stack import Typed
from whatif.scenario import Scenario, load_scenario
from whatif.transforms.network import NetworkScale
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.registry import Transform
from whatif.transforms.remove import Remove
from whatif.transforms.scale import Scale
from whatif.transforms.stragglers import NoStragglers


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What is said of the recorded machine."""

    gpu: str | None = None
    nvlink: str | None = None
    gpus_per_node: int | None = None

    @property
    def is_given(self) -> bool:
        """Any of the options stands on the command line."""
        return any(value is not None for value in (self.gpu, self.nvlink, self.gpus_per_node))


def scenario_of(order: Sequence[Typed], base: Base) -> Scenario:
    """The scenario that the options spell, in their order.

    Raises:
        UsageError: a value is malformed, or a base is given and nothing uses it.
        ScenarioError: a scenario file is wrong.
    """
    files = {one.value: load_scenario(Path(one.value)) for one in order if one.name == "scenario"}
    transforms = tuple(change for typed in order for change in _changes(typed, base, files))
    if base.is_given and not any(isinstance(change, Nvlink) for change in transforms):
        raise UsageError(
            "--base-gpu, --base-nvlink and --gpus-per-node change nothing by themselves",
            hint="they tell --nvlink RATE what the recorded run had",
        )
    names = [files[one.value].name for one in order if one.name == "scenario"]
    return Scenario(name=" + ".join(names), transforms=transforms)


BASE_OPTIONS = ("base_gpu", "base_nvlink", "gpus_per_node")
"""They describe the recorded machine."""


def scenario_in(order: Sequence[Typed]) -> Scenario:
    """The scenario that options spell, those of the recorded machine among them.

    Raises:
        UsageError: as `scenario_of`.
        ScenarioError: as `scenario_of`.
    """
    said = {name: value for name, value in order if name in BASE_OPTIONS}
    per_node = said.get("gpus_per_node")
    base = Base(
        gpu=said.get("base_gpu"),
        nvlink=said.get("base_nvlink"),
        gpus_per_node=None if per_node is None else int(per_node),
    )
    return scenario_of(order, base)


def _changes(typed: Typed, base: Base, files: Mapping[str, Scenario]) -> Iterator[Transform]:
    if typed.name == "nvlink":
        yield Nvlink(
            rate=typed.value,
            base_gpu=base.gpu,
            base_nvlink=base.nvlink,
            gpus_per_node=base.gpus_per_node,
        )
    elif typed.name == "scenario":
        yield from files[typed.value].transforms
    elif typed.name in PLAIN:
        yield PLAIN[typed.name](typed.value)


def _network_scale(value: str) -> Transform:
    return NetworkScale(factor=_number("--network-scale", value))


def _scale(value: str) -> Transform:
    where, equals, factor = value.rpartition("=")
    if not equals or not where:
        raise UsageError(
            f"`--scale {value}` has no factor",
            hint="write SELECTOR=FACTOR, for example --scale class:gemm=0.5",
        )
    return Scale(where=where, factor=_number("--scale", factor))


def _remove(value: str) -> Transform:
    return Remove(where=value)


def _no_stragglers(value: str) -> Transform:
    assert value == "True", "the flag has no negative form"
    return NoStragglers()


PLAIN: Mapping[str, Callable[[str], Transform]] = {
    "network_scale": _network_scale,
    "scale": _scale,
    "remove": _remove,
    "no_stragglers": _no_stragglers,
}
"""What-ifs that need nothing but their own value."""


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(f"`{text}` is not a number", hint=f"for example {option} …2") from error
