"""Options as typed -> a scenario: each what-if flag is one transform, each file its transforms."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ingest.errors import UsageError
from replay.cli.relayouts import RELAYOUTS
from replay.cli.stack import Typed
from whatif.recorded import NOTHING_SAID, UNPREFIXED, Recorded
from whatif.scenario import Scenario, load_scenario
from whatif.transforms.algo import CollectiveAlgo, InNetwork
from whatif.transforms.bucket import BucketMb
from whatif.transforms.compress import Compress
from whatif.transforms.cuda_graphs import CudaGraphs
from whatif.transforms.fuse import Fuse
from whatif.transforms.gpu import Gpu
from whatif.transforms.host_scale import HostScale
from whatif.transforms.jitter import Jitter
from whatif.transforms.net import Net, NetLatency
from whatif.transforms.network import NetworkScale
from whatif.transforms.no_overlap import NoOverlap
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.pcie import Pcie
from whatif.transforms.perfect_overlap import PerfectOverlap
from whatif.transforms.precision import Precision
from whatif.transforms.registry import Transform, asks_for_machine
from whatif.transforms.remove import Remove
from whatif.transforms.replicas import Replicas
from whatif.transforms.scale import Scale
from whatif.transforms.stragglers import NoStragglers
from whatif.transforms.wan import Wan

Load = Callable[[Path], Scenario]
"""How a scenario file is read."""


def scenario_of(
    order: Sequence[Typed], said: Recorded = NOTHING_SAID, load: Load = load_scenario
) -> Scenario:
    """The scenario that the options spell, in their order.

    Args:
        order: the options as typed.
        said: what they say of the recorded machine; it goes before what files say.
        load: reads scenario files.

    Raises:
        UsageError: a value is malformed.
        ScenarioError: a scenario file is wrong.
    """
    scenario = Scenario()
    for typed in order:
        if typed.name == "scenario":
            scenario = scenario.followed_by(load(Path(typed.value)))
        elif typed.name in WHAT_IFS:
            scenario = scenario.then(WHAT_IFS[typed.name](typed.value))
    return replace(scenario, base=said.over(scenario.base))


BASE_OPTIONS = {
    name if name in UNPREFIXED else f"base_{name}": name for name in Recorded.__struct_fields__
}
"""Options that describe the recorded machine, and the field that each of them fills."""


def scenario_in(order: Sequence[Typed], load: Load = load_scenario) -> Scenario:
    """The scenario that options spell, those of the recorded machine among them.

    Args:
        order: the options as typed.
        load: reads scenario files.

    Raises:
        UsageError: as `scenario_of`.
        ScenarioError: as `scenario_of`.
    """
    return scenario_of(order, _said_in(order), load)


def _said_in(order: Sequence[Typed]) -> Recorded:
    given = [(name, value) for name, value in order if name in BASE_OPTIONS]
    said: dict[str, Any] = {BASE_OPTIONS[name]: value for name, value in given}
    if "gpus_per_node" in said:
        said["gpus_per_node"] = int(said["gpus_per_node"])
    return Recorded(**said)


def require_use_of_base(order: Sequence[Typed], scenarios: Iterable[Scenario]) -> None:
    """Refuse options of the recorded machine that no what-if of any scenario asks for.

    Raises:
        UsageError: they would change nothing.
    """
    changes = (change for scenario in scenarios for change in scenario.transforms)
    given = [f"--{name.replace('_', '-')} {text}" for name, text in order if name in BASE_OPTIONS]
    if given and not any(map(asks_for_machine, changes)):
        raise UsageError(
            f"options of the recorded machine change nothing by themselves ({' '.join(given)})",
            hint="they tell a what-if like --nvlink RATE what the recorded run had",
        )


def _nvlink(value: str) -> Transform:
    return Nvlink(rate=value)


def _pcie(value: str) -> Transform:
    return Pcie(rate=value)


def _net(value: str) -> Transform:
    return Net(rate=value)


def _net_latency(value: str) -> Transform:
    return NetLatency(time=value)


def _wan(value: str) -> Transform:
    return Wan(link=value)


def _in_network(value: str) -> Transform:
    return InNetwork(state=value)


def _collective_algo(value: str) -> Transform:
    return CollectiveAlgo(algorithm=value)


def _bucket_mb(value: str) -> Transform:
    return BucketMb(size_mib=_number("--bucket-mb", value))


def _gpu(value: str) -> Transform:
    return Gpu(name=value)


def _precision(value: str) -> Transform:
    return Precision(dtype=value)


def _compress(value: str) -> Transform:
    method, at, where = value.partition("@")
    if at and not where.strip():
        raise UsageError(
            f"`--compress {value}` has no selector after `@`",
            hint="for example --compress fp8@class:collective, or --compress fp8 for all gradients",
        )
    return Compress(method=method, where=where)


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


def _dp(value: str) -> Transform:
    number, at, groups = value.partition("@")
    count, colon, kept = number.partition(":")
    if not count.strip().isdecimal() or (at and not groups) or (colon and kept != "strong"):
        raise UsageError(
            f"`--dp {value}` is no number of replicas",
            hint="for example --dp 16, --dp 16:strong for the same samples in all, or "
            "--dp 16@mesh_dp to name their communicators",
        )
    return Replicas(replicas=int(count), groups=groups or None, strong=bool(colon))


WHAT_IFS: Mapping[str, Callable[[str], Transform]] = {
    "gpu": _gpu,
    "precision": _precision,
    "nvlink": _nvlink,
    "pcie": _pcie,
    "net": _net,
    "net_latency": _net_latency,
    "wan": _wan,
    "in_network": _in_network,
    "collective_algo": _collective_algo,
    "bucket_mb": _bucket_mb,
    "compress": _compress,
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
    "dp": _dp,
    **RELAYOUTS,
}
"""By the name of the option's parameter."""


def _number(option: str, text: str) -> float:
    try:
        plain = text if text.isascii() and "_" not in text else ""
        return float(plain)
    except ValueError as error:
        raise UsageError(f"`{text}` is not a number", hint=f"for example {option} …2") from error
