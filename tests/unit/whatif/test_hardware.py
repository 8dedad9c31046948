"""The catalog of accelerators."""

import pytest

from ingest.errors import ScenarioError
from whatif.models.hardware import catalog, find, require

PROFILER_NAMES = {
    "NVIDIA H100 80GB HBM3": 900e9,
    "NVIDIA H100": 900e9,
    "NVIDIA H200": 900e9,
    "NVIDIA B200": 1800e9,
    "NVIDIA GB200": 1800e9,
    "Tesla V100-SXM2-16GB": 300e9,
    "Tesla V100-SXM2-32GB": 300e9,
    "Tesla V100-DGXS-32GB": 300e9,
    "NVIDIA A100-SXM4-40GB": 600e9,
    "NVIDIA A100-SXM4-80GB": 600e9,
    "NVIDIA A100-PG509-200": 600e9,
    "AMD Instinct MI300X": 896e9,
    "AMD Instinct MI355X": 1071e9,
    "h100": 900e9,
    "A100": 600e9,
}


@pytest.mark.parametrize(("name", "bytes_per_s"), PROFILER_NAMES.items())
def test_a_name_of_the_profiler_has_the_vendors_rate(name: str, bytes_per_s: float) -> None:
    device = require(name)
    assert device.scale_up is not None
    assert device.scale_up.bytes_per_s.value == bytes_per_s


@pytest.mark.parametrize(
    ("name", "dtype", "flops_per_s"),
    [
        ("NVIDIA H100 80GB HBM3", "bf16", 989.5e12),
        ("NVIDIA A100-SXM4-80GB", "bf16", 312e12),
        ("Tesla V100-SXM2-16GB", "fp16", 125e12),
        ("AMD Instinct MI300X", "bf16", 1307.4e12),
    ],
)
def test_the_matrix_peak_is_dense_and_names_its_dtype(
    name: str, dtype: str, flops_per_s: float
) -> None:
    peak = require(name).matmul
    assert peak is not None
    assert (peak.dtype, peak.flops_per_s.value) == (dtype, flops_per_s)


def test_cards_without_a_link_have_no_rate() -> None:
    assert all(require(name).scale_up is None for name in ("NVIDIA L4", "NVIDIA L40S"))


def test_a_bridge_joins_fewer_devices_than_a_node_holds() -> None:
    bridged = require("NVIDIA H100 PCIe").scale_up
    assert bridged is not None
    assert bridged.joins == 2


def test_case_and_maker_do_not_matter() -> None:
    assert find("nvidia h100 80gb hbm3") is find("H100-80GB-HBM3") is find("H100")


def test_an_unknown_device_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(ScenarioError, match="H10O") as caught:
        require("H10O")
    assert "H100" in caught.value.hint
    assert caught.value.exit_code == 4
    assert find("H10O") is None


def test_every_number_has_a_page_and_a_date() -> None:
    devices = catalog().accelerators
    numbers = [device.scale_up.bytes_per_s for device in devices if device.scale_up]
    numbers += [device.matmul.flops_per_s for device in devices if device.matmul]
    assert numbers
    assert all(number.source.startswith("https://") for number in numbers)
    assert all(number.date.startswith("20") for number in numbers)
