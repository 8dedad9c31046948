"""The tables and plots of docs/accuracy.md, measured again.

    python -m tests.bench.accuracy ../shared [--write] [--only WORD] [--section NAME]

Reads every set of public traces in `../shared/traces`, every measured run in
`../shared/groundtruth` and the tables in `../shared/facts`, prints what came of it and, with
--write, puts it between the marks in docs/accuracy.md. Minutes; lines on stderr tell how far it is.
"""

import argparse
import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ingest.errors import ScenarioError
from ingest.pipeline import IngestOptions, open_run
from ingest.store import Store
from ingest.units import Nanos
from replay.graph.arrays import TaskGraph
from replay.graph.build import Trial, build
from replay.results.fidelity import Baseline, Trust, baseline, step_error_frac
from replay.results.metrics import StepTimes
from tests.bench import (
    accuracy_collectives,
    accuracy_kernels,
    accuracy_layouts,
    accuracy_memory,
    accuracy_network,
    accuracy_replicas,
    accuracy_round_trips,
    accuracy_runtime,
)
from tests.bench.tables import Table, percent
from whatif.unprofiled import host_factor

DOC = Path(__file__).parents[2] / "docs" / "accuracy.md"
ALONE = ("single", "pair", "sweep")
"""Folders that begin so hold unrelated files: each is a set of its own."""
NOTABLE_FRAC = 0.02
"""A strict error above this needs words."""
EVENT_RULES = frozenset({"event_wait", "from_time"})
SYNC_RULES = frozenset({"host_sync"})
START_RULES = frozenset({"from_time", "sm_full", "graph_gaps", "unseen_work"})
"""Those that look at the start which they explain, so that they lower the error by construction."""
LITTLE_FRAC = 0.6
"""Sets of which less is explained need words too: their error proves little."""
WHY: tuple[tuple[str, str], ...] = (
    (
        "a100x8_megatron_tp8",
        "most of the step is silence of 4 to 28 ms inside trivial operators such as aten::view: "
        "the CPU was probably descheduled while all ranks were profiled",
    ),
    (
        "hta_meta_128gpu_sampled",
        "a tool sampled its events: operators, launches and kernels are missing",
    ),
    (
        "pair_hf_infer_h100_vs_mi300/facebook_timesformer-base-finetuned-k400.h100",
        "the first 217 ms of the step have no row at all: the input is prepared, and no Python "
        "frames were recorded",
    ),
    (
        "pair_hf_infer_h100_vs_mi300/facebook_timesformer-base-finetuned-k400.mi300",
        "the same for 268 ms",
    ),
    (
        "single/a100_graphs_rank0",
        "two thirds of each step are gaps in CUDA graphs that come back at every launch: nodes "
        "without rows, presumed to take as long; one of sixteen ranks",
    ),
    (
        "single/cpu_only_rank34of300",
        "30 events; the step is one silence of 210 ms",
    ),
    (
        "single/cuda_event_sync",
        "2.2 of 3.2 ms are one silence inside the first operator: the device is initialised",
    ),
    (
        "single/cuda_event_sync_multi_stream",
        "18.6 of 19.9 ms are one silence between two operators",
    ),
    (
        "single/sglang_qwen3_prefilldecode",
        "the first kernel starts 493 ms after its launch, half of the recording, on a device "
        "idle as recorded: what was queued before has no rows; held until then",
    ),
    (
        "single/triton",
        "one kernel; the step is one silence of 13 s",
    ),
    (
        "single/vllm_piecewise_graphs",
        "the first copy starts 149 ms after its launch, half of the recording: as in sglang",
    ),
    (
        "sweep_particle_transformer_a100_batch/bs256",
        "two silences of 148 ms inside one scripted function, which other batch sizes lack",
    ),
)
"""Set and reason, for those above `NOTABLE_FRAC` and those explained to less than `LITTLE_FRAC`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one set of public traces showed; errors are shares of the measured step."""

    name: str
    ranks: int
    steps: int
    measured_ms: float
    trust: Trust
    held_out_frac: float | None
    """Lags learned on the first half of the steps, judged on the rest; None for one step."""
    without_events_frac: float
    without_syncs_frac: float
    without_starts_frac: float
    """Without the rules that look at the start which they explain."""

    @property
    def needs_words(self) -> bool:
        """The error is notable, or most of the path has no known cause."""
        is_off = abs(self.trust.strict_error_frac) > NOTABLE_FRAC
        return is_off or self.trust.explained_frac < LITTLE_FRAC


