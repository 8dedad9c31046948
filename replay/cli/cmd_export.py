"""`replay export`: a run for trace viewers, for tables elsewhere, and for simulators."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ingest.errors import UsageError
from replay.cli import console, options
from replay.cli.parts import parse_step_time
from replay.cli.reading import part_of, reading
from replay.cli.stack import typed
from replay.cli.writing import counted

if TYPE_CHECKING:
    from replay.api import Exported, ExportedTraces
    from replay.export.tables import Tables
    from replay.export.timeline import Timelines

_MEGA = 1e6


def export(
    ctx: typer.Context,
    traces: options.Traces,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="A .json or .json.gz for trace viewers; any other name is a folder of one trace "
            "per rank. With --table .parquet, .arrow or .csv.",
        ),
    ],
    table: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A table of the run instead; all: every table, into a folder. `replay tables` "
            "lists them.",
        ),
    ] = None,
    chakra: Annotated[
        bool,
        typer.Option(
            "--chakra",
            help="Chakra execution traces of the predicted run instead, into a folder: input of "
            "ASTRA-sim.",
        ),
    ] = False,
    steps: options.Steps = None,
    ranks: options.Ranks = None,
    unprofiled_step: options.UnprofiledStep = None,
    strict: options.Strict = False,
    no_cache: options.NoCache = False,
    cache_dir: options.CacheDir = None,
    window: options.Window = None,
) -> None:
    """Write timelines or tables for other programs.

    The recorded and the predicted run for trace viewers and ASTRA-sim, tables for data frames.

    \b
    replay export traces/ --nvlink 1800GBps -o out.json.gz   both, in one Chrome trace
    replay export traces/ -o out.json.gz --steps 12          recorded and strictly replayed
    replay export traces/ --gpu h200 -o out/                 a trace per rank, for HTA and the like
    replay export traces/ --table kernel -o kernel.parquet   a table; --table all -o tables/
    replay export traces/ --net 800Gbps --chakra -o et/      for ASTRA-sim

    Open the file in ui.perfetto.dev or chrome://tracing.
    """
    from replay import api
    from replay.cli.what_ifs import require_use_of_base, scenario_in

    order = typed(ctx)
    asked = scenario_in(order)
    require_use_of_base(order, [asked])
    part = part_of(ranks, steps)
    step_ns = parse_step_time(unprofiled_step)
    if table is not None and (asked.transforms or step_ns or part != api.WHOLE or chakra):
        raise UsageError(
            "a table is of the whole recorded run: no what-if, no part of it",
            hint="choose rows with: replay sql TRACE QUERY -o FILE.parquet",
        )
    with reading(strict=strict, no_cache=no_cache, cache_dir=cache_dir, window=window) as how:
        if table is not None:
            _tell_tables(api.export_tables(traces, table, output, options=how), output)
            return
        write = api.export_chakra if chakra else api.export_timeline
        made = write(
            traces,
            asked,
            output=output,
            window=part,
            unprofiled_step_ns=step_ns,
            options=how,
        )
    console.report_failed(made.reading.failed)
    if isinstance(made, api.Exported):
        _tell_timelines(made, output)
    else:
        _tell_traces(made, output)


def _tell_tables(made: "Tables", output: Path) -> None:
    console.report_failed(made.failed)
    rows = sum(table.rows for table in made.written)
    size = sum(table.size_bytes for table in made.written)
    names = counted(len(made.written), "table")
    console.talk(f"{names}, {counted(rows, 'row')} written to {output} ({_mb(size)})")
    for name, reason in made.left_out:
        console.talk(f"left out: {name}: {reason}")


def _tell_timelines(made: "Exported", output: Path) -> None:
    drawn = made.timelines
    _tell_what_ifs(made.labels)
    for label, step_ns in made.steps_ns.items():
        console.talk(f"{label:<9} step {step_ns / 1e6:,.2f} ms")
    _tell_clocks(drawn)
    for what, amount in drawn.left_out.items():
        console.talk(f"left out: {what}: {amount:,}")
    arrows = counted(drawn.flows, "arrow")
    console.talk(
        f"{counted(drawn.slices, 'slice')} and {arrows} written to {output} "
        f"({_mb(drawn.size_bytes)}, {made.reading.seconds:.1f} s)"
    )
    if len(drawn.files) == 1:
        console.talk("open it in ui.perfetto.dev or chrome://tracing")


def _tell_clocks(drawn: "Timelines") -> None:
    """One line where device rows do not stand where their file says."""
    moved_us = [clock.device_clock_offset_ns / 1e3 for clock in drawn.clocks]
    if any(moved_us):
        low, high = (f"{one:+,.1f}" for one in (min(moved_us), max(moved_us)))
        told = low if low == high else f"{low} to {high}"
        console.talk(f"device rows are moved by {told} us against their host: clocks in the file")


def _tell_traces(made: "ExportedTraces", output: Path) -> None:
    traces = made.written.traces
    _tell_what_ifs(made.labels)
    console.talk(f"step {made.step_ns / 1e6:,.2f} ms")
    if traces.timed:
        console.talk(
            f"{counted(traces.timed, 'member')} of collectives with a duration of their own, not "
            "simulated: sends and receives, one rank alone, or no size recorded"
        )
    lost_ms = traces.lost_ns / 1e6
    console.talk(
        f"left out: {lost_ms:,.2f} ms of the step's critical path are lags, or gaps without a "
        "known cause: the format has no place for them"
    )
    console.talk(
        f"{counted(traces.nodes, 'node')} of {counted(len(traces.ranks), 'rank')} written to "
        f"{output} ({_mb(made.written.size_bytes)}, {made.reading.seconds:.1f} s)"
    )


def _tell_what_ifs(labels: tuple[str, ...]) -> None:
    if labels:
        console.talk(f"what-ifs: {', '.join(labels)}")


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / _MEGA:,.1f} MB"
