"""The options that several commands share, each written once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class AnswerFormat(StrEnum):
    """Forms of an answer."""

    TABLE = "table"
    JSON = "json"


class RowsFormat(StrEnum):
    """Forms of rows."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    MARKDOWN = "markdown"


class SavedFormat(StrEnum):
    """Forms of rows, with those that only a file can have."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    MARKDOWN = "markdown"


Traces = Annotated[
    list[str],
    typer.Argument(
        metavar="TRACE",
        help="Trace files, folders, globs, or one .duckdb store.",
        show_default=False,
    ),
]
Trace = Annotated[
    str,
    typer.Argument(metavar="TRACE", help="Trace file, folder, glob or .duckdb store."),
]
Json = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
AnswerForm = Annotated[AnswerFormat, typer.Option("--format", help="How to print the answer.")]
RowsForm = Annotated[RowsFormat, typer.Option("--format", help="How to print the rows.")]
Steps = Annotated[
    str | None,
    typer.Option(
        metavar="A:B",
        help="Recorded step numbers that count, B not included; a single number is one step.",
    ),
]
Ranks = Annotated[
    str | None, typer.Option(metavar="LIST", help="Ranks that count, for example 0,2-5.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse files that cannot be read or need a repair.")
]
NoCache = Annotated[
    bool, typer.Option("--no-cache", help="Read the traces again and keep no store.")
]
CacheDir = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where stores are kept for the next call."),
]
UnprofiledStep = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Mean step measured without the profiler, for example 412ms: host work is scaled so "
        "that the replay meets it.",
    ),
]
Window = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=0, help="Which capture counts, where the files hold several of one rank."
    ),
]
OwnHardware = Annotated[
    Path | None,
    typer.Option(
        "--hardware",
        metavar="FILE",
        help="Own devices and links, over those that ship; or set REPLAY_HARDWARE.",
    ),
]
