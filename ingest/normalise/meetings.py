"""Collectives of the run: what each member says of itself, matched over the files."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.normalise.align import Matched, match
from ingest.normalise.batches import Batches
from ingest.normalise.collectives import Described, MemberSource, describe
from ingest.normalise.correlate import Links
from ingest.normalise.gather import Gathered, OfRows, TraceFile
from ingest.normalise.groups import FileFacts, file_facts
from ingest.normalise.messages import (
    HostRow,
    is_communication_record,
    may_be_a_batch,
    one_way,
)
from ingest.vocab import KernelClass

Int64 = NDArray[np.int64]

HOST_MEMBER = r"^(?:gloo|mpi|ucc):"
_HOST_RECORD = r"^c10d::|^_c10d_functional::"
_LEVELS = 8
"""Rows around a launching call that may describe its collective."""


class RunCollectives(NamedTuple):
    """Members in slice order, their host records, and how they match."""

    described: Described
    matched: Matched
    record: Int64
    """Per member: slice of the host record (`record_param_comms`, `c10d::*`); -1."""


def find_collectives(gathered: Gathered, links: Links, ts: Int64, stream: OfRows) -> RunCollectives:
    """Describe and match all members of all files.

    Args:
        gathered: the rows.
        links: their launching calls.
        ts: starts on the host clock of each file.
        stream: the stream of each device row.
    """
    facts = [_facts(file) for file in gathered.files]
    sources, record = _sources(gathered, links, ts, stream)
    described = describe(sources, facts)
    matched = match(described.members, described.legs, described.groups, facts)
    return RunCollectives(described, matched, record)


def _facts(file: TraceFile) -> FileFacts:
    host = file.parsed.header.get("host_name")
    return file_facts(
        file.parsed.header.get("distributedInfo"),
        rank=file.rank,
        world_size=-1 if file.world_size is None else file.world_size,
        host=host if isinstance(host, str) else "",
    )


def _sources(
    gathered: Gathered, links: Links, ts: Int64, stream: OfRows
) -> tuple[list[MemberSource], Int64]:
    on_device = np.flatnonzero(gathered.on_device & (links.kernel_class == KernelClass.COLLECTIVE))
    on_host = np.flatnonzero(
        gathered.is_category("user_annotation") & gathered.name_matches(HOST_MEMBER)
    )
    reader = _Reader(gathered)
    batches = Batches(gathered, links.call[on_device].astype(np.int64))
    sources, records = [], []
    for row, lane in zip(on_device.tolist(), stream.of(on_device).tolist(), strict=True):
        call = int(links.call[row])
        around = reader.around(call)
        if call >= 0 and may_be_a_batch(reader.host_row(row), map(reader.host_row, around)):
            around = one_way(batches.before(call), reader.host_row) or around
        record = next((r for r in around if is_communication_record(reader.name(r))), -1)
        sources.append(
            MemberSource(
                file=int(gathered.trace[row]),
                slice_id=row,
                name=reader.name(row),
                ts_ns=int(ts[row]),
                dur_ns=int(gathered.dur[row]),
                stream=lane,
                launch_ns=int(gathered.ts[call]) if call >= 0 else -1,
                args=reader.args(row),
                host=tuple(reader.host_row(r) for r in around),
            )
        )
        records.append(record)
    issuer = _issuers(gathered, on_host)
    for row in on_host.tolist():
        call = issuer[row]
        sources.append(
            MemberSource(
                file=int(gathered.trace[row]),
                slice_id=row,
                name=reader.name(row),
                ts_ns=int(gathered.ts[row]),
                dur_ns=int(gathered.dur[row]),
                stream=int(gathered.utid[row]),
                launch_ns=int(gathered.ts[call]) if call >= 0 else -1,
                on_host=True,
                args=reader.args(row),
                host=(reader.host_row(call),) if call >= 0 else (),
            )
        )
        records.append(call)
    return sources, np.array(records, np.int64)


class _Reader:
    """Names and decoded arguments of single rows; arguments of those that may tell of messages."""

    def __init__(self, gathered: Gathered) -> None:
        self._gathered = gathered
        self._decoded: dict[int, Mapping[str, object]] = {}
        self._place: dict[int, tuple[int, int]] = {}
        for trace_id, (file, id_of) in enumerate(zip(gathered.files, gathered.id_of, strict=True)):
            ids = id_of[file.parsed.messages.row].tolist()
            self._place.update({row: (trace_id, place) for place, row in enumerate(ids)})

    def name(self, row: int) -> str:
        return self._gathered.name_text(row)

    def args(self, row: int) -> Mapping[str, object]:
        if row not in self._decoded:
            self._decoded[row] = self._decode(row)
        return self._decoded[row]

    def _decode(self, row: int) -> Mapping[str, object]:
        if row not in self._place:
            return {}
        trace_id, place = self._place[row]
        messages = self._gathered.files[trace_id].parsed.messages
        numbers = messages.numbers[messages.first[place] : messages.first[place + 1]]
        return self._gathered.words.arguments_of(int(messages.shape[place]), numbers)

    def host_row(self, row: int) -> HostRow:
        return HostRow(self.name(row), self.args(row))

    def around(self, row: int) -> list[int]:
        found: list[int] = []
        while row >= 0 and len(found) < _LEVELS:
            found.append(row)
            row = int(self._gathered.parent[row])
        return found


def _issuers(gathered: Gathered, members: Int64) -> dict[int, int]:
    """`c10d::*` operator of each host-side member: by order and operation within the file.

    Outermost operators only: a functional collective holds the c10d operator it calls.
    """
    issuer: dict[int, int] = {int(row): -1 for row in members}
    if not issuer:
        return issuer
    is_record = gathered.name_matches(_HOST_RECORD)
    parent = gathered.parent
    inner = (parent >= 0) & is_record[parent]
    calls = np.flatnonzero(is_record & ~inner)
    for trace_id in range(len(gathered.files)):
        _pair_in_order(
            gathered,
            calls[gathered.trace[calls] == trace_id].tolist(),
            members[gathered.trace[members] == trace_id].tolist(),
            issuer,
        )
    return issuer


_OPERATIONS: Sequence[tuple[str, str]] = (
    ("reduce_scatter", "all_reduce"),
    ("allreduce", "all_reduce"),
    ("all_reduce", "all_reduce"),
    ("allgather", "all_gather"),
    ("all_gather", "all_gather"),
    ("alltoall", "all_to_all"),
    ("all_to_all", "all_to_all"),
    ("broadcast", "broadcast"),
    ("barrier", "barrier"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("reduce", "reduce"),
    ("recv", "recv"),
    ("send", "send"),
)


def _operation(text: str) -> str | None:
    """One word for `c10d::allreduce_` and `gloo:all_reduce` alike; gloo has no reduce-scatter."""
    if "wait_tensor" in text:
        return None
    return next((word for part, word in _OPERATIONS if part in text.lower()), None)


def _pair_in_order(
    gathered: Gathered, calls: list[int], rows: list[int], issuer: dict[int, int]
) -> None:
    """The k-th started member of an operation belongs to the k-th issued call of it.

    Rows of a file are numbered in the order of their starts. A call that began after the member
    did is none of its: members of work issued before the window come first and stay without one.
    """
    waiting: dict[str, deque[int]] = {}
    for call in calls:
        operation = _operation(gathered.name_text(call))
        if operation is not None:
            waiting.setdefault(operation, deque()).append(call)
    for row in rows:
        queue = waiting.get(_operation(gathered.name_text(row)) or "")
        if queue and gathered.ts[queue[0]] <= gathered.ts[row]:
            issuer[row] = queue.popleft()


def group_rows(collectives: RunCollectives) -> list[dict[str, object]]:
    """Communicators as rows of `process_group`."""
    return [
        {
            "pg_key": key,
            "pg_name": group.name,
            "pg_desc": group.description,
            "backend_config": group.backend,
            "pg_size": len(group.ranks),
            "ranks": list(group.ranks),
            "ranks_exact": group.exact,
            "kind": "unknown",
        }
        for key, group in enumerate(collectives.matched.groups)
    ]
