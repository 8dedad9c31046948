"""The verdict: a run in one sentence, its biggest finding, and what that would not mend."""

from collections.abc import Iterator, Sequence

from ingest.units import format_ms
from replay.results.causes import WORDS, Cause
from replay.results.idle import CAUSES, device_idle, idle_by_cause
from whatif.postmortem.contract import Confidence, Finding, Verdict
from whatif.postmortem.findings.rules import RISKS
from whatif.postmortem.material import Material
from whatif.postmortem.steps_told import spread_words
from whatif.postmortem.untold import TRANSFERS, is_untold, judged_levers
from whatif.postmortem.wording import LEAST_TOLD, counted, joined, percents, predicted, times
from whatif.report.answer import Parts
from whatif.report.levers import MovedFacts

BOUND_FRAC = 0.5
BOUND_MARGIN = 0.15
"""A class of bound has at least this share of the critical path, and so much more than the next."""
NAMED_FRAC = 0.5
"""A cause of idle time is named where at least this part of it is the cause's."""
LEFT_FRAC = 0.05
"""What is left of a step without the biggest finding is told from this share on."""
BOUND_WORDS = {
    "device": "bound by GPU compute",
    "host": "host-bound",
    "input": "bound by the data loader",
    "communication": "communication-bound",
    "copies": "bound by copies",
    "straggler": "bound by a straggler",
    "absent_ranks": "bound by ranks that are not in these files",
    "unknown": "bound by what has no known cause",
}
SIDES = {
    "host": "host",
    "input": "host",
    "compute": "device",
    "copies": "copies",
    "transfer": "communication",
    "wait": "absent_ranks",
    "unknown": "unknown",
}
"""Cause of time on the critical path -> what a run with most of it is bound by."""
UNKNOWN_FRAC = 0.1
"""Of the critical path without a known cause: from here on no run is called healthy."""
DEVICE_PARTS = ("compute", "exposed communication", "exposed copies", "idle")
HOST_PARTS = ("CPU work", "waiting for collectives", "copies", "other waiting")
IDLE_WORDS = {"short": "short gaps", "sync_drain": "after waits of the host"}
"""Causes of idle time whose names do not read as words."""
DISTRUSTED = "D"
UNTOLD = "which of the two cannot be told: record all ranks"


def verdict(material: Material, found: Sequence[Finding]) -> Verdict:
    """Page one in a sentence or a few."""
    slow = [one for one in found if one.key not in RISKS]
    return Verdict(
        sentence=" ".join(_sentences(material, slow)),
        not_fixed=_not_fixed(material, slow),
        is_healthy=not slow and _is_known(material),
    )


def part_names(material: Material) -> tuple[str, ...]:
    """What the four parts of the breakdown are called in this run."""
    return DEVICE_PARTS if material.findings.facts.has_device else HOST_PARTS


def part_values(parts: Parts) -> tuple[int, ...]:
    """In the order of the names, ns per step."""
    return (
        parts.compute_ns,
        parts.exposed_comm_ns,
        parts.exposed_memcpy_ns,
        parts.idle_ns,
    )


def bound_words(material: Material) -> str:
    """What the run is bound by; `mixed` where nothing has most of the critical path."""
    reading = material.answer.reading
    if reading is None:
        return ""
    sides: dict[str, float] = {}
    for cause, frac in reading.path_frac.items():
        sides[SIDES[cause]] = sides.get(SIDES[cause], 0.0) + frac
    first, second = sorted(sides.values(), reverse=True)[:2]
    if first < BOUND_FRAC or first - second < BOUND_MARGIN:
        told = [
            f"{_cause(material, name)} {frac:.0%}"
            for name, frac in _largest(material)
            if frac >= LEAST_TOLD
        ]
        return f"bound by a mix ({joined(told)} of the critical path)"
    if reading.bound_by == "communication" and is_untold(material):
        return f"bound by {TRANSFERS} ({UNTOLD})"
    if reading.bound_by == "straggler" and reading.stragglers:
        return f"bound by a straggler, rank {reading.stragglers[0].rank}"
    if reading.bound_by == "host" and not material.findings.facts.has_device:
        return "CPU-bound"
    return BOUND_WORDS[reading.bound_by]


def _cause(material: Material, name: str) -> str:
    if name == "transfer" and is_untold(material):
        return f"{TRANSFERS} ({UNTOLD})"
    return WORDS[Cause[name.upper()]]


def _largest(material: Material) -> list[tuple[str, float]]:
    """The three causes with most of the critical path."""
    assert material.answer.reading is not None, "asked for where there is one"
    shares = material.answer.reading.path_frac.items()
    return sorted(shares, key=lambda share: -share[1])[:3]


def _sentences(material: Material, slow: Sequence[Finding]) -> Iterator[str]:
    yield from _warnings(material)
    yield _where_it_goes(material)
    first = leading(slow)
    if first is not None and first.saving_ns is not None:
        yield f"Biggest finding to act on: {told(material, first)}."
    elif first is not None:
        yield f"{_capital(first.insight)}."
    elif not _is_known(material):
        yield _unknown(material)
    else:
        yield _healthy(material)


def _is_known(material: Material) -> bool:
    """The recording says enough to call a run healthy."""
    return material.answer.trust.grade != DISTRUSTED and _unknown_frac(material) < UNKNOWN_FRAC


def _unknown_frac(material: Material) -> float:
    """Share of the critical path that no work explains, silence of the host included."""
    reading, trust = material.answer.reading, material.answer.trust
    if reading is None:
        return 1.0
    return max(reading.path_frac.get("unknown", 0.0), 1 - trust.explained_frac)


