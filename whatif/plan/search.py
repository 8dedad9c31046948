"""All layouts of a space, scored; those that fit, the best first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from ingest.errors import UserError
from whatif.models.memory.device import fits
from whatif.models.shape import Degrees, Recompute, RunShape, Schedule
from whatif.plan.anchor import Anchor
from whatif.plan.passes import Times
from whatif.plan.score import Losses, computation_ns, losses_of, memory_bytes
from whatif.plan.space import MICRO_SAMPLES, Excluded, Space, layouts

EVERY = 256
"""Layouts between two reports of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A layout with its step by the closed form."""

    shape: RunShape
    losses: Losses
    memory_bytes: float
    """Of the fullest rank, as tensors."""
    fits: bool | None
    """None: that is a matter of what the allocator reserves, or of a device that is not known."""

    @property
    def step_ns(self) -> float:
        """By the closed form."""
        return self.losses.step_ns

    @property
    def gpus(self) -> int:
        """Of the job."""
        return self.shape.degrees.world


@dataclass(slots=True)
class Found:
    """What a search found."""

    ranked: list[Scored] = field(default_factory=list)
    """Those that fit, or may; the shortest step first."""
    tried: int = 0
    too_large: int = 0
    nearest: Scored | None = None
    """Of those that do not fit, the one that needs least."""
    excluded: Excluded = field(default_factory=Excluded)
    """Layouts that do not divide, by reason."""

    def take(self, one: Scored) -> None:
        """Rank it, or count it as too large."""
        if one.fits is not False:
            self.ranked.append(one)
            return
        self.too_large += 1
        if self.nearest is None or one.memory_bytes < self.nearest.memory_bytes:
            self.nearest = one


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """What all layouts of one space are measured with."""

    times: Times
    ideal_ns: float
    rest_ns: float
    device_bytes: float | None

    def score(self, shape: RunShape) -> Scored:
        """Step and memory of a layout.

        Raises:
            ScenarioError: its schedule does not divide.
        """
        needed = memory_bytes(shape)
        return Scored(
            shape=shape,
            losses=losses_of(shape, self.times, self.ideal_ns, self.rest_ns),
            memory_bytes=needed,
            fits=None if self.device_bytes is None else fits(needed, self.device_bytes),
        )


def search(
    base: RunShape,
    spaces: Sequence[Space],
    times: Times,
    anchor: Anchor,
    device_bytes: float | None,
    progress: Callable[[int], None] = lambda _tried: None,
) -> Found:
    """Score every layout.

    Args:
        base: the recorded run.
        spaces: what is tried.
        times: of parts on the machine that is planned for, at the levels of the anchor.
        anchor: what the recorded run took.
        device_bytes: memory of one device; None: not known, all fit.
        progress: told how many were tried.

    Raises:
        UsageError: sizes of the model or the batch are not known.
    """
    found = Found()
    for space in spaces:
        scale = _Scale(
            times=times,
            ideal_ns=ideal_of(base, times) * space.samples / space.gpus,
            rest_ns=anchor.rest_ns,
            device_bytes=device_bytes,
        )
        for shape in layouts(base, space, found.excluded):
            found.tried += 1
            if found.tried % EVERY == 0:
                progress(found.tried)
            try:
                found.take(scale.score(shape))
            except (UserError, AssertionError) as error:  # one layout does not end the search
                found.excluded.because(why(error))
    found.ranked.sort(key=lambda one: (one.step_ns, one.memory_bytes))
    return found


def why(error: UserError | AssertionError) -> str:
    """Why a layout is left out; a mistake of ours is told as one."""
    if isinstance(error, UserError):
        return str(error)
    return f"a mistake of this program: {str(error) or 'an assertion'}"


def ideal_of(base: RunShape, times: Times) -> float:
    """Computation of one sample through the whole model on one GPU, ns, kernels undivided.

    Of the numbers of samples in a micro-batch the one with the least time for each.
    """
    whole = replace(
        base,
        degrees=Degrees(),
        options=replace(base.options, schedule=Schedule.NONE, recompute=Recompute.NONE),
    )
    return min(
        computation_ns(replace(whole, batch=replace(base.batch, samples=float(size))), times) / size
        for size in MICRO_SAMPLES
    )
