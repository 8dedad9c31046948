"""Time of a collective over the scale-up link: a latency, and bytes over a bandwidth.

Only ratios of it are used, `measured * model(new) / model(base)`, so that its level cancels and
only the share of the latency counts. It is the ring of NCCL's cost model: the fastest of the
protocols LL, LL128 and Simple, each `base + steps * hop + bytes / (share * link)`, with the
constants of NCCL 2.30 (https://github.com/NVIDIA/nccl/blob/master/src/graph/tuning.cc, NVLink).
NCCL's in-switch reduction (NVLS), trees and their own latencies are not in it.

An all-reduce of 8 GPUs has 15 us in LL and 56 us in Simple; what nccl-tests measures beyond the
bytes grows from 13 us to 80 us (H100) or 130 us (A100). The bounds take no latency, and twice this.
`tests/unit/whatif/test_collective_model.py` checks it against public tables: from 8 H200 to 8 B200
it is 28 % low at the median up to 16 MiB, where plain scaling by the link is 59 % low, and 22 % low
above, where neither knows how the newer library and chip differ. From 8 A100 to 8 H100, above
128 MiB, all-reduce is 36 % late (NVLS), all-gather 8 %, reduce-scatter and all-to-all 3 %; between
1 and 128 MiB the three are up to 53 % late at the median: more than the link differs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ingest.units import BytesPerSecond
from ingest.vocab import CollectiveKind
from whatif.models.bound import Bound

SOURCE = "collective model: ring of NCCL's tuning.cc; its latency stays, only bytes scale"
LINK_SHARE = 0.8
"""Part of the vendor's figure of one direction that NCCL plans with: 240 of 300 GB/s on A100,
371 of 450 on H100, 722 of 900 on B200 (https://github.com/NVIDIA/nccl, src/graph/topo.h)."""
LATENCY_SHARE = {Bound.NOMINAL: 1.0, Bound.LOW: 0.0, Bound.HIGH: 2.0}

_TWICE_AROUND = (CollectiveKind.ALL_REDUCE, CollectiveKind.BARRIER)
_ONE_HOP = (CollectiveKind.SEND_RECV, CollectiveKind.SEND, CollectiveKind.RECV)
_WHOLE_BUFFER = (*_ONE_HOP, CollectiveKind.BROADCAST, CollectiveKind.REDUCE)

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Protocol:
    """How NCCL moves bytes: the less it synchronises, the less it waits and the slower it is."""

    base_ns: float
    hop_ns: float
    """Per step of the ring over NVLink."""
    share: float
    """Part of the link's bandwidth that it reaches."""


PROTOCOLS = (
    Protocol(base_ns=6_600.0, hop_ns=600.0, share=0.5),
    Protocol(base_ns=14_000.0, hop_ns=1_900.0, share=0.92),
    Protocol(base_ns=8_400.0, hop_ns=3_400.0, share=1.0),
)
"""LL, LL128, Simple."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Columns with one row per call."""

    kind: Int64
    """CollectiveKind."""
    size_bytes: Int64
    """As nccl-tests counts it; -1 when not recorded."""
    members: Int64


def model_ns(
    calls: Calls, link_bytes_per_s: BytesPerSecond, bound: Bound = Bound.NOMINAL
) -> Float64:
    """Time of each call of known size on a link whose vendor prints `link_bytes_per_s`."""
    return _fastest(_latencies(calls, bound), _wire_ns(calls, link_bytes_per_s))


def scaled_ns(
    measured_ns: Int64,
    calls: Calls,
    *,
    base: BytesPerSecond | None,
    factor: float,
    bound: Bound = Bound.NOMINAL,
) -> Int64:
    """Measured times on a link `factor` times as fast, rounded half to even.

    Where the size or the base is not known, the measured time tells how long the bytes took: what
    the latency leaves. A barrier has no bytes and stays.
    """
    measured = measured_ns.astype(np.float64)
    latency = _latencies(calls, bound)
    wire_ns = _wire_ns_of_measured(latency, measured)
    if base is not None:
        wire_ns = np.where(_sized(calls), _wire_ns(calls, base), wire_ns)
    wire_ns = np.where(calls.kind == CollectiveKind.BARRIER, 0.0, wire_ns)
    before, after = _fastest(latency, wire_ns), _fastest(latency, wire_ns / factor)
    ratio = np.divide(after, before, out=np.ones_like(before), where=before > 0)
    return np.rint(measured * ratio).astype(np.int64)


def _sized(calls: Calls) -> Bool:
    known: Bool = calls.size_bytes >= 0
    known &= (calls.kind != CollectiveKind.UNKNOWN) & (calls.members > 1)
    return known


def _latencies(calls: Calls, bound: Bound) -> tuple[Float64, ...]:
    """What no bandwidth changes, per protocol."""
    once = np.maximum(calls.members - 1.0, 0.0)
    steps = np.where(np.isin(calls.kind, _TWICE_AROUND), 2.0 * once, once)
    steps = np.where(np.isin(calls.kind, _ONE_HOP), 1.0, steps)
    share = LATENCY_SHARE[bound]
    return tuple(share * (protocol.base_ns + protocol.hop_ns * steps) for protocol in PROTOCOLS)


def _wire_ns(calls: Calls, link_bytes_per_s: BytesPerSecond) -> Float64:
    """Time of the bytes that each member sends, by the bus factors of nccl-tests, one direction."""
    part = (calls.members - 1.0) / np.maximum(calls.members, 1)
    part = np.where(np.isin(calls.kind, _TWICE_AROUND), 2.0 * part, part)
    part = np.where(np.isin(calls.kind, _WHOLE_BUFFER), 1.0, part)
    sent: Float64 = np.maximum(calls.size_bytes, 0) * part
    return sent * 1e9 / (LINK_SHARE * link_bytes_per_s / 2.0)


def _fastest(latency: tuple[Float64, ...], wire_ns: Float64) -> Float64:
    times = [
        alpha + wire_ns / protocol.share for alpha, protocol in zip(latency, PROTOCOLS, strict=True)
    ]
    fastest: Float64 = np.minimum.reduce(times)
    return fastest


def _wire_ns_of_measured(latency: tuple[Float64, ...], measured_ns: Float64) -> Float64:
    """The inverse of `_fastest`; no bytes where the measured time is below every latency."""
    wires = [
        (measured_ns - alpha) * protocol.share
        for alpha, protocol in zip(latency, PROTOCOLS, strict=True)
    ]
    wire_ns: Float64 = np.maximum(np.maximum.reduce(wires), 0.0)
    return wire_ns
