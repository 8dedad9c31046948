"""The recorded rows that a timeline is drawn from, and their arguments."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ingest.store import Store
from replay.graph.arrays import Int64, Lane
from replay.results.timeline.events import Texts, text_of

SQL = Path(__file__).parents[1] / "sql"
_DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOfRank:
    """What a trace file says of itself."""

    trace_id: int
    rank: int
    origin_ns: int
    """Of the run's times, ns after 1970."""
    metadata: dict[str, Any]


class TimelineRows:
    """Rows of host threads as columns, ties of device rows, arguments when asked for."""

    def __init__(self, store: Store, trace_ids: tuple[int, ...], names: tuple[str, ...]) -> None:
        """Read the columns of the chosen files.

        Args:
            store: open for as long as arguments are asked for.
            trace_ids: of the files.
            names: of the graph; those of the store come first.
        """
        params: dict[str, object] = {"trace_ids": list(trace_ids)}
        self._store = store
        self.names: Texts = np.array([*names, ""], object)
        self.host = store.arrays_from_file(SQL / "timeline_host.sql", params)
        self._device = store.arrays_from_file(SQL / "timeline_device.sql", params)
        labels = store.arrays_from_file(SQL / "timeline_labels.sql", params)
        self.left_out = dict(zip(labels["cat"].tolist(), labels["n"].tolist(), strict=True))
        """Rows of devices that are no work, by category."""
        found = store.arrays_from_file(SQL / "timeline_trace.sql", params)
        columns = (found[name].tolist() for name in ("trace_id", "rank", "ts_origin_ns"))
        self.files = tuple(
            FileOfRank(trace_id=one, rank=rank, origin_ns=origin, metadata=_object(text))
            for one, rank, origin, text in zip(*columns, found["metadata"].tolist(), strict=True)
        )
        for name in ("slice_id", "utid", "ts_ns", "end_ns", "depth", "name_id", "trace_id"):
            self.host[name] = self.host[name].astype(np.int64)

    def host_of_rank(self, rank: int) -> Int64:
        """Places of the host rows of a rank."""
        ids = [file.trace_id for file in self.files if file.rank == rank]
        places: Int64 = np.flatnonzero(np.isin(self.host["trace_id"], ids))
        return places

    def host_places(self, slice_id: Int64) -> Int64:
        """Places of those of the rows that are host rows."""
        ids = self.host["slice_id"]
        if not len(ids):
            return np.zeros(0, np.int64)
        at = np.minimum(np.searchsorted(ids, slice_id), len(ids) - 1)
        places: Int64 = at[ids[at] == slice_id]
        return places

    def categories(self, slice_id: Int64, otherwise: Texts) -> Texts:
        """Recorded category of each row; `otherwise` where no row stands for it."""
        result = otherwise.copy()
        for table in (self._device, self.host):
            at, known = _found(table["slice_id"], slice_id)
            result[known] = table["cat"][at[known]]
        return result

    def arguments(self, slice_id: Int64) -> list[str]:
        """Arguments as recorded: a JSON object each, empty for none."""
        found = self._store.arrays_from_file(
            SQL / "timeline_args.sql", {"slice_ids": np.unique(slice_id[slice_id >= 0]).tolist()}
        )
        texts = dict(zip(found["slice_id"].tolist(), found["args"].tolist(), strict=True))
        return [_valid(texts.get(number)) for number in slice_id.tolist()]

    def ties(self, slice_id: Int64, lane: Lane | None) -> list[str]:
        """What ties rows to one another, whatever the machine: correlation, operator, stream."""
        told: list[dict[str, object]] = [{} for _ in range(len(slice_id))]
        for table in (self._device, self.host):
            at, known = _found(table["slice_id"], slice_id)
            for key, name in (("correlation", "correlation"), ("External id", "external_id")):
                for row in np.flatnonzero(known).tolist():
                    if table[name][at[row]] > 0:
                        told[row][key] = int(table[name][at[row]])
        if lane is not None and lane.stream >= 0:
            for one in told:
                one |= {"device": lane.device, "stream": lane.stream}
        return [text_of(one) if one else "" for one in told]


def _found(ids: Int64, wanted: Int64) -> tuple[Int64, Any]:
    """Place of each wanted id, and whether it is there."""
    if not len(ids):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return at, ids[at] == wanted


def _valid(text: str | None) -> str:
    """The text where it is one JSON object; else the text as a value: a file must stay readable."""
    if not text or text.isspace():
        return ""
    try:
        _DECODER.decode(text)
    except msgspec.MsgspecError:
        return text_of({"as_written": text})
    return text.strip()


def _object(text: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return {}
    return found if isinstance(found, dict) else {}
