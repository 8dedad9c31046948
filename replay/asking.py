"""Named queries on an open run, with the SQL that a person would type to get the same rows."""

from collections.abc import Mapping

from replay.queries import load
from replay.queries.load import Value
from replay.run import Run, sql_text
from whatif.postmortem.material import Rows, SourceFile
from whatif.report.blocks import Query


class Asking:
    """Asks the tables of one run (`whatif.postmortem.material.Ask`)."""

    def __init__(self, run: Run, *, trace: str, window: Mapping[str, Value]) -> None:
        """Ask an open run.

        Args:
            run: open for as long as it is asked.
            trace: the run, as typed after `replay sql`.
            window: values of `ranks`, `first_step` and `last_step` for queries that know them.
        """
        self._run = run
        self._trace = trace
        self._window = window
        self._asked: dict[tuple[object, ...], Rows] = {}

    def __call__(self, name: str, /, *, limit: int | None = None, **params: Value) -> Rows:
        """Rows of a named query; sections that ask the same share the answer.

        Raises:
            UsageError: no such query or parameter.
        """
        query = load.load(name)
        given = self._given(query, params)
        same = (name, limit, *sorted((key, repr(value)) for key, value in given.items()))
        if same not in self._asked:
            self._asked[same] = self._rows(query, given, limit)
        return self._asked[same]

    def _rows(self, query: load.Query, given: Mapping[str, Value], limit: int | None) -> Rows:
        table = self._run.rows(query.text, query.values(given), limit=limit)
        return Rows(
            names=table.names,
            rows=table.rows,
            query=self._written(query, given),
            left_out=table.left_out,
        )

    def query(self, name: str, /, **params: Value) -> Query:
        """The same, to be typed.

        Raises:
            UsageError: no such query or parameter.
        """
        query = load.load(name)
        return self._written(query, self._given(query, params))

    def _given(self, query: load.Query, params: Mapping[str, Value]) -> dict[str, Value]:
        """Parameters and the part of the run, as far as the query knows it."""
        known = {param.name for param in query.params}
        window = {key: value for key, value in self._window.items() if key in known}
        return window | dict(params)

    def _written(self, query: load.Query, given: Mapping[str, Value]) -> Query:
        return Query(sql=query.written(given), command=self._command(query, given))

    def _command(self, query: load.Query, given: Mapping[str, Value]) -> str:
        defaults = {param.name: param.default for param in query.params}
        told = [f"--param {key}={value}" for key, value in given.items() if defaults[key] != value]
        return " ".join(["replay sql", self._trace, "--query", query.name, *told])

    def sources(self) -> tuple[SourceFile, ...]:
        """The trace files of the run."""
        return tuple(
            SourceFile(name=path, rank=rank, events=events, digest=digest)
            for path, rank, digest, events in self._run.rows(sql_text("files")).rows
        )
