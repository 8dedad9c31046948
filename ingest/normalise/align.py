"""Collectives over all ranks: matched members, aligned clocks, wait and transfer of each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.normalise.awaited import Awaited, find_awaited
from ingest.normalise.clashes import Clash
from ingest.normalise.clock import FileClocks, Meetings, fit_file_clocks
from ingest.normalise.collectives import Legs, Members
from ingest.normalise.groups import CommGroup, FileFacts
from ingest.normalise.matching import Grouping, MatchMethod, find_collectives
from ingest.normalise.waits import Split, TimedCalls, split_waits
from ingest.vocab import CollectiveKind

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

_NOT_KNOWN = -1


class MemberState(IntEnum):
    """What became of a member."""

    MATCHED = 0
    ABSENT = 1
    """The files of all its partners are missing."""
    UNCOVERED = 2
    """No counterpart in the files of its partners (head or tail of the window, or lost)."""
    DESYNC = 3
    """The ranks record different operations under one number or at one place."""


class Unmatched(NamedTuple):
    """How many members of a rank and kind stayed alone, and why."""

    rank: int
    kind: CollectiveKind
    state: MemberState
    members: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """Columns with one row per collective; -1 where not recorded."""

    kind: Int64
    """CollectiveKind; a matched send and receive are SEND_RECV, and SendRecv kernels with
    unknown partners that every rank runs are an ALL_TO_ALL."""
    group: Int64
    """Index into `Matched.groups`."""
    size_bytes: Int64
    """The largest size of its members (they differ in an uneven all-to-all)."""
    dtype: Int64
    on_host: Bool
    members_seen: Int64
    members_expected: Int64
    go_ns: Int64
    """Latest start of the members seen, on the aligned clock."""
    transfer_ns: Int64
    """Median over members; so are the bounds."""
    transfer_low_ns: Int64
    transfer_high_ns: Int64
    uncertainty_ns: Int64
    """Waits below it are not resolvable: the largest clock uncertainty of the member files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """The collectives of a run; member columns are in the order of the members given."""

    collective: Int64
    """Per member: row of `operations`; a lone member has one of its own."""
    state: Int64
    """Per member: MemberState."""
    split: Split
    """Per member: wait and transfer."""
    awaited: Awaited
    """Whom each member waits for."""
    operations: Operations
    method: tuple[MatchMethod, ...]
    """Per collective."""
    groups: tuple[CommGroup, ...]
    """The recorded communicators, then those found by order alone."""
    clocks: FileClocks
    unmatched: tuple[Unmatched, ...]
    clashes: tuple[Clash, ...]
    """Each member out of step, with one of another rank that it contradicts."""


def match(
    members: Members, legs: Legs, groups: Sequence[CommGroup], files: Sequence[FileFacts]
) -> Matched:
    """Match the members of collectives over the files, align the clocks, split wait from transfer.

    Inside one communicator members go together by `Comms Id`, else by `Seq` where kinds and
    sizes agree, else by order. Members without a recorded communicator form one with those of
    the same stream role whose sequences align. What does not match stays alone and is listed.
    """
    grouping = find_collectives(members, legs, groups, files)
    collective = grouping.collective
    n = len(grouping.method)
    seen = np.bincount(collective, minlength=n)
    kind = _kind(members, legs, collective, seen)
    expected = _expected(members, legs, grouping, files, seen)
    clocks = _clocks(members, grouping, seen, files)
    uncertainty = _uncertainty(members, collective, seen, clocks)
    awaited = find_awaited(
        members,
        legs,
        collective=collective,
        kind=kind,
        partner_of_leg=grouping.partner_of_leg,
    )
    incomplete = (seen != expected)[collective]
    split = split_waits(
        TimedCalls(
            collective=collective,
            start_ns=clocks.corrected(members.ts_ns, members.file),
            end_ns=clocks.corrected(members.end_ns, members.file),
            awaited=awaited,
            call_type=_call_type(members, kind[collective], grouping.group[collective]),
            missing=np.where(awaited.everyone, incomplete, awaited.lacks_any()),
            uncertainty_ns=uncertainty[collective],
        )
    )
    state = _states(legs, grouping, seen, files)
    return Matched(
        collective=collective,
        state=state,
        split=split,
        awaited=awaited,
        operations=Operations(
            kind=kind,
            group=grouping.group,
            size_bytes=_largest(members.size_bytes, collective, n),
            dtype=_largest(members.dtype, collective, n),
            on_host=_largest(members.on_host.astype(np.int64), collective, n) > 0,
            members_seen=seen,
            members_expected=expected,
            go_ns=split.go_ns,
            transfer_ns=_median(split.transfer_ns, collective, seen),
            transfer_low_ns=_median(split.transfer_low_ns, collective, seen),
            transfer_high_ns=_median(split.transfer_high_ns, collective, seen),
            uncertainty_ns=uncertainty,
        ),
        method=grouping.method,
        groups=grouping.groups,
        clocks=clocks,
        unmatched=_unmatched(members, state),
        clashes=grouping.clashes,
    )


