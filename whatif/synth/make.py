"""The door: a run that is wanted -> traces of its ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ingest.errors import ScenarioError, UsageError
from whatif.synth.blueprint import Blueprint
from whatif.synth.calibrate import AS_MODELLED, Calibration, calibrated, refuse_large
from whatif.synth.document import LONGEST_STEP_MS, Wanted, load_wanted
from whatif.synth.groups import Groups
from whatif.synth.kineto import write_trace
from whatif.synth.machine import Site, site_of
from whatif.synth.play import Played, play
from whatif.synth.script import Group, Launch, Script
from whatif.synth.stage import Stage

MOST_FILES = 4_096
MS = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What was written."""

    folder: Path
    files: tuple[Path, ...]
    world_size: int
    stages: int
    step_ms: float
    """Of the run as it was written, from the first host row to the last work of any file."""
    calibration: Calibration | None


def make(wanted: Wanted, folder: Path, *, all_ranks: bool = False) -> Made:
    """Write one trace per pipeline stage, or per rank.

    Args:
        wanted: the run.
        folder: for the files; it is made.
        all_ranks: a file for every rank; ranks of one stage are alike.

    Raises:
        UsageError: the folder cannot be written, or there would be too many files.
        ScenarioError: the run cannot be, or lacks sizes.
    """
    calibration = calibration_of(wanted, site_of(wanted.machine))
    return make_with(wanted, folder, calibration, all_ranks=all_ranks)


def make_with(
    wanted: Wanted, folder: Path, calibration: Calibration | None, *, all_ranks: bool = False
) -> Made:
    """As `make`, with a calibration that is known already.

    Raises:
        UsageError: the folder cannot be written, or there would be too many files.
        ScenarioError: the run cannot be, or lacks sizes.
    """
    blueprint = Blueprint(wanted.shape, site_of(wanted.machine))
    degrees = wanted.shape.degrees
    replicas = range(degrees.world // degrees.pp if all_ranks else 1)
    if len(replicas) * degrees.pp > MOST_FILES:
        raise UsageError(
            f"{degrees.world:,} files", hint="without `--ranks all` one per pipeline stage"
        )
    refuse_large(blueprint, wanted.steps * len(replicas))
    factors = AS_MODELLED if calibration is None else calibration.factors
    files: list[Path] = []
    longest = 0
    for replica in replicas:
        apart = len(range(degrees.world // degrees.pp))
        scripts = [
            Stage(blueprint, stage, rank=stage * apart + replica).write(wanted.steps)
            for stage in range(degrees.pp)
        ]
        all_played = play(scripts, factors)
        _refuse_long(all_played, wanted.steps)
        _make_folder(folder)
        for script, played in zip(scripts, all_played, strict=True):
            path = folder / f"rank{script.rank}.json.gz"
            _write(played, script, path, blueprint, wanted, calibration)
            files.append(path)
            longest = max(longest, played.end_ns)
    return Made(
        folder=folder,
        files=tuple(files),
        world_size=degrees.world,
        stages=degrees.pp,
        step_ms=longest / wanted.steps / MS,
        calibration=calibration,
    )


def _refuse_long(all_played: Sequence[Played], steps: int) -> None:
    step_ms = max(played.end_ns for played in all_played) / steps / MS
    if step_ms > LONGEST_STEP_MS:
        raise ScenarioError(
            f"a step would take {step_ms / 1_000:,.3g} s: longer than a day",
            hint="batch: {samples, sequence, micro_batches} or the rates of machine: are off",
        )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}", hint="give another folder") from error


def make_from(model: Path, folder: Path, *, all_ranks: bool = False) -> Made:
    """As `make`, of a file; what is wrong with the run is told with the file's name.

    Raises:
        UsageError: a file or the folder cannot be read or written.
        ScenarioError: the run cannot be, or lacks sizes.
    """
    wanted = load_wanted(model)
    try:
        return make(wanted, folder, all_ranks=all_ranks)
    except ScenarioError as error:
        raise ScenarioError(f"{model}: {error}", hint=error.hint) from error


def calibration_of(wanted: Wanted, site: Site) -> Calibration | None:
    """What the measured step of the file tells of the machine.

    Raises:
        ScenarioError: the measured shape cannot be, or no factor fits it.
    """
    said = wanted.calibrate
    return None if said is None else calibrated(said.of(wanted.shape), site, said.step_ms * MS)


def _write(
    played: Played,
    script: Script,
    path: Path,
    blueprint: Blueprint,
    wanted: Wanted,
    calibration: Calibration | None,
) -> None:
    write_trace(
        played,
        path,
        machine=blueprint.site.machine,
        world_size=wanted.degrees.world,
        groups=_groups_of(script, blueprint),
        nodes_of=blueprint.site.nodes_of,
        metadata={"synthetic": _told(wanted, calibration)},
    )


def _groups_of(script: Script, blueprint: Blueprint) -> tuple[Group, ...]:
    """Communicators that the rank uses, and its pipeline where there are stages."""
    used = {
        act.exchange.group.name: act.exchange.group
        for act in script.acts
        if isinstance(act, Launch) and act.exchange is not None
    }
    if blueprint.shape.degrees.pp > 1:
        group = Groups(rank=script.rank, shape=blueprint.shape).pipeline(0)
        used[group.name] = group
    return tuple(used[name] for name in sorted(used))


def _told(wanted: Wanted, calibration: Calibration | None) -> dict[str, object]:
    """What is written into the file, so that nobody takes it for a recording."""
    told: dict[str, object] = {"made_by": "replay synth", "run": msgspec.to_builtins(wanted)}
    if calibration is not None:
        told["calibration"] = {
            "compute_factor": round(calibration.compute_factor, 6),
            "measured_ms": calibration.measured_ns / MS,
            "modelled_ms": round(calibration.modelled_ns / MS, 3),
        }
    return told
