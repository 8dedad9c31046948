"""Numbers of the collective model, each with where it comes from.

NCCL means the cost model of NCCL 2.30 (https://github.com/NVIDIA/nccl, src/graph/tuning.cc and
src/graph/topo.h), by which the library itself picks algorithms. Measured means public sweeps of
nccl-tests and rccl-tests, fitted by `tests/bench/accuracy_collectives.py`; whoever judges the model
refits them without the system that is judged.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Silicon:
    """What one generation of accelerators makes of its links."""

    link_frac: float
    """Part of the signalled rate that a ring reaches with large messages."""
    step_factor: float
    """Its latencies of base and steps against those of NCCL's constants."""
    in_switch_frac: float | None = None
    """Part of the ring's rate that reduction in the switch reaches; None: has no such thing."""


SILICON: Mapping[str, Silicon] = {
    "volta": Silicon(link_frac=0.9, step_factor=1.3),
    "ampere": Silicon(link_frac=20.0 / 25.0, step_factor=1.7),
    "hopper": Silicon(link_frac=20.6 / 25.0, step_factor=1.13, in_switch_frac=0.85),
    "blackwell": Silicon(link_frac=40.1 / 50.0, step_factor=2.0, in_switch_frac=0.74),
    "cdna3": Silicon(link_frac=48.0 / 64.0, step_factor=0.9),
}
"""Rates per NVLink and shares in the switch: NCCL, but Volta (20 of 25 there): 134 of 150 GB/s
measured on two machines. CDNA3: 48 of 64 GB/s per xGMI link (RCCL, src/graph/topo.h).
Step factors: measured, Volta's in a trace of eight (19.5 us for the smallest all-reduce)."""
LIKE: Mapping[str, str] = {
    "pascal": "volta",
    "turing": "ampere",
    "ada": "ampere",
    "grace_hopper": "hopper",
    "blackwell_ultra": "blackwell",
    "rubin": "blackwell",
    "cdna": "cdna3",
    "cdna2": "cdna3",
    "cdna4": "cdna3",
}
"""Generations without figures of their own take those of the next of their maker."""
OTHER = Silicon(link_frac=0.8, step_factor=1.3)
"""Accelerators of which nothing is known: between the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """What the model takes from elsewhere than trace and fabric."""

    silicon: Mapping[str, Silicon] = field(default_factory=lambda: SILICON)
    other: Silicon = field(default_factory=lambda: OTHER)
    net_frac: float = 0.91
    """Part of a NIC's rate that large messages reach. Measured where the NIC binds: 0.87 (A100
    with EFA v1), 0.94 (MI325X), 0.99 (B200 with EFA v4), 0.66 (A100 with HDR); the value is
    the median. NCCL plans with 0.96."""
    pcie_frac: float = 24.0 / 31.0
    """NCCL: 24 GB/s of PCIe 4.0 x16."""
    hop_ns: float = 12_000.0
    """A small message between nodes, all in. Measured, from the smallest all-reduces of two
    nodes: 4 us (InfiniBand HDR; 10 with four nodes), 16 (Pollara RoCE), 27 (EFA v2), 97 (EFA v1)
    and 175 (RoCE, ROCm 6.3); the value is the geometric mean of the first three. NCCL: 5 us."""
    fill_frac: float = 0.7
    """Weight of the time to fill and drain the pipeline, see `algorithms.time_ns`. Measured."""
    later_hops: float = 1.5
    """Hops that large messages take more than small ones, per doubling of the nodes: another
    protocol. Measured; NCCL's Simple against LL: 3.6."""
    doubt: float = 1.0
    """Times the widths of `doubt.py`."""


# Latencies of NCCL's protocol LL, which small messages take, and of Simple, which large ones take.
BASE_NS = 6_600.0
STEP_NS = 600.0
"""Per step of a ring, or hop of a tree, inside a node."""
POST_NS = 1_000.0
"""Per step of a ring that also leaves the node, at least."""
BASE_SIMPLE_NS = 8_400.0
STEP_SIMPLE_NS = 3_400.0
NVLS_NS = 25_000.0
"""One reduction in the switch."""
SMALL_NS_PER_BYTE = 0.8
"""What small messages between nodes grow by, in protocol LL: 0.6 on HDR, 1 on EFA v2, 1.8 on EFA v1
up to 64 KiB; from 0.4 to 1.2 the errors are the same."""
PAT_BASE_NS = 8_000.0
PAT_MEMBER_NS = 2_800.0
PAT_HOP_FRAC = 14.0 / 5.0 / 3.5
SIMPLE_HOP_FACTOR = 14.0 / 5.0
"""Of a network hop: protocol Simple, which all-to-alls and full pipelines take, against LL."""
RING_HOP_FRAC = 2.7 / 5.0
"""Of a network hop: a ring's against a tree's (LL)."""
TREE_FRAC = 0.92
"""Of the ring's rate, in one node."""
TREE_FRAC_BETWEEN = 0.78
"""The same inside the nodes of several: 8 channels with NCCL's cap per channel, 23.6 GB/s on Ampere
and 36 to 41 on Hopper."""
MOST_NICS = 9
"""Rings and trees of a domain use no more NICs: NVL72 racks with 72 reach 810 GB/s of bus bandwidth
with two racks and 406 with twenty: once and twice over 9 x 50 GB/s, at 0.9 of it."""
IN_NETWORK_CROSSINGS = 1.7
"""Buffers that a node sends where the network reduces: 1 in theory, 2 without. Measured 480 GB/s
(4 nodes, NVIDIA GTC) and 387 (12 nodes, CoreWeave) of 400."""
PAT_FRAC = 0.75
OWN_HOP_NS = 8_000.0
"""Part of a hop that library and NIC add, the rest is the wire's: a 64-byte message takes 2.8 to
5.6 us on InfiniBand and RoCE (https://arxiv.org/abs/2505.09343), an all-reduce 10 us a hop."""
HIERARCHY_STAGES = 3
"""Reduce-scatter in the node, all-reduce between nodes, all-gather in the node."""

CUBE_MESH_FRAC: tuple[float, ...] = (1.0, 1.0, 0.168, 0.335, 0.64, 0.275, 0.342, 0.647, 1.0)
"""By members, of the rate of all eight: V100 hybrid cube, measured 22.6, 45, 86, 37, 46, 87 and
134.5 GB/s (https://github.com/VIA-Research/vTrain)."""


SHIPPED = Constants()
VENDOR = Constants(
    silicon={},
    other=Silicon(link_frac=1.0, step_factor=1.0, in_switch_frac=1.0),
    net_frac=1.0,
    pcie_frac=1.0,
)
"""Every link at its signalled rate, and every switch able to reduce: what no run can beat."""


def silicon_of(constants: Constants, architecture: str | None) -> Silicon:
    """Figures of a generation, else of the one that it is like, else those between all."""
    name = (architecture or "").lower()
    own = constants.silicon.get(name)
    like = constants.silicon.get(LIKE.get(name, ""))
    return own or like or constants.other
