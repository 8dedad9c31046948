"""What a person says of a run against what was measured of it: counts cannot be overruled."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ingest.errors import ScenarioError
from ingest.vocab import CollectiveKind
from replay.graph.arrays import TaskGraph
from whatif.description.file import Said
from whatif.description.labels import Labels, Place
from whatif.models.shape import RunShape, Schedule

_MESSAGES = (CollectiveKind.SEND, CollectiveKind.RECV, CollectiveKind.SEND_RECV)
_HINT = "replay describe TRACE shows what was found and why; leave out what the trace tells"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the description is held against."""

    kinds: frozenset[CollectiveKind]
    """Of the calls in the steps."""
    all_kinds_known: bool
    """No call is of a kind that was not read."""
    is_dense: bool
    """Feed-forwards were seen, and none of them has experts."""
    layers: int | None
    """Of all stages; None where not all of them are in the files."""

    @classmethod
    def of(
        cls,
        graph: TaskGraph,
        labels: Labels,
        rank_layers: Mapping[int, tuple[int, ...]],
        stage_of_rank: Mapping[int, int],
        stages: int,
    ) -> "Measured":
        """Of a run, its labels and the layers of its ranks."""
        tasks = graph.tasks
        called = np.unique(tasks.collective[(tasks.collective >= 0) & (tasks.step >= 0)])
        kinds = frozenset(map(CollectiveKind, np.unique(graph.collectives.kind[called]).tolist()))
        counts: dict[int, int] = {}
        for rank, layers in rank_layers.items():
            stage = stage_of_rank.get(rank, 0)
            counts[stage] = max(len(layers), counts.get(stage, 0))
        complete = len(counts) == stages and all(counts.values())
        places = np.unique(labels.place)
        return cls(
            kinds=kinds,
            all_kinds_known=CollectiveKind.UNKNOWN not in kinds,
            is_dense=Place.DOWN in places and Place.EXPERT not in places,
            layers=sum(counts.values()) if complete else None,
        )


def refuse_overruled(
    shape: RunShape, found: RunShape, said: Said | None, place: str, measured: Measured
) -> None:
    """Refuse what is said against a measurement.

    Args:
        shape: as said and found.
        found: what the trace tells; to say the same is never wrong.
        said: the fields that were written.
        place: of the description, for the message.
        measured: of the run.

    Raises:
        ScenarioError: names the field and what was measured.
    """
    written = said or {}
    if shape.model.layers != found.model.layers and (told := _layers(shape, measured)):
        raise _overruled(place, "model.layers", told)
    if shape.degrees == found.degrees:
        return
    for field in written.get("degrees") or {}:
        if told := _degree(field, shape, measured):
            raise _overruled(place, f"degrees.{field}", told)


def _overruled(place: str, field: str, told: str) -> ScenarioError:
    return ScenarioError(f"{place}, at `$.{field}`: {told}", hint=_HINT)


def _layers(shape: RunShape, measured: Measured) -> str:
    layers, seen = shape.model.layers, measured.layers
    if layers is None or seen is None or layers <= seen:
        return ""
    if shape.options.schedule is Schedule.DUALPIPE:  # a rank has layers of both ends
        return ""
    return f"{layers:,}, but all stages are in the files and {seen:,} layers were counted in them"


def _degree(field: str, shape: RunShape, measured: Measured) -> str:
    """Why a degree cannot be as it is said; empty where it can."""
    degrees, kinds = shape.degrees, measured.kinds
    if not measured.all_kinds_known:
        return ""
    if field == "pp" and degrees.pp > 1 and not kinds.intersection(_MESSAGES):
        return f"{degrees.pp} stages, but no message goes from rank to rank in the steps"
    exchanged = CollectiveKind.ALL_TO_ALL in kinds
    if field == "ep" and degrees.ep > 1 and measured.is_dense and not exchanged:
        return (
            f"experts over {degrees.ep} ranks, but every feed-forward measured is dense and "
            "nothing is exchanged all to all"
        )
    gathers = {CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER} <= kinds
    others = max(degrees.tp, degrees.cp, degrees.ep)
    if field in ("zero", "dp") and gathers and others == 1 and not degrees.shards > 1:
        said = "ZeRO 0" if degrees.zero == 0 else f"ZeRO {degrees.zero} on one replica"
        return f"{said}, but the steps gather and scatter, which nothing in these degrees does"
    return ""
