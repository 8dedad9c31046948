"""Search for the members of each operation: by recorded number, else by order of issue."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.normalise.awaited import ABSENT
from ingest.normalise.clashes import Clash, find_clashes
from ingest.normalise.collectives import Legs, Members
from ingest.normalise.groups import NO_GROUP, CommGroup, FileFacts
from ingest.normalise.rhythm import companies
from ingest.normalise.sequence import FREE, Calls, Clock, agree, align_pair
from ingest.vocab import CollectiveKind

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

_NOBODY = np.empty(0, np.int64)
_SEQ_RESTART = 16
_MIN_ALIGNED = 0.5
_MIN_SHARE = 0.25
_MIN_CALLS = 3
_UNEVEN_SIZES = (
    CollectiveKind.UNKNOWN,
    CollectiveKind.ALL_TO_ALL,
    CollectiveKind.SEND_RECV,
    CollectiveKind.GATHER,
    CollectiveKind.SCATTER,
)


class MatchMethod(StrEnum):
    """How the members of a collective were found."""

    COMMS_ID = "comms_id"
    SEQ = "seq"
    ORDER = "order"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Which members are one operation."""

    collective: Int64
    """Per member, dense from 0; a lone member has one of its own."""
    desync: Bool
    """Per member: the ranks record different operations under its number, or at its place."""
    clashes: tuple[Clash, ...]
    """Each member out of step, with one of another rank that it contradicts."""
    partners: tuple[Int64, Int64]
    """Members that send to, or receive from, each other: one row of each side."""
    partner_of_leg: Int64
    """Per leg: the member at its other end; `ABSENT` where none is found."""
    group: Int64
    """Per collective: index into `groups`; -1 where no communicator is known or found."""
    method: tuple[MatchMethod, ...]
    """Per collective."""
    groups: tuple[CommGroup, ...]
    """The recorded communicators, then those found by order alone."""


class _Channel(NamedTuple):
    """Members among which operations are sought: one communicator."""

    rows: Int64
    group: int


class _FileClock(NamedTuple):
    """How far the ends of a file lie after those of its base."""

    base: int
    """The file that was the first reference of the company."""
    offset_ns: float
    spread_ns: float


@dataclass(slots=True)
class _Search:
    """State of the search; rows are member indices."""

    members: Members
    calls: Calls
    collective: Int64
    desync: Bool
    groups: list[CommGroup]
    clashes: list[Clash] = field(default_factory=list)
    partners: tuple[Int64, Int64] = (_NOBODY, _NOBODY)
    partner_of_leg: Int64 = field(default_factory=_NOBODY.copy)
    method: list[MatchMethod] = field(default_factory=list)
    group: list[int] = field(default_factory=list)

    def join(self, rows: Int64, index: Int64, group: int, method: MatchMethod) -> None:
        """Give rows with the same index one new collective; those alone stay free."""
        values, inverse, counts = np.unique(index, return_inverse=True, return_counts=True)
        several = counts > 1
        number = np.cumsum(several) - 1 + len(self.method)
        taken = several[inverse]
        self.collective[rows[taken]] = number[inverse[taken]]
        n = int(several.sum()) if len(values) else 0
        self.method += [method] * n
        self.group += [group] * n

    def free(self, rows: Int64) -> Int64:
        """Rows without a collective so far that may still get one."""
        open_rows: Int64 = rows[(self.collective[rows] < 0) & ~self.desync[rows]]
        return open_rows


def find_collectives(
    members: Members, legs: Legs, groups: Sequence[CommGroup], files: Sequence[FileFacts]
) -> Grouping:
    """Match members over the files; what has no counterpart stays alone, never forced."""
    n = len(members.file)
    search = _Search(
        members=members,
        calls=_calls(members),
        collective=np.full(n, -1, np.int64),
        desync=np.zeros(n, dtype=bool),
        groups=list(groups),
    )
    channels = list(_channels(members))
    paired = np.zeros(n, dtype=bool)
    paired[legs.member] = True
    _match_pairs(search, legs)
    for channel in channels:
        open_channel = channel._replace(rows=channel.rows[~paired[channel.rows]])
        _match_by_number(search, open_channel, members.comms_id, MatchMethod.COMMS_ID)
        _match_by_seq(search, open_channel)
        _match_by_order(search, open_channel, files)
        _find_misplaced(search, open_channel)
    _leave_alone(search, channels)
    return Grouping(
        collective=search.collective,
        desync=search.desync,
        clashes=tuple(search.clashes),
        partners=search.partners,
        partner_of_leg=search.partner_of_leg,
        group=np.array(search.group, np.int64),
        method=tuple(search.method),
        groups=tuple(search.groups),
    )