def trace_sets(folder: Path) -> dict[str, list[Path]]:
    """Main sets as a whole, files of the other folders one by one."""
    sets: dict[str, list[Path]] = {}
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = sorted(place.rglob("*.json*"))
        if place.name.startswith(ALONE):
            sets.update({f"{place.name}/{file.name.split('.json')[0]}": [file] for file in files})
        else:
            sets[place.name] = files
    return sets


def measure(name: str, store: Store) -> Row | None:
    """Replay one set with and without some of its rules; None without device task."""
    built = build(store)
    base = baseline(built.graph, built.facts)
    if not base.trust.start.tasks:
        return None
    return Row(
        name=name,
        ranks=len(built.graph.ranks),
        steps=len(built.graph.steps) if built.graph.steps_recorded else 0,
        measured_ms=base.measured.mean_ns / 1e6,
        trust=base.trust,
        held_out_frac=_held_out(store, len(built.graph.steps)),
        without_events_frac=_tried(store, Trial(without=EVENT_RULES)).trust.strict_error_frac,
        without_syncs_frac=_tried(store, Trial(without=SYNC_RULES)).trust.strict_error_frac,
        without_starts_frac=_tried(store, Trial(without=START_RULES)).trust.strict_error_frac,
    )


def _tried(store: Store, trial: Trial) -> Baseline:
    built = build(store, trial=trial)
    return baseline(built.graph, built.facts)


def _held_out(store: Store, n_steps: int) -> float | None:
    if n_steps < 2:
        return None
    half = n_steps // 2
    base = _tried(store, Trial(taught_steps=half))
    return step_error_frac(base.measured, base.strict, half)


def strict_table(rows: Sequence[Row]) -> Table:
    """One row per set."""
    head = (
        "set", "ranks", "steps", "device tasks", "measured ms", "strict error", "held out",
        "start error median µs", "p90 µs", "explained", "host share of path",
        "edges recorded / ordered / inferred", "no event rules", "no sync rules",
        "no rules from starts", "grade",
    )  # fmt: skip
    return Table(head=head, rows=tuple(_strict_cells(row) for row in rows))


def _strict_cells(row: Row) -> tuple[str, ...]:
    trust = row.trust
    shares = (trust.evidence[how] for how in ("recorded", "ordered", "inferred"))
    return (
        row.name,
        str(row.ranks),
        str(row.steps or "-"),
        f"{trust.start.tasks:,}",
        f"{row.measured_ms:,.2f}",
        percent(trust.strict_error_frac),
        percent(row.held_out_frac),
        f"{trust.start.median_ns / 1e3:,.1f}",
        f"{trust.start.p90_ns / 1e3:,.1f}",
        f"{trust.explained_frac:.1%}",
        f"{trust.host_path_frac:.0%}",
        " / ".join(f"{share:.1%}" for share in shares),
        percent(row.without_events_frac),
        percent(row.without_syncs_frac),
        percent(row.without_starts_frac),
        trust.grade,
    )


def spread(fracs: Iterable[float]) -> str:
    """Median and 90th percentile of the absolute values."""
    sizes = np.abs(list(fracs))
    median, p90 = np.percentile(sizes, [50, 90])
    return f"median {median:.2%}, p90 {p90:.2%} ({len(sizes)} sets)"


def strict_text(rows: Sequence[Row], without_device: Sequence[str]) -> Iterator[str]:
    """The table of strict errors and what it comes to."""
    yield from strict_table(rows).lines()
    yield ""
    yield f"|strict error|: {spread(row.trust.strict_error_frac for row in rows)}."
    yield f"Without rules from starts: {spread(row.without_starts_frac for row in rows)}."
    held_out = [row.held_out_frac for row in rows if row.held_out_frac is not None]
    if held_out:
        yield f"Held out: {spread(held_out)}."
    if without_device:
        yield f"Without device task, so not counted: {', '.join(without_device)}."
    why = dict(WHY)
    notable = [row for row in rows if row.needs_words]
    for name in why.keys() & {row.name for row in rows} - {row.name for row in notable}:
        tell(name, "needs no words any more")
    if notable:
        yield ""
        yield f"Above {NOTABLE_FRAC:.0%}, or explained to less than {LITTLE_FRAC:.0%}:"
        yield ""
    for row in notable:
        reason = why.get(row.name, "not explained yet")
        trust = row.trust
        figures = f"{percent(trust.strict_error_frac)}, {trust.explained_frac:.0%} explained"
        yield f"- {row.name} ({figures}): {reason}."


def strict_section(shared: Path, only: str) -> list[str]:
    """Measure every set of public traces."""
    rows, without_device = [], []
    for name, files in trace_sets(shared / "traces").items():
        if only not in name:
            continue
        with open_run(files, options=IngestOptions(cache=False)) as run:
            row = measure(name, run.store)
        if row is None:
            without_device.append(name)
        else:
            rows.append(row)
        tell(name, "no device task" if row is None else percent(row.trust.strict_error_frac))
    return list(strict_text(rows, without_device))


