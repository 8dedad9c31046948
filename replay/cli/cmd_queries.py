"""`replay queries`: the named queries, or the text of one."""

from typing import Annotated

import typer

from replay.cli import console, options


def queries(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Print the SQL of this one.", show_default=False),
    ] = None,
    format_: options.RowsForm = options.RowsFormat.TABLE,
    json: options.Json = False,
) -> None:
    """List the named queries with their parameters.

    \b
    replay queries kernel_times > mine.sql        to start one of your own from
    replay sql traces/ --query kernel_times --param ranks=0
    replay sql traces/ -f mine.sql --param top=5
    """
    from replay.cli.rows import WHOLE, write_rows
    from replay.queries.load import load
    from replay.run import query_list

    if name is not None:
        console.show(load(name).text)
        return
    console.show(write_rows(query_list(), options.RowsFormat.JSON if json else format_, WHOLE))
