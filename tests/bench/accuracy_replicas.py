"""How well `--dp` predicts a run with another number of replicas, on measured runs.

    python -m tests.bench.accuracy_replicas ../shared

Every pair of `groundtruth` that differs in the number of ranks, and published weak-scaling tables,
each from its smallest row. Nothing is fitted to what is predicted.
"""

import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ingest.errors import ScenarioError
from ingest.pipeline import IngestOptions, open_run
from ingest.units import Nanos
from replay.graph.build import build
from replay.results.fidelity import baseline
from tests.bench.tables import Table
from tests.bench.weak_scaling import Scaled, predict, tables
from whatif.scenario import Scenario
from whatif.study import Study, study
from whatif.transforms.replicas import Replicas
from whatif.unprofiled import without_profiler

PACED_RATES = ("unlimited", "10g", "2g", "1g", "500m")
DDP_SETTINGS = ("unlimited", "2g", "1g", "500m")
ALONE = {"paced2": "paced1", "paced4": "paced1", "ddp": "ddp", "fsdp": "ddp"}
"""Experiment, and the one whose `one-rank` is the same work in one process; of fsdp that of ddp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """From the traces of one run to the step of another."""

    run: str
    other: str
    replicas: int


PAIRS: tuple[Pair, ...] = (
    *(
        Pair(run=f"paced{n}/{rate}", other=f"paced{m}/{rate}", replicas=m)
        for rate in ("unlimited", "1g", "500m")
        for n, m in ((2, 4), (4, 2))
    ),
    *(Pair(run=f"paced2/{rate}", other="paced1/one-rank", replicas=1) for rate in PACED_RATES),
    *(
        Pair(run=f"paced4/{rate}", other="paced1/one-rank", replicas=1)
        for rate in ("unlimited", "1g", "500m")
    ),
    *(Pair(run=f"ddp/{rate}", other="ddp/one-rank", replicas=1) for rate in DDP_SETTINGS),
    *(
        Pair(run=f"fsdp/{rate}", other="ddp/one-rank", replicas=1)
        for rate in ("unlimited", "2g", "1g")
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One prediction beside the truth."""

    pair: Pair
    true_ms: float
    base_ms: float
    scaled_ms: float
    """Measured base step x predicted / replayed."""
    unprofiled_ms: float | None
    """With the base step given as `--unprofiled-step`; None where the host cannot meet it."""
    low_ms: float
    high_ms: float

    @property
    def error_frac(self) -> float:
        """Of the scaled prediction."""
        return self.scaled_ms / self.true_ms - 1

    @property
    def unprofiled_error_frac(self) -> float | None:
        """Of the other one."""
        return None if self.unprofiled_ms is None else self.unprofiled_ms / self.true_ms - 1

    @property
    def unchanged_error_frac(self) -> float:
        """Of saying that nothing changes."""
        return self.base_ms / self.true_ms - 1

    @property
    def inside(self) -> bool:
        """The truth lies in the range."""
        return self.low_ms <= self.true_ms <= self.high_ms


def judge(shared: Path) -> list[Judged]:
    """All pairs whose traces are there."""
    with (shared / "groundtruth" / "measured.csv").open(newline="") as stream:
        steps_ms = {
            f"{row['experiment']}/{row['setting']}": float(row["step_ms_median"])
            for row in csv.DictReader(stream)
        }
    found = []
    for pair in PAIRS:
        files = sorted((shared / "groundtruth" / pair.run).glob("rank?.json.gz"))
        if not files or pair.other not in steps_ms:
            continue
        found.append(_judged(pair, files, steps_ms[pair.run], steps_ms[pair.other]))
        sys.stderr.write(f"{pair.run:<20}-> {pair.other:<20}{found[-1].error_frac:+.1%}\n")
    return found


def _judged(pair: Pair, files: list[Path], base_ms: float, true_ms: float) -> Judged:
    plain = _studied(files, pair.replicas, None)
    unprofiled = _studied(files, pair.replicas, base_ms)
    assert plain is not None, "only a given step can be out of reach"
    factor = base_ms / plain.replayed_ns
    return Judged(
        pair=pair,
        true_ms=true_ms,
        base_ms=base_ms,
        scaled_ms=plain.step_ns * factor,
        unprofiled_ms=None if unprofiled is None else unprofiled.step_ns / 1e6,
        low_ms=plain.low_ns * factor,
        high_ms=plain.high_ns * factor,
    )


def _studied(files: list[Path], replicas: int, unprofiled_ms: float | None) -> Study | None:
    with open_run(files, options=IngestOptions(cache=False)) as run:
        built = build(run.store)
    graph, base = built.graph, baseline(built.graph, built.facts)
    if unprofiled_ms is not None:
        try:
            graph, base, _ = without_profiler(graph, base, Nanos(round(unprofiled_ms * 1e6)))
        except ScenarioError:
            return None
    return study(graph, base, Scenario(transforms=(Replicas(replicas=replicas),)))


