"""The answer as data: the JSON contract, field by field.

`schema/answer.schema.json` beside this file says the same in JSON Schema; null stands for what is
not known. A new field is a new minor version of the schema and never changes an old one.
"""

import msgspec

SCHEMA_VERSION = 1


class TraceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What was read."""

    files: int
    files_failed: int
    ranks: tuple[int, ...]
    world_size: int | None
    gpu: str | None
    """Device name as recorded; None without GPU rows."""
    events: int
    steps: tuple[int, ...]
    """Step numbers as recorded; empty when the trace has none and counts as one step."""
    clock_offset_ns: dict[str, int]
    """By rank: what was taken off the recorded times of its file."""


class JudgedFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Measured and replayed length of one step of the run, or mean step of one rank."""

    number: int
    """Step as recorded, or rank."""
    measured_ns: int
    replayed_ns: int
    strict_ns: int
    strict_error_frac: float | None
    """None where nothing was measured."""
    device_tasks: int
    start_error_ns: int
    """Median over the device tasks; 0 without."""
    start_error_p90_ns: int
    unexplained_ns: int
    """Residuals and silence on the run's critical path, in this step or on this rank."""


class PlaceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Equal tasks whose start or length the replay could not explain, over ranks and steps."""

    what: str
    """`residual` or `silence`."""
    name: str
    op: str
    lane: str
    """Role of the thread or stream."""
    edge: str
    """Kind of the edge after which a residual was left; empty for silence."""
    ranks: tuple[int, ...]
    steps: tuple[int, ...]
    count: int
    on_path_ns: int
    total_ns: int
    largest_ns: int
    """Signed."""
    example_rank: int
    example_slice_id: int | None
    """Row of the largest in `slice`."""


class TrustFacts(msgspec.Struct, frozen=True, kw_only=True):
    """How far the replay of the unchanged trace can be trusted."""

    grade: str
    strict_error_frac: float
    explained_frac: float
    start_error_ns: int
    unlinked_frac: float
    reasons: tuple[str, ...]
    issues: dict[str, int]
    start_error_p90_ns: int
    host_path_frac: float
    """Share of the critical path that is host work, copied from the recording."""
    evidence_frac: dict[str, float]
    """Share of recorded, ordered and inferred edges, program order left out."""
    by_step: tuple[JudgedFacts, ...]
    by_rank: tuple[JudgedFacts, ...]
    unexplained: tuple[PlaceFacts, ...]
    """The largest, those on the critical path first."""
    advice: tuple[str, ...]
    """What the recording lacks, and the option of the profiler that supplies it."""


class UnprofiledFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A step measured without the profiler, and the factor on host work that meets it."""

    step_ns: int
    host_factor: float


class BaselineFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Mean step of the recording, of its calibrated replay and of its strict replay."""

    measured_ns: int
    replayed_ns: int
    """What predictions start from; the measured step unless an unprofiled one was given."""
    strict_ns: int
    unprofiled: UnprofiledFacts | None = None


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """Mean step under the scenario; `low_ns <= step_ns <= high_ns`."""

    step_ns: int
    low_ns: int
    high_ns: int
    speedup: float | None
    """Replayed / predicted; None when nothing is left of the step."""
    scenario: tuple[str, ...]
    """The transforms as they were understood, in order."""
    assumptions: tuple[str, ...]
    no_effect: tuple[str, ...]
    """Why a transform changed nothing, one sentence each."""


class RankFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Mean step of one rank, by its own boundaries."""

    rank: int
    measured_ns: int
    replayed_ns: int
    predicted_ns: int | None


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """Where the step went, ns per step; the first four add up to the step exactly."""

    compute_ns: int
    exposed_comm_ns: int
    exposed_memcpy_ns: int
    idle_ns: int
    exposed_wait_ns: int
    """Part of `exposed_comm_ns` that was waiting for other members."""


class BreakdownFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Breakdown before and after."""

    baseline: Parts
    predicted: Parts | None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What `replay TRACE --json` prints."""

    schema_version: int = SCHEMA_VERSION
    trace: TraceFacts
    trust: TrustFacts
    baseline: BaselineFacts
    prediction: Prediction | None
    ranks: tuple[RankFacts, ...]
    breakdown: BreakdownFacts


def to_json(answer: Answer) -> bytes:
    """The contract's one object, indented, with a final newline."""
    return msgspec.json.format(msgspec.json.encode(answer), indent=1) + b"\n"
