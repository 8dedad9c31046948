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

    def __call__(self, name: str, /, *, limit: int | None = None, **params: Value) -> Rows:
        """Rows of a named query.

        Raises:
            UsageError: no such query or parameter.
        """
        query = load.load(name)
        known = {param.name for param in query.params}
        given = {key: value for key, value in self._window.items() if key in known} | params
        table = self._run.rows(query.text, query.values(given), limit=limit)
        return Rows(
            names=table.names,
            rows=table.rows,
            query=Query(sql=query.written(given), command=self._command(query, given)),
            left_out=table.left_out,
        )

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
