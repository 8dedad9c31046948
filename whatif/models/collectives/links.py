"""Which links a call crosses and how fast they carry it: fabric and calls to columns."""

from dataclasses import dataclass, field

import numpy as np

from ingest.vocab import CollectiveKind
from whatif.models.collectives.calls import Bool, Calls, Float64
from whatif.models.collectives.constants import (
    CUBE_MESH_FRAC,
    MESH_LINKS,
    OWN_HOP_NS,
    Constants,
    Silicon,
    silicon_of,
)
from whatif.models.fabric import Fabric, Shape

PAIR = 2
"""Members that a bridge joins."""
POINT_TO_POINT = (CollectiveKind.SEND_RECV, CollectiveKind.SEND, CollectiveKind.RECV)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """How one situation differs from what the constants say; scalars or one value per call."""

    step: float | Float64 = 1.0
    """Times latencies inside the node."""
    hop: float | Float64 = 1.0
    """Times latencies between nodes and sites, but not what the fabric gives."""
    rate: float | Float64 = 1.0
    """Times what the scale-up link carries."""
    net_rate: float | Float64 = 1.0
    """Times what the NICs carry."""

    def times(self, other: "Tuning") -> "Tuning":
        """Both."""
        return Tuning(
            step=self.step * other.step,
            hop=self.hop * other.hop,
            rate=self.rate * other.rate,
            net_rate=self.net_rate * other.net_rate,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Columns: one row per call. Rates are one direction; NaN where the fabric does not tell."""

    calls: Calls
    fabric: Fabric
    silicon: Silicon
    up_bytes_per_s: Float64
    """What one accelerator sends inside its domain to all of its peers among the members."""
    path_bytes_per_s: Float64
    """What flows along the members of a node that lie on a ring."""
    pair_bytes_per_s: Float64
    """What one accelerator sends to one peer of its domain."""
    nic_bytes_per_s: Float64
    """What one accelerator sends to other nodes."""
    smallest_node: Float64
    """Members in the emptiest node, at least."""
    step_factor: float | Float64
    """Of latencies inside the node."""
    hop_ns: Float64
    site_hop_ns: Float64
    wan_bytes_per_s: Float64
    """What one accelerator sends to other sites; infinite where all members share one."""
    fill_frac: float = field(default=0.0)

    @property
    def several(self) -> Bool:
        """Calls that leave the node."""
        several: Bool = self.calls.nodes > 1
        return several


def links_of(calls: Calls, fabric: Fabric, constants: Constants, tuning: Tuning) -> Links:
    """What carries each of the calls."""
    silicon = silicon_of(constants, fabric.architecture)
    largest = np.maximum(calls.largest_node, 1).astype(np.float64)
    pcie = (fabric.pcie_bytes_per_s or np.nan) * constants.pcie_frac
    whole = (fabric.scale_up_bytes_per_s or np.nan) * silicon.link_frac * tuning.rate
    several = calls.nodes > 1
    nic = (fabric.nic_bytes_per_s or np.nan) * constants.net_frac * tuning.net_rate
    wan = (fabric.wan_bytes_per_s or np.nan) * constants.net_frac
    outside = calls.members - largest * (calls.nodes - 1)
    return Links(
        calls=calls,
        fabric=fabric,
        silicon=silicon,
        up_bytes_per_s=_peers(fabric, largest, whole, pcie),
        path_bytes_per_s=_path(fabric, largest, whole, pcie, several),
        pair_bytes_per_s=_pair(fabric, largest, whole, pcie),
        nic_bytes_per_s=np.where(several, nic, np.inf),
        smallest_node=np.clip(outside, 1.0, largest),
        step_factor=silicon.step_factor * tuning.step,
        hop_ns=np.where(several, _hop_ns(fabric, constants) * tuning.hop, 0.0),
        site_hop_ns=np.where(calls.sites > 1, OWN_HOP_NS + (fabric.wan_latency_ns or 0.0), 0.0),
        wan_bytes_per_s=np.where(calls.sites > 1, wan, np.inf),
        fill_frac=constants.fill_frac,
    )


def _hop_ns(fabric: Fabric, constants: Constants) -> float:
    if fabric.net_latency_ns is None:
        return constants.hop_ns
    return OWN_HOP_NS + fabric.net_latency_ns


def _peers(fabric: Fabric, largest: Float64, whole: float | Float64, pcie: float) -> Float64:
    """All links of an accelerator to the other members of its node together."""
    ones = np.ones_like(largest)
    match fabric.scale_up_shape:
        case Shape.MESH:
            return whole * np.minimum((largest - 1.0) / MESH_LINKS, 1.0)
        case Shape.CUBE_MESH:
            return whole * _cube_frac(largest)
        case Shape.PAIRS:
            return np.where(largest <= PAIR, whole * ones, pcie)
        case Shape.NONE:
            return pcie * ones
        case _:
            return whole * ones


def _path(
    fabric: Fabric, largest: Float64, whole: float | Float64, pcie: float, several: Bool
) -> Float64:
    """A ring leaves the node: on a mesh, paths through all members are one more than rings."""
    peers = _peers(fabric, largest, whole, pcie)
    if fabric.scale_up_shape == Shape.MESH:
        more = largest / np.maximum(largest - 1.0, 1.0)
        peers = np.where(several, np.minimum(peers * more, whole * (1 + 1 / MESH_LINKS)), peers)
    return np.where(several & (largest <= 1), np.inf, peers)


def _pair(fabric: Fabric, largest: Float64, whole: float | Float64, pcie: float) -> Float64:
    ones = np.ones_like(largest)
    match fabric.scale_up_shape:
        case Shape.MESH:
            return whole * ones / MESH_LINKS
        case Shape.CUBE_MESH:
            return whole * ones * CUBE_MESH_FRAC[PAIR]
        case _:
            return _peers(fabric, largest, whole, pcie)


def _cube_frac(largest: Float64) -> Float64:
    table = np.array(CUBE_MESH_FRAC)
    return table[np.minimum(largest, len(table) - 1).astype(np.int64)]
