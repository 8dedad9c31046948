"""Options as typed -> a scenario: each what-if flag is one transform, each file its transforms."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ingest.errors import UsageError
from replay.cli.stack import Typed
from whatif.scenario import Scenario, load_scenario
from whatif.transforms.cuda_graphs import CudaGraphs
from whatif.transforms.fuse import Fuse
from whatif.transforms.host_scale import HostScale
from whatif.transforms.jitter import Jitter
from whatif.transforms.network import NetworkScale
from whatif.transforms.no_overlap import NoOverlap
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.perfect_overlap import PerfectOverlap
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
    transforms = tuple(change for typed in order for change in _changes(typed, base))
    if base.is_given and not any(isinstance(change, Nvlink) for change in transforms):
        raise UsageError(
            "--base-gpu, --base-nvlink and --gpus-per-node change nothing by themselves",
            hint="they tell --nvlink RATE what the recorded run had",
        )
    return Scenario(transforms=transforms)


def _changes(typed: Typed, base: Base) -> Iterator[Transform]:
    if typed.name == "nvlink":
        yield Nvlink(
            rate=typed.value,
            base_gpu=base.gpu,
            base_nvlink=base.nvlink,
            gpus_per_node=base.gpus_per_node,
        )
    elif typed.name == "scenario":
        yield from load_scenario(Path(typed.value)).transforms
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


def _host_scale(value: str) -> Transform:
    return HostScale(factor=_number("--host-scale", value))


def _fuse(value: str) -> Transform:
    return Fuse(where=value)


def _jitter(value: str) -> Transform:
    samples, at, scale = value.partition("@")
    if not samples.isdecimal():
        raise UsageError(
            f"`--jitter {value}` has no number of samples",
            hint="write for example --jitter 200, or --jitter 200@2 for twice the variation",
        )
    return Jitter(samples=int(samples), scale=_number("--jitter 200@", scale) if at else 1.0)


def _plain(change: Callable[[], Transform]) -> Callable[[str], Transform]:
    """A what-if without a value."""

    def made(value: str) -> Transform:
        assert value == "True", "the flag has no negative form"
        return change()

    return made


PLAIN: Mapping[str, Callable[[str], Transform]] = {
    "network_scale": _network_scale,
    "scale": _scale,
    "remove": _remove,
    "no_stragglers": _plain(NoStragglers),
    "host_scale": _host_scale,
    "cuda_graphs": _plain(CudaGraphs),
    "fuse": _fuse,
    "jitter": _jitter,
    "no_overlap": _plain(NoOverlap),
    "perfect_overlap": _plain(PerfectOverlap),
}
"""What-ifs that need nothing but their own value."""


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(f"`{text}` is not a number", hint=f"for example {option} …2") from error