def tell(name: str, result: str) -> None:
    """Say on stderr how far it is."""
    sys.stderr.write(f"{name:<60}{result}\n")


def truth_section(shared: Path, only: str) -> list[str]:
    """Replay every measured run and compare with what its `measured.csv` says."""
    folder = shared / "groundtruth"
    with (folder / "measured.csv").open(newline="") as stream:
        settings = list(csv.DictReader(stream))
    rows = []
    for setting in settings:
        name = f"{setting['experiment']}/{setting['setting']}"
        files = sorted((folder / name).glob("rank?.json.gz"))
        if only not in name or not files:
            continue
        row = _truth_row(name, files, setting)
        tell(name, row[5])
        rows.append(row)
    head = (
        "run", "ranks", "steps in the trace, ms", "recorded", "calibrated", "strict", "explained",
        "without profiler, ms", "host then",
    )  # fmt: skip
    return list(Table(head=head, rows=tuple(rows)).lines())


def _truth_row(name: str, files: list[Path], setting: dict[str, str]) -> tuple[str, ...]:
    with open_run(files, options=IngestOptions(cache=False)) as run:
        built = build(run.store)
    base = baseline(built.graph, built.facts)
    trace_ms = float(setting["trace_step_ms"])
    errors = (
        _median_step_ms(times) / trace_ms - 1
        for times in (base.measured, base.replayed, base.strict)
    )
    return (
        name,
        str(len(files)),
        f"{trace_ms:,.1f}",
        *(percent(error) for error in errors),
        f"{base.trust.explained_frac:.0%}",
        f"{float(setting['step_ms_median']):,.1f}",
        _host_cell(built.graph, float(setting["step_ms_median"])),
    )


def _host_cell(graph: TaskGraph, step_ms: float) -> str:
    """The factor on host work that meets the step timed without the profiler."""
    try:
        return f"x{host_factor(graph, Nanos(round(step_ms * 1e6))):.3f}"
    except ScenarioError:
        return "not met"


def _median_step_ms(times: StepTimes) -> float:
    """As in `measured.csv`: median over the steps of the mean over the ranks."""
    return float(np.median(np.diff(times.rank_boundary_ns, axis=1).mean(axis=0))) / 1e6


def written(text: str, name: str, lines: Sequence[str]) -> str:
    """The page with other lines between the marks of a table."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, mark, rest = text.partition(begin)
    _, closing, after = rest.partition(end)
    assert mark, f"docs/accuracy.md has no mark {begin}"
    assert closing, f"docs/accuracy.md has no mark {end}"
    return f"{before}{begin}\n" + "\n".join(lines) + f"\n{end}{after}"


def _by(
    section: Callable[[Path], str], figures: Callable[[Path, Path], None] | None = None
) -> Callable[[Path, str], list[str]]:
    """A section that another module measures as a whole; its plots go where the page looks."""

    def measured(shared: Path, only: str) -> list[str]:
        if only:
            return []
        if figures is not None:
            figures(shared, DOC.parent / "img")
        return section(shared).strip().splitlines()

    return measured


SECTIONS: tuple[tuple[str, Callable[[Path, str], list[str]]], ...] = (
    ("strict", strict_section),
    ("measured runs", truth_section),
    ("network", _by(accuracy_network.section, accuracy_network.figures)),
    ("collectives", _by(accuracy_collectives.section, accuracy_collectives.figures)),
    ("kernels", _by(accuracy_kernels.section, accuracy_kernels.figures)),
    ("replicas", _by(accuracy_replicas.section)),
    ("runtime", _by(accuracy_runtime.section)),
    ("layouts", _by(accuracy_layouts.section)),
    ("round trips", _by(accuracy_round_trips.section)),
    ("memory", _by(accuracy_memory.section)),
)
"""Mark in the page, and what measures: from the shared folder and the word that names must hold."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shared", type=Path, help="folder with traces/, groundtruth/ and facts/")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    parser.add_argument("--only", default="", metavar="WORD", help="sets whose name holds it")
    parser.add_argument("--section", default="", metavar="NAME", help="this part of the page alone")
    given = parser.parse_args(arguments)
    if given.write and given.only:
        parser.error("--write needs all sets")
    for name, measured in SECTIONS:
        if given.section not in ("", name):
            continue
        lines = measured(given.shared, given.only)
        sys.stdout.write("\n".join((f"## {name}", "", *lines, "", "")))
        if given.write:
            DOC.write_text(written(DOC.read_text(encoding="utf-8"), name, lines), encoding="utf-8")


if __name__ == "__main__":
    main()
