"""Whom each member of a collective waits for: all, its partners, the root, or nobody."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ingest.normalise.collectives import Legs, Members
from ingest.vocab import CollectiveKind

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

ABSENT = -1
"""Instead of a member: one that is waited for and is not in the files."""
_ROOT_FIRST = (CollectiveKind.BROADCAST, CollectiveKind.SCATTER)
_ROOT_LAST = (CollectiveKind.REDUCE, CollectiveKind.GATHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """Pairs (who waits, for whom); members that wait for all others have none."""

    everyone: Bool
    """Per member: it waits for all members of its collective."""
    member: Int64
    """Per pair: row of the member that waits, ascending."""
    other: Int64
    """Per pair: row of the member waited for; `ABSENT`."""

    def lacks_any(self) -> Bool:
        """Per member: one that it waits for is not in the files (those that wait for all: no)."""
        lacks = np.zeros(len(self.everyone), bool)
        lacks[self.member[self.other == ABSENT]] = True
        return lacks

    def lists(self) -> list[list[int] | None]:
        """Per member the rows waited for, once each, `ABSENT` as one of them; None for all."""
        rows: list[list[int] | None] = [None if all_ else [] for all_ in self.everyone.tolist()]
        for member, other in zip(self.member.tolist(), self.other.tolist(), strict=True):
            row = rows[member]
            assert row is not None, "who waits for all waits for nobody in particular"
            row.append(other)
        return rows


def all_for_all(n_members: int) -> Awaited:
    """Every member waits for all others."""
    nobody = np.zeros(0, np.int64)
    return Awaited(everyone=np.ones(n_members, bool), member=nobody, other=nobody)


def find_awaited(
    members: Members, legs: Legs, *, collective: Int64, kind: Int64, partner_of_leg: Int64
) -> Awaited:
    """Whom each member waits for, as far as the files tell; else all.

    Who sends and receives waits for its partners, which may have others in turn. Receivers of a
    broadcast or scatter wait for the root only; in a reduce or gather only the root waits.

    Args:
        members: of all files.
        legs: sends and receives with known partners.
        collective: per member, dense from 0.
        kind: per collective, its CollectiveKind.
        partner_of_leg: member at the other end of each leg; `ABSENT`.
    """
    root = _root(members, collective, len(kind))
    row = np.full(len(kind), ABSENT, np.int64)
    at_root = np.flatnonzero(members.rank == root[collective])
    row[collective[at_root]] = at_root
    everyone = np.ones(len(members.rank), bool)
    everyone[legs.member] = False
    rooted = everyone & (root >= 0)[collective]
    is_root = members.rank == root[collective]
    first, last = (np.isin(kind, kinds)[collective] for kinds in (_ROOT_FIRST, _ROOT_LAST))
    everyone &= ~(rooted & (first | (last & ~is_root)))
    receiving = np.flatnonzero(rooted & first & ~is_root)
    between = legs.source != legs.target
    member = np.concatenate((legs.member[between], receiving))
    other = np.concatenate((partner_of_leg[between], row[collective[receiving]]))
    pairs = np.unique(np.stack((member, other)), axis=1)
    return Awaited(everyone=everyone, member=pairs[0], other=pairs[1])


def _root(members: Members, collective: Int64, n: int) -> Int64:
    """Per collective the global rank of its root; -1 where not recorded or not the same on all.

    Some writers put the member's own rank into the field.
    """
    recorded = members.root >= 0
    highest, lowest = np.full(n, -1, np.int64), np.full(n, np.iinfo(np.int64).max)
    np.maximum.at(highest, collective[recorded], members.root[recorded])
    np.minimum.at(lowest, collective[recorded], members.root[recorded])
    return np.where(highest == lowest, highest, -1)
