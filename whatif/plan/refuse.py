"""Runs that no plan can be made for, and searches that found nothing."""

from ingest.errors import ScenarioError
from ingest.units import format_gib
from ingest.vocab import TaskKind
from replay.graph.arrays import TaskGraph
from whatif.description.described import Described, Kind
from whatif.models.kernels.machine import Machine
from whatif.models.memory.rank import is_told
from whatif.models.shape import RunShape
from whatif.plan.search import Found

DESCRIBE = (
    "replay describe TRACE --yaml > run.yaml, fill in what is missing, add --describe run.yaml"
)


def require_training(graph: TaskGraph, described: Described) -> None:
    """Refuse a run that tells nothing of steps on GPUs.

    Raises:
        ScenarioError: it has no kernels, or no backward.
    """
    if not (graph.tasks.kind == TaskKind.KERNEL).any():
        raise ScenarioError(
            "no GPU rows in this trace: a plan scales measured kernels",
            hint="record a step on GPUs; docs/recording.md has how",
        )
    if described.kind is not Kind.TRAINING:
        why = next((one.evidence for one in described.findings if one.what == "kind"), "")
        raise ScenarioError(
            f"a plan is for training, and this run is none: {why}",
            hint="replay describe TRACE shows what is told of it",
        )


def require_model(shape: RunShape) -> None:
    """Refuse a run of which too little is known.

    Raises:
        ScenarioError: sizes of the model or of the batch are missing.
    """
    if is_told(shape) and shape.model.layers:
        return
    fields = {
        **{name: getattr(shape.model, name) for name in ("layers", "hidden", "heads", "vocab")},
        "ffn": shape.model.ffn or shape.model.expert_ffn,
        "samples": shape.batch.samples,
        "sequence": shape.batch.sequence,
    }
    missing = ", ".join(name for name, value in fields.items() if value is None)
    raise ScenarioError(
        f"a plan needs the sizes of the model, and the trace does not tell {missing}", hint=DESCRIBE
    )


def none_fits(found: Found, machine: Machine) -> ScenarioError:
    """Why nothing was found: what does not divide, or what the smallest needs."""
    if found.nearest is None:
        reasons = "; ".join(reason for reason, _ in found.excluded.counts.most_common(3))
        return ScenarioError(
            f"no layout divides: {reasons or 'nothing to try'}",
            hint="another number of GPUs, or --global-batch N",
        )
    needs, has = found.nearest.memory_bytes, machine.memory_bytes or 0.0
    return ScenarioError(
        f"none of {found.tried:,} layouts fits: the smallest needs {format_gib(needs)} of "
        f"the {format_gib(has)} of {machine.name}",
        hint="more GPUs, or another --gpu",
    )
