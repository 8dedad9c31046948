"""The model of collectives on the host: limits, laws, and the table that was measured."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.units import BytesPerSecond, Nanos
from ingest.vocab import CollectiveKind
from whatif.models import gloo
from whatif.models.bound import Bound
from whatif.models.gloo import HostCalls, inferred_rate, latency_ns, scaled_ns, steps, wire_bytes

GBIT = BytesPerSecond(1e9 / 8)
MS = 1_000_000
MB = 1_000_000
TABLE = Path(__file__).parents[4] / "shared/groundtruth/calibration.csv"
needs_table = pytest.mark.skipif(
    not TABLE.is_file(), reason="the measured collectives are not here"
)
EXCHANGED = (CollectiveKind.ALL_GATHER, CollectiveKind.ALL_TO_ALL)
KINDS = {
    "all_reduce": CollectiveKind.ALL_REDUCE,
    "all_gather": CollectiveKind.ALL_GATHER,
    "reduce_scatter": CollectiveKind.REDUCE_SCATTER,
    "ping_pong": CollectiveKind.SEND_RECV,
}


def calls(
    *sizes: int, kind: CollectiveKind = CollectiveKind.ALL_REDUCE, members: int = 2
) -> HostCalls:
    return HostCalls(
        kind=np.full(len(sizes), int(kind)),
        size_bytes=np.array(sizes, np.int64),
        members=np.full(len(sizes), members),
    )


def at(measured_ms: float, of: HostCalls, **network: object) -> float:
    """Milliseconds of the first call on another network."""
    measured = np.full(len(of.kind), round(measured_ms * MS))
    return float(scaled_ns(measured, of, **network)[0]) / MS


@pytest.mark.parametrize("size_bytes", [-1, 0, 4096, 12 * MB])
@pytest.mark.parametrize("kind", list(CollectiveKind))
def test_the_same_network_gives_the_same_time(size_bytes: int, kind: CollectiveKind) -> None:
    of = calls(size_bytes, kind=kind)
    assert at(7.654321, of, base_rate_bytes_per_s=GBIT, new_rate_bytes_per_s=GBIT) == 7.654321
    assert at(7.654321, of, factor=1.0) == 7.654321
    assert at(7.654321, of, base_delay_ns=Nanos(MS), new_delay_ns=Nanos(MS)) == 7.654321


def test_half_the_rate_doubles_the_bytes_and_not_the_fixed_cost() -> None:
    # Four steps of 0.1 ms, and 100 ms of bytes.
    assert at(100.4, calls(12 * MB), base_rate_bytes_per_s=GBIT, factor=0.5) == pytest.approx(200.4)


def test_no_link_is_faster_than_a_core_sends() -> None:
    wire = 12 * MB * gloo.WIRE_OVERHEAD
    at_once = at(101.2, calls(12 * MB), base_rate_bytes_per_s=GBIT, factor=1000)
    assert at_once == pytest.approx(0.4 + wire * gloo.CORE_NS_PER_BYTE / MS, rel=0.01)


def test_where_a_core_binds_a_faster_link_changes_nothing() -> None:
    of, ten = calls(12 * MB), BytesPerSecond(10 * GBIT)
    assert at(13.0, of, base_rate_bytes_per_s=ten, factor=10) == 13.0


def test_a_delay_comes_once_per_step_and_in_long_rings_per_segment() -> None:
    five = Nanos(5 * MS)
    assert latency_ns(calls(4096), five)[0] == 20 * MS
    assert latency_ns(calls(16 << 20), five)[0] == 80 * MS
    assert latency_ns(calls(16 << 20, kind=CollectiveKind.ALL_GATHER), five)[0] == 10 * MS
    assert at(101.2, calls(4096), new_delay_ns=five) == pytest.approx(121.2)


def test_a_receiver_that_comes_last_adds_a_word_to_the_sender() -> None:
    message = calls(4096, 4096, kind=CollectiveKind.SEND_RECV)
    late = HostCalls(
        kind=message.kind,
        size_bytes=message.size_bytes,
        members=message.members,
        receiver_last=np.array([False, True]),
    )
    assert steps(late).tolist() == [1, 2]


def test_ring_steps_and_bytes_follow_the_members() -> None:
    assert steps(calls(MB, members=4))[0] == 12
    four = calls(MB, kind=CollectiveKind.ALL_GATHER, members=4)
    assert steps(four)[0] == 6
    assert wire_bytes(four)[0] == pytest.approx(0.75 * MB * gloo.WIRE_OVERHEAD)
    assert wire_bytes(calls(MB, members=4))[0] == pytest.approx(1.5 * MB * gloo.WIRE_OVERHEAD)


def test_the_rate_is_read_off_the_large_calls() -> None:
    of = calls(4096, 12 * MB, 12 * MB)
    alone = np.array([0.4, 101.2, 101.2]) * MS
    rate = inferred_rate(alone.astype(np.int64), of)
    assert rate == pytest.approx(GBIT, rel=0.01)
    assert inferred_rate(alone.astype(np.int64), calls(-1, -1, -1)) is None


def test_a_rate_without_any_base_changes_nothing() -> None:
    assert at(5.0, calls(-1), new_rate_bytes_per_s=GBIT) == 5.0


def test_an_absolute_rate_needs_no_base_where_the_calls_tell_it() -> None:
    two = BytesPerSecond(2 * GBIT)
    given_base = at(101.2, calls(12 * MB), base_rate_bytes_per_s=GBIT, new_rate_bytes_per_s=two)
    assert at(101.2, calls(12 * MB), new_rate_bytes_per_s=two) == pytest.approx(
        given_base, rel=0.01
    )


def test_what_held_one_call_up_is_not_multiplied() -> None:
    of = calls(*[12 * MB] * 5)
    measured = np.array([101, 101, 101, 101, 151]) * MS
    slower = scaled_ns(measured, of, base_rate_bytes_per_s=GBIT, factor=0.5)
    assert slower[4] - slower[0] == 50 * MS


sizes = st.integers(1, 1 << 30)
rates = st.floats(0.01, 400)
measured_times = st.floats(0.001, 10_000)
kinds = st.sampled_from(list(CollectiveKind))
bounds = st.sampled_from(list(Bound))


@dataclass(frozen=True)
class Case:
    of: HostCalls
    measured_ms: float
    base_gbit: float
    bound: Bound

    def on(self, gbit: float, delay_ms: float = 0.0) -> float:
        return at(
            self.measured_ms,
            self.of,
            base_rate_bytes_per_s=BytesPerSecond(self.base_gbit * GBIT),
            new_rate_bytes_per_s=BytesPerSecond(gbit * GBIT),
            new_delay_ns=Nanos(round(delay_ms * MS)),
            bound=self.bound,
        )


cases = st.builds(
    Case,
    st.builds(lambda size, kind, members: calls(size, kind=kind, members=members), sizes, kinds,
              st.integers(1, 64)),
    measured_times,
    rates,
    bounds,
)  # fmt: skip


@given(cases, rates, rates)
def test_a_faster_link_takes_no_longer(case: Case, one: float, other: float) -> None:
    slow, fast = sorted((one, other))
    assert case.on(fast) <= case.on(slow) + 1e-6


@given(cases, rates, st.floats(0, 100), st.floats(0, 100))
def test_a_longer_delay_is_no_shorter(case: Case, gbit: float, one: float, other: float) -> None:
    short, long = sorted((one, other))
    assert case.on(gbit, short) <= case.on(gbit, long)


@given(cases, st.floats(0.01, 0.99))
def test_each_byte_takes_at_least_what_a_slower_rate_says(case: Case, factor: float) -> None:
    exchanged = case.of.members[0] == 2 and case.of.kind[0] in EXCHANGED
    payload = wire_bytes(case.of)[0] / gloo.WIRE_OVERHEAD / (gloo.BOTH_WAYS if exchanged else 1)
    core_binds = gloo.CORE_NS_PER_BYTE * gloo.CORE_SHARE[case.bound] > 8 / case.base_gbit
    barrier_or_unknown = case.of.kind[0] in (CollectiveKind.BARRIER, CollectiveKind.UNKNOWN)
    if core_binds or barrier_or_unknown or case.of.members[0] < 2:
        return
    longer_ms = payload * 8 / (case.base_gbit * 1e9) * (1 / factor - 1) * 1e3
    assert case.on(case.base_gbit * factor) - case.measured_ms >= longer_ms * (1 - 1e-9) - 2e-6


def measured_alone() -> dict[tuple[str, int, int], dict[tuple[float, float], float]]:
    """Milliseconds by (operation, bytes, ranks) and (rate in Mbit/s, delay in ms)."""
    found: dict[tuple[str, int, int], dict[tuple[float, float], float]] = {}
    with TABLE.open(newline="") as stream:
        for row in csv.DictReader(stream):
            if row["rate_mbit"] == "unlimited":
                continue
            key = (row["operation"], int(row["bytes"]), int(row["ranks"]))
            network = (float(row["rate_mbit"]), float(row["delay_ms"]))
            found.setdefault(key, {})[network] = float(row["ms_median"])
    return found


@needs_table
def test_every_measured_network_is_predicted_from_every_other() -> None:
    errors = []
    for (operation, size, ranks), times in measured_alone().items():
        of = calls(size, kind=KINDS[operation], members=ranks)
        for (base_mbit, base_ms), base_time in times.items():
            for (mbit, delay_ms), time in times.items():
                if (mbit, delay_ms) == (base_mbit, base_ms) or size < MB:
                    continue
                predicted = at(
                    base_time,
                    of,
                    base_rate_bytes_per_s=BytesPerSecond(base_mbit / 1000 * GBIT),
                    new_rate_bytes_per_s=BytesPerSecond(mbit / 1000 * GBIT),
                    base_delay_ns=Nanos(round(base_ms * MS)),
                    new_delay_ns=Nanos(round(delay_ms * MS)),
                )
                errors.append(abs(predicted / time - 1))
    assert len(errors) > 500
    assert np.median(errors) < 0.03
    assert np.percentile(errors, 90) < 0.12
