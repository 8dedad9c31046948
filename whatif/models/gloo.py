"""Time of a collective over the network of the hosts, as PyTorch's gloo runs it.

Three parts: steps with a fixed cost and a delay each, bytes over the rate of the link, and bytes
through a core, whichever of the two is slower. Only what changes is used: measured times are scaled
by the ratio of the bytes, and the delay of the steps is added or taken away.

Steps and bytes follow gloo's algorithms (https://github.com/pytorch/gloo: `allreduce.cc`, a ring
that moves segments of at most 1 MiB, two in flight; `allgather.cc`, a ring of whole blocks). Fixed
cost, bytes on the wire and the cost of a core were read off single collectives of 4 KB to 16 MB
timed alone between 2, 4 and 8 processes of one core each, on links of 20 Mbit/s to 10 Gbit/s and
delays of 0 to 20 ms. PyTorch runs a reduce-scatter over gloo as an all-reduce of the input.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ingest.units import BytesPerSecond, Nanos
from ingest.vocab import CollectiveKind
from whatif.models.bound import Bound

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

NO_DELAY = Nanos(0)
TWO = 2
SOURCE = (
    "gloo model: fixed cost and delay per step of its algorithms, bytes over the rate, no faster "
    "than a core sends them; the range has 15 % more or less of what changes, and no less than the "
    "bytes take"
)
KNOWN_ERROR = (
    "transfers between hosts 3% of the step at the median, 11% in nine of ten measured runs; four "
    "of five of those lie in the range"
)
BETWEEN_RUNS_FRAC = 0.04
"""Of a step: root mean square of how much two runs of one setting over gloo differ (eight pairs,
0.2 to 7.9 %). No model of the network tells it."""
BETWEEN_RUNS = (
    f"two runs over gloo differ by {BETWEEN_RUNS_FRAC:.0%} of the step: the range has as much more "
    "at both ends"
)
SEGMENT_BYTES = 1 << 20
"""Largest segment of a ring all-reduce (`kMaxSegmentSize`)."""
LEAST_SEGMENTS = 2
"""Of the part of each member; so many are under way at once."""
WIRE_OVERHEAD = 1.05
"""Bytes on the wire per byte of payload: headers of Ethernet, IP and TCP, and acknowledgements."""
BOTH_WAYS = 1.45
"""The same for whole blocks that two members exchange at once: an all-gather of 16 MB between two
takes 1.55 times what its bytes do; between 4 and 8 members 1.1 and 1.2 times."""
STEP_NS = 100_000.0
"""Fixed cost of a step: an all-reduce of 4 KB between two is four steps and takes 0.4 ms, an
all-gather two steps and 0.25 ms, a message one step and 0.1 ms."""
FIXED_SHARE = {Bound.NOMINAL: 1.0, Bound.LOW: 0.0, Bound.HIGH: 2.0}
CORE_NS_PER_BYTE = 0.9
"""Time of a core per byte sent and received: all-reduces of 16 MB on a link without limit, 15.8 ms.
A machine whose recorded transfers are faster is faster."""
CORE_BYTES_PER_S = BytesPerSecond(1e9 / CORE_NS_PER_BYTE)
CORE_NS_PER_BYTE_OF_MESSAGE = 0.45
"""The same for a message, which a core only sends or receives: 16 MB in 8 ms."""
CORE_SHARE = {Bound.NOMINAL: 1.0, Bound.LOW: 0.5, Bound.HIGH: 1.5}
"""Cores differ by as much."""
CHANGE_SHARE = {Bound.NOMINAL: 1.0, Bound.LOW: 0.85, Bound.HIGH: 1.15}
"""Of how much longer or shorter a call becomes: single collectives of 1 to 16 MB were predicted
from one network to another with an error of 11 % at the 90th percentile."""
DELAY_SHARE = {Bound.NOMINAL: 1.0, Bound.LOW: 0.85, Bound.HIGH: 1.3}
"""Of what a delay adds: alone 1.0 to 1.13 times what the steps say, in whole steps up to 1.3."""
LEAST_TELLING_BYTES = 1 << 18
"""Calls that move less tell no rate: their time is fixed cost."""

_REDUCED = (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER)
_MESSAGE = (CollectiveKind.SEND_RECV, CollectiveKind.SEND, CollectiveKind.RECV)
_BLOCKS = (CollectiveKind.ALL_GATHER, CollectiveKind.ALL_TO_ALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCalls:
    """Columns with one row per call."""

    kind: Int64
    """CollectiveKind."""
    size_bytes: Int64
    """As nccl-tests counts it; -1 when not recorded."""
    members: Int64
    receiver_last: Bool | None = None
    """Of a message: its receiver came after its sender, so that a word to the sender precedes it;
    None: nowhere."""


def scaled_ns(  # noqa: PLR0913  (each by keyword, as the network is described)
    measured_ns: Int64,
    calls: HostCalls,
    *,
    base_rate_bytes_per_s: BytesPerSecond | None = None,
    new_rate_bytes_per_s: BytesPerSecond | None = None,
    factor: float | None = None,
    base_delay_ns: Nanos = NO_DELAY,
    new_delay_ns: Nanos = NO_DELAY,
    bound: Bound = Bound.NOMINAL,
) -> Int64:
    """Measured times on another network, rounded half to even.

    Give the new rate or a factor on the base, or neither where only the delay changes. A base that
    is not given is read off the calls; a rate without any base leaves the times as they are.

    A slower network adds to every call what it adds to one that takes what equal calls typically
    take: what else held a call up stays as it is. A faster one scales each call as it does that.

    Args:
        measured_ns: time that the bytes of each call took alone, without waiting for members.
        calls: one row per measured time.
        base_rate_bytes_per_s: one direction of a host's link in the recording.
        new_rate_bytes_per_s: the same in the scenario.
        factor: the new rate over the base.
        base_delay_ns: one way, in the recording.
        new_delay_ns: one way, in the scenario.
        bound: how much of the time is fixed cost, and how fast a core is.
    """
    base = base_rate_bytes_per_s or inferred_rate(measured_ns, calls, delay_ns=base_delay_ns)
    if new_rate_bytes_per_s is not None:
        factor = new_rate_bytes_per_s / base if base else None
    measured = measured_ns.astype(np.float64)
    typical_ns = _typical_ns(measured, calls)
    fixed_ns = FIXED_SHARE[bound] * STEP_NS * steps(calls) + latency_ns(calls, base_delay_ns)
    change_ns = _change_ns(typical_ns, fixed_ns, calls, base, factor, bound)
    faster = np.divide(change_ns, typical_ns, out=np.zeros_like(measured), where=typical_ns > 0)
    moved_ns = measured + np.where(change_ns < 0, measured * faster, change_ns)
    longer_ns = latency_ns(calls, new_delay_ns) - latency_ns(calls, base_delay_ns)
    longer_ns *= DELAY_SHARE[bound]
    return np.rint(np.maximum(moved_ns + longer_ns, 0.0)).astype(np.int64)


def resized_ns(
    measured_ns: Int64,
    before: HostCalls,
    after: HostCalls,
    *,
    delay_ns: Nanos = NO_DELAY,
    bound: Bound = Bound.NOMINAL,
) -> Int64:
    """Times of calls with other sizes, kinds or members on the same network, rounded half to even.

    Bytes follow, at the rate that the measured ones had; where the size is not known, both are
    taken to move as many. A call that was measured to take less than its steps keeps the rest.

    Args:
        measured_ns: time that the bytes of each call took, without waiting for members.
        before: what was measured.
        after: what it becomes, row by row.
        delay_ns: one way, in both.
        bound: how much of the time is fixed cost.
    """
    measured = measured_ns.astype(np.float64)
    fixed_ns = [
        FIXED_SHARE[bound] * STEP_NS * steps(calls) + latency_ns(calls, delay_ns)
        for calls in (before, after)
    ]
    least_ns = np.minimum(fixed_ns[0], measured)
    moved, moves = wire_bytes(before), wire_bytes(after)
    known = _sized(before) & (moved > 0) & (after.size_bytes >= 0)
    growth = np.divide(moves, moved, out=np.ones_like(moved), where=known)
    steps_ns = np.divide(fixed_ns[1], fixed_ns[0], out=np.ones_like(moved), where=fixed_ns[0] > 0)
    return np.rint(least_ns * steps_ns + (measured - least_ns) * growth).astype(np.int64)


def alone_ns(
    calls: HostCalls,
    *,
    rate_bytes_per_s: BytesPerSecond | None,
    delay_ns: Nanos = NO_DELAY,
    bound: Bound = Bound.NOMINAL,
) -> Float64:
    """Times of calls that were not measured, each alone on its link, ns.

    Args:
        calls: of known size.
        rate_bytes_per_s: one direction of a host's link; None: a core binds.
        delay_ns: one way.
        bound: how much fixed cost, and how fast a core is.
    """
    fixed_ns = FIXED_SHARE[bound] * STEP_NS * steps(calls)
    fixed_ns += DELAY_SHARE[bound] * latency_ns(calls, delay_ns)
    core_ns = CORE_SHARE[bound] * sending_ns(calls)
    if rate_bytes_per_s is None:
        return fixed_ns + core_ns
    wire_ns = wire_bytes(calls) * 1e9 / rate_bytes_per_s
    longer_ns = np.maximum(CHANGE_SHARE[bound] * wire_ns, wire_ns / _overhead(calls))
    return fixed_ns + np.maximum(longer_ns, core_ns)


def _typical_ns(measured_ns: Float64, calls: HostCalls) -> Float64:
    """Median over the calls of the same kind, size and members; of unknown size each its own."""
    keys = np.stack(
        [calls.kind, calls.size_bytes, calls.members, _receiver_last(calls).astype(np.int64)],
        axis=1,
    )
    _, group = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(group, kind="stable")
    firsts = np.searchsorted(group[order], np.arange(int(group.max(initial=-1)) + 1))
    medians = [float(np.median(rows)) for rows in np.split(measured_ns[order], firsts[1:])]
    typical: Float64 = np.array(medians)[group] if len(group) else measured_ns
    return np.where(_sized(calls), typical, measured_ns)


def _change_ns(
    typical_ns: Float64,
    fixed_ns: Float64,
    calls: HostCalls,
    base: BytesPerSecond | None,
    factor: float | None,
    bound: Bound,
) -> Float64:
    """How much longer the bytes of a typical call take at the new rate, ns.

    Where the link binds, what the fixed cost leaves of the time scales, and each byte of payload
    takes longer by at least what the rates say (the first bytes on a link may be faster than its
    rate). Where a core binds, the time stays until the link takes longer than it.
    """
    if factor is None:
        return np.zeros_like(typical_ns)
    sized = _sized(calls)
    rest_ns = np.maximum(typical_ns - fixed_ns, 0.0)
    wire_ns, core_ns = rest_ns, np.zeros_like(rest_ns)
    if base is not None:
        wire_ns = np.where(sized, wire_bytes(calls) * 1e9 / base, rest_ns)
        core_ns = np.where(sized, CORE_SHARE[bound] * sending_ns(calls), 0.0)
        core_ns = np.minimum(core_ns, typical_ns)
    before_ns, after_ns = np.maximum(wire_ns, core_ns), np.maximum(wire_ns / factor, core_ns)
    moving_ns = np.maximum(rest_ns, np.minimum(before_ns, typical_ns) / 2)
    ratio = np.divide(after_ns, before_ns, out=np.ones_like(after_ns), where=before_ns > 0)
    of_payload_ns = np.where(
        after_ns > before_ns, (after_ns - before_ns) / _overhead(calls), -np.inf
    )
    change_ns = np.where(wire_ns >= core_ns, moving_ns * (ratio - 1.0), after_ns - before_ns)
    change_ns = np.maximum(CHANGE_SHARE[bound] * change_ns, of_payload_ns)
    change_ns = np.maximum(change_ns, -typical_ns)
    return np.where(calls.kind == CollectiveKind.BARRIER, 0.0, change_ns)


def inferred_rate(
    alone_ns: Int64, calls: HostCalls, *, delay_ns: Nanos = NO_DELAY
) -> BytesPerSecond | None:
    """Rate at which the calls moved their bytes; None where none moved enough to tell.

    The median over the calls that are not small beside the largest one.

    Args:
        alone_ns: time that the bytes of each call took, or would have taken alone.
        calls: one row per time.
        delay_ns: one way.
    """
    bytes_moved = np.where(_sized(calls), wire_bytes(calls), 0.0)
    moving_ns = alone_ns - STEP_NS * steps(calls) - latency_ns(calls, delay_ns)
    telling = (bytes_moved >= LEAST_TELLING_BYTES) & (moving_ns > 0)
    if not telling.any():
        telling = (bytes_moved > 0) & (moving_ns > 0)
    if not telling.any():
        return None
    telling &= bytes_moved >= bytes_moved[telling].max() / 2
    return BytesPerSecond(float(np.median(bytes_moved[telling] / moving_ns[telling])) * 1e9)


def steps(calls: HostCalls) -> Float64:
    """Messages that follow one another, however few bytes they have."""
    others = np.maximum(calls.members - 1.0, 0.0)
    rounds = 2.0 * np.ceil(np.log2(np.maximum(calls.members, 1)))
    found = np.where(np.isin(calls.kind, _REDUCED), 2.0 * LEAST_SEGMENTS * others, rounds)
    found = np.where(np.isin(calls.kind, _BLOCKS), 2.0 * others, found)
    return np.where(np.isin(calls.kind, _MESSAGE), 1.0 + _receiver_last(calls), found)


def latency_ns(calls: HostCalls, delay_ns: Nanos) -> Float64:
    """What the delay of the network adds: once per step, and in a long ring once per segment."""
    part_bytes = np.maximum(calls.size_bytes, 0) / np.maximum(calls.members, 1)
    segments = np.maximum(part_bytes / SEGMENT_BYTES, LEAST_SEGMENTS) / LEAST_SEGMENTS
    longer = np.where(np.isin(calls.kind, _REDUCED), segments, 1.0)
    return steps(calls) * longer * float(delay_ns)


def _receiver_last(calls: HostCalls) -> Bool:
    return np.zeros(len(calls.kind), bool) if calls.receiver_last is None else calls.receiver_last


def wire_bytes(calls: HostCalls) -> Float64:
    """Bytes that each member sends, headers included."""
    part = np.maximum(calls.members - 1.0, 0.0) / np.maximum(calls.members, 1)
    sent = np.where(np.isin(calls.kind, _REDUCED), 2.0 * part, 1.0)
    sent = np.where(np.isin(calls.kind, _BLOCKS), part, sent)
    return np.maximum(calls.size_bytes, 0) * sent * _overhead(calls)


def _overhead(calls: HostCalls) -> Float64:
    two = np.isin(calls.kind, _BLOCKS) & (calls.members == TWO)
    return np.where(two, BOTH_WAYS * WIRE_OVERHEAD, WIRE_OVERHEAD)


def sending_ns(calls: HostCalls) -> Float64:
    """What a core works to send and receive the bytes of each call."""
    message = np.isin(calls.kind, _MESSAGE)
    per_byte = np.where(message, CORE_NS_PER_BYTE_OF_MESSAGE, CORE_NS_PER_BYTE)
    return wire_bytes(calls) * per_byte


def _sized(calls: HostCalls) -> Bool:
    known: Bool = (calls.size_bytes > 0) & (calls.kind != CollectiveKind.UNKNOWN)
    return known & (calls.members > 1)
