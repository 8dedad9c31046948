"""Writes to a store in a thread of its own, so that reading goes on meanwhile."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from ingest.parsed import ArgumentRows
from ingest.store import Frame, Store

_MOST_WAITING = 1
"""Batches that may wait, beside the one that is being written; each holds some tens of MB."""


class Writer:
    """Takes rows for a store; use as a context manager.

    Whatever goes wrong in its thread is raised by the next call, or at the end.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pool = ThreadPoolExecutor(1)
        self._waiting: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=kind is not None)
        if kind is None:
            self._wait(0)

    def insert(self, table: str, frame: Frame) -> None:
        """Append a frame to a base table.

        Raises:
            OSError: the file cannot be written.
        """
        self._submit(self._store.insert, table, frame)

    def insert_arguments(self, rows: ArgumentRows) -> None:
        """Append arguments.

        Raises:
            OSError: the file cannot be written.
        """
        self._submit(self._store.insert_arguments, *rows)

    def run(self, work: Callable[[], None]) -> None:
        """Do something with the store, in turn."""
        self._submit(work)

    def _submit(self, work: Callable[..., None], *args: Any) -> None:  # noqa: ANN401  (handed on)
        self._wait(_MOST_WAITING)
        self._waiting.append(self._pool.submit(work, *args))

    def _wait(self, most: int) -> None:
        while len(self._waiting) > most:
            self._waiting.popleft().result()
