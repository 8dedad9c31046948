"""What holds for every call on every fabric: order, floors, identity, no jumps."""

from dataclasses import replace
from math import log

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ingest.vocab import CollectiveKind
from whatif.models.bound import Bound
from whatif.models.collectives.calls import Calls
from whatif.models.collectives.curves import curves_of
from whatif.models.collectives.model import model_ns, scaled_ns
from whatif.models.fabric import Algorithm, Fabric, Factors, Shape

KINDS = [kind for kind in CollectiveKind if kind is not CollectiveKind.UNKNOWN]
RATES = ("scale_up_bytes_per_s", "pcie_bytes_per_s", "nic_bytes_per_s", "wan_bytes_per_s")
LATENCIES = ("net_latency_ns", "wan_latency_ns")
ROUNDING = 1e-9
ORDER = (Bound.LOW, Bound.NOMINAL, Bound.HIGH)
few = settings(max_examples=30, deadline=None)


@st.composite
def situations(draw: st.DrawFn, shapes: tuple[Shape, ...] = tuple(Shape)) -> tuple[Calls, Fabric]:
    members = draw(st.integers(2, 300))
    nodes = draw(st.integers(1, members))
    least = -(-members // nodes)
    calls = one_call(
        kind=draw(st.sampled_from(KINDS)),
        size_bytes=draw(st.integers(0, 1 << 36)),
        members=members,
        nodes=nodes,
        largest_node=draw(st.integers(least, members - nodes + 1)),
        sites=draw(st.integers(1, min(nodes, 4))),
    )
    rates = st.floats(1e8, 2e12)
    fabric = Fabric(
        architecture=draw(st.sampled_from([None, "volta", "ampere", "hopper", "blackwell"])),
        scale_up_shape=draw(st.sampled_from(shapes)),
        net_latency_ns=draw(st.floats(0, 1e6)),
        wan_latency_ns=draw(st.floats(0, 1e8)),
        in_network=draw(st.sampled_from([None, True, False])),
        algorithm=draw(st.none() | st.sampled_from(list(Algorithm))),
        **{name: draw(rates) for name in RATES},
    )
    return calls, fabric


def one_call(**columns: int) -> Calls:
    return Calls(**{name: np.array([value], np.int64) for name, value in columns.items()})


def time_ns(calls: Calls, fabric: Fabric) -> float:
    return float(model_ns(calls, fabric)[0])


def scaled(
    measured_ns: int, calls: Calls, base: Fabric, new: Fabric, bound: Bound = Bound.NOMINAL
) -> int:
    measured = np.array([measured_ns], np.int64)
    return int(scaled_ns(measured, before=calls, base=base, after=calls, new=new, bound=bound)[0])


def with_size(calls: Calls, size_bytes: int) -> Calls:
    return replace(calls, size_bytes=np.array([size_bytes], np.int64))


@few
@given(situations(), st.sampled_from(RATES), st.floats(1.0, 100.0))
def test_a_faster_link_never_takes_longer(
    situation: tuple[Calls, Fabric], link: str, factor: float
) -> None:
    calls, fabric = situation
    faster = replace(fabric, **{link: getattr(fabric, link) * factor})
    assert time_ns(calls, faster) <= time_ns(calls, fabric) * (1 + ROUNDING)


@few
@given(situations(), st.sampled_from(LATENCIES), st.floats(0.0, 1e7))
def test_more_latency_never_takes_less_time(
    situation: tuple[Calls, Fabric], which: str, more_ns: float
) -> None:
    calls, fabric = situation
    later = replace(fabric, **{which: getattr(fabric, which) + more_ns})
    assert time_ns(calls, later) >= time_ns(calls, fabric) * (1 - ROUNDING)


@few
@given(situations(), st.integers(0, 1 << 36))
def test_more_bytes_never_take_less_time(situation: tuple[Calls, Fabric], more: int) -> None:
    calls, fabric = situation
    larger = with_size(calls, int(calls.size_bytes[0]) + more)
    assert time_ns(larger, fabric) >= time_ns(calls, fabric) * (1 - ROUNDING)


@few
@given(situations(), st.floats(1e-4, 0.01))
def test_no_jump_where_the_algorithm_changes(situation: tuple[Calls, Fabric], step: float) -> None:
    calls, fabric = situation
    assume(calls.size_bytes[0] > 1e6)
    larger = with_size(calls, round(int(calls.size_bytes[0]) * (1 + step)))
    growth = log(time_ns(larger, fabric) / time_ns(calls, fabric))
    assert growth <= 1.2 * log(larger.size_bytes[0] / calls.size_bytes[0]) + ROUNDING


@few
@given(situations(), st.sampled_from(RATES), st.floats(1e-4, 0.01))
def test_no_jump_where_a_rate_changes_the_algorithm(
    situation: tuple[Calls, Fabric], link: str, step: float
) -> None:
    calls, fabric = situation
    faster = replace(fabric, **{link: getattr(fabric, link) * (1 + step)})
    assert time_ns(calls, fabric) / time_ns(calls, faster) <= 1 + 1.2 * step


@few
@given(situations(), st.integers(1, 10**10), st.sampled_from(list(Bound)))
def test_nothing_changes_where_nothing_is_changed(
    situation: tuple[Calls, Fabric], measured_ns: int, bound: Bound
) -> None:
    calls, fabric = situation
    assert scaled(measured_ns, calls, fabric, fabric, bound) == measured_ns


@few
@given(situations(), st.integers(1000, 10**10), st.floats(0.1, 10), st.floats(0.1, 10))
def test_the_range_holds_the_answer(
    situation: tuple[Calls, Fabric], measured_ns: int, nvlink: float, net: float
) -> None:
    calls, base = situation
    new = replace(
        base,
        scale_up_bytes_per_s=base.scale_up_bytes_per_s * nvlink,
        nic_bytes_per_s=base.nic_bytes_per_s * net,
    )
    low, nominal, high = (
        scaled(measured_ns, calls, base, new, bound)
        for bound in (Bound.LOW, Bound.NOMINAL, Bound.HIGH)
    )
    assert low <= nominal <= high


@few
@given(
    situation=situations(),
    sized=st.booleans(),
    measured_ns=st.integers(1000, 10**9),
    one=st.floats(0.01, 100),
    other=st.floats(0.01, 100),
)
def test_what_is_not_known_moves_with_the_links_and_no_more_than_they(
    situation: tuple[Calls, Fabric], *, sized: bool, measured_ns: int, one: float, other: float
) -> None:
    """Size, rates or both are not known: identity, monotony, and a ratio within the factor."""
    calls, known = situation
    calls = calls if sized else with_size(calls, -1)
    base = replace(known, **dict.fromkeys(RATES))
    slow, fast = (
        replace(base, factors=Factors(scale_up=factor, pcie=factor, nic=factor, wan=factor))
        for factor in sorted((one, other))
    )
    for bound in Bound:
        assert scaled(measured_ns, calls, base, base, bound) == measured_ns
        there = [scaled(measured_ns, calls, base, new, bound) for new in (slow, fast)]
        assert there[1] <= there[0] + 1
    for new, factor in zip((slow, fast), sorted((one, other)), strict=True):
        ends = [scaled(measured_ns, calls, base, new, bound) for bound in ORDER]
        assert ends == sorted(ends)
        least, most = sorted((measured_ns, measured_ns / factor))
        assert least * (1 - 1e-3) - 1 <= ends[1] <= most * (1 + 1e-3) + 1


@few
@given(situations(), st.integers(10**6, 10**9), st.sampled_from(RATES), st.floats(0.1, 10))
def test_there_and_back_is_where_one_was(
    situation: tuple[Calls, Fabric], measured_ns: int, link: str, factor: float
) -> None:
    calls, base = situation
    measured_ns = max(measured_ns, round(3 * time_ns(calls, base)))
    new = replace(base, **{link: getattr(base, link) * factor})
    there = scaled(measured_ns, calls, base, new)
    back = scaled(there, calls, new, base)
    assert abs(back - measured_ns) <= 1 + 2 * measured_ns / max(there, 1)


@few
@given(situations((Shape.SWITCH,)))
def test_a_time_beats_no_link(situation: tuple[Calls, Fabric]) -> None:
    calls, fabric = situation
    assert time_ns(calls, fabric) >= least_ns(calls, fabric)


@few
@given(
    situations((Shape.SWITCH,)), st.integers(1, 10**9), st.floats(0.01, 100), st.floats(0.01, 100)
)
def test_a_moved_time_beats_no_link_either(
    situation: tuple[Calls, Fabric], excess_ns: int, nvlink: float, net: float
) -> None:
    calls, base = situation
    new = replace(
        base,
        scale_up_bytes_per_s=base.scale_up_bytes_per_s * nvlink,
        nic_bytes_per_s=base.nic_bytes_per_s * net,
    )
    measured_ns = round(time_ns(calls, base)) + excess_ns
    for bound in Bound:
        assert scaled(measured_ns, calls, base, new, bound) >= least_ns(calls, new) - 1


def least_ns(calls: Calls, fabric: Fabric) -> float:
    """Time of the bytes that no algorithm can avoid, at the signalled rates."""
    kind, size, members, nodes, largest = (
        int(getattr(calls, name)[0])
        for name in ("kind", "size_bytes", "members", "nodes", "largest_node")
    )
    up, nic = fabric.scale_up_bytes_per_s, fabric.nic_bytes_per_s
    assert up is not None
    assert nic is not None
    size = 0 if kind == CollectiveKind.BARRIER else size
    if nodes > 1:
        return size * 1e9 / nic * beyond_node(kind, members, nodes, largest)
    if kind in (CollectiveKind.ALL_REDUCE, CollectiveKind.BARRIER):
        reduces = fabric.in_network is not False
        sent = (1 + 1 / members) if reduces else 2 * (members - 1) / members
        sent = min(sent, 2 * (members - 1) / members)
        return sent * size * 1e9 / up
    part = (largest - 1) / members if kind in OWN else 1.0
    return part * size * 1e9 / up


def beyond_node(kind: int, members: int, nodes: int, largest: int) -> float:
    """Part of the size that one NIC must send, the NICs of the fullest node together."""
    if kind in (CollectiveKind.ALL_TO_ALL, CollectiveKind.GATHER, CollectiveKind.SCATTER):
        return (members - largest) / members
    if kind in (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER):
        return (members - largest) / members / largest
    if kind in (CollectiveKind.SEND_RECV, CollectiveKind.SEND, CollectiveKind.RECV):
        return 1.0
    return (nodes - 1) / nodes / largest


OWN = (
    CollectiveKind.ALL_GATHER,
    CollectiveKind.REDUCE_SCATTER,
    CollectiveKind.ALL_TO_ALL,
    CollectiveKind.GATHER,
    CollectiveKind.SCATTER,
)
"""Kinds of which a member keeps its own part."""


@few
@given(
    st.lists(st.integers(10, 34), min_size=2, max_size=6, unique=True),
    st.floats(1.1, 16.0),
    st.floats(1e-3, 0.1),
)
def test_along_a_curve_times_stay_between_the_same_and_pure_bytes(
    powers: list[int], factor: float, ns_per_byte: float
) -> None:
    sizes = np.repeat([1 << power for power in sorted(powers)], 3)
    measured = np.rint(20_000 + sizes * ns_per_byte + np.tile([0, 700, 900], len(powers)))
    zeros = np.zeros(len(sizes), np.int64)
    calls = Calls(
        kind=zeros + int(CollectiveKind.ALL_REDUCE),
        size_bytes=sizes,
        members=zeros + 8,
        nodes=zeros + 1,
        largest_node=zeros + 8,
        sites=zeros + 1,
    )
    base = Fabric(architecture="hopper", scale_up_bytes_per_s=450e9)
    new = replace(base, scale_up_bytes_per_s=450e9 * factor)
    curves = curves_of(calls.kind, zeros, zeros, sizes, measured.astype(np.int64))
    faster = scaled_ns(
        measured.astype(np.int64), before=calls, base=base, after=calls, new=new, curves=curves
    )
    assert (faster <= measured + 1).all()
    assert (faster >= measured / factor * 0.999 - 1).all()