def _calls(members: Members) -> Calls:
    """Labels that equal members share: sizes that may differ between ranks are left out."""
    return Calls(
        kind=members.kind,
        size=np.where(np.isin(members.kind, _UNEVEN_SIZES), FREE, members.size_bytes),
        dtype=members.dtype,
        name=members.name,
        number=np.full(len(members.file), FREE, np.int64),
        start_ns=members.ts_ns,
        end_ns=members.end_ns,
    )


def _channels(members: Members) -> Iterator[_Channel]:
    """Recorded communicators, then stream roles of members without one."""
    role = np.where(members.group_key == NO_GROUP, _role(members), 0)
    key = np.stack((members.group_key, role, members.on_host.astype(np.int64)))
    for rows in _split_equal(key):
        yield _Channel(rows, int(members.group_key[rows[0]]))


def _split_equal(key: Int64) -> list[Int64]:
    """Columns of equal key, a list of positions each."""
    if key.shape[1] == 0:
        return []
    order = np.lexsort(key[::-1])
    return np.split(order, np.flatnonzero((np.diff(key[:, order], axis=1) != 0).any(axis=0)) + 1)


def _match_pairs(search: _Search, legs: Legs) -> None:
    """Sends with receives, in order per direction; a kernel with several waits for all partners."""
    members = search.members
    calls = search.calls.take(legs.member)
    same = np.zeros(len(legs.member), np.int64)
    exchange = np.full(len(legs.member), CollectiveKind.SEND_RECV, np.int64)
    calls = replace(calls, kind=exchange, size=legs.size_bytes, dtype=same, name=same)
    joined = []
    search.partner_of_leg = np.full(len(legs.member), ABSENT, np.int64)
    key = np.stack((members.group_key[legs.member], legs.source, legs.target))
    for channel in _split_equal(key):
        rows = legs.member[channel]
        channel = channel[np.lexsort((channel, members.ts_ns[rows], members.launch_ns[rows]))]
        sending = members.rank[legs.member[channel]] == legs.source[channel]
        left, right = channel[sending], channel[~sending]
        timed = not members.on_host[legs.member[channel]].any()
        i, j = align_pair(calls.take(left), calls.take(right), timed=timed)
        joined.append((legs.member[left[i]], legs.member[right[j]]))
        search.partner_of_leg[left[i]], search.partner_of_leg[right[j]] = joined[-1][::-1]
    if joined:
        here, there = (np.concatenate(side) for side in zip(*joined, strict=True))
        search.partners = here, there
    company = _hanging_together(len(members.file), *search.partners)
    rows = np.unique(legs.member)
    for group in np.unique(members.group_key[rows]).tolist():
        of_group = rows[members.group_key[rows] == group]
        search.join(of_group, company[of_group], group, MatchMethod.ORDER)


def _hanging_together(n: int, here: Int64, there: Int64) -> Int64:
    """Per member the lowest one that it is paired with, directly or through others."""
    lowest = np.arange(n)
    while True:
        before = lowest.copy()
        of_pair = np.minimum(lowest[here], lowest[there])
        np.minimum.at(lowest, here, of_pair)
        np.minimum.at(lowest, there, of_pair)
        lowest = lowest[lowest]
        if np.array_equal(before, lowest):
            return lowest


def _role(members: Members) -> Int64:
    """Number of the communicator or stream inside its file, comparable between files.

    Streams keep their number where all files use the same ones, else they count in order.
    """
    local = np.where(members.local_group >= 0, -2 - members.local_group, members.stream)
    local = np.where(members.on_host, -1, local)
    unknown = members.group_key == NO_GROUP
    used = [np.unique(local[unknown & (members.file == f)]) for f in np.unique(members.file)]
    used = [streams for streams in used if len(streams)]
    if all(np.array_equal(streams, used[0]) for streams in used):
        return local
    role = np.zeros(len(local), np.int64)
    for file in np.unique(members.file):
        mine = np.flatnonzero(unknown & (members.file == file))
        role[mine] = np.unique(local[mine], return_inverse=True)[1]
    return role


def _issue_order(members: Members, rows: Int64) -> Int64:
    """Rows by file, then in the order of their calls; unlinked ones were launched before."""
    launch = members.launch_ns[rows]
    ordered: Int64 = rows[np.lexsort((members.ts_ns[rows], launch, members.file[rows]))]
    return ordered


