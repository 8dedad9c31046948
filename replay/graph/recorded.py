"""What the graph needs of the store, as columns over all chosen ranks."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ingest.store import Store
from ingest.vocab import RuntimeKind
from replay.graph.arrays import Bool, Int64

SQL = Path(__file__).with_name("sql")

OP, ANNOTATION, RUNTIME = 0, 1, 2
"""Values of `HostRows.category`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRows:
    """Host events by (thread, start, longest first); times in ns after the run's origin."""

    slice_id: Int64
    trace: Int64
    """Position of the file in the chosen ranks."""
    thread: Int64
    """Dense thread number over all files."""
    ts_ns: Int64
    end_ns: Int64
    name: Int64
    category: Int64
    kind: Int64
    """RuntimeKind."""
    correlation: Int64
    phase: Int64

    def __len__(self) -> int:
        return len(self.slice_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRows:
    """Device work by (file, device, stream, start)."""

    slice_id: Int64
    trace: Int64
    device: Int64
    stream: Int64
    lane: Int64
    """Dense number of (file, device, stream)."""
    ts_ns: Int64
    end_ns: Int64
    name: Int64
    kernel_class: Int64
    phase: Int64
    call: Int64
    """Host row of the launching call; -1 when not recorded."""
    op_name: Int64
    module_name: Int64
    geometry: Int64
    """Equal for equal grid, block and input shapes of the operator."""

    def __len__(self) -> int:
        return len(self.slice_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRows:
    """Members of collectives; `device_row` or `host_row` is -1."""

    slice_id: Int64
    trace: Int64
    device_row: Int64
    host_row: Int64
    """The worker-thread row itself, for collectives that run on the host."""
    record_row: Int64
    """Host row of `record_param_comms` or `c10d::*`; -1 when not recorded."""
    collective: Int64
    """Dense number over the chosen ranks."""
    ts_ns: Int64
    end_ns: Int64
    transfer_ns: Int64
    waits_for_all: Bool
    """It waits for every member of its collective; else for those of `AwaitedRows`."""

    def __len__(self) -> int:
        return len(self.slice_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitedRows:
    """Pairs (who waits, for whom) of members that do not wait for all."""

    member: Int64
    """Member row, ascending."""
    other: Int64
    """Member row waited for; -1 for one that is not in the chosen files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRows:
    """`cuda_sync` rows: which stream waited, for what."""

    trace: Int64
    correlation: Int64
    stream: Int64
    wait_on_stream: Int64
    event: Int64
    """Id of the event waited for; -1 when not recorded."""
    record_correlation: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRows:
    """`ProfilerStep#N` windows of the host, by file and start."""

    trace: Int64
    step: Int64
    ts_ns: Int64
    end_ns: Int64
    thread: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """All columns together. `ranks[p]` is the rank of file position p."""

    ranks: tuple[int, ...]
    trace_ids: tuple[int, ...]
    host: HostRows
    device: DeviceRows
    member: MemberRows
    awaited: AwaitedRows
    sync: SyncRows
    step: StepRows
    names: tuple[str, ...]
    collective_ids: Int64
    """Id in the store of each dense collective number."""


def load(store: Store, trace_ids: tuple[int, ...], ranks: tuple[int, ...]) -> Recorded:
    """Read the columns of the chosen files."""
    params: dict[str, object] = {"trace_ids": list(trace_ids)}
    position = _position_of(trace_ids)
    names = store.arrays_from_file(SQL / "name.sql", {})
    host, utids = _host(store, params, position)
    row_of = _row_lookup(host.slice_id)
    device = _device(store, params, position, row_of)
    member, collective_ids = _member(store, params, position, row_of, _row_lookup(device.slice_id))
    return Recorded(
        ranks=ranks,
        trace_ids=trace_ids,
        host=host,
        device=device,
        member=member,
        awaited=_awaited(store, params, _row_lookup(member.slice_id)),
        sync=_sync(store, params, position),
        step=_step(store, params, position, utids),
        names=tuple(str(name) for name in names["name"]),
        collective_ids=collective_ids,
    )


def _position_of(trace_ids: tuple[int, ...]) -> Int64:
    position = np.full(max(trace_ids, default=0) + 1, -1, np.int64)
    position[list(trace_ids)] = np.arange(len(trace_ids))
    return position


def _host(store: Store, params: dict[str, object], position: Int64) -> tuple[HostRows, Int64]:
    columns = _integers(store, "host.sql", params)
    ids = columns["slice_id"]
    call, op = _integers(store, "call.sql", {}), _integers(store, "op.sql", {})
    size = 1 + max((int(one["slice_id"].max(initial=0)) for one in (columns, call, op)), default=0)
    columns["kind"] = _by_id(call["slice_id"], call["kind"], -1, size)[ids]
    columns["phase"] = _by_id(op["slice_id"], op["phase"], 0, size)[ids]
    is_host = (columns["category"] != RUNTIME) | (columns["kind"] >= 0)
    order = np.flatnonzero(is_host)
    keys = (ids, -columns["end_ns"], columns["ts_ns"], columns["utid"])
    order = order[np.lexsort([key[order] for key in keys])]
    columns = {name: values[order] for name, values in columns.items()}
    columns["kind"] = np.maximum(columns["kind"], RuntimeKind.OTHER)
    utids = np.flatnonzero(np.bincount(columns["utid"]))
    thread = np.searchsorted(utids, columns["utid"])
    return HostRows(
        slice_id=columns["slice_id"],
        trace=position[columns["trace_id"]],
        thread=thread.astype(np.int64),
        ts_ns=columns["ts_ns"],
        end_ns=columns["end_ns"],
        name=columns["name_id"],
        category=columns["category"],
        kind=columns["kind"],
        correlation=columns["correlation"],
        phase=columns["phase"],
    ), utids


def _by_id(ids: Int64, values: Int64, missing: int, size: int) -> Int64:
    """The values at their ids, shape (size,)."""
    table = np.full(size, missing, np.int64)
    table[ids] = values
    return table


def _device(
    store: Store, params: dict[str, object], position: Int64, row_of: "_Lookup"
) -> DeviceRows:
    columns = _integers(store, "device.sql", params)
    trace = position[columns["trace_id"]]
    return DeviceRows(
        slice_id=columns["slice_id"],
        trace=trace,
        device=columns["device"],
        stream=columns["stream"],
        lane=_numbered(np.stack([trace, columns["device"], columns["stream"]])),
        ts_ns=columns["ts_ns"],
        end_ns=columns["end_ns"],
        name=columns["name_id"],
        kernel_class=columns["class"],
        phase=columns["phase"],
        call=row_of(columns["runtime_id"]),
        op_name=columns["op_name_id"],
        module_name=columns["module_name_id"],
        geometry=columns["geometry"],
    )


def _numbered(keys: Int64) -> Int64:
    """Dense number of each column of `keys`, in the order of the keys.

    Equal columns stand together, so only the first of each run is sorted.
    """
    if not keys.shape[1]:
        return np.zeros(0, np.int64)
    begins = np.concatenate([[True], (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
    _, number = np.unique(keys[:, begins], axis=1, return_inverse=True)
    numbered: Int64 = number.reshape(-1)[np.cumsum(begins) - 1].astype(np.int64)
    return numbered


def _member(
    store: Store,
    params: dict[str, object],
    position: Int64,
    host_row_of: "_Lookup",
    device_row_of: "_Lookup",
) -> tuple[MemberRows, Int64]:
    columns = _integers(store, "member.sql", params)
    ids, collective = np.unique(columns["coll_id"], return_inverse=True)
    return MemberRows(
        slice_id=columns["slice_id"],
        trace=position[columns["trace_id"]],
        device_row=device_row_of(columns["slice_id"]),
        host_row=host_row_of(columns["slice_id"]),
        record_row=host_row_of(columns["op_id"]),
        collective=collective.astype(np.int64),
        ts_ns=columns["ts_ns"],
        end_ns=columns["end_ns"],
        transfer_ns=columns["transfer_ns"],
        waits_for_all=columns["waits_for_all"].astype(bool),
    ), ids


def _awaited(store: Store, params: dict[str, object], member_row_of: "_Lookup") -> AwaitedRows:
    columns = _integers(store, "awaited.sql", params)
    return AwaitedRows(
        member=member_row_of(columns["slice_id"]), other=member_row_of(columns["other_id"])
    )


def _sync(store: Store, params: dict[str, object], position: Int64) -> SyncRows:
    columns = _integers(store, "sync.sql", params)
    return SyncRows(
        trace=position[columns["trace_id"]],
        correlation=columns["correlation"],
        stream=columns["stream"],
        wait_on_stream=columns["wait_on_stream"],
        event=columns["event"],
        record_correlation=columns["record_correlation"],
    )


def _step(store: Store, params: dict[str, object], position: Int64, utids: Int64) -> StepRows:
    columns = _integers(store, "step.sql", params)
    return StepRows(
        trace=position[columns["trace_id"]],
        step=columns["step"],
        ts_ns=columns["ts_ns"],
        end_ns=columns["end_ns"],
        thread=np.searchsorted(utids, columns["utid"]).astype(np.int64),
    )


def _integers(store: Store, file: str, params: dict[str, object]) -> dict[str, Int64]:
    columns = store.arrays_from_file(SQL / file, params)
    return {name: np.asarray(values, np.int64) for name, values in columns.items()}


class _Lookup:
    """Row number of a slice id, -1 where no row has it."""

    def __init__(self, ids: Int64) -> None:
        self._order = np.argsort(ids, kind="stable")
        self._sorted = ids[self._order]

    def __call__(self, wanted: Int64) -> Int64:
        if not len(self._sorted):
            return np.full(len(wanted), -1, np.int64)
        place = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        return np.where(self._sorted[place] == wanted, self._order[place], -1)


def _row_lookup(ids: Int64) -> _Lookup:
    return _Lookup(ids)


def take(values: Int64, rows: Int64, missing: int = -1) -> Int64:
    """`values` at `rows`, and `missing` where a row is -1."""
    if not len(values):
        return np.full(len(rows), missing, np.int64)
    return np.where(rows >= 0, values[rows], missing)
