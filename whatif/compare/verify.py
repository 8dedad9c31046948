"""A prediction made earlier against the run that was made since: how good was it, and where not."""

from collections.abc import Iterator

import msgspec

from ingest.units import format_ms
from whatif.compare.account import account
from whatif.compare.comparability import POOR_GRADES
from whatif.compare.contract import Gate, Run
from whatif.compare.diff import run_of
from whatif.compare.gate import Limit, judge
from whatif.compare.leaves import Account, Part
from whatif.compare.noise import mean_noise_ns
from whatif.compare.side import Side
from whatif.report.answer import Answer, Parts

SCHEMA_VERSION = 1
REST = "rest"
"""What the parts of a prediction leave of its step."""
ANOTHER_GPU = "gpu "
"""Labels of what-ifs after which another GPU is expected begin so."""


class PredictedPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the breakdown; the errors of all add up to that of the step."""

    part: str
    baseline_ns: int
    predicted_ns: int
    measured_ns: int
    error_ns: int
    """Predicted - measured."""


class PredictedRank(msgspec.Struct, frozen=True, kw_only=True):
    """A rank that was predicted and measured, by its own boundaries."""

    rank: int
    predicted_ns: int
    measured_ns: int
    error_ns: int


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What `replay verify PREDICTION TRACE --json` prints; ns of a mean step."""

    schema_version: int = SCHEMA_VERSION
    sentence: str
    name: str
    """Of the prediction."""
    scenario: tuple[str, ...]
    baseline_ns: int
    """The replayed step that the prediction started from."""
    predicted_ns: int
    low_ns: int
    high_ns: int
    measured: Run
    noise_ns: int | None
    """Half the 95 % interval of the measured mean; null with one step."""
    error_ns: int
    """Predicted - measured."""
    error_frac: float | None
    """Of the measured step."""
    is_inside: bool
    """The measured step lies within low..high."""
    is_within_noise: bool
    """It lies no further from low..high than its noise."""
    predicted_change_ns: int
    """Against the baseline."""
    measured_change_ns: int
    parts: tuple[PredictedPart, ...]
    ranks: tuple[PredictedRank, ...]
    reasons: tuple[str, ...]
    """Why the two may not be the same thing."""
    gate: Gate | None = None


def verify(answer: Answer, name: str, side: Side, limit: Limit | None = None) -> Verification:
    """Hold a run against a prediction.

    Args:
        answer: with a prediction.
        name: what the prediction is called.
        side: the run made later.
        limit: how far off it may be; None is no gate.
    """
    prediction, measured = answer.prediction, account(side)
    assert prediction is not None, "read_prediction has seen to that"
    noise = mean_noise_ns(measured.steps_ns)
    noise = None if noise is None else round(noise)
    error_ns = prediction.step_ns - measured.step_ns
    beyond_ns = max(prediction.low_ns - measured.step_ns, measured.step_ns - prediction.high_ns, 0)
    baseline_ns = answer.baseline.replayed_ns
    gate = None
    if limit is not None:
        gate = judge(limit, abs(error_ns), measured.step_ns, noise)
    return Verification(
        sentence=_sentence(answer, measured.step_ns, beyond_ns, noise or 0),
        name=name,
        scenario=prediction.scenario,
        baseline_ns=baseline_ns,
        predicted_ns=prediction.step_ns,
        low_ns=prediction.low_ns,
        high_ns=prediction.high_ns,
        measured=run_of(side),
        noise_ns=noise,
        error_ns=error_ns,
        error_frac=error_ns / measured.step_ns if measured.step_ns else None,
        is_inside=not beyond_ns,
        is_within_noise=beyond_ns <= (noise or 0),
        predicted_change_ns=prediction.step_ns - baseline_ns,
        measured_change_ns=measured.step_ns - baseline_ns,
        parts=tuple(_parts(answer, measured)),
        ranks=tuple(_ranks(answer, side)),
        reasons=tuple(_reasons(answer, side)),
        gate=gate,
    )


