"""What the store says of the collectives and communicators of a run."""

from dataclasses import dataclass

import numpy as np

from ingest.normalise.messages import DTYPE_BYTES, dtype_code
from ingest.store import Store
from replay.graph.arrays import NONE, Collectives, Group, Int64
from replay.graph.layout import Parts
from replay.graph.recorded import SQL, Recorded

GROUP_COLUMNS = ("group_key", "name", "ranks", "size", "backend", "description")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Per dense collective number, what the store knows of it."""

    kind: Int64
    size_bytes: Int64
    expected: Int64
    seen: Int64
    """Members in the chosen files."""
    transfer_ns: Int64
    transfer_low_ns: Int64
    transfer_high_ns: Int64
    on_host: Int64
    item_bytes: Int64
    """Of one element; -1 when its type is not recorded."""
    group_key: list[str]


def known_collectives(store: Store, recorded: Recorded) -> Known:
    """What the store says of the collectives whose members are among the rows."""
    columns = store.arrays_from_file(SQL / "collective.sql", {})
    place = np.searchsorted(columns["coll_id"].astype(np.int64), recorded.collective_ids)
    seen = np.bincount(recorded.member.collective, minlength=len(place))

    def of(name: str) -> Int64:
        values: Int64 = columns[name].astype(np.int64)[place]
        return values

    return Known(
        kind=of("kind"),
        size_bytes=of("size_bytes"),
        expected=np.maximum(of("n_expected"), seen),
        seen=seen.astype(np.int64),
        transfer_ns=of("transfer_ns"),
        transfer_low_ns=of("transfer_low_ns"),
        transfer_high_ns=of("transfer_high_ns"),
        on_host=of("on_host"),
        item_bytes=np.array([_item_bytes(name) for name in columns["dtype"][place]], np.int64),
        group_key=[_text(key) for key in columns["group_key"][place]],
    )


def _item_bytes(dtype: object) -> int:
    code = dtype_code(dtype)
    return NONE if code < 0 else DTYPE_BYTES[code]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def find_groups(store: Store, known: Known) -> tuple[tuple[Group, ...], Int64]:
    """Communicators, and per collective the index of its own."""
    columns = store.arrays_from_file(SQL / "group.sql", {})
    groups: list[Group] = []
    number: dict[str, int] = {}
    for key, name, ranks, size, backend, description in zip(
        *(columns[column].tolist() for column in GROUP_COLUMNS), strict=True
    ):
        members = tuple(int(rank) for rank in ranks.split(",")) if _text(ranks) else ()
        number[key] = len(groups)
        groups.append(
            Group(
                name=_text(name),
                ranks=members,
                size=len(members) or int(size),
                backend=_text(backend),
                description=_text(description),
            )
        )
    unknown: dict[int, int] = {}
    group_of = np.empty(len(known.group_key), np.int64)
    for index, key in enumerate(known.group_key):
        if key in number:
            group_of[index] = number[key]
            continue
        size = int(known.expected[index])
        if size not in unknown:
            unknown[size] = len(groups)
            groups.append(Group(name="", ranks=(), size=size, backend=""))
        group_of[index] = unknown[size]
    return tuple(groups), group_of


def collective_columns(
    recorded: Recorded, known: Known, group_of: Int64, parts: Parts
) -> Collectives:
    """Columns of the collectives; bounds of the transfer where members are missing."""
    member = recorded.member
    own_ns = np.zeros(len(known.kind), np.int64)
    np.maximum.at(own_ns, member.collective, member.end_ns - parts.meetings.go_ns)
    transfer_ns = np.where(known.transfer_ns >= 0, known.transfer_ns, own_ns)
    partial = known.seen < known.expected
    return Collectives(
        kind=known.kind.astype(np.int8),
        group=group_of.astype(np.int32),
        size_bytes=known.size_bytes,
        members_seen=known.seen.astype(np.int32),
        members_expected=known.expected.astype(np.int32),
        transfer_ns=transfer_ns,
        outside_wait_low_ns=np.where(partial, known.transfer_low_ns, transfer_ns),
        outside_wait_high_ns=np.where(partial, known.transfer_high_ns, transfer_ns),
        on_host=known.on_host.astype(bool),
        item_bytes=known.item_bytes.astype(np.int8),
        latency_ns=np.zeros(len(known.kind), np.int64),
    )