def section(shared: Path) -> str:
    """Words and tables in Markdown."""
    scaled = [row for table in tables(shared) for row in predict(table)]
    return "\n".join([*_measured_lines(judge(shared)), "", *_published_lines(scaled)]) + "\n"


MEASURED = """\
Measured runs over gloo (one core and one throttled link per rank): the traces of one number of
ranks, the measured step of another. `predicted` = measured base step x predicted / replayed; beside
it the same with the base step as `--unprofiled-step`. The plain run in one process has neither DDP
nor FSDP: what these do beside communicating (copies into buckets, views of shards) stays in the
prediction, since nothing in a trace says that the program would change. From one
rank to more (`one-rank`, `nosync`): [other layouts](#other-layouts-and-batches)."""
PUBLISHED = """\
Published tables, each from its smallest row: no trace is public, so a graph of one rank stands for
that row (`tests/bench/weak_scaling.py`), without stragglers and without the slowdown of kernels
beside transfers; `if nothing changed` shows how much there is to predict. Between 8 and 128 GPUs on
NVLink and fast networks FSDP hides its transfers, in the prediction as in the table: what is left,
0 to 7 %, is waiting that one row cannot tell. The 20 Gbit/s of Horovod's virtual machines are TCP,
which NCCL drives far below the rate of the link: the model does not know that network and says too
little."""


def _measured_lines(rows: list[Judged]) -> Iterator[str]:
    yield MEASURED
    yield ""
    yield from Table(
        head=(
            "from", "to", "true step, ms", "predicted", "error", "--unprofiled-step",
            "range", "inside", "if nothing changed",
        ),
        rows=tuple(_cells(row) for row in rows),
    ).lines()  # fmt: skip
    yield ""
    for name, chosen in (
        ("between 2 and 4 ranks", [row for row in rows if row.pair.replicas > 1]),
        ("the same program alone (paced)", [row for row in rows if _is_paced_alone(row)]),
        ("another program alone (ddp, fsdp)", [row for row in rows if _is_other_program(row)]),
    ):
        if chosen:
            yield f"- {name}: {_summary(chosen)}"


def _is_paced_alone(row: Judged) -> bool:
    return row.pair.replicas == 1 and row.pair.run.startswith("paced")


def _is_other_program(row: Judged) -> bool:
    return row.pair.replicas == 1 and not row.pair.run.startswith("paced")


def _published_lines(rows: list[Scaled]) -> Iterator[str]:
    yield PUBLISHED
    yield ""
    yield from Table(
        head=(
            "run",
            "GPUs",
            "true step, s",
            "predicted",
            "error",
            "range",
            "inside",
            "if nothing changed",
        ),
        rows=tuple(
            (
                row.name,
                f"{row.before} -> {row.after}",
                f"{row.true_s:.3f}",
                f"{row.predicted_s:.3f}",
                f"{row.error_frac:+.1%}",
                f"{row.low_s:.3f} to {row.high_s:.3f}",
                "yes" if row.inside else "no",
                f"{row.unchanged_s / row.true_s - 1:+.1%}",
            )
            for row in rows
        ),
    ).lines()  # fmt: skip
    yield ""
    for name, chosen in (
        ("20 Gbit/s TCP", [row for row in rows if "20 Gbps" in row.name]),
        ("the rest", [row for row in rows if "20 Gbps" not in row.name]),
    ):
        if chosen:
            errors = np.abs([row.error_frac for row in chosen])
            median, p90 = np.percentile(errors, [50, 90])
            inside = np.mean([row.inside for row in chosen])
            yield (
                f"- {name}: median |error| {median:.1%}, p90 {p90:.1%} ({len(chosen)} rows); "
                f"{inside:.0%} inside the range"
            )


def _cells(row: Judged) -> tuple[str, ...]:
    unprofiled = row.unprofiled_error_frac
    return (
        row.pair.run,
        row.pair.other,
        f"{row.true_ms:,.1f}",
        f"{row.scaled_ms:,.1f}",
        f"{row.error_frac:+.1%}",
        "not met" if unprofiled is None else f"{unprofiled:+.1%}",
        f"{row.low_ms:,.0f} to {row.high_ms:,.0f}",
        "yes" if row.inside else "no",
        f"{row.unchanged_error_frac:+.0%}",
    )


def _summary(rows: list[Judged]) -> str:
    errors = np.abs([row.error_frac for row in rows])
    median, p90 = np.percentile(errors, [50, 90])
    width = np.median([row.high_ms / row.low_ms for row in rows])
    inside = np.mean([row.inside for row in rows])
    worst = max(rows, key=lambda row: abs(row.error_frac))
    return (
        f"median |error| {median:.1%}, p90 {p90:.1%} ({len(rows)} pairs); worst "
        f"{worst.pair.run} -> {worst.pair.other} {worst.error_frac:+.1%}; {inside:.0%} of the "
        f"truths inside the range, whose median width is x{width:.2f}"
    )


if __name__ == "__main__":
    sys.stdout.write(section(Path(sys.argv[1])))
