"""What is said of the recorded machine: checked without a trace, and merged by who says it."""

import pytest

from ingest.errors import UsageError
from whatif.recorded import NOTHING_SAID, Recorded


@pytest.mark.parametrize(
    "said",
    [
        {"nvlink": "x2"},
        {"net": "x2"},
        {"pcie": "64"},
        {"net_latency": "5"},
        {"gpus_per_node": 0},
        {"gpus_per_node": 8, "topology": "nodes.yaml"},
    ],
)
def test_what_makes_no_sense_is_refused(said: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Recorded(**said)


def test_rates_and_times_have_units() -> None:
    said = Recorded(nvlink="900GBps", net="400Gbps", pcie="64GB/s", net_latency="3us")
    assert said.nvlink_bytes_per_s == 900e9
    assert said.net_bytes_per_s == 50e9
    assert said.pcie_bytes_per_s == 64e9
    assert said.net_latency_ns == 3_000


def test_what_is_said_last_counts_and_the_rest_stays() -> None:
    file = Recorded(gpu="a100", net="200Gbps", topology="nodes.yaml")
    assert Recorded(gpu="h100").over(file) == Recorded(
        gpu="h100", net="200Gbps", topology="nodes.yaml"
    )
    assert Recorded(gpus_per_node=4).over(file) == Recorded(
        gpu="a100", net="200Gbps", gpus_per_node=4
    )
    assert NOTHING_SAID.over(file) == file


def test_flags_are_those_of_the_command_line() -> None:
    said = Recorded(gpu="H100", net_latency="3us", gpus_per_node=8)
    assert said.flags == "--base-gpu H100 --base-net-latency 3us --gpus-per-node 8"
    assert NOTHING_SAID.flags == ""
