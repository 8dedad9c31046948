"""Really measured runs over gloo: what other networks, buckets and hosts make of them."""

import csv
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from ingest.pipeline import IngestOptions, open_run
from replay.graph.arrays import TaskGraph
from replay.graph.build import build
from replay.results.fidelity import Baseline, baseline
from whatif.recorded import Recorded
from whatif.scenario import Scenario
from whatif.study import study
from whatif.transforms.bucket import BucketMb
from whatif.transforms.net import Net, NetLatency
from whatif.transforms.registry import Transform
from whatif.transforms.scale import Scale

RUNS = Path(__file__).parents[3] / "shared/groundtruth"
pytestmark = pytest.mark.skipif(not RUNS.is_dir(), reason="the measured runs are not here")


@cache
def recorded(name: str) -> tuple[TaskGraph, Baseline]:
    files = sorted((RUNS / name).glob("rank?.json.gz"))
    with open_run(files, options=IngestOptions(cache=False)) as run:
        built = build(run.store)
    return built.graph, baseline(built.graph, built.facts)


@cache
def timed_ms() -> dict[str, float]:
    with (RUNS / "measured.csv").open(newline="") as stream:
        return {
            f"{row['experiment']}/{row['setting']}": float(row["step_ms_median"])
            for row in csv.DictReader(stream)
        }


def predicted(name: str, *changes: Transform, base: Recorded) -> float:
    """Step over that of the unchanged run."""
    graph, start = recorded(name)
    answer = study(graph, start, Scenario(base=base, transforms=changes))
    return answer.step_ns / answer.replayed_ns


ONE = Recorded(net="1Gbps")
NOTHING_SAID = Recorded()


@pytest.mark.parametrize(
    ("base", "other", "change", "said"),
    [
        ("paced2/1g", "paced2/2g", Net(rate="2Gbps"), ONE),
        ("paced2/2g", "paced2/1g", Net(rate="1Gbps"), Recorded(net="2Gbps")),
        ("paced2/1g", "paced2/500m", Net(rate="500Mbps"), NOTHING_SAID),
        ("paced2/1g", "paced2/1g-delay5ms", NetLatency(time="5ms"), ONE),
        ("paced2/1g", "paced2/1g-bucket2", BucketMb(size_mib=2), NOTHING_SAID),
        ("paced2/1g", "paced2/1g-slow2x", Scale(where="class:host", factor=2), NOTHING_SAID),
        ("paced4/500m", "paced4/1g", Net(rate="1Gbps"), NOTHING_SAID),
        ("fsdp/1g", "fsdp/2g", Net(rate="2Gbps"), ONE),
        ("ddp/2g", "ddp/500m", Net(rate="500Mbps"), Recorded(net="2Gbps")),
        ("pp/1g", "pp/50m", Net(rate="50Mbps"), ONE),
    ],
)
def test_other_settings_are_predicted_within_five_percent(
    base: str, other: str, change: Transform, said: Recorded
) -> None:
    step_ms = predicted(base, change, base=said) * timed_ms()[base]
    assert step_ms == pytest.approx(timed_ms()[other], rel=0.05)


@pytest.mark.parametrize("name", ["ddp/1g-repeat2", "paced2/1g", "pp/1g", "fsdp/1g"])
def test_a_faster_network_never_makes_a_run_longer(name: str) -> None:
    rates = ("100Mbps", "500Mbps", "900Mbps", "1Gbps", "1.1Gbps", "2Gbps", "5Gbps", "100Gbps")
    steps = [predicted(name, Net(rate=rate), base=ONE) for rate in rates]
    assert all(slow >= fast * (1 - 1e-3) for slow, fast in pairwise(steps))
    assert steps[rates.index("1Gbps")] == 1.0
