"""`replay serve`: an interactive what-if page on this machine."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from replay.cli import console, options
from replay.cli.browser import open_page
from replay.cli.parts import parse_step_time
from replay.cli.reading import part_of, reading
from replay.cli.stack import Typed, typed

KEPT = ("steps", "ranks", "unprofiled_step", "window", "own_hardware")
"""Options that a command needs to give the same answers as the page."""
TOKEN_BYTES = 24


def serve(
    ctx: typer.Context,
    traces: options.Traces,
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, metavar="N", help="Port on this machine; 0 takes a free one."
        ),
    ] = 0,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Only print the address, open no browser.")
    ] = False,
    steps: options.Steps = None,
    ranks: options.Ranks = None,
    unprofiled_step: options.UnprofiledStep = None,
    strict: options.Strict = False,
    no_cache: options.NoCache = False,
    cache_dir: options.CacheDir = None,
    window: options.Window = None,
) -> None:
    """Turn knobs of a run in the browser.

    Its step moves at once; Ctrl-C ends it.

    \b
    replay serve traces/
    replay serve traces/ --nvlink 1800GBps       begin with a what-if
    replay serve traces/ --port 8123 --no-open   for a tunnel: ssh -L 8123:127.0.0.1:8123 HOST

    The page is for this machine alone, and for whoever has its address with the token in it.
    """
    import secrets

    from replay import api
    from replay.cli.flags import scenario_of_words
    from replay.cli.what_ifs import scenario_in
    from replay.serve.app import App
    from replay.serve.document import document
    from replay.serve.server import LOOPBACK, Server
    from replay.serve.session import Asked, Session
    from whatif.scenario import Scenario

    start = scenario_in(typed(ctx))
    part = part_of(ranks, steps)
    step_ns = parse_step_time(unprofiled_step)
    with Server(port) as server:
        with reading(strict=strict, no_cache=no_cache, cache_dir=cache_dir, window=window) as how:
            findings = api.examine(
                traces,
                Scenario(base=start.base),
                window=part,
                unprofiled_step_ns=step_ns,
                options=how,
            )
        console.report_failed(findings.reading.failed)
        command = shlex.join(["replay", *traces, *_kept(typed(ctx))])
        asked = Asked(name=" ".join(traces), command=command, start=start)
        session = Session(findings, asked, scenario_of_words)
        session.begin()
        token = secrets.token_urlsafe(TOKEN_BYTES)
        _tell(f"http://{LOOPBACK}:{server.port}/?token={token}", opens=not no_open)
        try:
            server.answer(App(session, document(), token).respond)
        except KeyboardInterrupt:
            console.talk("\nended")


def _tell(address: str, *, opens: bool) -> None:
    console.show(f"{address}\n")
    sys.stdout.flush()
    console.talk("the page answers until Ctrl-C")
    if opens:
        open_page(address)


def _kept(order: Sequence[Typed]) -> Iterator[str]:
    for name, value in order:
        if name in KEPT:
            yield "--hardware" if name == "own_hardware" else f"--{name.replace('_', '-')}"
            yield value