def _unknown(material: Material) -> str:
    """Nothing was found, and much is not known."""
    why = f"{_unknown_frac(material):.0%} of the critical path has no known cause"
    if _unknown_frac(material) < UNKNOWN_FRAC:
        why = "this recording does not bear it"
    lacks = next(iter(material.answer.trust.advice), "")
    return f"No bottleneck is named: {why}{f'; it lacks {lacks}' if lacks else ''}."


def leading(found: Sequence[Finding]) -> Finding | None:
    """The biggest saving that is more than a guess and that a run can reach.

    Where there is none, the first of the bounds and of what has no saving; where all are guesses,
    the biggest.
    """
    slow = [one for one in found if one.key not in RISKS]
    sure = [one for one in slow if one.confidence is not Confidence.LOW]
    return next(iter(sure or slow), None)


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def _warnings(material: Material) -> Iterator[str]:
    """What comes before any figure."""
    trust = material.answer.trust
    if trust.grade == DISTRUSTED:
        why = next(iter(trust.reasons), "the replay does not reproduce the recording")
        yield f"Not to be trusted (grade {DISTRUSTED}): {why}."
    if made := material.answer.trace.made:
        yield f"{_capital(made)}."
    if not material.findings.facts.has_device:
        yield "No device work in these files: CPU threads and their collectives only."


def _where_it_goes(material: Material) -> str:
    base = material.answer.baseline
    values = part_values(material.answer.breakdown.baseline)
    parts = [
        f"{share} {name}{_idle_cause(material) if name == 'idle' else ''}"
        for share, name in zip(percents(values), part_names(material), strict=True)
        if share
    ]
    noun = "Step" if material.findings.graph.steps_recorded else "Recording (no steps)"
    bound = bound_words(material)
    given = "" if base.unprofiled is None else f", replayed {format_ms(base.replayed_ns)}"
    return (
        f"{noun} {format_ms(base.measured_ns)}{given}{spread_words(material)}"
        f"{', ' + bound if bound else ''}: {joined(parts) or 'nothing recorded'}."
    )


def _idle_cause(material: Material) -> str:
    idle = device_idle(material.findings.graph, material.findings.baseline.schedule)
    by_cause = idle_by_cause(idle)
    total_ns = sum(by_cause.values())
    cause = next(iter(by_cause), "")
    if not total_ns or by_cause[cause] < NAMED_FRAC * total_ns or cause == CAUSES[0]:
        return ""
    return f" ({IDLE_WORDS.get(cause, cause.replace('_', ' '))})"


def told(material: Material, first: Finding) -> str:
    """The what-if of a finding by its replay, and what the ranges do not hold."""
    sure = "" if first.confidence is Confidence.HIGH else f", {first.confidence} confidence"
    lacks = f" (not in the ranges: {first.not_in_range})" if first.not_in_range else ""
    moved = moved_by(first, material.levers.step_ns)
    step = predicted(material.levers.step_ns, moved, is_bound=first.is_bound)
    return f"{first.what_if or first.flag}, {step}{lacks}{sure}"


def moved_by(found: Finding, step_ns: int) -> MovedFacts:
    """The what-if of a finding that has a saving, as a lever is told."""
    assert found.predicted_ns is not None, "asked for where there is one"
    assert found.predicted_low_ns is not None, "a prediction has a range"
    assert found.predicted_high_ns is not None, "a prediction has a range"
    assert found.saving_ns is not None, "what is predicted has a saving"
    assert found.saving_low_ns is not None, "a saving has a range"
    assert found.saving_high_ns is not None, "a saving has a range"
    return MovedFacts(
        flag=found.flag,
        step_ns=found.predicted_ns,
        low_ns=found.predicted_low_ns,
        high_ns=found.predicted_high_ns,
        saving_ns=found.saving_ns,
        saving_low_ns=found.saving_low_ns,
        saving_high_ns=found.saving_high_ns,
        saving_frac=found.saving_ns / step_ns if step_ns else 0.0,
    )


def _healthy(material: Material) -> str:
    """What is left to do where nothing is wrong."""
    sentence = "No bottleneck found"
    best = max(
        (lever.twice or lever.limit for lever in judged_levers(material)),
        key=lambda moved: moved.saving_ns,
        default=None,
    )
    if best is None:
        return f"{sentence}: nothing, made twice as fast, saves 0.5 % of this step."
    return f"{sentence}; what would move the step most is {_named(material, best)}."


def _named(material: Material, moved: MovedFacts) -> str:
    lever = None if material.replays is None else material.replays.known(moved.flag)
    words = moved.flag if lever is None else lever.why
    step_ns = material.levers.step_ns
    gain = times(step_ns / moved.step_ns) if moved.step_ns else format_ms(moved.saving_ns)
    return f"{words} ({gain})"


def _not_fixed(material: Material, slow: Sequence[Finding]) -> str:
    """What is left of the step without the biggest finding, and which findings stay."""
    first = leading(slow)
    if first is None or material.replays is None:
        return ""
    lever = material.replays.known(first.flag)
    left = None if lever is None else material.replays.study(lever.changes)
    if left is None:
        return ""
    step_ns = max(left.step_ns, 1)
    predicted_parts = (
        left.predicted.compute_ns,
        left.predicted.exposed_comm_ns,
        left.predicted.exposed_memcpy_ns,
        left.predicted.idle_ns,
    )
    parts = [
        f"{format_ms(value)} {name} ({value / step_ns:.0%})"
        for name, value in zip(part_names(material), predicted_parts, strict=True)
        if value >= LEFT_FRAC * step_ns
    ]
    others = len(slow) - 1
    also = (
        f"; {counted(others, 'other finding')} may stay: their savings are replayed one by one and "
        "do not add up"
        if others
        else ""
    )
    return f"Left of the step then: {joined(parts) or 'nothing worth telling'}{also}."
