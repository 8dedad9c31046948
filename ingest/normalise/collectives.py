"""Columns of collective members: kind, size, communicator, order of issue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.normalise.groups import (
    NO_GROUP,
    CommGroup,
    FileFacts,
    GroupTable,
    Recorded,
    recorded_group,
)
from ingest.normalise.messages import (
    HostRow,
    Message,
    is_communication_record,
    message_of_device_row,
    message_of_host_row,
    partners_of,
    peers_in_group,
    root_of,
)
from ingest.vocab import CollectiveKind

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]
_INT64_LIMIT = 1 << 63

_PAIR_KINDS = frozenset({CollectiveKind.SEND, CollectiveKind.RECV, CollectiveKind.SEND_RECV})


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSource:
    """One member as the trace has it: a device row of communication, or a `gloo:*` row."""

    file: int
    """Index into the list of files."""
    slice_id: int
    name: str
    ts_ns: int
    dur_ns: int
    stream: int = -1
    """Stream of a device row; a thread number for host rows."""
    launch_ns: int = -1
    """Start of the launching call (device rows) or of the issuing operator (host rows)."""
    on_host: bool = False
    args: Mapping[str, object] = field(default_factory=dict)
    host: tuple[HostRow, ...] = ()
    """Rows around the launching call, innermost first; others than records of communication
    may be among them and are passed over. Host rows: the issuing `c10d::*` operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Columns with one row per member, in the order given; -1 where not recorded."""

    file: Int64
    rank: Int64
    slice_id: Int64
    ts_ns: Int64
    end_ns: Int64
    kind: Int64
    """CollectiveKind."""
    size_bytes: Int64
    """Size in the sense of nccl-tests."""
    dtype: Int64
    """c10 ScalarType, index into DTYPE_NAMES."""
    group_key: Int64
    """Index into the communicators; the same on all ranks."""
    group_size: Int64
    """Number of ranks that the communicator has."""
    local_group: Int64
    """Number of the communicator inside its file where only that is recorded."""
    seq: Int64
    comms_id: Int64
    """Number of the operation (`Comms Id`), the same on all ranks."""
    root: Int64
    """Global rank of the root of a rooted kind."""
    name: Int64
    stream: Int64
    launch_ns: Int64
    on_host: Bool

    def __post_init__(self) -> None:
        for column in fields(self):
            getattr(self, column.name).flags.writeable = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Legs:
    """Sends and receives with known partner, one row each; a member may have several."""

    member: Int64
    """Row in the members."""
    source: Int64
    """Global rank that sends."""
    target: Int64
    """Global rank that receives."""
    size_bytes: Int64


class Described(NamedTuple):
    """Members, their sends and receives, and the words that their numbers stand for."""

    members: Members
    legs: Legs
    groups: tuple[CommGroup, ...]
    names: tuple[str, ...]
    recorded: tuple[str, ...]
    """Per member: the operation as the trace names it."""


def describe(sources: Sequence[MemberSource], files: Sequence[FileFacts]) -> Described:
    """Turn what the trace says of each member into columns; nothing is guessed.

    A device member without any metadata keeps size -1 and, unless its file lists one single
    communicator, group -1.
    """
    table = GroupTable(files)
    rows = [_rows(source) for source in sources]
    recorded = [
        _only_group(recorded_group(own, files[source.file]), source, files[source.file])
        for own, source in zip(rows, sources, strict=True)
    ]
    for group, source in zip(recorded, sources, strict=True):
        if group.ranks:
            table.add(source.file, group)
    groups, keys = table.number()
    messages = [
        _message(source, group.size) for group, source in zip(recorded, sources, strict=True)
    ]
    names: dict[str, int] = {}
    operations: dict[str, int] = {}
    local: dict[tuple[int, str], int] = {}
    table_rows = []
    for source, own, group, message in zip(sources, rows, recorded, messages, strict=True):
        table_rows.append(
            (
                source.file,
                files[source.file].rank,
                source.slice_id,
                source.ts_ns,
                source.ts_ns + source.dur_ns,
                message.kind,
                message.size_bytes,
                message.dtype,
                keys[source.file, group.ranks, group.local] if group.ranks else NO_GROUP,
                group.size,
                _local_number(local, source.file, group.local),
                group.seq,
                operations.setdefault(group.comms_id, len(operations)) if group.comms_id else -1,
                root_of(message.kind, own, group.ranks),
                names.setdefault(source.name, len(names)),
                source.stream,
                source.launch_ns,
                source.on_host,
            )
        )
    fitting: list[tuple[int, ...]] = [tuple(map(_fitting, row)) for row in table_rows]
    columns = np.array(fitting, dtype=np.int64).reshape(len(table_rows), len(fields(Members)))
    named = {column.name: columns[:, i].copy() for i, column in enumerate(fields(Members))}
    members = Members(**{**named, "on_host": named["on_host"].astype(bool)})
    return Described(
        members,
        _legs(members, rows, recorded),
        groups,
        tuple(names),
        tuple(m.recorded for m in messages),
    )


def _legs(
    members: Members, rows: Sequence[tuple[HostRow, ...]], recorded: Sequence[Recorded]
) -> Legs:
    rank_of = members.rank.tolist()
    pairs = np.flatnonzero(np.isin(members.kind, list(_PAIR_KINDS)) & (members.rank >= 0)).tolist()
    # All files of a run come from the same writer.
    in_group = any(
        peers_in_group(rows[member], recorded[member].ranks, rank_of[member]) for member in pairs
    )
    table = [
        (member, *((rank_of[member], peer) if sending else (peer, rank_of[member])), size)
        for member in pairs
        for sending, peer, size in partners_of(
            rows[member], recorded[member].ranks, in_group=in_group
        )
    ]
    columns = np.array(table, dtype=np.int64).reshape(len(table), len(fields(Legs)))
    return Legs(**{column.name: columns[:, i] for i, column in enumerate(fields(Legs))})


def _fitting(value: int) -> int:
    """The value, or -1 (not recorded) where it does not fit into 64 bits: no file means that."""
    return value if -_INT64_LIMIT <= value < _INT64_LIMIT else -1


def _rows(source: MemberSource) -> tuple[HostRow, ...]:
    host = (row for row in source.host if is_communication_record(row.name))
    return (HostRow(source.name, source.args), *host)


def _message(source: MemberSource, group_size: int) -> Message:
    read = message_of_host_row if source.on_host else message_of_device_row
    host = [row for row in source.host if is_communication_record(row.name)]
    return read(source.name, source.args, host, group_size=group_size)


def _only_group(group: Recorded, source: MemberSource, facts: FileFacts) -> Recorded:
    """A file that lists one communicator has no other: library kernels without record are its."""
    library = source.on_host or "ccl" in source.name.lower()
    recorded = group.ranks or group.local
    if recorded or not library or not facts.listed_all or len(facts.listed) != 1:
        return group
    only = facts.listed[0]
    return group._replace(name=only.name, local=only.name, ranks=only.ranks, size=len(only.ranks))


def _local_number(numbers: dict[tuple[int, str], int], file: int, name: str) -> int:
    if not name:
        return -1
    known = numbers.get((file, name))
    if known is None:
        known = sum(1 for other, _ in numbers if other == file)
        numbers[file, name] = known
    return known
