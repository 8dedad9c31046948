"""Over which links the collectives of a new layout run, and how long each takes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ingest.errors import ScenarioError
from ingest.units import BytesPerSecond, Nanos, Rate
from ingest.vocab import CollectiveKind
from replay.graph.arrays import Float64, Group, Int64, TaskGraph
from replay.graph.hosts import computes_on_hosts
from replay.graph.outside import incomplete
from whatif.models import gloo
from whatif.models.bound import Bound
from whatif.models.collectives import model
from whatif.models.collectives.calls import Calls
from whatif.models.exchanges.volume import Along
from whatif.models.shape import RunShape
from whatif.topology import spread
from whatif.transforms.base import Context
from whatif.transforms.relayout.exchanges.axes import ranks_along
from whatif.transforms.retime import calls_of, with_rate_of_hosts

CALIBRATION_LIMITS = (1 / 3, 3.0)
"""A recorded call that is further from the model was held up by something else."""
LEAST_TELLING_BYTES = 1 << 20
"""Calls that move less tell of latencies, not of what most of the bytes take."""

AT_ONCE = 2
"""Collectives that PyTorch's gloo runs beside each other (`ProcessGroupGloo::Options::threads`):
the delays of one pass while the bytes of the other move."""
_WORD = {Along.SHARDS: "shard", Along.REPLICAS: "data"}
"""What frameworks call such communicators, by which their use is understood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """The machine of a new layout, and how the run's own calls compare with the model on it."""

    context: Context
    on_host: bool
    inside_factor: float = 1.0
    """Recorded times over the model's, inside a node."""
    between_factor: float = 1.0
    told: tuple[str, ...] = ()

    def transfer_ns(
        self,
        kind: CollectiveKind,
        size_bytes: Int64,
        ranks: tuple[int, ...],
        *,
        in_a_row: bool = False,
    ) -> Int64:
        """Time of calls of one kind among the same ranks, by a model alone, ns.

        Args:
            kind: of all of them.
            size_bytes: of each.
            ranks: the members.
            in_a_row: nothing waits between two of them, so that hosts have `AT_ONCE` under way;
                each then has its part of the delay of their steps.

        Raises:
            ScenarioError: the links that they cross are not known.
        """
        if self.on_host:
            found = self._on_hosts(kind, size_bytes, len(ranks), AT_ONCE if in_a_row else 1)
        else:
            found = self._on_devices(kind, size_bytes, ranks)
        return np.rint(found).astype(np.int64)

    def launch_ns(self, by_bound: Mapping[Bound, int]) -> int:
        """What a thread spends on launching one; on hosts the transfer's fixed cost has it."""
        return 0 if self.on_host else by_bound[self.context.bound]

    def core_ns(self, kind: CollectiveKind, size_bytes: Int64, n_members: int) -> Float64:
        """What the thread that computes loses to those that send, were they to share a core.

        In the upper bound only: how many cores a rank has is not recorded.
        """
        whole: Float64 = gloo.sending_ns(_host_calls(kind, size_bytes, n_members))
        return whole if self.context.bound is Bound.HIGH else 0.0 * whole

    def _on_hosts(
        self, kind: CollectiveKind, size_bytes: Int64, n_members: int, at_once: int
    ) -> Float64:
        links = self.context.links
        calls = _host_calls(kind, size_bytes, n_members)
        rate = links.nic_bytes_per_s
        return gloo.alone_ns(
            calls,
            rate_bytes_per_s=None if rate is None else BytesPerSecond(rate),
            delay_ns=Nanos(round((links.net_latency_ns or 0) / at_once)),
            bound=self.context.bound,
        )

    def _on_devices(
        self, kind: CollectiveKind, size_bytes: Int64, ranks: tuple[int, ...]
    ) -> Float64:
        domain = self.context.places.domain_of(np.array(ranks, np.int64))
        sites = len(np.unique(self.context.places.site_of(np.array(ranks, np.int64))))
        _, in_domain = np.unique(domain, return_counts=True)
        nodes = len(in_domain)

        def same(value: int) -> Int64:
            return np.full(len(size_bytes), value, np.int64)

        calls = Calls(
            kind=same(kind),
            size_bytes=size_bytes,
            members=same(len(ranks)),
            nodes=same(nodes),
            largest_node=same(int(in_domain.max())),
            sites=same(sites),
        )
        found = model.model_ns(calls, self.context.links, self.context.bound)
        if np.isnan(found).any():
            where = f"between {nodes} nodes" if nodes > 1 else "inside a node"
            raise ScenarioError(
                f"the link {where} is not known: how long a new collective takes is not told",
                hint="--base-gpu NAME, --base-nvlink RATE or --base-net RATE say it",
            )
        return found * (self.between_factor if nodes > 1 else self.inside_factor)

    def group(self, shape: RunShape, along: Along, size: int) -> Group:
        """A communicator of the new layout."""
        return Group(
            name=f"{_WORD.get(along, along)} of {size}",
            ranks=ranks_along(shape, along, size),
            size=size,
            backend="cpu:gloo" if self.on_host else "nccl",
            description=_WORD.get(along, str(along)),
        )


