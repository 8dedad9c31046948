"""How well what-ifs about layout and batch predict measured runs, and whether they come back.

    python -m tests.bench.accuracy_layouts ../shared [--only WORD]

Pairs of `groundtruth` that differ in ranks, sharding, stages, tensor ranks or batch, each from
the traces of one setting to the measured step of the other. No figure is fitted to these steps,
but models were mended with `PAIRS` in view (`SEEN`); `UNSEEN` are pairs that nobody looked at
meanwhile.
"""

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from ingest.errors import ScenarioError
from ingest.pipeline import IngestOptions
from replay.calls.replayed import Replayed, replay_run
from tests.bench.tables import Table
from whatif.models.shape import Schedule
from whatif.recorded import Recorded
from whatif.scenario import Scenario
from whatif.study import study
from whatif.transforms.batch_scale import BatchScale
from whatif.transforms.micro_batches import MicroBatches
from whatif.transforms.pp import PipelineParallel
from whatif.transforms.registry import Transform
from whatif.transforms.replicas import Replicas
from whatif.transforms.schedule import PipelineSchedule
from whatif.transforms.tp import TensorParallel
from whatif.transforms.zero import Zero

NO_LIMIT = "100Gbps"
"""Said where a link has no limit: more than a core sends."""
BUCKETS = Path(__file__).with_name("ddp_8mb.yaml")
"""What is known of the program that is asked for (`measured.csv`, column bucket_cap_mb)."""
SMALL_BUCKETS = Path(__file__).with_name("ddp_2mb.yaml")
"""Of settings named `bucket2`."""
WIDE = 2.0
"""A range wider than this counts as a miss, wherever the truth lies."""
NETS = {
    "unlimited": NO_LIMIT, "10g": "10Gbps", "2g": "2Gbps", "1g": "1Gbps", "500m": "500Mbps",
    "50m": "50Mbps", "nosync": NO_LIMIT, "one-rank": NO_LIMIT,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """From the traces of one run to the step of another."""

    kind: str
    run: str
    other: str
    transforms: tuple[Transform, ...]
    ranks: int | None = None
    """So many of the recorded ranks are read; None: all."""
    is_described: bool = True
    """The buckets of the other program are told."""

    @property
    def flags(self) -> str:
        """As typed."""
        return " ".join(change.flag for change in self.transforms)

    @property
    def base(self) -> Recorded:
        """The network and the buckets of the other run."""
        setting = self.other.split("/")[1]
        delay = next((part[5:] for part in setting.split("-") if part.startswith("delay")), None)
        net = NETS.get(setting.split("-")[0], NO_LIMIT)
        return Recorded(net=net, net_latency=delay, describe=self._description)

    @property
    def _description(self) -> str | None:
        if not self.is_described or not self.other.startswith(("ddp", "paced")):
            return None
        return str(SMALL_BUCKETS if self.other.endswith("bucket2") else BUCKETS)


def _ranks() -> Iterator[Pair]:
    for rate in ("unlimited", "10g", "2g", "1g", "500m"):
        yield _pair("1 to 2 ranks", "paced1/one-rank", f"paced2/{rate}", Replicas(replicas=2))
    for rate in ("unlimited", "1g", "500m"):
        yield _pair("1 to 4 ranks", "paced1/one-rank", f"paced4/{rate}", Replicas(replicas=4))
        yield _pair("2 to 4 ranks", f"paced2/{rate}", f"paced4/{rate}", Replicas(replicas=4))
        yield _pair("4 to 2 ranks", f"paced4/{rate}", f"paced2/{rate}", Replicas(replicas=2))
        yield _pair("2 or 4 to 1", f"paced2/{rate}", "paced1/one-rank", Replicas(replicas=1))
    for rate in ("unlimited", "2g", "1g", "500m"):
        yield _pair("1 to 2 ranks", "ddp/one-rank", f"ddp/{rate}", Replicas(replicas=2))


def _sharding() -> Iterator[Pair]:
    for rate in ("unlimited", "2g", "1g", "1g-delay1ms"):
        yield _pair("DDP to FSDP", f"ddp/{rate}", f"fsdp/{rate}", Zero(stage=3))
        yield _pair("FSDP to DDP", f"fsdp/{rate}", f"ddp/{rate}", Zero(stage=0))


def _stages() -> Iterator[Pair]:
    two, cut = PipelineParallel(stages=2), MicroBatches(count=4)
    gpipe = PipelineSchedule(name=Schedule.GPIPE)
    for rate in ("unlimited", "1g", "1g-delay5ms", "50m"):
        yield _pair("1 to 2 stages", "ddp/nosync-batch4", f"pp/{rate}", cut, two, ranks=1)
        yield _pair("1 to 2 stages", "ddp/one-rank", f"pp/{rate}", BatchScale(factor=2), cut, two)
        yield _pair(
            "2 stages to 1",
            f"pp/{rate}",
            "ddp/nosync-batch4",
            PipelineParallel(stages=1),
            MicroBatches(count=1),
        )
    yield _pair("1 to 2 stages", "ddp/nosync-batch4", "pp-gpipe/1g", cut, two, gpipe, ranks=1)
    yield _pair("schedule", "pp/1g", "pp-gpipe/1g", gpipe)
    yield _pair("schedule", "pp-gpipe/1g", "pp/1g", PipelineSchedule(name=Schedule.ONE_F_ONE_B))


def _batch() -> Iterator[Pair]:
    for name in ("nosync", "unlimited", "1g"):
        yield _pair("batch x2", f"ddp/{name}", f"ddp/{name}-batch4", BatchScale(factor=2))
        yield _pair("batch / 2", f"ddp/{name}-batch4", f"ddp/{name}", BatchScale(factor=0.5))


def _tensor() -> Iterator[Pair]:
    for rate in ("unlimited", "1g", "500m"):
        yield _pair("1 to 2 tensor ranks", "ddp/one-rank", f"tp/{rate}", TensorParallel(degree=2))


def _pair(
    kind: str, run: str, other: str, *transforms: Transform, ranks: int | None = None
) -> Pair:
    return Pair(kind=kind, run=run, other=other, transforms=transforms, ranks=ranks)


def _unseen() -> Iterator[Pair]:
    two, one = Replicas(replicas=2), Replicas(replicas=1)
    for setting in ("1g-delay5ms", "1g-delay1ms", "1g-bucket2"):
        yield _pair("unseen", "paced1/one-rank", f"paced2/{setting}", two)
    told = _pair("unseen", "paced1/one-rank", "paced2/1g", two)
    yield replace(told, is_described=False)
    yield _pair("unseen", "ddp/1g", "ddp/one-rank", one)
    yield _pair("unseen", "tp/1g", "ddp/one-rank", TensorParallel(degree=1))
    yield _pair("unseen", "fsdp/2g", "ddp/one-rank", Zero(stage=0), one)
    yield _pair(
        "unseen",
        "pp/1g",
        "ddp/one-rank",
        PipelineParallel(stages=1),
        MicroBatches(count=1),
        BatchScale(factor=0.5),
    )


PAIRS = (*_ranks(), *_sharding(), *_stages(), *_batch(), *_tensor())
UNSEEN = tuple(_unseen())
"""Asked only after all models were made; figures as they came."""
REPLICAS = ("2 to 4", "4 to 2", "2 or 4")
"""Kinds of pairs whose run has several replicas and gets another number of them."""
ASKED = "tensor"
"""Pairs whose kind holds this word are shown beside those that the median is asked of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One prediction beside the truth; times are of steps without the profiler."""

    pair: Pair
    base_ms: float
    true_ms: float
    predicted_ms: float
    low_ms: float
    high_ms: float

    @property
    def error_frac(self) -> float:
        """Signed."""
        return self.predicted_ms / self.true_ms - 1

    @property
    def unchanged_error_frac(self) -> float:
        """Of saying that nothing changes."""
        return self.base_ms / self.true_ms - 1

    @property
    def width(self) -> float:
        """High over low."""
        return self.high_ms / max(self.low_ms, 1e-9)

    @property
    def is_inside(self) -> bool:
        """The truth lies in a range that says something."""
        return self.low_ms <= self.true_ms <= self.high_ms and self.width <= WIDE


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A pair that the tool gives no answer to."""

    pair: Pair
    reason: str


def judge(
    shared: Path, only: str = "", pairs: Sequence[Pair] = PAIRS
) -> tuple[list[Judged], list[Refused]]:
    """Those pairs whose traces are there."""
    truth = shared / "groundtruth"
    with (truth / "measured.csv").open(encoding="utf-8", newline="") as stream:
        steps_ms = {
            f"{row['experiment']}/{row['setting']}": float(row["step_ms_median"])
            for row in csv.DictReader(stream)
        }
    answered, refused = [], []
    for pair in pairs:
        if only not in f"{pair.kind} {pair.run} {pair.other}" or pair.other not in steps_ms:
            continue
        files = tuple(sorted((truth / pair.run).glob("rank?.json.gz")))[: pair.ranks]
        if not files:
            continue
        try:
            found = _judged(pair, files, steps_ms)
        except ScenarioError as error:
            refused.append(Refused(pair=pair, reason=str(error)))
            told = f"refused: {error}"
        else:
            answered.append(found)
            told = f"{found.error_frac:+.1%} ({found.width:.2f})"
        sys.stderr.write(f"{pair.kind:<22}{pair.run:<20}{pair.other:<20}{pair.flags:<36}{told}\n")
    return answered, refused


def _judged(pair: Pair, files: tuple[Path, ...], steps_ms: dict[str, float]) -> Judged:
    run = _read(files)
    graph, base = run.on(pair.base)
    found = study(graph, base, Scenario(transforms=pair.transforms, base=pair.base))
    base_ms = steps_ms[pair.run]
    factor = base_ms / found.replayed_ns
    return Judged(
        pair=pair,
        base_ms=base_ms,
        true_ms=steps_ms[pair.other],
        predicted_ms=found.step_ns * factor,
        low_ms=found.low_ns * factor,
        high_ms=found.high_ns * factor,
    )


@cache
def _read(files: tuple[Path, ...]) -> Replayed:
    return replay_run(files, options=IngestOptions(cache=False))


WORDS = """\
Measured runs over gloo (one core and one throttled link per rank): the traces of one layout, the
measured step of another. `predicted` = measured base step x predicted / replayed. Given is what the
recorded run does not tell of the other: the network where it has none (`--base-net`), and DDP's
buckets of 8 MiB (`--describe`), as the program had them. Inside means inside a range no wider than
twice; what the tool refuses is listed below the table. Repeats of one `ddp` setting differ by 8 %,
of one `paced` setting by 1 %."""


SEEN = """\
**What was seen while building.** No figure was fitted to these steps, yet most rows are no test of
a model that had never met them. With the table above in view were
chosen: the rate of gloo's copies on the host (10 GB/s, four passes over the bytes), the rule that
the core binds where it is slower than the link, the half of an operator's time that is taken as its
own beside its kernels, and the rule for the latency of small kernels. Of other parts of this page:
the tile constants of matrix products with the A100 and the B200 tables in view; the bytes of
compiled losses, and how wide the range of torchtitan's memory is, with torchtitan's own figures in
view. What stays unseen is listed below."""
UNSEEN_WORDS = """\
Pairs that nobody looked at while building, asked as above once all was made. Since then one thing
was mended with the first of them in view (+14.6 % as it came, outside its range): of reductions
over gloo that are under way two at once, one's delays pass while the other's bytes move."""


def section(shared: Path) -> str:
    """Words and tables in Markdown."""
    rows, refused = judge(shared)
    lines = [WORDS, "", *_table(rows), "", *_summaries(rows), *map(_refusal, refused)]
    unseen, refused = judge(shared, pairs=UNSEEN)
    lines += ["", SEEN, "", UNSEEN_WORDS, "", *_table(unseen), ""]
    lines += [f"- unseen: {_summary(unseen)}", *map(_refusal, refused)]
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[Judged]) -> list[str]:
    head = ("from", "to", "flags", "true, ms", "predicted", "error", "range", "inside", "unchanged")
    return list(Table(head=head, rows=tuple(_cells(row) for row in rows)).lines())


def _refusal(one: Refused) -> str:
    return f"- refused: {one.pair.run}, `{one.pair.flags}`: {one.reason}"


def _cells(row: Judged) -> tuple[str, ...]:
    told = "" if row.pair.is_described else " (buckets not told)"
    return (
        row.pair.run,
        row.pair.other + told,
        f"`{row.pair.flags}`",
        f"{row.true_ms:.1f}",
        f"{row.predicted_ms:.1f}",
        f"{row.error_frac:+.1%}",
        f"{row.low_ms:.0f} to {row.high_ms:.0f}",
        "yes" if row.is_inside else "no",
        f"{row.unchanged_error_frac:+.1%}",
    )


def _summaries(rows: list[Judged]) -> Iterator[str]:
    asked = [row for row in rows if ASKED not in row.pair.kind]
    if asked:
        yield f"- **all but tensor ranks: {_summary(asked)}**"
    harder = [row for row in asked if not row.pair.kind.startswith(REPLICAS)]
    if harder and len(harder) < len(asked):
        yield f"- of them without runs of several replicas that get others: {_summary(harder)}"
    for kind in dict.fromkeys(row.pair.kind for row in rows):
        yield f"- {kind}: {_summary([row for row in rows if row.pair.kind == kind])}"


def _summary(rows: Iterable[Judged]) -> str:
    chosen = list(rows)
    median, p90 = np.percentile(np.abs([row.error_frac for row in chosen]), [50, 90])
    inside = sum(row.is_inside for row in chosen)
    width = float(np.median([row.width for row in chosen]))
    return (
        f"|error| median {median:.1%}, p90 {p90:.1%} ({len(chosen)} predictions); "
        f"{inside} inside, width high/low median {width:.2f}"
    )


def main() -> None:
    """Print the section, or the rows whose names hold a word."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shared", type=Path)
    parser.add_argument("--only", default="", metavar="WORD")
    given = parser.parse_args()
    if given.only:
        rows, _ = judge(given.shared, given.only, (*PAIRS, *UNSEEN))
        sys.stdout.write("\n".join(_summaries(rows)) + "\n")
    else:
        sys.stdout.write(section(given.shared))


if __name__ == "__main__":
    main()
