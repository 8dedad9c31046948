"""What the recorded ranks of one pipeline ran: passes of layers, and what lies around them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from whatif.description.labels import Part, Pass
from whatif.tape.segments import Tape
from whatif.transforms.relayout.columns import Column

BODY = (Part.EMBEDDING, Part.LAYER, Part.HEAD)
Unit = tuple[int, bool, int, int]
"""Part, backward?, layer (-1 outside layers), micro-batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """Segments of one rank in one step before its first pass and after its last."""

    entry: tuple[int, ...]
    exit: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Passes of a pipeline by step; segments are in the order in which they ran."""

    units: Mapping[int, Mapping[Unit, list[int]]]
    """By step."""
    around: Mapping[tuple[int, int], Around]
    """By step and recorded rank."""
    layers: tuple[int, ...]
    """Those that were seen."""
    micro_batches: int
    sides: frozenset[bool]
    """Whether forward (False) and backward (True) were seen."""

    @property
    def steps(self) -> list[int]:
        """Ordinals of the recorded steps."""
        return sorted(self.units)

    def find(
        self, step: int, part: Part, *, backward: bool, layer: int, micro_batch: int
    ) -> list[int]:
        """Segments of one pass; where it was not told apart, those of another like it.

        Of another micro-batch of the step, else, of layers, of another step: embedding and head
        that are not told apart lie in what is beside them.
        """
        for at in (step, *self.steps) if part is Part.LAYER else (step,):
            for other in (micro_batch, *range(self.micro_batches)):
                found = self.units[at].get((part, backward, layer, other))
                if found:
                    return found
        return []

    @property
    def n_layer_passes(self) -> int:
        """Passes of layers in all steps."""
        return sum(key[0] == Part.LAYER for units in self.units.values() for key in units)


class _Columns(NamedTuple):
    """Per segment; those without a layer's number are no layers."""

    part: list[int]
    direction: list[int]
    layer: list[int]
    micro_batch: list[int]


def recorded_passes(tape: Tape, column: Column) -> Recorded:
    """Read the passes of the ranks of a pipeline.

    What lies between passes goes with the one before it; what prepares a micro-batch with the one
    after it. Where no layers are told apart, a whole forward or backward stands for one.
    """
    units: dict[int, dict[Unit, list[int]]] = {}
    around: dict[tuple[int, int], Around] = {}
    columns = _columns(tape)
    for rank, step, rows in _by_rank_and_step(tape, column):
        around[step, rank] = _read(columns, rows, units.setdefault(step, {}))
    keys = [key for of_step in units.values() for key in of_step]
    return Recorded(
        units=units,
        around=around,
        layers=tuple(sorted({key[2] for key in keys if key[0] == Part.LAYER})),
        micro_batches=1 + max((key[3] for key in keys), default=0),
        sides=frozenset(key[1] for key in keys),
    )


def _by_rank_and_step(tape: Tape, column: Column) -> Iterator[tuple[int, int, Iterable[int]]]:
    segments = tape.segments
    for rank in column.ranks:
        mine = np.flatnonzero(segments.rank == rank)
        for step in np.unique(segments.step[mine]).tolist():
            yield rank, step, mine[segments.step[mine] == step].tolist()


def _read(columns: _Columns, rows: Iterable[int], units: dict[Unit, list[int]]) -> Around:
    part, direction, layer, micro_batch = columns
    entry: list[int] = []
    between = entry
    last: list[int] | None = None
    for row in rows:
        if part[row] not in BODY:
            between.append(row)
            continue
        key = (
            part[row],
            direction[row] not in (Pass.NONE, Pass.FORWARD),
            layer[row],
            max(micro_batch[row], 0),
        )
        unit = units.setdefault(key, [])
        if last is not None:
            unit += [one for one in between if part[one] == Part.ENTRY]
            last += [one for one in between if part[one] != Part.ENTRY]
        unit.append(row)
        last, between = unit, []
    return Around(entry=tuple(entry), exit=() if last is None else tuple(between))


def _columns(tape: Tape) -> _Columns:
    segments = tape.segments
    is_layer = (segments.part == Part.LAYER) & (segments.layer >= 0)
    whole = ~np.isin(segments.part, (Part.EMBEDDING, Part.HEAD)) & (segments.direction > 0)
    if is_layer.any():
        whole = is_layer
    others = np.where(segments.part == Part.LAYER, Part.OTHER, segments.part)
    part = np.where(whole, Part.LAYER, others)
    layer = np.where(whole, np.maximum(segments.layer, 0), -1)
    return _Columns(
        part.tolist(), segments.direction.tolist(), layer.tolist(), segments.micro_batch.tolist()
    )