def _host_calls(kind: CollectiveKind, size_bytes: Int64, n_members: int) -> gloo.HostCalls:
    return gloo.HostCalls(
        kind=np.full(len(size_bytes), kind, np.int64),
        size_bytes=size_bytes,
        members=np.full(len(size_bytes), n_members, np.int64),
    )


def links_of(graph: TaskGraph, context: Context) -> Links:
    """The links of the new layout.

    Args:
        graph: of the recorded run.
        context: the machine, with what the new ranks need of it.
    """
    if computes_on_hosts(graph):
        known = _unless_a_core_binds(with_rate_of_hosts(graph, context), context)
        return Links(context=known, on_host=True, told=_hosts_told(known))
    inside, between = _calibration(graph, context)
    return Links(context=context, on_host=False, inside_factor=inside, between_factor=between)


SENDING_BESIDE = 2.0
"""A core that computes and sends has half its time for each."""


def _unless_a_core_binds(known: Context, said: Context) -> Context:
    """The machine whose recorded rate is taken for that of the link only if no core explains it.

    In the upper bound it is that of the link all the same.
    """
    rate = known.links.nic_bytes_per_s
    if rate is None or said.links.nic_bytes_per_s is not None or known.bound is Bound.HIGH:
        return known
    of_core = gloo.CORE_BYTES_PER_S / (SENDING_BESIDE * gloo.CORE_SHARE[Bound.HIGH])
    return known if rate < of_core else said


def _hosts_told(context: Context) -> tuple[str, ...]:
    rate = context.links.nic_bytes_per_s
    if rate is None:
        return ("network between hosts: as fast as a core sends (--base-net RATE tells its rate)",)
    return (f"network between hosts: {Rate(BytesPerSecond(rate), None).understood}",)


def _calibration(graph: TaskGraph, context: Context) -> tuple[float, float]:
    """Recorded times of large calls over the model's, inside a node and between nodes.

    By the model on the links that they were measured on, whatever links what-ifs have put in since.
    """
    anchor = context.anchor
    fabric = context.links if anchor is None else anchor.fabric
    places = context.places if anchor is None else anchor.topology
    calls = graph.collectives
    number = np.flatnonzero(
        ~calls.on_host & ~incomplete(calls) & (calls.size_bytes >= LEAST_TELLING_BYTES)
    )
    number = number[calls.transfer_ns[number] > 0]
    if not len(number):
        return 1.0, 1.0
    model_ns = model.model_ns(calls_of(graph, places, number), fabric)
    nodes = spread(graph, places).domains[number]
    factors = []
    for mine in (nodes == 1, nodes > 1):
        rows = mine & np.isfinite(model_ns) & (model_ns > 0)
        whole = float(model_ns[rows].sum())
        factor = float(calls.transfer_ns[number][rows].sum()) / whole if whole else 1.0
        factors.append(float(np.clip(factor, *CALIBRATION_LIMITS)))
    return factors[0], factors[1]
