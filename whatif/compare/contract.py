"""The comparison as data: what `replay diff --json` prints and reports are written from.

Times are integer ns of a mean step, mean over ranks, where nothing else is said; `a` is the first
run, `b` the second, a change is b - a. Null stands for what is not known.
"""

import msgspec

from whatif.report.answer import TraceFacts

SCHEMA_VERSION = 1


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs."""

    name: str
    trace: TraceFacts
    has_device: bool
    """Device rows were recorded, named or not."""
    grade: str
    """Trust in its replay."""
    step_ns: int
    steps_ns: tuple[int, ...]


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """Why something takes more of a step; the three add up to its change exactly."""

    count_ns: int
    """There is more of it, at the mean of both runs."""
    longer_ns: int
    """Each takes longer."""
    exposed_ns: int
    """Less of it is hidden behind other work."""


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel, collective, copy or piece of host work that accounts for a change."""

    part: str
    """compute, exposed_transfer, exposed_wait, exposed_memcpy, idle."""
    group: str
    """Key of the group that it is part of."""
    name: str
    """In A; empty where it is new."""
    name_b: str
    """In B; empty where it is gone."""
    op: str
    phase: str
    """In A, or where it is new in B."""
    phase_b: str
    a_ns: int
    b_ns: int
    change_ns: int
    effects: Effects
    count_a: float
    """Per step and rank."""
    count_b: float
    mean_a_ns: float | None
    """Duration of one, hidden or not."""
    mean_b_ns: float | None
    matched_by: str
    noise_ns: int | None
    """95 % of the differences that chance alone makes are smaller; null with one step each."""
    confidence: str
    """high, medium, low."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A bar of the waterfall: a class of kernels, a kind of collective, a cause of idle time."""

    key: str
    part: str
    name: str
    role: str
    """Colour, as in `whatif.report.blocks`."""
    a_ns: int
    b_ns: int
    change_ns: int
    noise_ns: int | None
    is_named: bool
    """Its cause is known: all but `no known cause`."""


class PartChange(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the breakdown; the five add up to the step."""

    part: str
    a_ns: int
    b_ns: int
    change_ns: int


class CollectiveChange(msgspec.Struct, frozen=True, kw_only=True):
    """Collectives of one kind, communicator and size, hidden or not; null = not in that run."""

    kind: str
    communicator: str
    size_bytes: int | None
    calls_a: float | None
    """Per step and rank."""
    calls_b: float | None
    transfer_a_ns: float | None
    """Of one call."""
    transfer_b_ns: float | None
    wait_a_ns: float | None
    """For other members, of one call."""
    wait_b_ns: float | None
    exposed_a_ns: int
    """Transfer and wait that nothing hides, per step."""
    exposed_b_ns: int


class RankChange(msgspec.Struct, frozen=True, kw_only=True):
    """A rank that both runs have."""

    rank: int
    step_a_ns: int
    """By its own boundaries."""
    step_b_ns: int
    parts: tuple[PartChange, ...]
    caused_wait_a_ns: int
    """What a rank that it meets waits for it, exposed."""
    caused_wait_b_ns: int
    is_new_straggler: bool


class LongStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step more than 1.5 times the median of its run."""

    run: str
    """a or b."""
    step: int
    step_ns: int
    median_ns: int


class Comparability(msgspec.Struct, frozen=True, kw_only=True):
    """How far the two runs can be held against each other."""

    is_same_gpu: bool
    is_same_ranks: bool
    is_same_kind: bool
    """Both have device rows, or neither."""
    matched_frac: float
    """Of the time of both, found again by name and place."""
    renamed_frac: float
    """By less than that."""
    lone_frac: float
    """New or gone."""
    confidence: str
    reasons: tuple[str, ...]
    """Why it is not high; what differs."""


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """What `--max-regression` says."""

    limit: str
    """As typed."""
    limit_ns: int
    is_passed: bool
    reason: str


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """What `replay diff A B --json` prints."""

    schema_version: int = SCHEMA_VERSION
    sentence: str
    """The verdict."""
    a: Run
    b: Run
    change_ns: int
    change_frac: float | None
    """Of A's step; null where that is 0."""
    noise_ns: int | None
    """As of a cause."""
    is_noise: bool
    """The change is within the noise."""
    explained_frac: float | None
    """Share of the change that has a named cause: 1 - |change without one| / |change|; null
    without a change."""
    parts: tuple[PartChange, ...]
    groups: tuple[Group, ...]
    """The largest change first; they add up to the change."""
    causes: tuple[Cause, ...]
    """Everything in the groups, the largest change first; they add up to the change."""
    collectives: tuple[CollectiveChange, ...]
    ranks: tuple[RankChange, ...]
    long_steps: tuple[LongStep, ...]
    comparability: Comparability
    gate: Gate | None = None
