"""What of a run is private, and where in the tables it stands."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from ingest.lexicon.lexer import NUMBER
from ingest.lexicon.shapes import filled
from ingest.lexicon.words import Words
from ingest.parsed import ArgumentRows
from ingest.redact import Redactor

_MOST_DIGITS = 18
_TEN = 10
"""Put in the place of every number of a shape, it makes addresses of what may be one."""
_NAMES, _JSON, _PATH, _HOST = "names", "json", "path", "host"
_PRIVATE: Mapping[str, Mapping[str, str]] = {
    "name": {"name": _NAMES},
    "trace": {"path": _PATH, "host": _HOST, "trace_name": _PATH, "metadata": _JSON},
    "device": {"props": _JSON},
    "process": {"name": _NAMES, "labels": _NAMES},
    "thread": {"name": _NAMES},
    "cpu_op": {"concrete_inputs": _JSON, "input_type": _JSON, "kernel_backend": _NAMES},
    "counter": {"name": _NAMES},
    "process_group": {"pg_name": _NAMES, "pg_desc": _NAMES, "backend_config": _NAMES},
    "import_log": {"event_excerpt": _JSON, "action": _NAMES},
}
"""Table -> column -> how it is read."""
_DIGITS = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|.)|[0-9]+", re.DOTALL)


@dataclass(slots=True)
class Redaction:
    """Takes private words out of the rows of a run."""

    words: Words
    redactor: Redactor
    _is_private: dict[int, bool] = field(default_factory=dict)
    """By shape of arguments."""

    def frame(self, table: str, frame: pl.DataFrame) -> pl.DataFrame:
        """The same rows of a table without private words."""
        if table == "shape":
            private = [self._private(shape) for shape in frame["shape_id"].to_list()]
            return frame.filter(~pl.Series(private, dtype=pl.Boolean))
        columns = _PRIVATE.get(table, {})
        return frame.with_columns(
            self._column(frame[column], kind)
            for column, kind in columns.items()
            if column in frame.columns
        )

    def _column(self, column: pl.Series, kind: str) -> pl.Series:
        step = self._step(kind)
        known = {text: None if text is None else step(text) for text in column.unique().to_list()}
        return pl.Series(column.name, [known[text] for text in column], dtype=pl.String)

    def _step(self, kind: str) -> Callable[[str], str]:
        steps: dict[str, Callable[[str], str]] = {
            _NAMES: self.redactor.redact_name,
            _JSON: self.redactor.redact_json,
            _PATH: self.redactor.redact_path,
            _HOST: self._host,
        }
        return steps[kind]

    def _host(self, text: str) -> str:
        redacted = json.loads(self.redactor.redact_json(json.dumps({"host_name": text})))
        return str(redacted["host_name"])

    def arguments(self, rows: ArgumentRows) -> ArgumentRows:
        """The same arguments; those with private words become shapes of their own."""
        private = np.array([self._private(shape) for shape in rows.shape.tolist()], np.bool_)
        if not private.any():
            return rows
        shape = rows.shape.copy()
        pieces = np.split(rows.numbers, rows.first[1:-1])
        for row in np.flatnonzero(private).tolist():
            text = self._text(int(shape[row]), pieces[row].tolist())
            template, numbers = templated(self.redactor.redact_json(text).encode())
            with self.words.lexicon.lock:
                shape[row] = self.words.lexicon.args.add(template)
            self._is_private[int(shape[row])] = False
            pieces[row] = np.array(numbers, np.int64)
        first = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])
        return ArgumentRows(rows.args_id, shape, first, np.concatenate(pieces))

    def _private(self, shape: int) -> bool:
        if shape not in self._is_private:
            n_numbers = self.words.lexicon.args.texts[shape].count(bytes((NUMBER,)))
            text = self._text(shape, [_TEN] * n_numbers)
            self._is_private[shape] = self.redactor.redact_json(text) != text
        return self._is_private[shape]

    def _text(self, shape: int, numbers: list[int]) -> str:
        return filled(self.words.lexicon.args.texts[shape], numbers).decode("utf-8")


def templated(text: bytes) -> tuple[bytes, list[int]]:
    """A shape and its numbers, which give back the text (`filled`)."""
    numbers: list[int] = []

    def take(found: re.Match[bytes]) -> bytes:
        run = found[0]
        if run.startswith(b"\\"):
            return run
        out = b""
        while run:
            digits = run.lstrip(b"0") or b"0"
            out += run[: len(run) - len(digits)] + bytes((NUMBER,))
            numbers.append(int(digits[:_MOST_DIGITS]))
            run = digits[_MOST_DIGITS:]
        return out

    return _DIGITS.sub(take, text), numbers
