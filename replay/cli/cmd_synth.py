"""`replay synth`: the trace of a run that was never recorded."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from replay.cli import console, options

if TYPE_CHECKING:
    from whatif.synth.make import Made

STAGES, ALL = "stages", "all"


def synth(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="YAML: model, machine, degrees, batch.", show_default=False
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FOLDER", help="For the traces; made if needed."),
    ],
    ranks: Annotated[
        str,
        typer.Option(
            metavar="stages|all",
            help="One file per pipeline stage, whose ranks are alike, or one per rank.",
        ),
    ] = STAGES,
    json: options.Json = False,
) -> None:
    """Make traces of a transformer that was never trained.

    \b
    replay synth model.yaml -o run/
    replay run/ --tp 4

    Times are those of the models of kernels and collectives; `calibrate: {step_ms: 850}` in MODEL
    brings the step to a measured time. The files are marked as made, not recorded.
    """
    from ingest.errors import UsageError
    from whatif.synth.make import make_from

    if ranks not in {STAGES, ALL}:
        raise UsageError(f"`--ranks {ranks}`: there is no such choice", hint="stages or all")
    made = make_from(model, output, all_ranks=ranks == ALL)
    console.show(_as_json(made) if json else _as_text(made))


def _as_text(made: "Made") -> str:
    files = f"{len(made.files):,} file" + ("s" if len(made.files) > 1 else "")
    lines = [
        f"made     {files} in {made.folder} | {made.world_size:,} ranks, {made.stages:,} stages",
        f"step     {made.step_ms:,.2f} ms",
    ]
    found = made.calibration
    if found is None:
        lines.append("times    by models alone: nothing was measured")
    else:
        lines.append(
            f"times    kernels x {found.compute_factor:.4f}, so that the measured step comes out: "
            f"{found.measured_ns / 1e6:,.2f} ms (models alone: {found.modelled_ns / 1e6:,.2f} ms)"
        )
    return "\n".join(lines) + "\n"


def _as_json(made: "Made") -> str:
    import msgspec

    found = made.calibration
    calibration = None
    if found is not None:
        calibration = {
            "compute_factor": found.compute_factor,
            "measured_ms": found.measured_ns / 1e6,
            "modelled_ms": found.modelled_ns / 1e6,
        }
    document = {
        "folder": str(made.folder),
        "files": [path.name for path in made.files],
        "world_size": made.world_size,
        "stages": made.stages,
        "step_ms": made.step_ms,
        "calibration": calibration,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"