def _by_file(members: Members, rows: Int64) -> list[Int64]:
    rows = _issue_order(members, rows)
    if len(rows) == 0:
        return []
    return np.split(rows, np.flatnonzero(np.diff(members.file[rows])) + 1)


def _match_by_number(
    search: _Search, channel: _Channel, number: Int64, method: MatchMethod
) -> None:
    rows = search.free(channel.rows)
    rows = _issue_order(search.members, rows[number[rows] >= 0])
    if len(rows) == 0:
        return
    key = np.stack((number[rows], _occurrence(search.members.file[rows], number[rows])))
    _join_agreeing(search, rows, key, channel, method)


def _match_by_seq(search: _Search, channel: _Channel) -> None:
    """By `Seq`; where it starts over inside a file, the last runs of all files go together."""
    members = search.members
    rows = search.free(channel.rows)
    parts = _by_file(members, rows[members.seq[rows] >= 0])
    if not parts:
        return
    epochs = []
    for part in parts:
        restarts = np.cumsum(
            np.diff(members.seq[part], prepend=members.seq[part[0]]) < -_SEQ_RESTART
        )
        epochs.append(restarts - restarts[-1])
    rows, epoch = np.concatenate(parts), np.concatenate(epochs)
    number = epoch * (int(members.seq.max()) + 1) + members.seq[rows]
    key = np.stack((number, _occurrence(members.file[rows], number)))
    _join_agreeing(search, rows, key, channel, MatchMethod.SEQ)


def _occurrence(file: Int64, number: Int64) -> Int64:
    """How often the number occurred before in its file (coalesced operations share theirs)."""
    order = np.lexsort((np.arange(len(file)), number, file))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(file[order]) != 0) | (np.diff(number[order]) != 0)
    position = np.arange(len(order))
    count = np.empty(len(order), np.int64)
    count[order] = position - position[new][np.cumsum(new) - 1]
    return count


