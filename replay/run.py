"""An open run: its tables and named queries, as polars frames or as rows to print."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ingest import pipeline
from ingest.errors import TraceError, UsageError, nearest
from ingest.store import Frame, LazyFrame, Store
from replay.graph.arrays import TaskGraph
from replay.queries import load
from replay.queries.load import Value
from replay.results.tables import fill_results, results_version
from replay.table import Table

_WORTH_TELLING = 5_000_000
"""Events whose graph takes seconds."""


def sql_text(name: str) -> str:
    """A query of this package, by the name of its file."""
    return Path(__file__).with_name("sql").joinpath(f"{name}.sql").read_text(encoding="utf-8")


class Run:
    """An open run, read-only; use as a context manager.

    Values of a query's parameters (`$name`) are given by name and bound, never written into it.
    """

    def __init__(
        self, opened: pipeline.Run, *, announce: Callable[[str], None] = lambda _: None
    ) -> None:
        self._opened = opened
        self._announce = announce
        self._has_results = False
        self._graph: TaskGraph | None = None

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<run {self.path}>"

    def close(self) -> None:
        """Release the store."""
        self._opened.store.close()

    @property
    def path(self) -> Path:
        """The store; without a cache it is gone from the disk already."""
        return self._opened.path

    @property
    def failed(self) -> tuple[tuple[str, str], ...]:
        """File and reason of those that could not be read, so the tables lack them."""
        return failed_files(self._opened)

    def know_graph(self, graph: TaskGraph) -> None:
        """Tables of the replay are then made from it: the graph of the whole run, unchanged."""
        self._graph = graph

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables."""
        return table_names(self._opened.store)

    @property
    def queries(self) -> tuple[str, ...]:
        """Names of the named queries."""
        return tuple(load.names())

    def schema(self, name: str) -> Frame:
        """Columns of a table: name, type and meaning.

        Raises:
            UsageError: no such table.
        """
        self._known(name)
        return self._opened.store.frame(sql_text("columns"), (name,))

    def table(self, name: str) -> LazyFrame:
        """A whole table; `collect` reads only the columns that are used. The run must be open.

        Raises:
            UsageError: no such table.
            TraceError: a table of the replay, and there is nothing to replay.
        """
        self._known(name)
        self._replayed_for(f'FROM "{name}"')
        return self._opened.store.lazy(name)

    def sql(self, query: str, /, **params: object) -> Frame:
        """Rows of one read-only query.

        Raises:
            UsageError: the SQL is not right, or would write.
            TraceError: it asks for a table of the replay, and there is nothing to replay.
        """
        self._replayed_for(query)
        return self._opened.store.frame(query, params)

    def query(self, name: str, /, **params: Value) -> Frame:
        """Rows of a named query.

        Raises:
            UsageError: no such query or parameter, or a value of another type.
        """
        named = load.load(name)
        self._replayed_for(named.text)
        return self._opened.store.frame(named.text, named.values(params))

    def rows(
        self, query: str, params: Mapping[str, object] | None = None, *, limit: int | None = None
    ) -> Table:
        """Rows of one read-only query in Python's own types, as the command line prints them.

        Raises:
            UsageError: as `sql`.
            TraceError: as `sql`.
        """
        self._replayed_for(query)
        names, rows, left_out = self._opened.store.page(query, params or {}, limit=limit)
        return Table(names=tuple(names), rows=tuple(rows), failed=self.failed, left_out=left_out)

    def batches(self, query: str, *, rows: int) -> Any:  # noqa: ANN401  (pyarrow has no types)
        """Rows of one read-only query as a `pyarrow.RecordBatchReader`; the run must stay open.

        Args:
            query: one SELECT.
            rows: that are held at a time.

        Raises:
            UsageError: as `sql`.
            TraceError: as `sql`.
        """
        self._replayed_for(query)
        return self._opened.store.batches(query, rows=rows)

    def describe(self, table: str | None = None, *, with_counts: bool = False) -> Table:
        """The tables with their meaning (and number of rows), or the columns of one.

        Raises:
            UsageError: no such table.
        """
        if with_counts:
            with suppress(TraceError):
                self._replayed_for("FROM task")
        described = describe(self._opened.store, table, with_counts=with_counts)
        return replace(described, failed=self.failed)

    def _replayed_for(self, query: str) -> None:
        """Build the graph and put its replay into the store, where a query asks for it first."""
        store = self._opened.store
        if not self._has_results and store.asks_for_results(query):
            if not store.has_results(results_version()):
                self._announce_replay()
                fill_results(store, self._graph)
                self._graph = None
            self._has_results = True

    def _announce_replay(self) -> None:
        _, events = self._opened.store.rows(sql_text("size"))[0]
        if events > _WORTH_TELLING:
            self._announce("building the dependency graph of the run, once for this store")

    def _known(self, name: str) -> None:
        refuse_unknown(name, self.tables)


def failed_files(opened: pipeline.Run) -> tuple[tuple[str, str], ...]:
    """File and reason of those that could not be read."""
    return tuple((file.path.name, file.reason) for file in opened.failed)


def query_list() -> Table:
    """The named queries: what to give them, and what they show."""
    found = [load.load(name) for name in load.names()]
    rows = [(query.name, " ".join(map(str, query.params)), query.description) for query in found]
    return Table(names=("name", "params", "description"), rows=tuple(rows))


def table_names(store: Store) -> tuple[str, ...]:
    """Names of the public tables of a store."""
    return tuple(str(row[0]) for row in store.rows(sql_text("tables")))


def refuse_unknown(table: str, known: tuple[str, ...]) -> None:
    """Name the nearest tables where there is none of this name."""
    if table not in known:
        raise UsageError(f"no table `{table}`", hint=nearest(table, list(known)))


def describe(store: Store, table: str | None, *, with_counts: bool = False) -> Table:
    """The tables of a store with their meaning, or the columns of one.

    Raises:
        UsageError: no such table.
    """
    if table is not None:
        refuse_unknown(table, table_names(store))
        names, rows = store.table(sql_text("columns"), (table,))
    else:
        names, rows = store.table(sql_text("tables"))
    if table is None and with_counts:
        names.insert(1, "rows")
        rows = [(row[0], _count(store, row[0]), *row[1:]) for row in rows]
    return Table(names=tuple(names), rows=tuple(rows))


def _count(store: Store, table: str) -> int:
    return int(store.rows(f'SELECT COUNT(*) FROM "{table}"')[0][0])  # noqa: S608  (our own names)
