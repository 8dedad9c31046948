"""What the collective model is compared with: alpha-beta, and NCCL's own formula."""

import numpy as np

from tests.bench.collective_sweeps import Measured, Sweep
from whatif.models.collectives.calls import Float64, Int64

LL, LL128, SIMPLE = range(3)
SHARES = (0.5, 0.92, 1.0)
"""Of the bus bandwidth, by protocol."""
TREE_US = ((6.8, 0.6, 5.0), (14.0, 1.25, 8.5), (8.4, 4.0, 14.0))
RING_US = ((6.6, 0.6, 2.7), (14.0, 1.9, 4.0), (8.4, 3.4, 14.0))
"""Latencies of base, hop over NVLink and hop over the network, by protocol."""
TREE_SHARES = tuple(
    np.array([float(word) for word in words.split()])
    for words in (
        "1 1 1 1 .9 .8 .7 .7 .7 .7 .6 .5 .4 .4 .5 .6 .7 .8 .9 1 1 1 1",
        "1 1 1 1 1 .9 .8 .8 .8 .7 .6 .6 .6 .6 .6 .6 .8 .9 .9 .9 .9 1 1",
        ".9 .9 .9 .9 .9 .9 .9 .8 .7 .6 .6 .5 .5 .5 .5 .6 .7 .8 .7 .7 .8 .9 .9",
    )
)
"""Of a tree's bandwidth, by the logarithm of the size in units of 64 bytes."""
PER_LINK = {"volta": 20 / 25, "ampere": 20 / 25, "hopper": 20.6 / 25, "blackwell": 40.1 / 50}
XGMI = 48 / 64
IN_SWITCH = {"hopper": 0.85, "blackwell": 0.74}
TWO = 2


def alpha_beta_ns(base: Measured, target: Measured, sizes: Int64) -> Float64:
    """Latency and bytes fitted on the base; the bytes moved by the ratio of the links' rates."""
    size, time_ns = base.size_bytes[base.judged].astype(np.float64), base.time_ns[base.judged]
    columns = np.stack([np.ones(len(size)), size], 1) / time_ns[:, None]
    (alpha, beta), *_ = np.linalg.lstsq(columns, np.ones(len(size)), rcond=None)
    moved = beta * _wire(target.sweep) / _wire(base.sweep)
    times: Float64 = max(alpha, 0.0) + moved * sizes
    return times


def nccl_ns(measured: Measured, sizes: Int64) -> Float64:
    """NCCL's own formula (tuning.cc of 2.30) with the bandwidths that its search finds.

    Ring, tree and NVLS, in three protocols; the one that the library takes to be fastest.
    """
    ways = [_ring_us(measured.sweep, sizes, protocol) for protocol in (LL, LL128, SIMPLE)]
    if measured.sweep.collective == "all_reduce":
        ways += [_tree_us(measured.sweep, sizes, protocol) for protocol in (LL, LL128, SIMPLE)]
        ways += _nvls_us(measured.sweep, sizes)
    return np.minimum.reduce(ways) * 1e3


def _part(sweep: Sweep) -> float:
    """Bytes that a member sends, of the size."""
    part = (sweep.gpus - 1) / sweep.gpus
    return {"all_reduce": 2 * part, "broadcast": 1.0, "reduce": 1.0}.get(sweep.collective, part)


def _wire(sweep: Sweep) -> float:
    """Seconds per byte of the size, at the signalled rate of a ring."""
    fabric = sweep.fabric
    inside = fabric.scale_up_bytes_per_s or fabric.pcie_bytes_per_s or np.inf
    between = np.inf
    if sweep.nodes > 1 and fabric.nic_bytes_per_s:
        between = sweep.gpus // sweep.nodes * fabric.nic_bytes_per_s
    return _part(sweep) / min(inside, between)


def _plan(sweep: Sweep) -> tuple[float, float]:
    """What NCCL (and RCCL) plan with, GB/s: the links of an accelerator, the NICs of a node."""
    fabric = sweep.fabric
    share = PER_LINK.get(fabric.architecture or "", XGMI)
    inside = (fabric.scale_up_bytes_per_s or 0.0) * share
    inside = inside or (fabric.pcie_bytes_per_s or 0.0) * 24 / 31
    between = sweep.gpus // sweep.nodes * (fabric.nic_bytes_per_s or 0.0) * 24 / 25
    return inside / 1e9, (between / 1e9 if sweep.nodes > 1 else np.inf)


def _ring_us(sweep: Sweep, sizes: Int64, protocol: int) -> Float64:
    rounds = {"all_reduce": 2, "broadcast": 0, "reduce": 0}.get(sweep.collective, 1)
    base, hop, net = RING_US[protocol]
    hops = rounds * (sweep.nodes - 1)
    steps = max(rounds * (sweep.gpus - 1), 1) - hops
    rate = SHARES[protocol] * min(_plan(sweep))
    times: Float64 = base + steps * hop + hops * net + sizes * _part(sweep) / rate / 1e3
    return times


def _tree_us(sweep: Sweep, sizes: Int64, protocol: int) -> Float64:
    base, hop, net = TREE_US[protocol]
    levels = np.floor(np.log2(sweep.nodes))
    latency = base + 2 * ((sweep.gpus // sweep.nodes - 1) * hop + levels * net)
    rate = 0.46 * min(_plan(sweep))
    rate *= (1 / 3.8, 7 / 9 if sweep.nodes == 1 else 120 / 128, 1.0)[protocol]
    shares = TREE_SHARES[protocol]
    index = np.floor(np.log2(np.maximum(sizes, 64) / 64)).astype(np.int64)
    times: Float64 = latency + sizes / (rate * shares[np.minimum(index, len(shares) - 1)]) / 1e3
    return times


def _nvls_us(sweep: Sweep, sizes: Int64) -> list[Float64]:
    efficiency = IN_SWITCH.get(sweep.fabric.architecture or "")
    if efficiency is None:
        return []
    inside, between = _plan(sweep)
    rate = min(inside * 8 / 9 * efficiency, between / (1 if sweep.nodes == TWO else 2))
    return [25.0 + 2 * np.floor(np.log2(sweep.nodes)) * 18.0 + sizes / rate / 1e3]
