"""`replay scenario`: what a scenario file says, without a trace."""

from pathlib import Path
from typing import Annotated

import typer

from ingest.errors import UsageError
from replay.cli import console


def scenario(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Scenario files; they stack.", show_default=False),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of such files.")
    ] = False,
) -> None:
    """Check scenario files and print the options that say the same.

    \b
    replay scenario next.yaml
    replay scenario --schema > scenario.schema.json
    """
    from whatif.report.schemas import schema_text
    from whatif.report.stacked import stacked
    from whatif.scenario import Scenario, load_scenario

    if schema:
        console.show(schema_text("scenario"))
        return
    if not files:
        raise UsageError("no scenario file", hint="replay scenario FILE, or --schema")
    together = Scenario()
    for path in files:
        together = together.followed_by(load_scenario(path))
    console.show(stacked(together))
