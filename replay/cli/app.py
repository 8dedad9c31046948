"""The app: its commands in one list, the default command, and errors as exit codes."""

import errno
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Annotated

import typer
from typer.core import TyperCommand

from ingest.errors import UsageError, UserError
from replay.cli import console
from replay.cli.asked import with_what_ifs
from replay.cli.cmd_capture import ProgramCommand, capture
from replay.cli.cmd_check import check
from replay.cli.cmd_completion import completion
from replay.cli.cmd_describe import describe
from replay.cli.cmd_diff import diff
from replay.cli.cmd_export import export
from replay.cli.cmd_hardware import hardware
from replay.cli.cmd_ingest import ingest
from replay.cli.cmd_levers import levers
from replay.cli.cmd_plan import plan
from replay.cli.cmd_queries import queries
from replay.cli.cmd_report import report
from replay.cli.cmd_scenario import scenario
from replay.cli.cmd_schema import schema
from replay.cli.cmd_serve import serve
from replay.cli.cmd_solve import solve
from replay.cli.cmd_sql import sql
from replay.cli.cmd_sweep import sweep
from replay.cli.cmd_synth import synth
from replay.cli.cmd_tables import tables
from replay.cli.cmd_verify import verify
from replay.cli.cmd_whatif import whatif
from replay.cli.helping import GroupedCommands, help_of
from replay.cli.stack import StackedCommand

COMMANDS: tuple[tuple[str, Callable[..., None], type[TyperCommand]], ...] = (
    ("whatif", whatif, StackedCommand),
    ("report", with_what_ifs(report, several=False), StackedCommand),
    ("levers", with_what_ifs(levers, several=False), StackedCommand),
    ("sweep", with_what_ifs(sweep, several=True), StackedCommand),
    ("solve", with_what_ifs(solve, several=False), StackedCommand),
    ("plan", plan, TyperCommand),
    ("serve", with_what_ifs(serve, several=False), StackedCommand),
    ("describe", describe, TyperCommand),
    ("diff", diff, TyperCommand),
    ("verify", verify, TyperCommand),
    ("capture", capture, ProgramCommand),
    ("export", with_what_ifs(export, several=False), StackedCommand),
    ("synth", synth, TyperCommand),
    ("scenario", scenario, TyperCommand),
    ("ingest", ingest, TyperCommand),
    ("sql", sql, TyperCommand),
    ("tables", tables, TyperCommand),
    ("schema", schema, TyperCommand),
    ("queries", queries, TyperCommand),
    ("check", check, TyperCommand),
    ("hardware", hardware, TyperCommand),
    ("completion", completion, ProgramCommand),
)
DEFAULT = "whatif"
OWN_OPTIONS = ("--help", "--version")
"""Options of `replay` itself; with any other first word than these and the commands, it is the
default command that runs."""

WELCOME = """\
replay answers what-if questions from PyTorch profiler (Kineto) traces.

To try it, from a clone of the repository:
  replay sample_traces/ddp8_h100 --nvlink 1800GBps

With a trace of your own, or a folder with one file per rank (.json, .json.gz):
  replay traces/                             where a step goes, and what would help
  replay traces/ --nvlink 900GBps            the same run with another link between GPUs
  replay traces/ --scale class:gemm=0.5      with matrix products twice as fast
  replay report traces/ -o report.html       all of it as a page to look at and to mail
  replay sql traces/ "SELECT ..."            the trace as tables

Without a trace:
  replay capture -- python train.py          record one; docs/recording.md has your framework

replay --help has all commands."""


def _version(*, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        console.show(f"trace-replay {version('trace-replay')}\n")
        raise typer.Exit


def _top(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", is_eager=True),
    ] = False,
) -> None:
    """Ask recorded GPU runs what-if questions.

    \b
    replay TRACE... [options]     what-if; needs no verb: replay trace.json --nvlink 900GBps
    replay COMMAND --help         the options of a command; replay whatif --help has the what-ifs

    \b
    A first word that is no command is a trace; write ./sql for a file called sql.
    """
    _version(wanted=version)


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says when there is no room."""
INTERRUPTED = 130
"""Exit code that shells give to a command ended by Ctrl-C."""


def make_app() -> typer.Typer:
    """The commands of the list, under one app."""
    app = typer.Typer(
        name="replay",
        cls=GroupedCommands,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help"], "max_content_width": 100},
    )
    app.callback(invoke_without_command=True)(_top)
    for name, function, kind in COMMANDS:
        told = help_of(function)
        app.command(name, cls=kind, help=told.help, epilog=told.epilog)(function)
    return app


def with_command(arguments: Sequence[str]) -> list[str]:
    """The arguments with the default command put in where no command stands first."""
    names = {name for name, _, _ in COMMANDS}
    if arguments and arguments[0] not in names and arguments[0] not in OWN_OPTIONS:
        return [DEFAULT, *arguments]
    return list(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; the exit code says what became of it."""
    given = sys.argv[1:] if arguments is None else arguments
    if not given:
        console.talk(WELCOME)
        return UserError.exit_code
    try:
        make_app()(args=with_command(given), prog_name="replay")
    except UserError as error:
        error.hint = error.hint or _command_meant(error, given[0])
        console.report(error)
        return error.exit_code
    except OSError as error:
        return _unusable_path(error)
    except (KeyboardInterrupt, SystemExit) as done:
        if _is_interrupt(done):
            console.talk("interrupted; no half store or file is left")
            return INTERRUPTED
        code = getattr(done, "code", None)
        return code if isinstance(code, int) else int(code is not None)
    return 0


def _command_meant(error: UserError, word: str) -> str:
    """A hint where a trace that is not there is nearly the name of a command."""
    if str(error) != f"no such file: `{word}`":
        return ""
    names = [name for name, _, _ in COMMANDS]
    return "".join(
        f"did you mean the command {name}? replay {name} --help"
        for name in get_close_matches(word, names, n=1)
    )


def _is_interrupt(done: BaseException) -> bool:
    """Typer makes an exit of Ctrl-C, and says nothing; a program of `capture` may end so too."""
    error: BaseException | None = done
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _unusable_path(error: OSError) -> int:
    """A path that the system refuses is for the person to mend, and so is a full disk.

    Without a path the bug is ours.
    """
    if error.errno in FULL and error.filename is None:
        console.report(UsageError(f"nothing could be written: {error.strerror}", hint="make room"))
        return UsageError.exit_code
    if error.filename is None:
        raise error
    console.report(
        UsageError(
            f"`{error.filename}`: {error.strerror}",
            hint="give another path",
        )
    )
    return UsageError.exit_code


def main_entry() -> None:
    """The `replay` script."""
    console.escape_what_cannot_be_shown()
    sys.exit(main())
