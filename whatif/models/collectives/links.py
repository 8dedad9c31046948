"""Which links a call crosses and how fast they carry it: fabric and calls to columns."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ingest.vocab import CollectiveKind
from whatif.models.collectives.calls import Bool, Calls, Float64, Int64, take
from whatif.models.collectives.constants import (
    BASE_NS,
    CUBE_MESH_FRAC,
    OWN_HOP_NS,
    STEP_NS,
    Constants,
    Silicon,
    silicon_of,
)
from whatif.models.fabric import Fabric, Shape

PAIR = 2
"""Members that a bridge joins."""
LEAST_HOP_NS = 1_000.0
POINT_TO_POINT = (CollectiveKind.SEND_RECV, CollectiveKind.SEND, CollectiveKind.RECV)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """How one situation differs from what the constants say; scalars or one value per call."""

    step: float | Float64 = 1.0
    """Times latencies inside the node."""
    hop: float | Float64 = 1.0
    """Times latencies between nodes and sites."""
    more_hop_ns: float | Float64 = 0.0
    """Beside what fabric and constants say of a hop between nodes."""
    rate: float | Float64 = 1.0
    """Times what the scale-up link carries."""
    net_rate: float | Float64 = 1.0
    """Times what NICs and the links between sites carry."""
    fill: float | Float64 = 1.0
    """Times what filling the pipeline takes."""

    def times(self, other: "Tuning") -> "Tuning":
        """Both."""
        return Tuning(
            step=self.step * other.step,
            hop=self.hop * other.hop,
            more_hop_ns=self.more_hop_ns + other.more_hop_ns,
            rate=self.rate * other.rate,
            net_rate=self.net_rate * other.net_rate,
            fill=self.fill * other.fill,
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
    fill_frac: float | Float64
    later_ns: Float64
    """More latency of large messages."""
    uncut_ns: Float64
    """Messages whose bytes take less are hardly cut into pieces."""

    @property
    def several(self) -> Bool:
        """Calls that leave the node."""
        several: Bool = self.calls.nodes > 1
        return several

    def rows(self, numbers: Int64) -> "Links":
        """Some rows, in the order given."""
        columns: dict[str, Any] = {
            column.name: value[numbers]
            for column in fields(self)
            if isinstance(value := getattr(self, column.name), np.ndarray)
        }
        return replace(self, calls=take(self.calls, numbers), **columns)

    def shape_columns(self) -> list[Int64]:
        """All that tells rows apart but their sizes."""
        calls = self.calls
        columns = [calls.kind, calls.members, calls.nodes, calls.largest_node, calls.sites]
        for column in fields(self):
            value = getattr(self, column.name)
            if isinstance(value, np.ndarray):
                columns.append(value.astype(np.float64).view(np.int64))
        return columns


def links_of(calls: Calls, fabric: Fabric, constants: Constants, tuning: Tuning) -> Links:
    """What carries each of the calls."""
    silicon = silicon_of(constants, fabric.architecture)
    largest = np.maximum(calls.largest_node, 1).astype(np.float64)
    pcie = (fabric.pcie_bytes_per_s or np.nan) * constants.pcie_frac
    whole = (fabric.scale_up_bytes_per_s or np.nan) * silicon.link_frac * tuning.rate
    several = calls.nodes > 1
    lonely = largest <= 1
    nic = (fabric.nic_bytes_per_s or np.nan) * constants.net_frac * tuning.net_rate
    wan = (fabric.wan_bytes_per_s or np.nan) * constants.net_frac * tuning.net_rate
    site_ns = (OWN_HOP_NS + (fabric.wan_latency_ns or 0.0)) * tuning.hop
    outside = calls.members - largest * (calls.nodes - 1)
    hop = np.where(several, _hop_ns(fabric, constants, tuning), 0.0)
    levels = np.log2(np.maximum(calls.nodes, 1))
    return Links(
        calls=calls,
        fabric=fabric,
        silicon=silicon,
        up_bytes_per_s=np.where(lonely, np.inf, _peers(fabric, largest, whole, pcie)),
        path_bytes_per_s=np.where(lonely, np.inf, _path(fabric, largest, whole, pcie, several)),
        pair_bytes_per_s=_pair(fabric, largest, whole, pcie),
        nic_bytes_per_s=np.where(several, nic, np.inf),
        smallest_node=np.clip(outside, 1.0, largest),
        step_factor=silicon.step_factor * tuning.step,
        hop_ns=hop,
        later_ns=constants.later_hops * hop * levels,
        site_hop_ns=np.where(calls.sites > 1, site_ns, 0.0),
        wan_bytes_per_s=np.where(calls.sites > 1, wan, np.inf),
        fill_frac=constants.fill_frac * tuning.fill,
        uncut_ns=silicon.step_factor * tuning.step * (BASE_NS / 2.0 + (largest - 1.0) * STEP_NS),
    )


def hop_ns(fabric: Fabric, constants: Constants) -> float:
    """Latency of a small message between nodes."""
    if fabric.net_latency_ns is None:
        return constants.hop_ns
    return OWN_HOP_NS + fabric.net_latency_ns


def _hop_ns(fabric: Fabric, constants: Constants, tuning: Tuning) -> float | Float64:
    told = hop_ns(fabric, constants) + tuning.more_hop_ns
    return np.maximum(told, LEAST_HOP_NS) * tuning.hop


def _peers(fabric: Fabric, largest: Float64, whole: float | Float64, pcie: float) -> Float64:
    """All links of an accelerator to the other members of its node together."""
    ones = np.ones_like(largest)
    match fabric.scale_up_shape:
        case Shape.MESH:
            return whole * np.minimum((largest - 1.0) / fabric.mesh_links, 1.0)
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
        most = whole * (1 + 1 / fabric.mesh_links)
        peers = np.where(several, np.minimum(peers * more, most), peers)
    return peers


def _pair(fabric: Fabric, largest: Float64, whole: float | Float64, pcie: float) -> Float64:
    ones = np.ones_like(largest)
    match fabric.scale_up_shape:
        case Shape.MESH:
            return whole * ones / fabric.mesh_links
        case Shape.CUBE_MESH:
            return whole * ones * CUBE_MESH_FRAC[PAIR]
        case _:
            return _peers(fabric, largest, whole, pcie)


def _cube_frac(largest: Float64) -> Float64:
    table = np.array(CUBE_MESH_FRAC)
    return table[np.minimum(largest, len(table) - 1).astype(np.int64)]
