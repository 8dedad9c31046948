"""Exchanges of gradients that come in or change, against measured runs over gloo."""

import csv
from pathlib import Path

import pytest

from replay.calls.replayed import replay_run
from whatif.recorded import Recorded
from whatif.scenario import Scenario
from whatif.study import study
from whatif.transforms.replicas import Replicas
from whatif.transforms.zero import Zero

TRUTH = Path(__file__).parents[5] / "shared" / "groundtruth"
MOST_OFF_FRAC = 0.08
BUCKETS = "options: {bucket_bytes: 8388608}\n"


def _measured_ms(experiment: str, setting: str) -> float:
    with (TRUTH / "measured.csv").open() as lines:
        return next(
            float(row["step_ms_median"])
            for row in csv.DictReader(lines)
            if (row["experiment"], row["setting"]) == (experiment, setting)
        )


def _predicted_ms(
    base: tuple[str, str],
    change: Replicas | Zero,
    described: Path,
    net: str | None = None,
    delay: str | None = None,
) -> float:
    """The measured base times the predicted ratio."""
    if not TRUTH.is_dir():
        pytest.skip("measured runs are not here")
    described.write_text(BUCKETS)
    recorded = Recorded(net=net, net_latency=delay, describe=str(described))
    files = sorted((TRUTH / base[0] / base[1]).glob("rank[0-9].json.gz"))
    run = replay_run(files, recorded=recorded)
    made = study(run.graph, run.baseline, Scenario(base=recorded, transforms=(change,)))
    return _measured_ms(*base) * int(made.step_ns) / int(made.replayed_ns)


@pytest.mark.parametrize(
    ("replicas", "net", "delay", "setting"),
    [
        (2, "1Gbps", None, ("paced2", "1g")),
        (2, "1Gbps", "5ms", ("paced2", "1g-delay5ms")),
        (4, "500Mbps", None, ("paced4", "500m")),
    ],
)
def test_replicas_of_one_rank(
    replicas: int, net: str, delay: str | None, setting: tuple[str, str], tmp_path: Path
) -> None:
    """Sizes as autograd accumulates them, buckets of 8 MiB, the network as said.

    Delays pass for two of them at once.
    """
    found = _predicted_ms(
        ("paced1", "one-rank"), Replicas(replicas=replicas), tmp_path / "run.yaml", net, delay
    )
    assert found == pytest.approx(_measured_ms(*setting), rel=MOST_OFF_FRAC)


@pytest.mark.parametrize(
    ("base", "stage", "setting"),
    [(("ddp", "1g"), 3, ("fsdp", "1g")), (("fsdp", "1g"), 0, ("ddp", "1g"))],
)
def test_shards_come_and_go(
    base: tuple[str, str], stage: int, setting: tuple[str, str], tmp_path: Path
) -> None:
    """On the same link, whose rate the recorded transfers tell."""
    found = _predicted_ms(base, Zero(stage=stage), tmp_path / "run.yaml")
    assert found == pytest.approx(_measured_ms(*setting), rel=MOST_OFF_FRAC)
