"""`replay hardware`: the catalog of accelerators and links."""

from enum import StrEnum
from typing import Annotated

import typer

from replay.cli import console, options


class Action(StrEnum):
    """What is asked of the catalog."""

    LIST = "list"
    SHOW = "show"


def hardware(
    ctx: typer.Context,
    action: Annotated[
        Action,
        typer.Argument(metavar="ACTION", help="list all entries, or show one whole."),
    ] = Action.LIST,
    name: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="For show: device or link.", show_default=False),
    ] = None,
    links: Annotated[bool, typer.Option("--links", help="List links, not accelerators.")] = False,
    own: options.OwnHardware = None,
    format_: options.RowsForm = options.RowsFormat.TABLE,
    json: options.Json = False,
) -> None:
    """Show the accelerators and links that what-ifs know.

    \b
    replay hardware list
    replay hardware list --links
    replay hardware show NVIDIA H100 80GB HBM3
    replay hardware show InfiniBand NDR
    """
    from ingest.errors import UsageError
    from whatif.models.hardware import extended_by

    words = " ".join(name or ())
    if (action is Action.SHOW) != bool(words):
        raise UsageError(
            "`list` takes no name" if words else "which device or link?",
            hint="replay hardware show H100",
        )
    form = options.RowsFormat.JSON if json else format_
    ctx.with_resource(extended_by(own))
    console.show(_one(words, form) if words else _all(form, links=links))


def _all(form: options.RowsFormat, *, links: bool) -> str:
    """The list: short columns to read, base units as data."""
    from replay.cli.rows import WHOLE, write_rows
    from replay.table import Table
    from whatif.models.hardware import catalog
    from whatif.report import hardware as told

    to_read = form in {options.RowsFormat.TABLE, options.RowsFormat.MARKDOWN}
    if links:
        of = catalog().links
        table = (
            Table(names=told.SHORT_LINK_COLUMNS, rows=told.short_link_rows(of))
            if to_read
            else Table(names=told.LINK_COLUMNS, rows=told.link_rows(of))
        )
        note = told.SHORT_LINK_UNITS
    else:
        devices = catalog().accelerators
        table = (
            Table(names=told.SHORT_COLUMNS, rows=told.short_device_rows(devices))
            if to_read
            else Table(names=told.LIST_COLUMNS, rows=told.device_rows(devices))
        )
        note = told.SHORT_UNITS
    return write_rows(table, form, WHOLE) + (f"\n{note}\n" if to_read else "")


def _one(name: str, form: options.RowsFormat) -> str:
    """Every figure of one entry; as JSON the entry as a file of the catalog has it."""
    import msgspec

    from replay.cli.rows import write_rows
    from replay.table import Table
    from whatif.models.hardware import require_any
    from whatif.report import hardware as told

    entry = require_any(name)
    if form is options.RowsFormat.JSON:
        return msgspec.json.format(msgspec.json.encode(entry), indent=1).decode() + "\n"
    if form is not options.RowsFormat.TABLE:
        return write_rows(Table(names=told.FIGURE_COLUMNS, rows=told.figure_rows(entry)), form)
    return told.render(entry)
