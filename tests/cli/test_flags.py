"""What-ifs that come as words are those of the command line."""

import pytest

from ingest.errors import UsageError
from replay.cli.flags import scenario_of_words
from replay.cli.stack import Typed
from replay.cli.what_ifs import WHAT_IFS, scenario_of

VALUES = {
    "gpu": "H200", "precision": "bf16", "nvlink": "900GBps", "pcie": "x2", "net": "400Gbps",
    "net_latency": "+20us", "wan": "100Gbps,20ms", "in_network": "on", "collective_algo": "ring",
    "bucket_mb": "25", "compress": "topk:0.01", "network_scale": "2", "scale": "class:gemm=0.5",
    "remove": "name:*a b*", "host_scale": "1.5", "fuse": "class:elementwise", "jitter": "20@2",
    "dp": "16", "tp": "2", "pp": "2", "virtual_stages": "2", "schedule": "gpipe", "zero": "3:8",
    "ep": "4", "imbalance": "1.5", "capacity": "1.25", "cp": "2:all_to_all", "micro_batches": "4",
    "grad_accum": "8", "batch_scale": "2", "seq_scale": "0.5", "layers": "12",
    "recompute": "full", "sync_every": "4",
}  # fmt: skip


@pytest.mark.parametrize("name", WHAT_IFS)
def test_words_say_what_the_option_says(name: str) -> None:
    option, value = f"--{name.replace('_', '-')}", VALUES.get(name)
    expected = scenario_of([Typed(name, value or "True")])
    words = [option] if value is None else [option, value]
    assert scenario_of_words(words) == expected
    if value is not None:
        assert scenario_of_words([f"{option}={value}"]) == expected


def test_words_stack_in_their_order() -> None:
    found = scenario_of_words(["--nvlink", "x2", "--no-overlap", "--nvlink", "x3"])
    assert [change.flag for change in found.transforms] == [
        "--nvlink x2", "--no-overlap", "--nvlink x3",
    ]  # fmt: skip
    assert scenario_of_words([]).transforms == ()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["nvlink", "x2"], "`nvlink` is no what-if"),
        (["--nvlnk", "x2"], "is no what-if"),
        (["--scenario", "a.yaml"], "is no what-if"),
        (["--save-scenario", "a.yaml"], "is no what-if"),
        (["--topology", "a.yaml"], "is no what-if"),
        (["--hardware", "a.yaml"], "is no what-if"),
        (["--base-gpu", "H100"], "is no what-if"),
        (["--nvlink"], "has no value"),
        (["--nvlink", "--cuda-graphs"], "has no value"),
        (["--nvlink="], "has no value"),
        (["--cuda-graphs=yes"], "takes no value"),
        (["--cuda-graphs", "yes"], "`yes` is no what-if"),
    ],
)
def test_what_is_no_what_if_is_refused(words: list[str], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        scenario_of_words(words)
