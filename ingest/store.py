"""The only door to DuckDB: create a store, fill it, query it."""

import json
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from polars.io.plugins import register_io_source

from ingest.errors import TraceError, UsageError
from ingest.mentions import created_in, names_in, tables_in

Frame = pl.DataFrame
LazyFrame = pl.LazyFrame
Params = Sequence[object] | Mapping[str, object]
"""Values of `$1, $2` by place, or of `$name` by name."""

SQL = Path(__file__).with_name("sql")
VIEW_FILES = tuple(sorted(SQL.glob("0[2-9]*.sql")))
"""Public views and macros, in the order in which they build on one another."""
RESULTS_FILE = SQL / "070_results.sql"
"""Tables that a replay fills, with the views on them."""
SCHEMA_VERSION = "11"
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
_FILLING: dict[str, str | bool | int | float | list[str]] = {"checkpoint_threshold": "1TB"}
_CHUNK = 100_000
_COPIED_AT_ONCE = 16 << 20
_INTERRUPTED = "Query interrupted"
"""DuckDB's RuntimeError when Ctrl-C ends a query."""
_MESSAGE_LINES = 2
"""Of a message: the fact, and the nearest names."""
_QUERIES = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)


class Store:
    """A DuckDB file with the tables of `sql/`; use as a context manager.

    Stores are read-only once written: `create` is for the pipeline alone.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, path: Path, file: "_Held | None" = None
    ) -> None:
        self._connection = connection
        self._file = file
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
            store = cls(connection, path, _Held(path))
        except duckdb.Error as error:
            raise TraceError(f"`{path.name}` is not a DuckDB store: {_line(error)}") from error
        try:
            meta = dict(store.rows("SELECT key, value FROM store.meta"))
        except UsageError as error:
            store.close()
            raise TraceError(
                f"`{path.name}` is a DuckDB file, but not a trace-replay store",
                hint="make one with: replay ingest TRACE... -o run.duckdb",
            ) from error
        if meta.get("schema_version") != SCHEMA_VERSION:
            store.close()
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
        if self._file is not None:
            self._file.close()

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

    def has_results(self, version: str) -> bool:
        """The tables of `RESULTS_FILE` are filled, by this version of the replay."""
        rows = self.rows("SELECT value FROM store.meta WHERE key = 'results_version'")
        return rows == [(version,)]

    def asks_for_results(self, sql: str) -> bool:
        """A query names one of the tables of `RESULTS_FILE` or a view on them.

        Tables are found by DuckDB's own parser, also where a table function gets the name as text.
        Statements that it does not take (EXPLAIN) go by their words.
        """
        if not names_in(sql) & _result_names():
            return False
        reading = self._connection.cursor().execute("SELECT json_serialize_sql($1)", [sql])
        parsed = json.loads(reading.fetchall()[0][0])
        if parsed["error"]:
            return bool(parsed["error_type"] != "parser")
        return bool(tables_in(parsed) & _result_names())

    def add_results(self, tables: Mapping[str, Mapping[str, Any]], version: str) -> None:
        """Fill the tables of `RESULTS_FILE`; this store has them from now on, and so has its file.

        A copy of the file is filled and takes its place, so that other readers keep theirs and an
        interrupt leaves nothing. Where the file cannot be replaced, the copy is for this session
        alone.

        Args:
            tables: numpy columns by table and name; masked values are NULL.
            version: of the replay that made them.

        Raises:
            UsageError: there is no room for the copy.
        """
        if self._is_current():
            try:
                filled = self._filled(self.path.resolve().parent, tables, version)
            except OSError:
                filled = None
            if filled is not None:
                self._move_to(filled)
                filled.replace(self.path.resolve())
                return
        try:
            filled = self._filled(Path(tempfile.gettempdir()), tables, version)
        except OSError as error:
            raise UsageError(
                f"cannot write what the replay found: {error.strerror or error}",
                hint="make room where the store lies, or in the folder that TMPDIR names",
            ) from error
        self._move_to(filled)
        filled.unlink()

    def _is_current(self) -> bool:
        """The file that is open still lies at its path."""
        assert self._file is not None, "stores are filled after they were opened"
        try:
            return os.path.samestat(os.fstat(self._file.number), self.path.stat())
        except OSError:
            return False

    def _filled(self, folder: Path, tables: Mapping[str, Mapping[str, Any]], version: str) -> Path:
        """A copy of the file with the tables filled, under a temporary name in the folder."""
        assert self._file is not None, "stores are filled after they were opened"
        handle, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=folder)
        try:
            with os.fdopen(handle, "wb") as copy, self._file.reader() as original:
                shutil.copyfileobj(original, copy, _COPIED_AT_ONCE)
                os.fchmod(copy.fileno(), os.fstat(self._file.number).st_mode | stat.S_IWUSR)
            with _writing(), type(self)(duckdb.connect(name, config=_FILLING), Path(name)) as store:
                store._connection.begin()
                store.run_file(RESULTS_FILE)
                store._connection.commit()
                for table, columns in tables.items():
                    store._insert_columns(table, columns)
                store._connection.execute(
                    "INSERT OR REPLACE INTO store.meta VALUES ('results_version', $1)",
                    [version],
                )
                store.flush()
        except BaseException:
            for leftover in (Path(name), Path(f"{name}.wal")):
                leftover.unlink(missing_ok=True)
            raise
        return Path(name)

    def _insert_columns(self, table: str, columns: Mapping[str, Any]) -> None:
        incoming = pa.table({name: pa.array(values) for name, values in columns.items()})
        self._connection.register("incoming", incoming)
        names = ", ".join(f'"{name}"' for name in columns)
        self._connection.execute(
            f"INSERT INTO store.{table} ({names}) SELECT {names} FROM incoming"  # noqa: S608  (our own names)
        )
        self._connection.unregister("incoming")

    def _move_to(self, filled: Path) -> None:
        """Read from the filled copy from now on.

        It is opened under its temporary name: DuckDB would give back a database that is still open
        in this process under the path of the store.
        """
        connection = duckdb.connect(str(filled), read_only=True, config=_CLOSED)
        self.close()
        self._connection, self._file = connection, _Held(filled)

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

    def batches(self, sql: str, params: Params = (), *, rows: int) -> Any:  # noqa: ANN401  (pyarrow has no types)
        """One query as a `pyarrow.RecordBatchReader`, which holds so many rows at a time.

        Raises:
            UsageError: as `table`.
        """
        with _asking():
            _refuse_all_but_one_query(sql)
            return self._connection.cursor().sql(sql, params=params).to_arrow_reader(rows)

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


class _Held:
    """A file that stays readable when its name is gone; closed with the store, or with its owner.

    A store that is never closed says nothing, as connections of DuckDB do: no warning of Python.
    """

    def __init__(self, path: Path) -> None:
        self.number = os.open(path, os.O_RDONLY)
        self.close = weakref.finalize(self, os.close, self.number)

    def reader(self) -> BinaryIO:
        """The file from its beginning."""
        os.lseek(self.number, 0, os.SEEK_SET)
        return open(self.number, "rb", closefd=False)


@cache
def _result_names() -> frozenset[str]:
    return created_in(RESULTS_FILE.read_text(encoding="utf-8"))


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
    except RuntimeError as error:
        if str(error) == _INTERRUPTED:
            raise KeyboardInterrupt from error
        raise
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
