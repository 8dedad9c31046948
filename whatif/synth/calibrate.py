"""The step time of a shape by the models, and the factor that brings it to a measured one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ingest.errors import ScenarioError
from whatif.models.shape import RunShape
from whatif.synth.blueprint import Blueprint
from whatif.synth.machine import Site
from whatif.synth.play import play
from whatif.synth.script import Script, Sort
from whatif.synth.stage import Stage

AS_MODELLED: Mapping[Sort, float] = {Sort.COMPUTE: 1.0, Sort.COMMUNICATION: 1.0}
CLOSE_FRAC = 1e-4
"""Bisection ends where the bounds of the factor are as near as this."""
MOST_WORKS = 3_000_000
"""Kernels of all files together: minutes of work."""
LEAST_FACTOR, MOST_FACTOR = 1 / 16, 16.0
"""Kernels that are further off than this are of another model or machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What times of kernels are multiplied with so that one measured step comes out."""

    compute_factor: float
    measured_ns: float
    modelled_ns: float
    """Without the factor."""

    @property
    def factors(self) -> Mapping[Sort, float]:
        """By what a work is."""
        return {Sort.COMPUTE: self.compute_factor, Sort.COMMUNICATION: 1.0}


def step_ns(shape: RunShape, site: Site, factors: Mapping[Sort, float] = AS_MODELLED) -> float:
    """Time of a step as the models tell it: kernels one after another, hosts in time.

    Raises:
        ScenarioError: the shape cannot be, or lacks sizes.
    """
    return _played_ns(_scripts(shape, site), factors)


def calibrated(shape: RunShape, site: Site, measured_ns: float) -> Calibration:
    """The factor of compute kernels with which a step of this shape takes as long as measured.

    Found by bisection; collectives stay as the model has them.

    Raises:
        ScenarioError: no factor within 16 does: the row is not of this shape or machine.
    """
    scripts = _scripts(shape, site)

    def lasts_ns(factor: float) -> float:
        return _played_ns(scripts, {Sort.COMPUTE: factor, Sort.COMMUNICATION: 1.0})

    low, high = LEAST_FACTOR, MOST_FACTOR
    if not lasts_ns(low) <= measured_ns <= lasts_ns(high):
        raise ScenarioError(
            f"no factor of the kernels' times makes a step of {measured_ns / 1e6:,.1f} ms: the "
            f"models say {lasts_ns(1.0) / 1e6:,.1f} ms",
            hint="is the measured row of this model, machine and layout?",
        )
    while high / low >= 1 + CLOSE_FRAC:
        middle = (low * high) ** 0.5
        if lasts_ns(middle) < measured_ns:
            low = middle
        else:
            high = middle
    return Calibration(
        compute_factor=(low * high) ** 0.5, measured_ns=measured_ns, modelled_ns=lasts_ns(1.0)
    )


def refuse_large(blueprint: Blueprint, times: int) -> None:
    """Refuse what would take hours to make.

    Args:
        blueprint: of the run.
        times: steps, and files of each stage, together.

    Raises:
        ScenarioError: more kernels than can be made.
    """
    works = blueprint.works() * times
    if works > MOST_WORKS:
        raise ScenarioError(
            f"about {works:,} kernels to make; at most {MOST_WORKS:,} are",
            hint="fewer micro_batches, layers or steps, or without `--ranks all`",
        )


def _scripts(shape: RunShape, site: Site) -> list[Script]:
    """One step of each stage, in brief."""
    blueprint = Blueprint(shape, site)
    refuse_large(blueprint, 1)
    return [Stage(blueprint, stage, brief=True).write(1) for stage in range(shape.degrees.pp)]


def _played_ns(scripts: Sequence[Script], factors: Mapping[Sort, float]) -> float:
    return float(max(each.end_ns for each in play(scripts, factors, noted=False)))
