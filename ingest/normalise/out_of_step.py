"""Members that contradict another rank, in words: rank, communicator, place, both operations."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ingest.normalise.clashes import Clash
from ingest.normalise.collectives import Members
from ingest.normalise.groups import NO_GROUP, CommGroup
from ingest.vocab import CollectiveKind


class OutOfStep(NamedTuple):
    """One member that is not what another rank has at its place."""

    file: int
    told: str


def out_of_step(
    members: Members, groups: Sequence[CommGroup], clashes: Sequence[Clash]
) -> Iterator[OutOfStep]:
    """A sentence for each clash, for the file of its member."""
    for clash in clashes:
        yield OutOfStep(
            file=int(members.file[clash.row]),
            told=(
                f"rank {members.rank[clash.row]} has {_operation(members, clash.row)} as "
                f"{_place(members, clash.row)} of {_group(members, groups, clash.row)}, "
                f"rank {members.rank[clash.other]} has {_operation(members, clash.other)}"
            ),
        )


def _operation(members: Members, row: int) -> str:
    kind = CollectiveKind(int(members.kind[row])).name.lower()
    size_bytes = int(members.size_bytes[row])
    return kind if size_bytes < 0 else f"{kind} of {size_bytes:,} bytes"


def _place(members: Members, row: int) -> str:
    if members.seq[row] >= 0:
        return f"Seq {members.seq[row]}"
    same = members.file == members.file[row]
    same &= members.group_key == members.group_key[row]
    if members.group_key[row] == NO_GROUP:
        same &= members.stream == members.stream[row]
    rows = np.flatnonzero(same)
    order = rows[np.lexsort((members.ts_ns[rows], members.launch_ns[rows]))]
    return f"number {int(np.flatnonzero(order == row)[0]) + 1}"


def _group(members: Members, groups: Sequence[CommGroup], row: int) -> str:
    key = int(members.group_key[row])
    if key == NO_GROUP:
        return f"stream {members.stream[row]}"
    ranks = ", ".join(map(str, groups[key].ranks))
    return f"group {groups[key].name or key} (ranks {ranks})"
