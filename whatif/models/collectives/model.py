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

from ingest.vocab import CollectiveKind
from whatif.models.bound import Bound
from whatif.models.collectives.calls import Bool, Calls, Float64, Int64
from whatif.models.collectives.curves import Curves
from whatif.models.fabric import Fabric

SOURCE = "collective model: ring of NCCL's tuning.cc; its latency stays, only bytes scale"
LINK_SHARE = 0.8
"""Part of the vendor's figure of one direction that NCCL plans with: 240 of 300 GB/s on A100,
371 of 450 on H100, 722 of 900 on B200 (https://github.com/NVIDIA/nccl, src/graph/topo.h)."""
LATENCY_SHARE = {Bound.NOMINAL: 1.0, Bound.LOW: 0.0, Bound.HIGH: 2.0}

_TWICE_AROUND = (CollectiveKind.ALL_REDUCE, CollectiveKind.BARRIER)
_ONE_HOP = (CollectiveKind.SEND_RECV, CollectiveKind.SEND, CollectiveKind.RECV)
_WHOLE_BUFFER = (*_ONE_HOP, CollectiveKind.BROADCAST, CollectiveKind.REDUCE)


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


def model_ns(calls: Calls, fabric: Fabric, bound: Bound = Bound.NOMINAL) -> Float64:
    """Time of each call in ns; NaN where its size or the rate of a link it crosses is not known."""
    rate = fabric.scale_up_bytes_per_s
    times = _fastest(_latencies(calls, bound), _wire_ns(calls, rate or np.nan))
    return np.where(_sized(calls), times, np.nan)


def scaled_ns(  # noqa: PLR0913  (two situations, each calls and links)
    measured_ns: Int64,
    *,
    before: Calls,
    base: Fabric,
    after: Calls,
    new: Fabric,
    bound: Bound = Bound.NOMINAL,
    curves: Curves | None = None,
) -> Int64:
    """Measured times of `before` on `base`, moved to `after` on `new`; rounded half to even.

    Args:
        measured_ns: transfers without waiting.
        before: what was measured.
        base: where it was measured.
        after: row by row, what the calls become (members, nodes and sizes may differ).
        new: the links then; where a rate is None, its `factors` say how much faster the link is and
            the measured time tells how long the bytes took: what the latency leaves.
        bound: NOMINAL, or the end of the range.
        curves: what the calls themselves measured, by rows of `before`; inside its sizes a curve
            says how the time grows, rather than the formula.
    """
    assert curves is None or len(curves.curve) == len(measured_ns)
    assert len(after.kind) == len(measured_ns)
    measured = measured_ns.astype(np.float64)
    latency = _latencies(before, bound)
    wire_ns = _wire_ns_of_measured(latency, measured)
    if base.scale_up_bytes_per_s is not None:
        wire_ns = np.where(_sized(before), _wire_ns(before, base.scale_up_bytes_per_s), wire_ns)
    factor = new.factors.scale_up / base.factors.scale_up
    if base.scale_up_bytes_per_s and new.scale_up_bytes_per_s:
        factor = new.scale_up_bytes_per_s / base.scale_up_bytes_per_s
    wire_ns = np.where(before.kind == CollectiveKind.BARRIER, 0.0, wire_ns)
    past, future = _fastest(latency, wire_ns), _fastest(latency, wire_ns / factor)
    ratio = np.divide(future, past, out=np.ones_like(past), where=past > 0)
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


def _wire_ns(calls: Calls, link_bytes_per_s: float) -> Float64:
    """Time of the bytes that each member sends, by the bus factors of nccl-tests, one direction."""
    part = (calls.members - 1.0) / np.maximum(calls.members, 1)
    part = np.where(np.isin(calls.kind, _TWICE_AROUND), 2.0 * part, part)
    part = np.where(np.isin(calls.kind, _WHOLE_BUFFER), 1.0, part)
    sent: Float64 = np.maximum(calls.size_bytes, 0) * part
    return sent * 1e9 / (LINK_SHARE * link_bytes_per_s)


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
