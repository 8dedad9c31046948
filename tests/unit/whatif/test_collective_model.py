"""The collective model: limits, and what stays when the link changes."""

import csv
from pathlib import Path

import numpy as np
import pytest

from ingest.vocab import CollectiveKind
from whatif.models.bound import Bound
from whatif.models.collectives.calls import Calls, inside_one_node
from whatif.models.collectives.model import model_ns, scaled_ns
from whatif.models.fabric import Fabric

H100 = Fabric(architecture="hopper", scale_up_bytes_per_s=450e9)
A100 = Fabric(architecture="ampere", scale_up_bytes_per_s=300e9)
MIB = 1 << 20
TABLES = Path(__file__).parents[4] / "shared/facts/nccl_tables"
needs_tables = pytest.mark.skipif(
    not TABLES.is_dir(), reason="the public nccl-tests tables are not here"
)


def calls(
    size_bytes: int, *, kind: CollectiveKind = CollectiveKind.ALL_REDUCE, members: int = 8
) -> Calls:
    return inside_one_node(np.array([int(kind)]), np.array([size_bytes]), np.array([members]))


def time_ns(of: Calls) -> float:
    return float(model_ns(of, H100)[0])


def scaled(measured_ns: int, of: Calls, factor: float, bound: Bound = Bound.NOMINAL) -> int:
    measured = np.array([measured_ns], np.int64)
    new = Fabric(architecture="hopper", scale_up_bytes_per_s=450e9 * factor)
    return int(scaled_ns(measured, before=of, base=H100, after=of, new=new, bound=bound)[0])


@pytest.mark.parametrize("size_bytes", [-1, 0, 1024, MIB, 1 << 34])
def test_the_same_link_gives_the_same_time(size_bytes: int) -> None:
    assert scaled(123_457, calls(size_bytes), 1.0) == 123_457


def test_the_smallest_all_reduce_takes_the_measured_17_us() -> None:
    assert time_ns(calls(0)) == pytest.approx(1.13 * (6_600 + 14 * 600))


def test_more_bytes_never_take_less_time() -> None:
    times = [time_ns(calls(1 << power)) for power in range(36)]
    assert times == sorted(times)


def test_large_messages_scale_with_the_link_and_small_ones_stay() -> None:
    assert scaled(100_000_000, calls(1 << 34), 2.0) == pytest.approx(50_000_000, rel=0.01)
    assert scaled(22_000, calls(1024), 2.0) == pytest.approx(22_000, rel=0.01)


def test_without_a_size_the_measured_time_stands_for_it() -> None:
    size = 64 * MIB
    measured_ns = round(time_ns(calls(size)))
    known = scaled(measured_ns, calls(size), 2.0)
    assert scaled(measured_ns, calls(-1), 2.0) == pytest.approx(known, rel=1e-4)
    assert scaled(10_000, calls(-1), 2.0) == 10_000


@pytest.mark.parametrize("size_bytes", [64 * 1024, MIB, 64 * MIB, -1])
def test_the_bounds_enclose_the_nominal_answer(size_bytes: int) -> None:
    low, nominal, high = (
        scaled(200_000, calls(size_bytes), 4.0, bound)
        for bound in (Bound.LOW, Bound.NOMINAL, Bound.HIGH)
    )
    assert low < nominal < high < 200_000


def test_a_barrier_moves_no_bytes() -> None:
    assert scaled(30_000, calls(0, kind=CollectiveKind.BARRIER), 4.0) == 30_000
    assert scaled(30_000, calls(-1, kind=CollectiveKind.BARRIER), 4.0) == 30_000


def test_a_slower_link_takes_longer() -> None:
    assert scaled(1_000_000, calls(64 * MIB), 0.5) > 1_000_000
    assert scaled(1_000_000, calls(-1), 0.5) > 1_000_000


def test_a_call_alone_in_its_group_stays() -> None:
    assert scaled(5_000, calls(MIB, members=1), 2.0) == 5_000


def measured_us(table: str, system: str, operation: str = "all_reduce") -> dict[int, float]:
    with (TABLES / table).open(encoding="utf-8") as file:
        return {
            int(row["bytes"]): float(row["time_us"])
            for row in csv.DictReader(file)
            if row["system"].startswith(system)
            and row["collective"] == operation
            and row["placement"] == "out-of-place"
        }


@needs_tables
def test_from_h200_to_b200_the_model_beats_plain_scaling_by_the_link() -> None:
    table = "stas_ml_engineering_allreduce.csv"
    before, after = measured_us(table, "8x H200"), measured_us(table, "8x B200")
    model, plain = [], []
    for size, time_us in before.items():
        if size <= 16 * MIB:
            predicted_us = scaled(round(time_us * 1e3), calls(size), 2.0) / 1e3
            model.append(abs(predicted_us / after[size] - 1))
            plain.append(abs(time_us / 2 / after[size] - 1))
    assert len(model) >= 10
    assert np.median(model) < 0.3
    assert np.median(plain) > 0.5
