"""Sends and receives that are issued first and launched together by one later call.

`batch_isend_irecv` records each of them by itself; the call that ends the batch launches one kernel
outside of all records. Records between the previous launch of communication on the same thread and
that call, with no launch inside, are the kernel's.
"""

import numpy as np
from numpy.typing import NDArray

from ingest.normalise.gather import Gathered

Int64 = NDArray[np.int64]

_RECORD = r"^record_param_comms$|^c10d::(?:send|recv)|^nccl:(?:send|recv)\b"
_MOST = 1024
"""Records of one batch that are looked at."""


class Batches:
    """Records of communication by thread, and the calls that launch communication."""

    def __init__(self, gathered: Gathered, calls: Int64) -> None:
        self._gathered = gathered
        self._calls = _by_thread(gathered, np.unique(calls[calls >= 0]))
        self._records = _by_thread(gathered, np.flatnonzero(gathered.name_matches(_RECORD)))

    def before(self, call: int) -> list[int]:
        """Records that wait for a launch when a call begins; of nested ones of a name the outer."""
        thread = int(self._gathered.utid[call])
        calls, records = self._calls[thread], self._records.get(thread)
        if records is None:
            return []
        place = int(np.searchsorted(calls, call))
        same = place > 0 and self._gathered.trace[calls[place - 1]] == self._gathered.trace[call]
        since = int(calls[place - 1]) if same else -1
        first, last = np.searchsorted(records, [since + 1, call])
        found = records[max(int(first), int(last) - _MOST) : int(last)].tolist()
        return [row for row in found if not self._inside(row, found)]

    def _inside(self, row: int, rows: list[int]) -> bool:
        name, around = self._gathered.name[row], int(self._gathered.parent[row])
        while around >= rows[0]:
            if self._gathered.name[around] == name:
                return True
            around = int(self._gathered.parent[around])
        return False


def _by_thread(gathered: Gathered, rows: Int64) -> dict[int, Int64]:
    """Rows of each thread, in order."""
    order = rows[np.argsort(gathered.utid[rows], kind="stable")]
    threads, first = np.unique(gathered.utid[order], return_index=True)
    parts = np.split(order, first[1:])
    return dict(zip(threads.tolist(), parts[: len(threads)], strict=True))
