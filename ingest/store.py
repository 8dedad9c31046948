"""The only door to DuckDB: create a store, fill it, query it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
import numpy as np
import polars as pl

from ingest.errors import TraceError, UsageError

SQL = Path(__file__).with_name("sql")
SCHEMA_VERSION = "1"
FORMAT_NAME = "trace-replay store"
_SCHEMA_HINT = "tables and columns: replay schema"
_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "lock_configuration": "true",
}
_QUERIES = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)


class Store:
    """A DuckDB file with the tables of `sql/`; use as a context manager.

    Stores are read-only once written: `create` is for the pipeline alone.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        self._connection = connection
        self.path = path

    @classmethod
    def create(cls, path: Path) -> Self:
        """Make a new store with empty tables.

        Raises:
            OSError: the file cannot be written.
        """
        with _writing():
            store = cls(duckdb.connect(str(path)), path)
            store.run_file(SQL / "010_tables.sql")
        return store

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a store read-only.

        Raises:
            TraceError: not there, no DuckDB file, not one of ours, or of another version.
        """
        if not path.exists():
            raise TraceError(f"no such file: `{path}`")
        try:
            connection = duckdb.connect(str(path), read_only=True, config=_CLOSED)
        except duckdb.Error as error:
            raise TraceError(f"`{path.name}` is not a DuckDB store: {_line(error)}") from error
        store = cls(connection, path)
        try:
            meta = dict(store.rows("SELECT key, value FROM store.meta"))
        except UsageError as error:
            connection.close()
            raise TraceError(
                f"`{path.name}` is a DuckDB file, but not a trace-replay store",
                hint="make one with: replay ingest TRACE... -o run.duckdb",
            ) from error
        if meta.get("schema_version") != SCHEMA_VERSION:
            connection.close()
            raise TraceError(
                f"`{path.name}` has store version {meta.get('schema_version')}, "
                f"this program reads {SCHEMA_VERSION}",
                hint="ingest the traces again",
            )
        return store

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the file."""
        self._connection.close()

    def run_file(self, path: Path) -> None:
        """Run the statements of a `.sql` file."""
        with _writing():
            self._connection.execute(path.read_text(encoding="utf-8"))

    def insert(self, table: str, frame: pl.DataFrame) -> None:
        """Append a frame to a base table; columns go by name.

        Raises:
            OSError: the file cannot be written, for want of room say.
        """
        if not len(frame):
            return
        self._connection.register("incoming", frame)
        names = ", ".join(f'"{name}"' for name in frame.columns)
        with _writing():
            self._connection.execute(
                f"INSERT INTO store.{table} ({names}) SELECT {names} FROM incoming"  # noqa: S608  (our own names)
            )
        self._connection.unregister("incoming")

    def flush(self) -> None:
        """Bring everything to the file; closing alone would keep silent about a full disk.

        Raises:
            OSError: the file cannot be written.
        """
        with _writing():
            self._connection.checkpoint()

    def set_meta(self, values: Mapping[str, str]) -> None:
        """Write what the store says of itself."""
        self.insert("meta", pl.DataFrame({"key": list(values), "value": list(values.values())}))

    def arrays(self, sql: str, params: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Numpy columns of a query; a masked value becomes None in object columns.

        Raises:
            UsageError: the SQL is not right.
        """
        try:
            columns = self._connection.execute(sql, dict(params or {})).fetchnumpy()
        except duckdb.Error as error:
            raise UsageError(_line(error)) from error
        return {name: _unmasked(values) for name, values in columns.items()}

    def arrays_from_file(self, path: Path, params: Mapping[str, object]) -> dict[str, Any]:
        """Numpy columns of the query in a `.sql` file with named parameters."""
        return self.arrays(path.read_text(encoding="utf-8"), params)

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Rows of a query.

        Raises:
            UsageError: the SQL is not right, or would write.
        """
        return self.table(sql, params)[1]

    def table(
        self, sql: str, params: Sequence[object] = ()
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows of one query; stores are read-only and see no other file.

        Raises:
            UsageError: the SQL is not right, is no single query, or would write.
        """
        try:
            statements = duckdb.extract_statements(sql)
            if len(statements) != 1 or statements[0].type not in _QUERIES:
                raise UsageError("one query is wanted: SELECT ...", hint=_SCHEMA_HINT)
            result = self._connection.execute(sql, list(params))
            names = [column[0] for column in result.description or []]
            return names, result.fetchall()
        except duckdb.Error as error:
            raise UsageError(_line(error), hint=_SCHEMA_HINT) from error


@contextmanager
def _writing() -> Iterator[None]:
    """What DuckDB says when it cannot write, as OSError; an interrupt as what it is.

    DuckDB wraps an interrupt that comes while it reads a frame into an error of its own.
    """
    try:
        yield
    except duckdb.Error as error:
        if "KeyboardInterrupt" in str(error):
            raise KeyboardInterrupt from error
        if isinstance(error, duckdb.OperationalError | duckdb.FatalException):
            raise OSError(_line(error)) from error
        raise


def _unmasked(values: Any) -> Any:  # noqa: ANN401  (numpy array of any type)
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not values.mask.any():
        return values.data
    filled = values.data.astype(object)
    filled[values.mask] = None
    return filled


def _line(error: Exception) -> str:
    """First line of a DuckDB message, without the excerpt that it draws."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
