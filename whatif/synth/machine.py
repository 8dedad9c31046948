"""Accelerators, their links, and where the ranks of a layout sit."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ingest.errors import ScenarioError
from ingest.vocab import CollectiveKind
from whatif.models.collectives.calls import Calls
from whatif.models.collectives.model import model_ns
from whatif.models.fabric import Fabric
from whatif.models.hardware import Accelerator, require
from whatif.models.kernels.machine import Machine, machine_of
from whatif.synth.document import MachineSaid
from whatif.topology import mesh_links_of, shape_of

GIGA = 1e9
US = 1_000.0
MOST_BYTES = 1 << 60
"""Of one collective: above no machine, below what 64 bits hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The machine that a run is made for."""

    device: Accelerator
    machine: Machine
    fabric: Fabric
    nodes_of: int

    def transfer_ns(self, kind: CollectiveKind, size_bytes: float, ranks: tuple[int, ...]) -> float:
        """Time of a collective of these ranks by the collective model.

        Args:
            kind: of it.
            size_bytes: as nccl-tests counts it.
            ranks: global numbers; nodes hold `nodes_of` in a row.

        Raises:
            ScenarioError: it leaves the node and the network's rate was not said, or it is of more
                bytes than there are.
        """
        nodes = [rank // self.nodes_of for rank in ranks]
        counts = np.unique(nodes, return_counts=True)[1]
        if len(counts) > 1 and self.fabric.nic_bytes_per_s is None:
            raise ScenarioError(
                f"{len(ranks):,} ranks exchange over {len(counts)} nodes, and the network is not "
                "said",
                hint="machine: {net_gb_per_s: 50} in the file, of one GPU and one direction",
            )
        if size_bytes > MOST_BYTES:
            raise ScenarioError(
                f"{size_bytes:.3g} bytes in one collective of {len(ranks):,} ranks",
                hint="smaller sizes in model and batch",
            )
        return _transfer_ns(
            self.fabric, kind, round(size_bytes), len(ranks), len(counts), int(counts.max())
        )


def site_of(said: MachineSaid) -> Site:
    """Look the machine up.

    Raises:
        ScenarioError: the catalog does not know it, or lacks what times need.
    """
    device = require(said.gpu)
    scale_up: float | None = device.scale_up_one_way_bytes_per_s
    if said.nvlink_gb_per_s is not None:
        scale_up = said.nvlink_gb_per_s * GIGA
    pcie = None if device.pcie is None else device.pcie.one_way_bytes_per_s.value
    net, latency = said.net_gb_per_s, said.net_latency_us
    return Site(
        device=device,
        machine=machine_of(device),
        nodes_of=said.nodes_of,
        fabric=Fabric(
            architecture=device.architecture,
            scale_up_bytes_per_s=scale_up,
            scale_up_shape=said.joined_by or shape_of(device),
            mesh_links=mesh_links_of(device),
            pcie_bytes_per_s=pcie,
            nic_bytes_per_s=None if net is None else net * GIGA,
            net_latency_ns=None if latency is None else latency * US,
        ),
    )


@lru_cache(maxsize=4096)
def _transfer_ns(
    fabric: Fabric, kind: CollectiveKind, size_bytes: int, members: int, nodes: int, largest: int
) -> float:
    if members < 2:  # noqa: PLR2004  (a call alone moves nothing)
        return 0.0
    one = {
        "kind": int(kind),
        "size_bytes": size_bytes,
        "members": members,
        "nodes": nodes,
        "largest_node": largest,
        "sites": 1,
    }
    calls = Calls(**{name: np.array([value], np.int64) for name, value in one.items()})
    return float(model_ns(calls, fabric)[0])
