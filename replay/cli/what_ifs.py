"""Options as typed -> a scenario: each what-if flag is one transform, each file its transforms."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from ingest.errors import UsageError
from replay.cli.stack import Typed
from whatif.recorded import NOTHING_SAID, Recorded
from whatif.scenario import Scenario, load_scenario
from whatif.transforms.algo import CollectiveAlgo, InNetwork
from whatif.transforms.bucket import BucketMb
from whatif.transforms.compress import Compress
from whatif.transforms.gpu import Gpu
from whatif.transforms.net import Net, NetLatency
from whatif.transforms.network import NetworkScale
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.pcie import Pcie
from whatif.transforms.precision import Precision
from whatif.transforms.registry import Transform, asks_for_machine
from whatif.transforms.remove import Remove
from whatif.transforms.replicas import Replicas
from whatif.transforms.scale import Scale
from whatif.transforms.stragglers import NoStragglers
from whatif.transforms.wan import Wan


def scenario_of(order: Sequence[Typed], said: Recorded = NOTHING_SAID) -> Scenario:
    """The scenario that the options spell, in their order.

    Args:
        order: the options as typed.
        said: what they say of the recorded machine; it goes before what files say.

    Raises:
        UsageError: a value is malformed, or a machine is described and no what-if asks for it.
        ScenarioError: a scenario file is wrong.
    """
    scenario = Scenario()
    for typed in order:
        if typed.name == "scenario":
            loaded = load_scenario(Path(typed.value))
            scenario = replace(
                scenario.then(*loaded.transforms), base=loaded.base.over(scenario.base)
            )
        elif typed.name in WHAT_IFS:
            scenario = scenario.then(WHAT_IFS[typed.name](typed.value))
    if said.is_given and not any(asks_for_machine(change) for change in scenario.transforms):
        raise UsageError(
            f"options of the recorded machine change nothing by themselves ({said.flags})",
            hint="they tell a what-if like --nvlink RATE what the recorded run had",
        )
    return replace(scenario, base=said.over(scenario.base))


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
    method, _, where = value.partition("@")
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


def _no_stragglers(value: str) -> Transform:
    assert value == "True", "the flag has no negative form"
    return NoStragglers()


def _dp(value: str) -> Transform:
    count, at, groups = value.partition("@")
    if not count.strip().isdecimal() or (at and not groups):
        raise UsageError(
            f"`--dp {value}` is no number of replicas",
            hint="for example --dp 16, or --dp 16@mesh_dp to name their communicators",
        )
    return Replicas(replicas=int(count), groups=groups or None)


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
    "no_stragglers": _no_stragglers,
    "dp": _dp,
}
"""By the name of the option's parameter."""


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(f"`{text}` is not a number", hint=f"for example {option} …2") from error
