"""Whether what-ifs about layout come back: as recorded, and there and back, on public traces.

python -m tests.bench.accuracy_round_trips ../shared
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ingest.errors import ScenarioError
from ingest.pipeline import IngestOptions
from replay.calls.replayed import replay_run
from tests.bench.tables import Table
from whatif.description.infer import describe
from whatif.models.shape import RunShape
from whatif.scenario import Scenario
from whatif.study import Studies
from whatif.transforms.batch_scale import BatchScale
from whatif.transforms.micro_batches import MicroBatches
from whatif.transforms.pp import PipelineParallel
from whatif.transforms.registry import Transform
from whatif.transforms.replicas import Replicas
from whatif.transforms.tp import TensorParallel
from whatif.transforms.zero import Zero

ALONE = ("single", "pair", "sweep")
"""Folders that begin so hold unrelated files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """A stack that should change nothing."""

    name: str
    flags: str
    change_frac: float | None
    """Predicted over replayed step, less 1; None where the tool refuses."""
    reason: str = ""


def stacks(shape: RunShape) -> Iterator[tuple[Transform, ...]]:
    """What the run is already; and each change with its reverse."""
    degrees, batch = shape.degrees, shape.batch
    dp, tp = Replicas(replicas=degrees.dp), TensorParallel(degree=degrees.tp)
    pp, zero = PipelineParallel(stages=degrees.pp), Zero(stage=degrees.zero, shard=degrees.shard)
    count = MicroBatches(count=batch.micro_batches)
    yield from ((dp,), (tp,), (pp,), (zero,), (count,))
    yield (Replicas(replicas=2 * degrees.dp), dp)
    yield (TensorParallel(degree=2 * degrees.tp), tp)
    yield (PipelineParallel(stages=2 * degrees.pp), pp)
    yield (Zero(stage=0 if degrees.zero else 3), zero)
    yield (MicroBatches(count=2 * batch.micro_batches), count)
    yield (BatchScale(factor=2), BatchScale(factor=0.5))


def trips(name: str, files: list[Path]) -> Iterator[Trip]:
    """All stacks on one set."""
    run = replay_run(files, options=IngestOptions(cache=False))
    studies = Studies(run.graph, run.baseline)
    for stack in stacks(describe(run.graph).shape):
        flags = " ".join(change.flag for change in stack)
        try:
            found = studies.of(Scenario(transforms=stack), is_bounded=False)
        except ScenarioError as error:
            yield Trip(name=name, flags=flags, change_frac=None, reason=str(error))
        else:
            yield Trip(name=name, flags=flags, change_frac=found.step_ns / found.replayed_ns - 1)


def sets(shared: Path) -> Iterator[tuple[str, list[Path]]]:
    """Sets of several ranks."""
    for place in sorted(path for path in (shared / "traces").iterdir() if path.is_dir()):
        if not place.name.startswith(ALONE):
            yield place.name, sorted(place.rglob("*.json*"))


WORDS = """\
What a run is already, asked for again, and changes with their reverse, on the public sets of
several ranks: the change of the step (0 is: to the nanosecond). What the tool refuses counts in no
figure."""


def section(shared: Path) -> str:
    """Words and a table in Markdown."""
    rows = []
    for name, files in sets(shared):
        found = list(trips(name, files))
        answered = [abs(trip.change_frac) for trip in found if trip.change_frac is not None]
        refused = [f"`{trip.flags}` ({trip.reason})" for trip in found if trip.change_frac is None]
        worst = f"{max(answered):.2%}" if answered else "-"
        rows.append((name, str(len(answered)), worst, "; ".join(refused) or "-"))
        sys.stderr.write(f"{name:<40}{len(answered)} answered, worst {worst}\n")
        for text in refused:
            sys.stderr.write(f"    refused {text}\n")
    table = Table(head=("set", "stacks", "worst change", "refused"), rows=tuple(rows))
    return "\n".join([WORDS, "", *table.lines()]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(section(Path(sys.argv[1])))
