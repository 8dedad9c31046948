"""The answer as data: the JSON contract, field by field.

`schema/answer.schema.json` beside this file says the same in JSON Schema; null stands for what is
not known. A new field is a new minor version of the schema, is optional there and never changes an
old one.
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
    made: str = ""
    """That the run was made, not recorded, and by what; empty of a recording."""


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


class JitterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Spread of single steps over replays with drawn durations."""

    samples: int
    p50_ns: int
    p95_ns: int
    ranks_as_chance: bool = False
    """One step was recorded: the ranks stand for chance, so that p50 lies apart from the prediction
    where one of them is always slow, too."""


class RestsOn(msgspec.Struct, frozen=True, kw_only=True):
    """What the times of another layout rest on, in shares of its work that add up to 1."""

    measured_frac: float
    scaled_frac: float
    """A recorded time, scaled by a model's ratio."""
    made_frac: float
    """By a model alone."""


class LayoutFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Another layout, and how many ranks it has."""

    degrees: str
    """`dp 8 x tp 2`; empty where the layout was not understood."""
    ranks_before: int
    ranks_after: int
    throughput_per_rank: float | None
    """Times that of the recorded layout; null when nothing is left of the step."""


class RankMemoryFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of the fullest rank by part; null = not known."""

    parameters_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    activations_bytes: int | None
    other_bytes: int | None
    """Logits, gathered parameters and what backward works with."""
    peak_bytes: int | None
    """The most that tensors hold at once."""
    high_bytes: int | None
    """With all that the allocator, the driver and libraries may need beside."""
    fits: bool | None
    """Null: not known, or a matter of what the allocator reserves."""


class FitsWith(msgspec.Struct, frozen=True, kw_only=True):
    """A change that makes a layout fit its device."""

    flags: str
    peak_bytes: int


class MemoryFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of a rank before and after another layout."""

    device_bytes: int | None
    basis: str
    """`recorded`: the recorded peak, and the difference by formula; `formula`: both by formula."""
    baseline: RankMemoryFacts
    predicted: RankMemoryFacts
    suggestions: tuple[FitsWith, ...]
    """What would make it fit, where it does not or may not."""


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
    jitter: JitterFacts | None = None
    """None when it was not asked for, or nothing varies."""
    name: str = ""
    """Names of the scenario files, joined by ` + `; empty without any."""
    samples_factor: float = 1.0
    """Samples of a step of the whole job over those recorded: other than 1 with more or fewer
    replicas. Throughput changes by `samples_factor * speedup`."""
    known_errors: tuple[str, ...] = ()
    """Of the models used, on measurements (docs/accuracy.md), one sentence each."""
    rests_on: RestsOn | None = None
    """Of another layout, batch or model; None without."""
    memory: MemoryFacts | None = None
    """Of another layout, batch or model; None without, or where nothing is known of it."""
    layout: LayoutFacts | None = None
    """None where degrees and ranks are the recorded ones."""


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


class LateRank(msgspec.Struct, frozen=True, kw_only=True):
    """What one rank made others wait at collectives, and waited itself."""

    rank: int
    others: int
    """Ranks that it meets."""
    collectives: int
    """With another member in these files."""
    times_last: int
    times_resolved: int
    """Of these, by more than the clocks are uncertain; the figures below rest on them."""
    late_ns: int
    """Median lateness against the median of the other members."""
    caused_wait_ns: int
    """Sum of what the other members waited."""
    own_wait_ns: int
    """Sum of what it waited for others, in all its collectives."""
    cost_ns: int
    """What a rank that it meets waits for it, exposed, per step (mean over them)."""
    causes: dict[str, int]
    """Exposed wait inside the steps by cause of the lateness, ns in all."""


class GrownPart(msgspec.Struct, frozen=True, kw_only=True):
    """Work of one kind that a long step has more of on its critical path."""

    cause: str
    name: str
    """Call or operator for host work, class for device work; empty for the rest."""
    rank: int | None
    spent_ns: int
    usual_ns: int
    """Median of the other steps."""


class LongStepFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A step more than 1.5 times the median."""

    step: int
    step_ns: int
    median_ns: int
    grown: tuple[GrownPart, ...]


class ReadingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What binds the unchanged run, whom it waits for, which steps stand out."""

    bound_by: str
    bound_rank: int | None
    """The rank that most of the critical path lies on; None when it is shared, or for one rank."""
    path_frac: dict[str, float]
    """Share of the critical path by cause; they add up to 1."""
    idle_frac: float | None
    """Part of the steps in which a device does nothing; None without a device."""
    idle_launch_frac: float | None
    """Part of the steps in which an idle device waits for its next launch."""
    idle_input_frac: float | None
    """Part of that in which the host is inside its data loader."""
    cpu_ahead_ns: dict[str, int]
    """By rank: median time from the end of a launching call to the start of its device task."""
    cpu_ahead_steps: float | None
    """Of the median rank, in median steps."""
    outside_wait_ns: int
    """Waiting for members that are not in these files, per step and rank: the fastest of equal
    calls is taken for the transfer."""
    outside_wait_high_ns: int
    """The same, if calls with too few equals to compare with did nothing but wait."""
    stragglers: tuple[LateRank, ...]
    """By cost, the most expensive first."""
    long_steps: tuple[LongStepFacts, ...]


class RateFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the work of a step makes of it; null = not given or not known."""

    step_ns: int
    """The predicted step, or the measured one where no what-if was asked."""
    tokens_per_s: float | None
    samples_per_s: float | None
    mfu_frac: float | None
    peak_flops_per_s: float | None
    """Dense peak of one accelerator for the element types of the FLOPs, that `mfu_frac` is
    measured against."""
    peak_dtype: str | None
    """`bf16`, or the shares of a mix: `75% bf16, 25% fp8`."""
    gpus: int | None
    gpus_assumed: str
    """What the count rests on where the trace does not record it; empty where it does."""
    run_s: float | None
    gpu_hours: float | None
    flops_per_step: float | None = None
    """That `mfu_frac` is of: as given, else of the recorded operators of these ranks by their
    shapes, recomputation included."""
    flops_gpus: int | None = None
    """Accelerators that do them: of the job where given, of these files where recorded."""
    flops_covered_frac: float | None = None
    """Share of the time of matrix products, convolution and attention whose FLOPs the shapes tell;
    None where they were given."""
    flops_dtype_frac: dict[str, float] | None = None
    """Share of the recorded FLOPs by element type."""


class ShortLever(msgspec.Struct, frozen=True, kw_only=True):
    """A what-if that would save much; `replay levers` has all, with their ranges."""

    flag: str
    why: str
    """The change in words."""
    step_ns: int
    saving_ns: int
    """Of the unchanged run, whatever what-if was asked."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What `replay TRACE --json` prints."""

    schema_version: int = SCHEMA_VERSION
    trace: TraceFacts
    trust: TrustFacts
    baseline: BaselineFacts
    prediction: Prediction | None
    ranks: tuple[RankFacts, ...]
    breakdown: BreakdownFacts
    reading: ReadingFacts | None = None
    rates: RateFacts | None = None
    """None when no workload was given and the shapes of operators tell none."""
    levers: tuple[ShortLever, ...] | None = None
    """The biggest savings first; empty where nothing saves half a percent, None when not asked."""


def to_json(answer: msgspec.Struct) -> bytes:
    """The contract's one object, indented, with a final newline."""
    return msgspec.json.format(msgspec.json.encode(answer), indent=1) + b"\n"