def _sentence(answer: Answer, measured_ns: int, beyond_ns: int, noise: int) -> str:
    prediction = answer.prediction
    assert prediction is not None, "read_prediction has seen to that"
    error_ns = prediction.step_ns - measured_ns
    share = f" ({abs(error_ns) / measured_ns:.1%})" if measured_ns else ""
    side = "too slow" if error_ns > 0 else "too fast"
    off = f"{format_ms(abs(error_ns))}{share} {side}" if error_ns else "exact"
    where = "outside" if beyond_ns else "inside"
    doubt = ", but no further from it than steps vary by chance" if 0 < beyond_ns <= noise else ""
    span = f"{format_ms(prediction.low_ns)} to {format_ms(prediction.high_ns)}"
    return (
        f"predicted {format_ms(prediction.step_ns)}, measured {format_ms(measured_ns)}: {off}, "
        f"{where} the range {span}{doubt}"
    )


def _parts(answer: Answer, measured: Account) -> Iterator[PredictedPart]:
    prediction, predicted = answer.prediction, answer.breakdown.predicted
    assert prediction is not None, "read_prediction has seen to that"
    assert predicted is not None, "the same"
    before, after = _by_part(answer.breakdown.baseline), _by_part(predicted)
    for part in Part:
        found_ns = measured.part_ns(part)
        yield PredictedPart(
            part=part,
            baseline_ns=before[part],
            predicted_ns=after[part],
            measured_ns=found_ns,
            error_ns=after[part] - found_ns,
        )
    rest_ns = prediction.step_ns - sum(after.values())
    before_ns = answer.baseline.replayed_ns - sum(before.values())
    if rest_ns or before_ns:
        yield PredictedPart(
            part=REST,
            baseline_ns=before_ns,
            predicted_ns=rest_ns,
            measured_ns=0,
            error_ns=rest_ns,
        )


def _by_part(parts: Parts) -> dict[Part, int]:
    return {
        Part.COMPUTE: parts.compute_ns,
        Part.TRANSFER: parts.exposed_comm_ns - parts.exposed_wait_ns,
        Part.WAIT: parts.exposed_wait_ns,
        Part.MEMCPY: parts.exposed_memcpy_ns,
        Part.IDLE: parts.idle_ns,
    }


def _ranks(answer: Answer, side: Side) -> Iterator[PredictedRank]:
    place = {info.rank: at for at, info in enumerate(side.graph.ranks)}
    for rank in answer.ranks:
        if rank.predicted_ns is None or rank.rank not in place:
            continue
        measured_ns = int(side.baseline.replayed.rank_mean_ns(place[rank.rank]))
        yield PredictedRank(
            rank=rank.rank,
            predicted_ns=rank.predicted_ns,
            measured_ns=measured_ns,
            error_ns=rank.predicted_ns - measured_ns,
        )


def _reasons(answer: Answer, side: Side) -> Iterator[str]:
    """What the recorded run, the scenario and the measured run do not have in common."""
    prediction = answer.prediction
    assert prediction is not None, "read_prediction has seen to that"
    run = run_of(side)
    before, after = answer.trace, run.trace
    if (before.gpu is None) != (after.gpu is None):
        yield "one run has GPU rows and the other has none: their parts are not the same things"
    elif before.gpu != after.gpu and not _expects_another_gpu(prediction.scenario):
        yield f"the prediction is of {before.gpu}, the run of {after.gpu}, and no what-if says so"
    elif before.gpu == after.gpu and _expects_another_gpu(prediction.scenario):
        yield f"the what-if is about another GPU, yet the run is of {after.gpu} as before"
    if before.ranks != after.ranks:
        yield f"files of {len(before.ranks)} ranks were read then, of {len(after.ranks)} now"
    if before.world_size != after.world_size and prediction.samples_factor == 1:
        yield f"the job had {before.world_size} ranks then, {after.world_size} now"
    if bool(before.steps) != bool(after.steps):
        yield "only one of the runs has recorded steps: the other counts as one"
    if answer.baseline.unprofiled is not None:
        yield "the prediction is of a run without the profiler, the measured one was recorded"
    if answer.trust.grade in POOR_GRADES:
        yield f"trust in the replay that it started from was {answer.trust.grade}"
    if run.grade == "D":
        yield "trust in the replay of the measured run is D"


def _expects_another_gpu(scenario: tuple[str, ...]) -> bool:
    return any(label.startswith(ANOTHER_GPU) for label in scenario)
