"""What carries the bytes of a collective: the links of one accelerator, from the nearest outwards.

Rates are those of one accelerator and of one direction, in bytes per second; None = not known.
Vendors print NVLink and xGMI with both directions together: halve before they come here.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

MESH_LINKS = 7
"""Links of one accelerator in a mesh of eight (MI300X)."""


class Algorithm(StrEnum):
    """How a library moves a collective; the names are what `--collective-algo` takes."""

    RING = "ring"
    TREE = "tree"
    NVLS = "nvls"
    """Reduction and multicast in the switch of a node (NVLink SHARP)."""
    NVLS_TREE = "nvls_tree"
    """NVLS in each node, a tree between them."""
    COLLNET = "collnet"
    """Reduction in the switches of the network too (SHARP)."""
    PAT = "pat"
    """Parallel aggregated trees: all-gather and reduce-scatter in log steps, one GPU per node."""
    HIERARCHICAL = "hierarchical"
    """Each node for itself, then the nodes, one after the other."""
    PAIRWISE = "pairwise"
    """All-to-all: every member sends to every other."""
    DIRECT = "direct"
    """One step: every member writes to, or reads from, every other (custom all-reduce)."""


class Shape(StrEnum):
    """How the scale-up links join the accelerators of one domain."""

    SWITCH = "switch"
    """Every pair has the whole rate (NVSwitch)."""
    MESH = "mesh"
    """One link per peer: few members use few links (MI300X)."""
    CUBE_MESH = "cube_mesh"
    """Eight in a hybrid cube: some pairs have two links, some one, some none (V100)."""
    PAIRS = "pairs"
    """Bridges join two and two; larger groups take PCIe."""
    NONE = "none"
    """No scale-up link: PCIe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """How much faster each link is than on the recorded run, where its own rate is not known."""

    scale_up: float = 1.0
    pcie: float = 1.0
    nic: float = 1.0
    wan: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """The links of one accelerator and what the library may do with them."""

    architecture: str | None = None
    """"volta", "ampere", "ada", "hopper", "blackwell", "cdna3", "cdna4" ... of the accelerator."""
    scale_up_bytes_per_s: float | None = None
    """Sum over the links of one accelerator: 450e9 on H100."""
    scale_up_shape: str = Shape.SWITCH
    mesh_links: int = MESH_LINKS
    """Of a mesh: links of one accelerator, each to another peer."""
    pcie_bytes_per_s: float | None = None
    nic_bytes_per_s: float | None = None
    """Share of one accelerator in the NICs of its node."""
    net_latency_ns: float | None = None
    """One way, of a small message on the wire between nodes: 2 000 to 5 000 on InfiniBand and RoCE.
    Library and NIC add 8 us of their own to it. None: 4 000, the middle of what was measured."""
    wan_bytes_per_s: float | None = None
    """Share of one accelerator in the link between sites."""
    wan_latency_ns: float | None = None
    """One way, between sites."""
    in_network: bool | None = None
    """Reduction in switches. None: as the architecture does it (NVLS in a Hopper node or later with
    a switch); False: off; True: also between nodes (SHARP)."""
    algorithm: Algorithm | None = None
    """The one to take where it can do the collective; None: the fastest, as the library would."""

    factors: Factors = Factors()
    """Against the recorded run, for links whose rate is None; that run itself has all 1."""


STAND_IN = {
    "scale_up_bytes_per_s": (300e9, "scale_up"),
    "pcie_bytes_per_s": (31e9, "pcie"),
    "nic_bytes_per_s": (25e9, "nic"),
    "wan_bytes_per_s": (1e9, "wan"),
}
"""Where a rate is not known, any will do: the measured time tells how long the bytes took."""


def with_stand_ins(fabric: Fabric) -> Fabric:
    """The fabric with a rate for every link; those made up are as far apart as the factors say."""
    made_up = {
        name: rate * getattr(fabric.factors, factor)
        for name, (rate, factor) in STAND_IN.items()
        if getattr(fabric, name) is None
    }
    return replace(fabric, **made_up)
