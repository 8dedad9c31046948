"""Where every task belongs: part of the model, direction, layer, micro-batch, place."""

from dataclasses import dataclass, fields

import numpy as np

from replay.graph.arrays import Int8, Int32
from whatif.models.places import Part, Pass, Place

__all__ = ["Labels", "Part", "Pass", "Place", "unlabelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Columns with one row per task of a graph."""

    part: Int8
    """Part."""
    direction: Int8
    """Pass."""
    layer: Int32
    """Of the whole model, from 0; -1 outside layers or where not told."""
    micro_batch: Int32
    """Of the step, from 0; -1 outside."""
    place: Int8
    """Place."""

    def __post_init__(self) -> None:
        lengths = set()
        for column in fields(self):
            value = getattr(self, column.name)
            value.flags.writeable = False
            lengths.add(len(value))
        assert len(lengths) == 1, "one row per task"

    def __len__(self) -> int:
        return len(self.part)


def unlabelled(n_tasks: int) -> Labels:
    """Of a run of which nothing is understood."""
    return Labels(
        part=np.zeros(n_tasks, np.int8),
        direction=np.zeros(n_tasks, np.int8),
        layer=np.full(n_tasks, -1, np.int32),
        micro_batch=np.full(n_tasks, -1, np.int32),
        place=np.zeros(n_tasks, np.int8),
    )