def _kind(members: Members, legs: Legs, collective: Int64, seen: Int64) -> Int64:
    kind = _largest(members.kind, collective, len(seen))
    unknown_partner = np.ones(len(seen), dtype=bool)
    unknown_partner[collective[legs.member]] = False
    exchange = (kind == CollectiveKind.SEND_RECV) & unknown_partner
    kind = np.where((seen > 1) & exchange, CollectiveKind.ALL_TO_ALL, kind)
    return np.where((seen > 1) & ~unknown_partner, CollectiveKind.SEND_RECV, kind)


def _expected(
    members: Members, legs: Legs, grouping: Grouping, files: Sequence[FileFacts], seen: Int64
) -> Int64:
    """Number of members an operation has.

    Sends and receives: all ranks named. Else the recorded size of the group; else, when all
    ranks of the world are in the files, that of the communicator found; else that of the world.
    """
    size = _largest(members.group_size, grouping.collective, len(seen))
    ranks = {facts.rank for facts in files}
    world = max((facts.world_size for facts in files), default=_NOT_KNOWN)
    found = np.array([len(group.ranks) for group in grouping.groups] + [_NOT_KNOWN], np.int64)
    of_group = found[grouping.group] if len(ranks) >= world else np.full(len(seen), _NOT_KNOWN)
    expected = np.where(of_group > 0, of_group, np.maximum(seen, world))
    expected = np.where(size > 0, size, expected)
    named = _ranks_named(legs, grouping.collective, len(seen))
    return np.maximum(np.where(named > 0, named, expected), seen)


def _ranks_named(legs: Legs, collective: Int64, n: int) -> Int64:
    """Per collective: how many ranks its sends and receives name; 0 without any."""
    of_leg = collective[legs.member]
    ends = np.stack((np.tile(of_leg, 2), np.concatenate((legs.source, legs.target))))
    return np.bincount(np.unique(ends, axis=1)[0], minlength=n)


def _states(legs: Legs, grouping: Grouping, seen: Int64, files: Sequence[FileFacts]) -> Int64:
    here = {facts.rank for facts in files}
    has_company = np.array(
        [len(here.intersection(group.ranks)) > 1 for group in grouping.groups] + [len(files) > 1]
    )
    partner_here = has_company[grouping.group[grouping.collective]]
    partner_here[legs.member] = False
    both_here = np.isin(legs.source, list(here)) & np.isin(legs.target, list(here))
    partner_here[legs.member[both_here]] = True
    state = np.where(partner_here, MemberState.UNCOVERED, MemberState.ABSENT)
    state = np.where(grouping.desync, MemberState.DESYNC, state)
    return np.where(seen[grouping.collective] > 1, MemberState.MATCHED, state).astype(np.int64)


def _clocks(
    members: Members, grouping: Grouping, seen: Int64, files: Sequence[FileFacts]
) -> FileClocks:
    """Clocks from who met whom: all members of a collective, but only partners of an exchange."""
    here, there = grouping.partners
    whole = seen[grouping.collective] > 1
    whole[here] = whole[there] = False
    together = np.flatnonzero(whole)
    rows = np.concatenate((together, here, there))
    pair = len(seen) + np.arange(len(here))
    return fit_file_clocks(
        Meetings(
            collective=np.concatenate((grouping.collective[together], pair, pair)),
            file=members.file[rows],
            kind=members.kind[rows],
            start_ns=members.ts_ns[rows],
            end_ns=members.end_ns[rows],
            on_host=members.on_host[rows],
        ),
        np.array([facts.rank for facts in files], np.int64),
        [facts.host for facts in files],
    )


def _uncertainty(members: Members, collective: Int64, seen: Int64, clocks: FileClocks) -> Int64:
    nanos = np.ceil(clocks.uncertainty_ns[members.file]).astype(np.int64)
    return np.where(seen > 1, _largest(nanos, collective, len(seen)), 0)


def _call_type(members: Members, kind: Int64, group: Int64) -> Int64:
    """The same number for equal calls: kind, size, dtype, communicator, kernel name."""
    key = np.stack((kind, members.size_bytes, members.dtype, group, members.name))
    if key.shape[1] == 0:
        return np.empty(0, np.int64)
    number = np.unique(key, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return np.where(members.size_bytes >= 0, number, _NOT_KNOWN)


def _largest(value: Int64, collective: Int64, n: int) -> Int64:
    largest = np.full(n, np.iinfo(np.int64).min)
    np.maximum.at(largest, collective, value)
    return largest


def _median(value: Int64, collective: Int64, seen: Int64) -> Int64:
    """Lower median per collective."""
    order = np.lexsort((value, collective))
    first = np.cumsum(seen) - seen
    return value[order][first + (seen - 1) // 2] if len(seen) else value


def _unmatched(members: Members, state: Int64) -> tuple[Unmatched, ...]:
    alone = state != MemberState.MATCHED
    counts = Counter(
        zip(
            members.rank[alone].tolist(),
            members.kind[alone].tolist(),
            state[alone].tolist(),
            strict=True,
        )
    )
    return tuple(
        Unmatched(rank, CollectiveKind(kind), MemberState(why), count)
        for (rank, kind, why), count in sorted(counts.items())
    )