def _join_agreeing(
    search: _Search, rows: Int64, key: Int64, channel: _Channel, method: MatchMethod
) -> None:
    """Join rows of equal key; those that contradict most of their kind are out of step.

    Where more than half of the operations contradict themselves the number is not one that the
    ranks share, and nothing is joined.
    """
    index = np.unique(key, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    first = np.full(int(index.max()) + 1, len(rows))
    np.minimum.at(first, index, np.arange(len(rows)))
    odd = ~agree(search.calls.take(rows), search.calls.take(rows[first[index]]))
    conflicts = np.unique(index[odd])
    shared = np.count_nonzero(np.bincount(index) > 1)
    if 2 * len(conflicts) > shared:
        return
    out = np.zeros(len(rows), dtype=bool)
    for conflict in conflicts.tolist():
        same = np.flatnonzero(index == conflict)
        out[same] = _minority(search.members, rows[same])
        search.clashes += _contradictions(search.calls, rows[same], out[same])
    search.desync[rows[out]] = True
    search.join(rows[~out], index[~out], channel.group, method)
    search.calls.number[rows] = index


def _minority(members: Members, rows: Int64) -> Bool:
    """Members outside the most common (kind, size); all where no label has the majority."""
    labels = list(zip(members.kind[rows].tolist(), members.size_bytes[rows].tolist(), strict=True))
    label, count = Counter(labels).most_common(1)[0]
    if 2 * count <= len(rows):
        return np.ones(len(rows), dtype=bool)
    return np.array([other != label for other in labels])


def _contradictions(calls: Calls, rows: Int64, out: Bool) -> Iterator[Clash]:
    """Each row that is out of step, with the first under its number that it contradicts."""
    for row in rows[out].tolist():
        same = agree(calls.take(rows), calls.take(np.full(len(rows), row)))
        other = rows[~same]
        if len(other):
            yield Clash(row, int(other[0]))


def _find_misplaced(search: _Search, channel: _Channel) -> None:
    """Members that stay alone because another rank has something else at their place."""
    free = search.free(channel.rows)
    if len(free) == 0:
        return
    in_step = channel.rows[~search.desync[channel.rows]]
    parts = _by_file(search.members, in_step)
    for clash in find_clashes(parts, search.calls, search.collective):
        search.desync[clash.row] = True
        search.clashes.append(clash)


def _match_by_order(search: _Search, channel: _Channel, files: Sequence[FileFacts]) -> None:
    """Align the longest sequence with the others; what is left over, again among itself.

    The first round tells the clocks, and the later ones stay within them.
    """
    timed = not search.members.on_host[channel.rows].any()
    remaining = _by_file(search.members, search.free(channel.rows))
    clocks: dict[int, _FileClock] = {}
    while len(remaining) > 1:
        longest = max(range(len(remaining)), key=lambda part: len(remaining[part]))
        left = remaining.pop(longest)
        company, leftovers = [(left, np.arange(len(left)))], []
        for right in remaining:
            clock = _known_clock(search, left, right, clocks)
            i, j = align_pair(
                search.calls.take(left), search.calls.take(right), timed=timed, clock=clock
            )
            shorter = min(len(left), len(right))
            enough = len(i) >= min(_MIN_ALIGNED * shorter, max(_MIN_CALLS, _MIN_SHARE * shorter))
            if channel.group == NO_GROUP and not enough and clock is None:
                leftovers.append(right)
                continue
            company.append((right[j], i))
            _learn_clock(search, left[i], right[j], clocks)
            rest = np.delete(right, j)
            if len(rest) and timed:
                leftovers.append(rest)
        _join_company(search, channel, company, files)
        remaining = leftovers


def _known_clock(
    search: _Search, left: Int64, right: Int64, clocks: dict[int, _FileClock]
) -> Clock | None:
    here, there = (clocks.get(int(search.members.file[rows[0]])) for rows in (left, right))
    if here is None or there is None or here.base != there.base:
        return None
    return Clock(there.offset_ns - here.offset_ns, max(here.spread_ns, there.spread_ns))


def _learn_clock(search: _Search, left: Int64, right: Int64, clocks: dict[int, _FileClock]) -> None:
    """Note how far the right-hand file's ends lie after those of the left-hand file's base."""
    if len(left) == 0:
        return
    here, there = (int(search.members.file[rows[0]]) for rows in (left, right))
    base = clocks.setdefault(here, _FileClock(here, 0.0, 0.0))
    apart = search.members.end_ns[right] - search.members.end_ns[left]
    offset = float(np.median(apart))
    spread = float(np.median(np.abs(apart - offset)))
    clocks.setdefault(there, _FileClock(base.base, base.offset_ns + offset, spread))


def _join_company(
    search: _Search,
    channel: _Channel,
    company: list[tuple[Int64, Int64]],
    files: Sequence[FileFacts],
) -> None:
    """Join aligned members; without a recorded group, split ranks that only run in step."""
    if len(company) < 2:  # noqa: PLR2004  (nobody to meet)
        return
    label = np.zeros(len(company), np.int64)
    if channel.group == NO_GROUP:
        ends = np.full((len(company), len(company[0][0])), np.nan)
        for line, (rows, index) in enumerate(company):
            ends[line, index] = search.members.end_ns[rows]
        label = companies(ends)
    for number in range(int(label.max()) + 1):
        parts = [part for part, own in zip(company, label.tolist(), strict=True) if own == number]
        rows = np.concatenate([rows for rows, _ in parts])
        index = np.concatenate([index for _, index in parts])
        whole = _whole_exchanges(search.members, rows, index, len(parts))
        rows, index = rows[whole], index[whole]
        group = channel.group
        if group == NO_GROUP and len(rows):
            group = _found_group(search, rows, files)
        search.join(rows, index, group, MatchMethod.ORDER)


def _whole_exchanges(members: Members, rows: Int64, index: Int64, n_files: int) -> Bool:
    """SendRecv kernels with unknown partners are an all-to-all only if every rank has one."""
    exchange = members.kind[rows] == CollectiveKind.SEND_RECV
    whole: Bool = ~exchange | (np.bincount(index)[index] == n_files)
    return whole


def _found_group(search: _Search, rows: Int64, files: Sequence[FileFacts]) -> int:
    ranks = sorted({files[file].rank for file in np.unique(search.members.file[rows]).tolist()})
    key = tuple(ranks)
    ordinal = sum(1 for group in search.groups if group.ranks == key)
    search.groups.append(CommGroup(name="", ranks=key, ordinal=ordinal, exact=False))
    return len(search.groups) - 1


def _leave_alone(search: _Search, channels: Sequence[_Channel]) -> None:
    for channel in channels:
        lone = channel.rows[search.collective[channel.rows] < 0]
        search.collective[lone] = len(search.method) + np.arange(len(lone))
        search.method += [MatchMethod.NONE] * len(lone)
        search.group += [channel.group] * len(lone)
