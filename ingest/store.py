"""The only door to DuckDB: create a store, fill it, query it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from polars.io.plugins import register_io_source

from ingest.errors import TraceError, UsageError

Frame = pl.DataFrame
LazyFrame = pl.LazyFrame
Params = Sequence[object] | Mapping[str, object]
"""Values of `$1, $2` by place, or of `$name` by name."""

SQL = Path(__file__).with_name("sql")
VIEW_FILES = tuple(sorted(SQL.glob("0[2-9]*.sql")))
"""Public views and macros, in the order in which they build on one another."""
SCHEMA_VERSION = "4"
ROW_GROUP = 122_880
"""Rows that DuckDB packs together: whoever writes much writes multiples of it, since row groups
that are not full are written again later."""
FORMAT_NAME = "trace-replay store"
_SCHEMA_HINT = "tables and columns: replay schema"
_KEEP = "keep the rows of a query with: replay sql TRACE QUERY -o FILE.parquet"
_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "lock_configuration": "true",
}
_WRITING: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": "128MB",
    "threads": 1,
    "checkpoint_threshold": "1TB",
    "default_block_size": 65_536,
}
"""Rows go to the file as they come. More threads leave row groups half full, and all is written
again at the end: that took twice the time for a store of 1.6 times the size. Small blocks: some
fifty tables and views of a small trace take 1.4 MB instead of 4.7, and big stores lose nothing."""
_CHUNK = 100_000
_INTERRUPTED = "Query interrupted"
"""DuckDB's RuntimeError when Ctrl-C ends a query."""
_MESSAGE_LINES = 2
"""Of a message: the fact, and the nearest names."""
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
            store = cls(duckdb.connect(str(path), config=_WRITING), path)
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

    def again(self) -> Self:
        """Another connection to the same store, for another thread."""
        return type(self)(self._connection.cursor(), self.path)

    def run_file(self, path: Path) -> None:
        """Run the statements of a `.sql` file."""
        with _writing():
            self._connection.execute(path.read_text(encoding="utf-8"))

    def make_views(self) -> None:
        """Create the public views and macros, in one transaction: there are hundreds of them.

        Rows go in without one. DuckDB keeps some tens of bytes of each row in memory until their
        transaction ends, beyond its limit: 0.9 GB for 4.9 million rows instead of 0.3.
        """
        with _writing():
            self._connection.begin()
        for path in VIEW_FILES:
            self.run_file(path)
        with _writing():
            self._connection.commit()

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

    def insert_arguments(
        self,
        args_id: NDArray[np.int64],
        shape: NDArray[np.int64],
        first: NDArray[np.int64],
        numbers: NDArray[np.int64],
    ) -> None:
        """Append arguments; row r has `numbers[first[r]:first[r + 1]]`.

        Raises:
            OSError: the file cannot be written, for want of room say.
        """
        incoming = pa.table(
            {
                "args_id": args_id,
                "shape_id": shape,
                "numbers": pa.LargeListArray.from_arrays(pa.array(first), pa.array(numbers)),
            }
        )
        self._connection.register("incoming", incoming)
        with _writing():
            self._connection.execute("INSERT INTO store.args SELECT * FROM incoming")
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

    def rows(self, sql: str, params: Params = ()) -> list[tuple[Any, ...]]:
        """Rows of a query.

        Raises:
            UsageError: the SQL is not right, or would write.
        """
        return self.table(sql, params)[1]

    def table(self, sql: str, params: Params = ()) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows of one query; stores are read-only and see no other file.

        Raises:
            UsageError: the SQL is not right, is no single query, or would write.
        """
        names, rows, _ = self.page(sql, params)
        return names, rows

    def page(
        self, sql: str, params: Params = (), *, limit: int | None = None
    ) -> tuple[list[str], list[tuple[Any, ...]], int]:
        """Column names, the first rows of one query, and how many more there are.

        Raises:
            UsageError: as `table`.
        """
        with _asking():
            _refuse_all_but_one_query(sql)
            result = self._connection.cursor().execute(sql, params)
            names = [column[0] for column in result.description or []]
            if limit is None:
                return names, result.fetchall(), 0
            rows = result.fetchmany(limit) if limit else []
            return names, rows, sum(map(len, iter(lambda: result.fetchmany(_CHUNK), [])))

    def frame(self, sql: str, params: Params = ()) -> Frame:
        """One query as a polars frame; sums of whole numbers are Int64 again where they fit.

        Raises:
            UsageError: as `table`, or a type that polars does not have.
        """
        with _asking():
            _refuse_all_but_one_query(sql)
            frame: Frame = self._connection.cursor().sql(sql, params=params).pl()
        wide = [name for name, kind in frame.schema.items() if kind == pl.Decimal(38, 0)]
        fitting = frame.select(pl.col(wide).cast(pl.Int64, strict=False))
        kept = [name for name in wide if fitting[name].null_count() == frame[name].null_count()]
        return frame.with_columns(fitting[name] for name in kept)

    def lazy(self, table: str) -> LazyFrame:
        """A table that polars reads when it is collected, and then only the columns it needs."""
        quoted = table.replace('"', '""')

        def scan(
            columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _: int | None
        ) -> Iterator[pl.DataFrame]:
            names = ", ".join(f'"{name}"' for name in columns) if columns else "*"
            frame = self.frame(
                f'SELECT {names} FROM "{quoted}" LIMIT $1',  # noqa: S608  (quoted names)
                [rows],
            )
            yield frame if predicate is None else frame.filter(predicate)

        schema = self.frame(f'SELECT * FROM "{quoted}" LIMIT 0').schema  # noqa: S608  (the same)
        return register_io_source(scan, schema=schema)


def _refuse_all_but_one_query(sql: str) -> None:
    statements = duckdb.extract_statements(sql)
    if len(statements) == 1 and statements[0].type in _QUERIES:
        return
    if len(statements) != 1:
        number = len(statements) or "nothing"
        raise UsageError(f"one query is wanted, not {number}: SELECT ...", hint=_SCHEMA_HINT)
    if statements[0].type == duckdb.StatementType.MULTI:
        raise UsageError(
            "one query is wanted: SELECT ..., and this PIVOT is several",
            hint="name its values: PIVOT kernel ON class IN ('gemm', 'other') USING sum(dur)",
        )
    raise UsageError(
        f"one query is wanted: SELECT ..., not {statements[0].type.name}; stores are read-only",
        hint=_KEEP,
    )


@contextmanager
def _asking() -> Iterator[None]:
    """What DuckDB says of a query that it cannot answer, as UsageError in one line."""
    try:
        yield
    except RuntimeError as error:
        if str(error) == _INTERRUPTED:
            raise KeyboardInterrupt from error
        raise
    except (duckdb.Error, pl.exceptions.PolarsError) as error:
        if "read-only mode" in str(error):
            raise UsageError("the query would write; stores are read-only", hint=_KEEP) from error
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
    """A DuckDB message in one line: with the nearest names, without the excerpt that it draws."""
    lines = [line.strip() for line in str(error).split("\nLINE ")[0].splitlines() if line.strip()]
    return " ".join(lines[:_MESSAGE_LINES]) if lines else type(error).__name__
