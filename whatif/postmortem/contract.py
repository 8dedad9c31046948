"""The report as data: the JSON contract that HTML and Markdown are drawn from.

Null stands for what is not known; times are integer ns, of a step where nothing else is said.
"""

from enum import StrEnum

import msgspec

from whatif.report.blocks import Block, Query

SCHEMA_VERSION = 1
PAGE_ONE = "verdict"
"""Key of the section whose blocks stand under the findings, on the first screen."""


class Confidence(StrEnum):
    """How far a finding can be relied on."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """What a section cannot say of this recording."""

    what: str
    how: str
    """What to record, or to give, so that it can."""


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One of the fifteen."""

    key: str
    title: str
    summary: str
    """One sentence with the section's main figure."""
    blocks: tuple[Block, ...] = ()
    missing: tuple[Missing, ...] = ()


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A conclusion: what costs time, how it is known, what to do, what that would save."""

    key: str
    """Name of the rule: `exposed_communication`."""
    section: str
    """Key of the section with the details."""
    insight: str
    """One sentence with the figure."""
    evidence: str
    """The numbers that it rests on, and thresholds that they passed."""
    query: Query | None
    action: str
    confidence: Confidence
    why_confidence: str
    saving_ns: int | None = None
    """Per step, by the replay of `flag`; None where no what-if stands for the action."""
    saving_low_ns: int | None = None
    saving_high_ns: int | None = None
    flag: str = ""
    """The what-if that the saving was replayed with, as typed; empty where no option stands for
    it."""
    what_if: str = ""
    """The same in words; empty where nothing was replayed."""
    predicted_ns: int | None = None
    """Step under the what-if, with the range that `replay TRACE FLAG` gives it."""
    predicted_low_ns: int | None = None
    predicted_high_ns: int | None = None
    is_bound: bool = False
    """The what-if is one that no run reaches: the saving is the most that there is."""
    not_in_range: str = ""
    """What the ranges do not hold: known errors of the models, steps that were not recorded."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Page one in a sentence."""

    sentence: str
    """Step, where it goes, the biggest finding to act on with its ranges; or `no bottleneck
    found`."""
    not_fixed: str
    """What acting on the biggest finding would not mend; empty where there is none."""
    is_healthy: bool
    """No finding saves more than noise."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What `replay report TRACE -o report.json` writes."""

    schema_version: int = SCHEMA_VERSION
    title: str
    """Of the run: folder or file name, GPUs, ranks."""
    program: str
    """`trace-replay 0.1.0`."""
    command: str
    """That makes the report again, paths as given."""
    verdict: Verdict
    findings: tuple[Finding, ...]
    """The biggest saving first; then bounds, what has no saving, and guesses."""
    sections: tuple[Section, ...]
    failed: tuple[tuple[str, str], ...] = ()
    """Files that could not be read, and why; nothing here counts them."""
