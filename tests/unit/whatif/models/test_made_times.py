"""Times of products, attention and moves by their sizes: closed forms, and a published table."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ingest.vocab import ElementType
from whatif.models.bound import Bound
from whatif.models.hardware import require
from whatif.models.kernels import attention, moved, products
from whatif.models.kernels.machine import Machine, machine_of
from whatif.models.kernels.works import element_type, ratio_bound, times_ns
from whatif.models.places import Part, Pass
from whatif.models.shape import Batch, Degrees, ModelShape, RunShape
from whatif.models.transformer.works import works_of

TABLE = Path(__file__).parents[5] / "shared/facts/gemm_tables/simumax_a100_b200_bf16_efficiency.csv"
GPT = RunShape(
    model=ModelShape(layers=4, hidden=4096, heads=32, ffn=16384, vocab=51200),
    batch=Batch(samples=2, sequence=2048),
)


@pytest.fixture
def a100() -> Machine:
    return machine_of(require("A100 SXM4 80 GB"))


def product_ns(m: float, n: float, k: float, machine: Machine, batch: float = 1.0) -> float:
    return float(products.time_ns(products.one(m, n, k, batch), machine)[0])


def test_a_large_product_takes_its_flops_at_the_reached_rate(a100: Machine) -> None:
    size = 16384
    reached = 2 * size**3 / product_ns(size, size, size, a100) / 312e3
    assert reached == pytest.approx(a100.shares.of("ampere", products.Share.MATMUL).value, rel=0.03)


def test_a_tile_more_than_a_wave_costs_far_more_than_its_part(a100: Machine) -> None:
    # 108 multiprocessors, tiles of 256 x 128: 12 x 9 of them fill one wave.
    full = product_ns(12 * 256, 9 * 128, 8192, a100)
    more = product_ns(12 * 256, 9 * 128, 8192, a100, batch=1.01)
    assert 1.2 < more / full <= 1.5


def test_a_thin_product_is_bound_by_its_weights(a100: Machine) -> None:
    share = a100.shares.of("ampere", products.Share.MEMORY).value
    weights = 2 * 8192 * 8192 / (a100.memory_bytes_per_s * share) * 1e9
    assert product_ns(1, 8192, 8192, a100) == pytest.approx(weights + a100.floor_ns, rel=0.01)


def test_nothing_is_shorter_than_an_empty_kernel(a100: Machine) -> None:
    assert product_ns(1, 1, 1, a100) >= a100.floor_ns
    assert moved.time_ns(0.0, a100) == a100.floor_ns


def test_a_large_move_takes_its_bytes_at_the_reached_rate(a100: Machine) -> None:
    rate = a100.memory_bytes_per_s * a100.shares.of("ampere", moved.Share.MEMORY).value
    assert float(moved.time_ns(8e9, a100)) == pytest.approx(8e9 / rate * 1e9, rel=0.002)


def cores(queries: float, *, causal: bool, backward: bool = False) -> attention.Cores:
    flops = 4 * queries**2 * 128 * 64 * (0.5 if causal else 1.0) * (2.5 if backward else 1.0)
    one = np.ones(1)
    return attention.Cores(
        queries=one * queries,
        keys=one * queries,
        width=one * 128,
        batch=one * 64,
        flops=one * flops,
        bytes=np.zeros(1),
        causal=np.array([causal]),
        backward=np.array([backward]),
    )


def test_a_mask_halves_long_attention(a100: Machine) -> None:
    whole = attention.time_ns(cores(65_536, causal=False), a100)[0]
    assert attention.time_ns(cores(65_536, causal=True), a100)[0] / whole == pytest.approx(
        0.5, rel=0.01
    )


def test_backward_of_attention_is_its_flops_at_a_lower_rate(a100: Machine) -> None:
    forward = attention.time_ns(cores(65_536, causal=True), a100)[0]
    backward = attention.time_ns(cores(65_536, causal=True, backward=True), a100)[0]
    share = attention.FORWARD_SHARE / attention.BACKWARD_SHARE
    assert backward / forward == pytest.approx(2.5 * share, rel=0.001)


def test_rows_of_a_layer_have_times_in_order_of_their_bounds(a100: Machine) -> None:
    rows = works_of(GPT, Part.LAYER, Pass.BACKWARD)
    low, nominal, high = (
        times_ns(rows, a100, bound=bound) for bound in (Bound.LOW, Bound.NOMINAL, Bound.HIGH)
    )
    assert (low < nominal).all()
    assert (nominal < high).all()


def test_dividing_a_layer_by_two_takes_less_but_more_than_half(a100: Machine) -> None:
    halved = RunShape(model=GPT.model, batch=GPT.batch, degrees=Degrees(tp=2, sp=True))
    whole = times_ns(works_of(GPT, Part.LAYER, Pass.FORWARD), a100).sum()
    half = times_ns(works_of(halved, Part.LAYER, Pass.FORWARD), a100).sum()
    assert 0.5 < half / whole < 0.65


def test_the_ratio_of_equals_is_without_doubt() -> None:
    ratios = np.array([1.0, 0.5])
    low, high = ratio_bound(ratios, Bound.LOW), ratio_bound(ratios, Bound.HIGH)
    assert low[0] == high[0] == 1.0
    assert low[1] < 0.5 < high[1]
    assert ratio_bound(ratios, Bound.NOMINAL) == pytest.approx(ratios)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("bf16", ElementType.BF16), ("fp8", ElementType.FP8), ("odd", ElementType.BF16)],
)
def test_types_are_named_as_people_write_them(name: str, expected: ElementType) -> None:
    assert element_type(name) is expected


def table_rows(device: str) -> Iterator[dict[str, str]]:
    if not TABLE.exists():
        pytest.skip("the table of published products is not beside the checkout")
    with TABLE.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["gpu"].startswith(device) and row["op"] == "matmul":
                yield row


@pytest.mark.parametrize(
    ("device", "name", "median", "p90"),
    [("A100", "A100 PCIe", 0.05, 0.15), ("B200", "B200", 0.13, 0.50)],
)
def test_ratios_of_products_are_as_measured(
    device: str, name: str, median: float, p90: float
) -> None:
    rows = list(table_rows(device))
    m, n, k, rate = (
        np.array([float(row[field]) for row in rows])
        for field in ("m", "n", "k", "achieved_tflops")
    )
    one = np.ones(len(rows))
    made = products.time_ns(
        products.Products(m=m, n=n, k=k, batch=one, bytes=one * math.nan),
        machine_of(require(name)),
    )
    error = np.log(made / (2 * m * n * k / rate))
    pairs = np.abs(error[:, None] - error[None, :])[np.triu_indices(len(error), 1)]
    assert np.exp(np.median(pairs)) - 1 < median
    assert np.exp(np.percentile(pairs, 90)) - 1 < p90
