"""A row of a scaling table asked of a made run of another layout, as a person would ask it."""

import tempfile
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ingest.errors import ScenarioError
from ingest.pipeline import IngestOptions
from replay.calls.replayed import replay_run
from tests.bench.scaling_rows import Row
from whatif.documents import write_yaml
from whatif.models.shape import RunShape, Schedule
from whatif.plan.steps import what_ifs
from whatif.recorded import Recorded
from whatif.scenario import Scenario
from whatif.study import Studies
from whatif.synth.calibrate import Calibration
from whatif.synth.document import Wanted
from whatif.synth.make import make_with

TASKS_OF_A_LAYER = 250
"""Of one micro-batch, forward and backward: host rows, calls, kernels, collectives."""
MOST_TASKS = 1_500_000
"""Of a graph that is made here: some minutes and GB a row."""


def base_of(row: Row, first: Row) -> RunShape:
    """The row's model in the layout of the row that calibrates, with the fewest micro-batches.

    Two where a kernel of its own adds gradients, so that the run has one.
    """
    fewest = 1 if row.shape.options.fused_accumulation else min(row.shape.batch.micro_batches, 2)
    degrees = first.shape.degrees
    experts = row.shape.model.experts
    if experts is not None:
        degrees = replace(degrees, ep=degrees.dp)
    return replace(
        row.shape,
        degrees=degrees,
        batch=replace(row.shape.batch, micro_batches=fewest),
        options=replace(row.shape.options, schedule=Schedule.NONE),
    )


def _whole(shape: msgspec.Struct) -> dict[str, object]:
    """All fields that are known, those with usual values too."""
    fields = msgspec.structs.asdict(shape).items()
    told = {name: value for name, value in fields if value is not None}
    return {
        name: _whole(value) if isinstance(value, msgspec.Struct) else msgspec.to_builtins(value)
        for name, value in told.items()
    }


def asked_ms(row: Row, first: Row, calibration: Calibration, *, described: bool = True) -> float:
    """Make the run, read it, ask: the predicted step.

    Args:
        row: whose layout is asked for.
        first: in whose layout the run is made.
        calibration: of the kernels.
        described: the run's full description is given with it; else only what its trace tells.

    Raises:
        ScenarioError: the what-ifs refuse, or the graph would be too large to be judged here.
    """
    base = base_of(row, first)
    work = (row.shape.model.layers or 1) * row.shape.batch.micro_batches
    if work * TASKS_OF_A_LAYER > MOST_TASKS:
        raise ScenarioError(f"{work * TASKS_OF_A_LAYER / 1e6:.0f} M tasks: not judged")
    wanted = Wanted(
        model=base.model,
        machine=row.machine,
        degrees=base.degrees,
        batch=base.batch,
        elements=base.elements,
        options=base.options,
    )
    net = row.machine.net_gb_per_s
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_with(wanted, folder / "run", calibration)
        write_yaml(_whole(base), folder / "run.yaml")
        said = Recorded(
            gpu=row.machine.gpu,
            net=None if net is None else f"{net:g}GBps",
            gpus_per_node=row.machine.nodes_of,
            describe=str(folder / "run.yaml") if described else None,
        )
        scenario = Scenario(base=said, transforms=what_ifs(base, row.shape))
        run = replay_run([folder / "run"], recorded=said, options=IngestOptions(cache=False))
        answer = Studies(run.graph, run.baseline).of(scenario, is_bounded=False)
    return answer.step_ns / 1e6
