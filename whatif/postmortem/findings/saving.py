"""What a finding's action would save, by a replay, and how far that can be relied on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ingest.units import format_ms
from replay.graph.arrays import Int64
from whatif.levers import Lever
from whatif.postmortem.contract import Confidence, Finding
from whatif.postmortem.material import Material
from whatif.postmortem.replays import typed
from whatif.postmortem.wording import span
from whatif.report.blocks import Query
from whatif.report.columns import to_type
from whatif.report.levers import MovedFacts, moved_facts
from whatif.transforms.base import with_durations
from whatif.transforms.perfect_overlap import A_BOUND
from whatif.transforms.registry import Transform

NARROW = 1.5
"""Up to so many times its low end the high end of a saving may be for it to be sure."""
SURE_GRADES = ("A", "B")
"""Grades whose replay is within 5 % of the recording, with a cause for 90 % of the path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a rule has to say beside the saving."""

    key: str
    section: str
    insight: str
    evidence: str
    query: Query | None
    action: str
    known_errors: tuple[str, ...] = ()
    """Of the model of a change that is no lever."""


def twice(material: Material, what: str) -> MovedFacts | None:
    """A lever of the table moved twice as far, or the change itself; None where it is no lever."""
    for lever in material.levers.levers:
        if lever.what == what:
            return lever.twice or lever.limit
    return None


def asked(material: Material, why: str, *changes: Transform) -> MovedFacts | None:
    """A what-if of its own, replayed now; None where it does not fit the run."""
    lever = None if material.replays is None else material.replays.saving(why, changes)
    return None if lever is None else moved_facts(lever, material.levers.step_ns)


def changed(material: Material, why: str, dur_ns: Int64) -> MovedFacts | None:
    """A what-if of other durations, ns per task, that no flag stands for."""
    if material.replays is None:
        return None
    graph = with_durations(material.findings.graph, dur_ns)
    return moved_facts(material.replays.saving_of_graph(why, graph), material.levers.step_ns)


def best(*moved: MovedFacts | None) -> MovedFacts | None:
    """The one that saves most; None without any."""
    there = [one for one in moved if one is not None]
    return max(there, key=lambda one: one.saving_ns, default=None)


def is_worth(material: Material, moved: MovedFacts | None) -> bool:
    """It saves more than two runs of one job differ."""
    return moved is not None and moved.saving_ns >= max(material.levers.noise_ns, 1)


def finding(
    material: Material,
    told: Told,
    moved: MovedFacts | None,
    *,
    what_if: str = "",
    most: Confidence = Confidence.HIGH,
    why: str = "",
) -> Finding:
    """The finding with its saving.

    Args:
        material: the run.
        told: what the rule says.
        moved: the what-if that stands for the action; None where none does.
        what_if: the change in words, where no lever has them.
        most: no more confidence than this.
        why: reason for `most`, where it is not high.
    """
    known = _known(material, moved)
    errors = told.known_errors if known is None else known.known_errors
    confidence, reason = _judged(material, moved, errors)
    if _ORDER.index(most) > _ORDER.index(confidence):
        confidence, reason = most, why
    return Finding(
        key=told.key,
        section=told.section,
        insight=told.insight,
        evidence=told.evidence,
        query=told.query,
        action=told.action,
        confidence=confidence,
        why_confidence=reason,
        saving_ns=None if moved is None else moved.saving_ns,
        saving_low_ns=None if moved is None else moved.saving_low_ns,
        saving_high_ns=None if moved is None else moved.saving_high_ns,
        flag=_typed(moved, known),
        what_if=known.why if known is not None and not what_if else what_if,
        predicted_ns=None if moved is None else moved.step_ns,
        predicted_low_ns=None if moved is None else moved.low_ns,
        predicted_high_ns=None if moved is None else moved.high_ns,
        is_bound=is_bound(known),
        not_in_range="" if moved is None else "; ".join(not_in_range(material, errors)),
    )


def is_bound(known: Lever | None) -> bool:
    """No run reaches it."""
    return known is not None and A_BOUND in known.known_errors


def not_in_range(material: Material, known_errors: Sequence[str]) -> Iterator[str]:
    """What the printed range of a saving lacks: it is told beside it."""
    if len(material.findings.baseline.measured.per_step_ns) == 1:
        yield "one step: no spread"
    yield from known_errors


_ORDER = (Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW)


def _judged(
    material: Material, moved: MovedFacts | None, known_errors: Sequence[str]
) -> tuple[Confidence, str]:
    """By the range, then by the grade, the models that the what-if used, and the steps."""
    grade = material.answer.trust.grade
    if grade == "D":
        return Confidence.LOW, "the replay of this recording has grade D"
    if moved is not None and moved.saving_low_ns < material.levers.noise_ns:
        return Confidence.LOW, "the low end of its range is no more than noise"
    if grade not in SURE_GRADES:
        return Confidence.MEDIUM, f"the replay has grade {grade}: {_reason(material)}"
    if known_errors:
        return Confidence.MEDIUM, f"known error of the model: {known_errors[0]}"
    unsure = "" if moved is None else _unsure(material, moved)
    if unsure:
        return Confidence.MEDIUM, unsure
    return (
        Confidence.HIGH,
        f"the replay has grade {grade}; the range is narrow, above noise and above what the steps "
        "differ by",
    )


def _unsure(material: Material, moved: MovedFacts) -> str:
    """Why the figure is not sure though the replay is; empty where nothing is against it."""
    if moved.saving_high_ns > NARROW * moved.saving_low_ns:
        return f"its range is wide: {span(moved.saving_low_ns, moved.saving_high_ns)}"
    steps_ns = material.findings.baseline.measured.per_step_ns
    if len(steps_ns) < 2:  # noqa: PLR2004  (one step has no spread)
        return "one step was recorded: how far steps differ is not known"
    error_ns = round(float(steps_ns.std(ddof=1)) / len(steps_ns) ** 0.5)
    if moved.saving_ns < error_ns:
        return f"the mean of the recorded steps is known to {format_ms(error_ns)} only"
    return ""


def _reason(material: Material) -> str:
    return next(iter(material.answer.trust.reasons), "its reasons are in the trust section")


def _typed(moved: MovedFacts | None, known: Lever | None) -> str:
    """As it is typed in a shell."""
    if known is not None:
        return typed(known)
    return "" if moved is None else to_type(moved.flag)


def _known(material: Material, moved: MovedFacts | None) -> Lever | None:
    if moved is None or not moved.flag or material.replays is None:
        return None
    return material.replays.known(moved.flag)
