"""`replay plan`: the best layouts of a run on a number of GPUs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from replay.cli import console, options
from replay.cli.reading import reading, replayed
from replay.cli.writing import refuse_trace, require_place, write_whole

if TYPE_CHECKING:
    from whatif.report.plan import PlanAnswer

MOST_TOP = 1000


def plan(
    ctx: typer.Context,
    traces: options.Traces,
    gpus: Annotated[
        str,
        typer.Option(metavar="N,...", help="GPUs to plan for; several are planned one by one."),
    ],
    gpu: Annotated[
        str | None, typer.Option(metavar="NAME", help="Another accelerator than the recorded one.")
    ] = None,
    nodes_of: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="GPUs that the scale-up link of a node joins."),
    ] = None,
    global_batch: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Samples of a step of the whole job."),
    ] = None,
    top: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=MOST_TOP,
            help="Layouts that are replayed, of each number of GPUs.",
        ),
    ] = 10,
    max_tp: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Most tensor-parallel ranks; a node unless said."),
    ] = None,
    max_pp: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Most pipeline stages.")
    ] = None,
    max_cp: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Most context-parallel ranks.")
    ] = None,
    describe: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What the run is, where the trace does not tell."),
    ] = None,
    base_gpu: Annotated[
        str | None, typer.Option(metavar="NAME", help="The recorded accelerator.")
    ] = None,
    base_net: Annotated[
        str | None,
        typer.Option(
            metavar="RATE", help="Network of one GPU, one direction, for example 400Gbps."
        ),
    ] = None,
    own_hardware: options.OwnHardware = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also a page with charts, which needs no network."),
    ] = None,
    steps: options.Steps = None,
    ranks: options.Ranks = None,
    unprofiled_step: options.UnprofiledStep = None,
    format_: options.AnswerForm = options.AnswerFormat.TABLE,
    json: options.Json = False,
    strict: options.Strict = False,
    no_cache: options.NoCache = False,
    cache_dir: options.CacheDir = None,
    window: options.Window = None,
) -> None:
    """Find the best layouts for a number of GPUs.

    Every way to divide the recorded batch (tensor, sequence, pipeline and its schedule, data, ZeRO,
    experts, context, micro-batches, recomputation) is scored in closed form; those that fit are
    ranked, and the best are replayed.

    \b
    replay plan traces/ --gpus 64
    replay plan traces/ --gpus 64,128,256 --gpu B200 --html plan.html
    """
    from replay import api
    from whatif.models.hardware import extended_by
    from whatif.recorded import Recorded
    from whatif.report.answer import to_json
    from whatif.report.plan import render_plan

    if html is not None:
        require_place(html, traces)
        refuse_trace(html)
    asked = api.Asked(
        gpus=_numbers(gpus),
        gpu=gpu,
        node=nodes_of,
        samples=global_batch,
        most_tp=max_tp,
        most_pp=max_pp,
        most_cp=max_cp,
        top=top,
    )
    ctx.with_resource(extended_by(own_hardware))
    recorded = Recorded(
        gpu=base_gpu, net=base_net, describe=None if describe is None else str(describe)
    )
    with reading(strict=strict, no_cache=no_cache, cache_dir=cache_dir, window=window) as how:
        run = replayed(
            traces,
            recorded,
            ranks=ranks,
            steps=steps,
            unprofiled_step=unprofiled_step,
            how=how,
        )
        answer = api.plan(run, asked, progress=how.progress)
    console.report_failed(run.reading.failed)
    if html is not None:
        _write_page(answer, html, title=f"Layouts: {', '.join(traces)}")
    if json or format_ is options.AnswerFormat.JSON:
        console.show(to_json(answer).decode())
    else:
        console.show(render_plan(answer, width=console.width()))


def _numbers(text: str) -> tuple[int, ...]:
    """`64,128` as numbers.

    Raises:
        UsageError: no such list.
    """
    from ingest.errors import UsageError

    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() and int(word) for word in words):
        raise UsageError(
            f"`--gpus {text}` is no number of GPUs", hint="for example --gpus 64, or --gpus 64,128"
        )
    return tuple(dict.fromkeys(map(int, words)))


def _write_page(answer: "PlanAnswer", path: Path, *, title: str) -> None:
    from whatif.report.plan_html import plan_page

    write_whole(path, plan_page(answer, title).encode())
    console.talk(f"written: {path}")
