"""What can be judged of the runtime what-ifs without runs made for it.

    python -m tests.bench.accuracy_runtime ../shared

Slowdown beside communication: one half of a recording tells the factors, the other half judges
them. Jitter: each step is drawn from the other steps of its recording. The rest has no measured
counterpart among the public traces, and the text says so.
"""

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ingest.errors import UserError
from ingest.pipeline import IngestOptions, open_run
from replay.engine.run import replay
from replay.graph.arrays import Bool, Int64, TaskGraph
from replay.graph.build import build
from replay.results.fidelity import Baseline, baseline
from replay.results.metrics import step_times
from tests.bench.tables import Table
from whatif.couplings.slowdown import as_recorded, observe
from whatif.jitter import spread
from whatif.models.overlap import (
    ALONE_FRAC,
    BESIDE_FRAC,
    SHORTEST_NS,
    STATES,
    Float64,
    Observed,
    fit,
)
from whatif.scenario import Scenario
from whatif.study import study
from whatif.transforms.devices import computing, device_of_lane
from whatif.transforms.host_scale import HostScale
from whatif.transforms.jitter import Jitter

LEAST_KERNELS = 50
"""Sets with fewer kernels beside communication judge nothing."""
LEAST_STEPS = 4
"""So that every step is drawn from three others."""
SAMPLES = 200
INSIDE = (0.05, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Kernels beside communication, each judged by a half of the recording without it."""

    by: str
    """How the recording was halved."""
    alone_ns: Float64
    """Median of the same kernel where it ran alone: the prediction without any slowdown."""
    predicted_ns: Float64
    measured_ns: Float64

    def errors(self, predicted_ns: Float64) -> tuple[float, float]:
        """Median error of a kernel, and error of their total time."""
        each = np.abs(predicted_ns / self.measured_ns - 1)
        return float(np.median(each)), float(predicted_ns.sum() / self.measured_ns.sum() - 1)


def held_out(graph: TaskGraph) -> HeldOut | None:
    """Halve by steps, else by ranks, else by the order of kernels; None with too few kernels."""
    devices = device_of_lane(graph)
    task = computing(graph, devices)
    observed = observe(graph, as_recorded(graph), task)
    by, half = _half(graph, task)
    parts = [_judged(observed, taught=chosen) for chosen in (half, ~half)]
    alone, predicted, measured = (
        np.concatenate([part[place] for part in parts]) for place in range(3)
    )
    if len(measured) < LEAST_KERNELS:
        return None
    return HeldOut(by=by, alone_ns=alone, predicted_ns=predicted, measured_ns=measured)


def _together(parts: Sequence[HeldOut]) -> HeldOut:
    return HeldOut(
        by="",
        alone_ns=np.concatenate([part.alone_ns for part in parts]),
        predicted_ns=np.concatenate([part.predicted_ns for part in parts]),
        measured_ns=np.concatenate([part.measured_ns for part in parts]),
    )


def _half(graph: TaskGraph, task: Int64) -> tuple[str, Bool]:
    tasks = graph.tasks
    if len(graph.steps) > 1:
        return "steps", tasks.step[task] % 2 == 0
    if len(graph.ranks) > 1:
        return "ranks", tasks.rank[task] % 2 == 0
    return "kernels", np.arange(len(task)) % 2 == 0


def _judged(observed: Observed, *, taught: Bool) -> tuple[Float64, Float64, Float64]:
    """Time alone, predicted and measured, of the kernels of the other half."""
    lesson = _rows(observed, taught)
    found = fit(lesson)
    alone_ns = np.full(int(observed.kernel.max(initial=-1)) + 1, np.nan)
    alone = lesson.beside_frac.sum(axis=1) <= ALONE_FRAC
    for kernel in np.unique(lesson.kernel[alone]):
        alone_ns[kernel] = np.median(lesson.dur_ns[alone & (lesson.kernel == kernel)])
    expected_ns = alone_ns[observed.kernel]
    asked = ~taught & (observed.beside_frac.sum(axis=1) >= BESIDE_FRAC)
    asked &= expected_ns >= SHORTEST_NS
    factor = np.ones((len(alone_ns), STATES))
    factor[: len(found.of_kernel)] = found.of_kernel
    beside, factor = observed.beside_frac[asked], factor[observed.kernel[asked]]
    slowed = 1.0 - (beside * (1.0 - 1.0 / factor)).sum(axis=1)
    measured_ns = observed.dur_ns[asked].astype(np.float64)
    return expected_ns[asked], expected_ns[asked] / slowed, measured_ns


def _rows(observed: Observed, chosen: Bool) -> Observed:
    return Observed(
        kernel=observed.kernel[chosen],
        kernel_class=observed.kernel_class[chosen],
        dur_ns=observed.dur_ns[chosen],
        beside_frac=observed.beside_frac[chosen],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Recorded steps against their draws from the other steps."""

    steps: int
    inside: int
    """Recorded steps between p5 and p95 of their draws."""
    width_frac: float
    """Median of (p95 - p5) / recorded step."""


def drawn(graph: TaskGraph) -> Drawn | None:
    """Draw every step from the others of its recording; None with too few steps."""
    if len(graph.steps) < LEAST_STEPS:
        return None
    found = spread(graph, Jitter(samples=SAMPLES), own=False)
    assert found is not None, "there are steps enough"
    recorded_ns = step_times(graph, replay(graph)).per_step_ns
    low_ns, high_ns = np.quantile(found.step_ns, INSIDE, axis=0)
    inside = (low_ns <= recorded_ns) & (recorded_ns <= high_ns)
    return Drawn(
        steps=len(recorded_ns),
        inside=int(inside.sum()),
        width_frac=float(np.median((high_ns - low_ns) / recorded_ns)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Steps of one setting without the profiler."""

    p50_ms: float
    p90_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSpeed:
    """One measured setting predicted from another that computes at another speed; times in ms."""

    recorded: str
    asked: str
    factor: float
    predicted_ms: float
    low_ms: float
    high_ms: float
    measured_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """p90 / p50 of a setting's steps: measured without the profiler, and drawn from its trace."""

    measured: float
    drawn: float


def host_speeds(folder: Path, measured: Mapping[tuple[str, str], Measured]) -> Iterator[HostSpeed]:
    """Predict the settings of `paced2` in which all ranks sleep once and twice as long."""
    slow = "1g-slow2x"
    pairs = [(slow, "1g", 2.0), *((name, slow, 0.5) for name in ("1g", "1g-repeat2", "1g-repeat3"))]
    for recorded, asked, factor in pairs:
        found = _built(folder, "paced2", recorded)
        if found is None:
            continue
        graph, base = found
        answer = study(graph, base, Scenario(transforms=(HostScale(factor=factor),)))
        ms_per_ns = measured["paced2", recorded].p50_ms / answer.replayed_ns
        yield HostSpeed(
            recorded=recorded,
            asked=asked,
            factor=factor,
            predicted_ms=answer.step_ns * ms_per_ns,
            low_ms=answer.low_ns * ms_per_ns,
            high_ms=answer.high_ns * ms_per_ns,
            measured_ms=measured["paced2", asked].p50_ms,
        )


def tails(folder: Path, measured: Mapping[tuple[str, str], Measured]) -> Iterator[Tail]:
    """The spread of all measured settings whose trace has steps enough."""
    for (experiment, setting), row in measured.items():
        found = _built(folder, experiment, setting)
        jitter = None if found is None else spread(found[0], Jitter(samples=SAMPLES))
        if jitter is not None:
            middle, late = np.quantile(jitter.step_ns, [0.5, 0.9])
            yield Tail(measured=row.p90_ms / row.p50_ms, drawn=late / middle)


def _measured(folder: Path) -> dict[tuple[str, str], Measured]:
    with (folder / "measured.csv").open(encoding="utf-8", newline="") as file:
        return {
            (row["experiment"], row["setting"]): Measured(
                p50_ms=float(row["step_ms_median"]), p90_ms=float(row["step_ms_p90"])
            )
            for row in csv.DictReader(file)
        }


def _built(folder: Path, experiment: str, setting: str) -> tuple[TaskGraph, Baseline] | None:
    files = sorted((folder / experiment / setting).glob("*.json*"))
    if not files:
        return None
    print(f"{experiment}/{setting}", file=sys.stderr)  # noqa: T201
    with open_run(files, options=IngestOptions(cache=False)) as run:
        built = build(run.store)
    return built.graph, baseline(built.graph, built.facts)


def section(shared: Path) -> str:
    """All tables with their words, in Markdown."""
    slow: list[tuple[str, HeldOut]] = []
    jitter: list[tuple[str, Drawn]] = []
    for name, graph in _graphs(shared / "traces"):
        held, steps = held_out(graph), drawn(graph)
        if held is not None:
            slow.append((name, held))
        if steps is not None:
            jitter.append((name, steps))
    truth = shared / "groundtruth"
    measured = _measured(truth)
    return "\n".join(
        [
            *_slowdown_lines(slow),
            "",
            *_host_lines(list(host_speeds(truth, measured))),
            "",
            *_jitter_lines(jitter),
            "",
            *_tail_lines(list(tails(truth, measured))),
            "",
            *NOT_JUDGED,
        ]
    )


NOT_JUDGED = (
    "**Not judged.** No public pair of traces differs in CUDA graphs, in fusion, in overlap or in "
    "blocking calls alone. Their range is that of their assumptions, not of measured "
    "errors. In spirit: Llama-1B on a B200 takes 48.8 ms a step eager and 8.1 ms with CUDA graphs "
    "and compiled kernels (`facts/scaling_tables/stas_b200_eager_vs_cudagraph.csv`); the vLLM step "
    "recorded on a B200, equally bound by its host, is predicted to go from 87 to 16 ms, its "
    "device work being 12 ms.",
)


def _slowdown_lines(rows: Sequence[tuple[str, HeldOut]]) -> Iterator[str]:
    yield (
        "**Slowdown beside communication.** One half of a recording tells how much slower each "
        "kernel is beside communication; its other half judges. Without the model a kernel is "
        "taken to be as long as alone. Errors are of the kernels that lie beside communication "
        "for at least half of their time."
    )
    yield ""
    table = []
    for name, held in (*rows, ("all", _together([held for _, held in rows]))):
        none, model = held.errors(held.alone_ns), held.errors(held.predicted_ns)
        table.append(
            (
                name,
                held.by,
                f"{len(held.measured_ns):,}",
                f"{none[0]:.1%}",
                f"{model[0]:.1%}",
                f"{none[1]:+.1%}",
                f"{model[1]:+.1%}",
            )
        )
    head = (
        "set",
        "halved by",
        "kernels",
        "median error, as alone",
        "with the model",
        "total, as alone",
        "with the model",
    )
    yield from Table(head=head, rows=tuple(table)).lines()
    yield ""
    yield (
        "The model never speeds a kernel up: those of mi300_resnet_ddp are faster beside "
        "communication than alone, for a reason that its trace does not show."
    )


def _host_lines(rows: Sequence[HostSpeed]) -> Iterator[str]:
    yield (
        "**Speed of the host.** The ranks of `groundtruth/paced2` compute by sleeping, in one "
        "setting twice as long as in the others; their transfers are the same, but overlap "
        "otherwise."
    )
    yield ""
    table = [
        (
            row.recorded,
            row.asked,
            f"`--host-scale {row.factor:g}`",
            f"{row.predicted_ms:.1f} ms",
            f"{row.low_ms:.1f} to {row.high_ms:.1f}",
            f"{row.measured_ms:.1f} ms",
            f"{row.predicted_ms / row.measured_ms - 1:+.1%}",
        )
        for row in rows
    ]
    head = ("recorded", "predicted", "what if", "answer", "range", "measured", "error")
    yield from Table(head=head, rows=tuple(table)).lines()


def _tail_lines(rows: Sequence[Tail]) -> Iterator[str]:
    off = np.array([row.drawn - row.measured for row in rows])
    yield (
        f"p90 / p50 of the {len(rows)} settings of `groundtruth`, drawn from the three profiled "
        f"steps of each, against the unprofiled steps: {np.median(off):+.3f} at the median, within "
        f"{np.quantile(np.abs(off), 0.9):.3f} for nine of ten (measured: "
        f"{min(row.measured for row in rows):.3f} to {max(row.measured for row in rows):.3f})."
    )


def _jitter_lines(rows: Sequence[tuple[str, Drawn]]) -> Iterator[str]:
    steps = sum(row.steps for _, row in rows)
    inside = sum(row.inside for _, row in rows)
    yield (
        f"**Jitter.** Each recorded step against p5 to p95 of {SAMPLES} draws made of the other "
        f"steps alone: {inside} of {steps} lie inside. Of so few steps the fastest and the slowest "
        "lie outside of the others by necessity, which leaves "
        f"{sum(row.steps - 2 for _, row in rows)}."
    )
    yield ""
    table = [(name, f"{row.steps}", f"{row.inside}", f"{row.width_frac:.1%}") for name, row in rows]
    head = ("set", "steps", "inside", "width of the range")
    yield from Table(head=head, rows=tuple(table)).lines()


def _graphs(folder: Path) -> Iterator[tuple[str, TaskGraph]]:
    for name, files in _sets(folder):
        print(name, file=sys.stderr)  # noqa: T201
        try:
            with open_run(files, options=IngestOptions(cache=False)) as run:
                yield name, build(run.store).graph
        except UserError as error:
            print(f"  left out: {error}", file=sys.stderr)  # noqa: T201


def _sets(folder: Path) -> Iterator[tuple[str, list[Path]]]:
    """Folders are runs, but for those that hold unrelated files."""
    for path in sorted(folder.iterdir()):
        files = sorted(path.glob("*.json*")) if path.is_dir() else []
        if path.name.startswith(("single", "pair", "sweep")):
            yield from ((f"{path.name}/{file.name.split('.json')[0]}", [file]) for file in files)
        elif files:
            yield path.name, files


if __name__ == "__main__":
    print(section(Path(sys.argv[1])))  # noqa: T201
