"""Which recorded ranks stand for which ranks of the new layout.

Ranks are numbered as Megatron-LM does: tensor ranks are neighbours, then context, then replicas;
stages lie farthest apart. Along tensor, context and replicas a recorded rank stands for as many
new ones as the degree grows by; of a smaller degree every so many are left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from whatif.models.shape import Degrees


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Recorded ranks at one place of every stage: one pipeline."""

    place: int
    """New number among the ranks of a stage."""
    ranks: tuple[int, ...]
    """Recorded, from the first stage to the last, as far as they are in the files."""


def columns_of(
    stage_of_rank: Mapping[int, int], ranks: Sequence[int], before: Degrees, after: Degrees
) -> tuple[Column, ...]:
    """The pipelines that the new ranks are made of.

    Args:
        stage_of_rank: stage of each recorded rank.
        ranks: recorded ones.
        before: degrees of the recorded run.
        after: degrees of the new one.
    """
    members: dict[int, list[int]] = {}
    for rank in sorted(ranks):
        place = rank % max(before.world // before.pp, 1)
        members.setdefault(place, []).append(rank)
    columns: dict[int, Column] = {}
    for place, found in sorted(members.items()):
        column = Column(
            place=_moved(place, before, after),
            ranks=tuple(sorted(found, key=lambda rank: stage_of_rank.get(rank, 0))),
        )
        columns.setdefault(column.place, column)
    return tuple(columns.values())


def _moved(place: int, before: Degrees, after: Degrees) -> int:
    """The place of the counterpart along every axis but stages."""
    new = 0
    stride = 1
    for axis in ("tp", "cp", "dp"):
        old_degree, new_degree = getattr(before, axis), getattr(after, axis)
        place, at = divmod(place, old_degree)
        new += stride * (at * new_degree // old_degree)
        stride *= new_degree
    return new
