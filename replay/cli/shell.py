"""The shell of `replay sql`: SQL until `;`, commands that begin with a dot, history, completion."""

import re
import shlex
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ingest.cache import default_cache_dir
from ingest.errors import UsageError, UserError, nearest
from replay.cli import console
from replay.cli.complete import Words, completions
from replay.cli.options import RowsFormat
from replay.cli.rows import WHOLE, Room, write_rows
from replay.queries.load import load
from replay.run import Run, query_list
from replay.table import Table

PROMPT, MORE = "replay> ", "    ..> "
HISTORY = "sql_history"
MOST_HISTORY = 2_000
KEYWORDS = """
    SELECT keyword_name FROM duckdb_keywords()
    UNION
    SELECT function_name FROM duckdb_functions() WHERE function_type = 'aggregate'
    ORDER BY ALL
"""
HELP = """\
SELECT ...;              SQL, over several lines until ;
.tables                  the tables
.schema TABLE            columns of a table and what they mean
.queries                 the named queries
.run NAME [PARAM=VALUE]  run one of them
.format FORM             table, csv, json or markdown
.limit N                 rows of a table to show, 0 for all
.help                    this text
.quit                    leave; Ctrl-D does too, Ctrl-C drops what is typed
"""
COMMANDS = tuple(re.findall(r"^\.\w+", HELP, re.MULTILINE))
_PIECE = re.compile(
    r"""
    '(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z)
    | (?P<comment> --[^\n]*(?:\n|\Z) | /\*.*?(?:\*/|\Z) | \s+)
    | (?P<end>;) | [^\s'"\-/;]+ | .
    """,
    re.DOTALL | re.VERBOSE,
)


def split(text: str) -> tuple[list[str], str]:
    """Statements that `;` ends, and the rest that goes on; quotes and comments hide a `;`."""
    whole: list[str] = []
    rest, is_empty = "", True
    for found in _PIECE.finditer(text):
        if found["end"]:
            whole += [] if is_empty else [rest.strip()]
            rest, is_empty = "", True
        else:
            rest += found.group()
            is_empty &= bool(found["comment"]) and not found.group().startswith("/*")
    return whole, "" if is_empty else rest


class Shell:
    """Asks on the terminal and answers; a mistake is one line, and the shell goes on."""

    def __init__(self, run: Run, *, form: RowsFormat, limit: int) -> None:
        self._run = run
        self._form = form
        self._limit = limit
        self._typed = ""

    def loop(self) -> None:
        """Until `.quit` or the end of the input."""
        console.talk(f"{self._run.path}\nSQL ends with ; and .help lists the commands")
        history = default_cache_dir() / HISTORY
        self._prepare(history)
        try:
            while self._ask():
                pass
        finally:
            _keep(history)

    def take(self, line: str) -> bool:
        """Do what a line says; False where it says to leave."""
        try:
            return self._do(line)
        except UserError as error:
            self._typed = ""
            is_near = error.hint.startswith("nearest")
            console.talk(f"error: {error}" + (f"; {error.hint}" if is_near else ""))
        return True

    def _ask(self) -> bool:
        try:
            return self.take(input(MORE if self._typed else PROMPT))
        except EOFError:
            console.show("\n")
            return False
        except KeyboardInterrupt:
            self._typed = ""
            console.talk("")
            return True

    def _do(self, line: str) -> bool:
        if not self._typed and line.lstrip().startswith("."):
            return self._command(*_parts(line))
        statements, self._typed = split(f"{self._typed}{line}\n")
        self._typed = self._typed.lstrip()
        for statement in statements:
            self._print(self._rows(statement))
        return True

    def _command(self, command: str, *words: str) -> bool:
        if command in {".quit", ".exit"}:
            return False
        if command == ".help":
            console.show(HELP)
        elif command == ".tables":
            self._print(self._run.describe(), WHOLE)
        elif command == ".schema":
            self._print(self._run.describe(words[0] if words else None), WHOLE)
        elif command == ".queries":
            self._print(query_list(), WHOLE)
        elif command == ".run":
            self._named(*words)
        elif command == ".format":
            self._form = _form(*words)
        elif command == ".limit":
            self._limit = _whole(*words)
        else:
            raise UsageError(f"no command `{command}`", hint=nearest(command, list(COMMANDS)))
        return True

    def _named(self, name: str = "", *given: str) -> None:
        query = load(name)
        pairs = dict(text.partition("=")[::2] for text in given)
        self._print(self._rows(query.text, query.values(pairs)))

    def _rows(
        self, query: str, params: dict[str, int | float | bool | str | None] | None = None
    ) -> Table:
        is_table = self._form is RowsFormat.TABLE
        return self._run.rows(query, params, limit=(self._limit or None) if is_table else None)

    def _print(self, table: Table, room: Room | None = None) -> None:
        room = room or replace(Room(), width=shutil.get_terminal_size().columns)
        text = write_rows(table, self._form, room)
        console.show(text.replace("--limit", ".limit").replace("--format", ".format"))

    def _prepare(self, history: Path) -> None:
        """Line editing, where Python has it."""
        with suppress(ImportError, OSError):
            import readline

            words = self._words()
            readline.set_completer_delims(" \t\n,()=<>+-*/;'\"")
            readline.set_completer(lambda _, at: self._completion(words, at))
            readline.parse_and_bind("tab: complete")
            readline.set_history_length(MOST_HISTORY)
            readline.read_history_file(history)

    def _completion(self, words: Words, at: int) -> str | None:
        import readline

        line = readline.get_line_buffer()[: readline.get_endidx()]
        found = completions(line, words, earlier=self._typed)
        return found[at] if at < len(found) else None

    def _words(self) -> Words:
        keywords = [str(row[0]) for row in self._run.rows(KEYWORDS).rows]
        columns = {
            table: [str(row[0]) for row in self._run.describe(table).rows]
            for table in self._run.tables
        }
        return Words(
            columns=columns, keywords=keywords, queries=self._run.queries, commands=COMMANDS
        )


def _keep(history: Path) -> None:
    with suppress(ImportError, OSError):
        import readline

        history.parent.mkdir(parents=True, exist_ok=True)
        readline.write_history_file(history)


def _parts(line: str) -> list[str]:
    try:
        return shlex.split(line.strip().removesuffix(";"))
    except ValueError as error:
        raise UsageError(f"`{line.strip()}`: {error}") from error


def _form(word: str = "", *_: str) -> RowsFormat:
    try:
        return RowsFormat(word)
    except ValueError as error:
        raise UsageError(
            f"no format `{word}` here; nearest names: {', '.join(RowsFormat)}"
        ) from error


def _whole(word: str = "", *_: str) -> int:
    if not word.isdecimal():
        raise UsageError(f"`.limit {word}` is no number of rows")
    return int(word)
