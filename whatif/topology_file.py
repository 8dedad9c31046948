"""A YAML file that says which ranks share nodes and sites, and what joins these."""

import re
from collections import Counter
from itertools import chain
from pathlib import Path

from msgspec import Struct

from ingest.errors import ScenarioError, UsageError
from ingest.units import BytesPerSecond, Nanos, parse_rate
from whatif.documents import as_struct, read_yaml
from whatif.recorded import parse_latency

EXAMPLE = "for example `gpus_per_node: 8`"
MOST_GPUS = 1_000_000
"""In one node: a longer range is a slip, and would fill the memory."""
_RANGE = re.compile(r"(?P<first>\d+)(?:-(?P<last>\d+))?", re.ASCII)


def _absolute(text: str | None) -> BytesPerSecond | None:
    if text is None:
        return None
    try:
        rate = parse_rate(text).bytes_per_s
    except UsageError as error:
        raise ValueError(f"{error}: {error.hint}") from error
    if rate is None:
        raise ValueError(f"`{text}` is no rate of the recorded run: write 400Gbps")
    return rate


def _time(text: str | None) -> Nanos | None:
    if text is None:
        return None
    try:
        return parse_latency(text)
    except UsageError as error:
        raise ValueError(f"{error}: {error.hint}") from error


def _ranks(node: str | tuple[int, ...]) -> tuple[int, ...]:
    if not isinstance(node, str):
        return node
    wrong = f"`{node}` is no list of ranks: write 0-7 or [0, 1, 2, 3]"
    found = _RANGE.fullmatch(node.strip())
    if found is None:
        raise ValueError(wrong)
    first = int(found["first"])
    last = int(found["last"] or first)
    if not first <= last < first + MOST_GPUS:
        raise ValueError(wrong)
    return tuple(range(first, last + 1))


class Nics(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Network cards of a node."""

    per_node: int | None = None
    """None: one for each accelerator."""
    rate: str | None = None
    """Of one card, one direction."""
    latency: str | None = None
    """One way, between nodes, beside what the library adds."""

    def __post_init__(self) -> None:
        """Refuse what no network is."""
        if self.per_node is not None and self.per_node < 1:
            raise ValueError(f"{self.per_node} NICs per node: a number of 1 or more is meant")
        _absolute(self.rate)
        _time(self.latency)

    @property
    def bytes_per_s(self) -> BytesPerSecond | None:
        """Of one card, one direction."""
        return _absolute(self.rate)

    @property
    def latency_ns(self) -> Nanos | None:
        """One way."""
        return _time(self.latency)


class Wan(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The link between sites."""

    rate: str
    """Of the whole link, one direction."""
    latency: str
    """One way."""

    def __post_init__(self) -> None:
        """Refuse what no link is."""
        _absolute(self.rate)
        _time(self.latency)

    @property
    def bytes_per_s(self) -> BytesPerSecond:
        """Of the whole link, one direction."""
        found = _absolute(self.rate)
        assert found is not None, "the rate is given"
        return found

    @property
    def latency_ns(self) -> Nanos:
        """One way."""
        found = _time(self.latency)
        assert found is not None, "the latency is given"
        return found


class TopologyFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file says; all of it is optional but the nodes."""

    gpus_per_node: int | None = None
    nodes: tuple[str | tuple[int, ...], ...] = ()
    """Ranks of each node (`0-7` or a list), where they are not numbered node by node."""
    domain_gpus: int | None = None
    """GPUs that the scale-up link joins, where it is wider than a node: 72 in an NVL72 rack."""
    nics: Nics = Nics()
    rails: bool = False
    """Cards of one place in their nodes share a switch: only all-to-all leaves it."""
    oversubscription: float = 1.0
    """Bandwidth of the cards over that of the network between their switches."""
    sites: tuple[int, ...] = ()
    """Nodes at each site, in the order of the nodes."""
    wan: Wan | None = None

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if self.gpus_per_node is None and not self.nodes:
            raise ValueError("no `gpus_per_node` and no `nodes`: one of them is needed")
        if self.gpus_per_node is not None and self.gpus_per_node < 1:
            raise ValueError(f"{self.gpus_per_node} GPUs per node: a number of 1 or more is meant")
        if not all(self.listed):
            raise ValueError("a node without a rank")
        if not 1 <= self.oversubscription < float("inf"):
            raise ValueError(f"oversubscription {self.oversubscription:g}: 1 or more is meant")
        if self.sites and min(self.sites) < 1:
            raise ValueError("a site without a node")
        ranks = Counter(chain.from_iterable(self.listed))
        if twice := [rank for rank, count in ranks.items() if count > 1]:
            raise ValueError(f"rank {twice[0]} is listed twice")
        if min(ranks, default=0) < 0:
            raise ValueError(f"rank {min(ranks)}: a number of 0 or more is meant")
        domain = self.domain_gpus
        if domain is not None and (domain < 1 or domain % self.node_gpus):
            raise ValueError(f"a domain of {domain} GPUs is no whole number of nodes")

    @property
    def listed(self) -> tuple[tuple[int, ...], ...]:
        """Ranks of each listed node."""
        return tuple(_ranks(node) for node in self.nodes)

    @property
    def node_gpus(self) -> int:
        """GPUs of a node: as said, else of the fullest listed one."""
        return self.gpus_per_node or max(map(len, self.listed))


def load_topology(path: Path) -> TopologyFile:
    """Read a topology.

    Raises:
        UsageError: the file cannot be read.
        ScenarioError: it is no topology; the message names file and place.
    """
    document = read_yaml(path, "a topology")
    if not isinstance(document, dict):
        raise ScenarioError(f"{path}: no topology", hint=EXAMPLE)
    return as_struct(document, TopologyFile, f"{path}")
