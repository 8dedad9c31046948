"""Writes to a store in threads of its own, so that reading goes on meanwhile."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from ingest.parsed import ArgumentRows
from ingest.store import Frame, Store

_THREADS = 2
_MOST_WAITING = 2
"""Batches on their way, those that are being written included; each holds some tens of MB."""


class Writer:
    """Takes rows for a store; use as a context manager.

    Each thread has a connection of its own; batches of a table may go in out of order. Whatever
    goes wrong in a thread is raised by one of the next calls, or at the end.
    """

    def __init__(self, store: Store) -> None:
        self._pool = ThreadPoolExecutor(_THREADS)
        self._stores: SimpleQueue[Store] = SimpleQueue()
        for _ in range(_THREADS):
            self._stores.put(store.again())
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
        while not self._stores.empty():
            self._stores.get().close()
        if kind is None:
            self._wait(0)

    def insert(self, table: str, frame: Frame) -> None:
        """Append a frame to a base table.

        Raises:
            OSError: the file cannot be written.
        """
        self._submit(lambda store: store.insert(table, frame))

    def insert_arguments(self, rows: ArgumentRows) -> None:
        """Append arguments.

        Raises:
            OSError: the file cannot be written.
        """
        self._submit(lambda store: store.insert_arguments(*rows))

    def _submit(self, work: Callable[[Store], None]) -> None:
        self._wait(_MOST_WAITING - 1)
        self._waiting.append(self._pool.submit(self._run, work))

    def _run(self, work: Callable[[Store], None]) -> None:
        store = self._stores.get()
        try:
            work(store)
        finally:
            self._stores.put(store)

    def _wait(self, most: int) -> None:
        while len(self._waiting) > most:
            self._waiting.popleft().result()
