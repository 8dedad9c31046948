"""The oddities of trace files that are known, and the counter that keeps them from being silent."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ingest.vocab import Severity


@dataclass(frozen=True, slots=True)
class Issue:
    """A kind of oddity: how much it matters, what it means, what to do."""

    name: str
    severity: Severity
    description: str


ISSUES: tuple[Issue, ...] = (
    Issue("truncated", Severity.DATA_LOSS, "the file ends too early; the whole events are kept"),
    Issue(
        "gzip_damaged",
        Severity.DATA_LOSS,
        "the gzip stream is cut or damaged; what precedes is kept",
    ),
    Issue(
        "header_unreadable",
        Severity.DATA_LOSS,
        "top-level keys that no repair could read; left out",
    ),
    Issue(
        "several_lists",
        Severity.DATA_LOSS,
        "further lists of events in one file; read as one, the text between them is left out",
    ),
    Issue("text_behind_end", Severity.DATA_LOSS, "text behind the end of the trace; left out"),
    Issue("event_unreadable", Severity.DATA_LOSS, "events that no repair could read; left out"),
    Issue("event_without_time", Severity.DATA_LOSS, "events without a usable ts; left out"),
    Issue(
        "bad_escape",
        Severity.NOTICE,
        "strings with an illegal escape; backslashes kept as they are",
    ),
    Issue("unescaped_quote", Severity.NOTICE, "strings with a bare quote inside; kept as text"),
    Issue("control_character", Severity.NOTICE, "strings with control characters; kept, escaped"),
    Issue("not_utf8", Severity.NOTICE, "bytes that are not UTF-8; replaced by U+FFFD"),
    Issue("not_finite", Severity.NOTICE, "NaN, Infinity or bare words as numbers; now NULL"),
    Issue("trailing_comma", Severity.NOTICE, "commas before a closing bracket"),
    Issue("stray_comma", Severity.NOTICE, "commas missing or too many between events; put right"),
    Issue("repeated_key", Severity.NOTICE, "events with a key twice; the last value is kept"),
    Issue("negative_duration", Severity.NOTICE, "durations below zero; now 0"),
    Issue("missing_duration", Severity.NOTICE, "complete events without dur; now 0"),
    Issue("old_category", Severity.INFO, "categories of older profilers, renamed to today's"),
    Issue(
        "zero_correlation", Severity.NOTICE, "device rows with correlation 0: no launch is known"
    ),
    Issue("unlinked", Severity.INFO, "device rows without a recorded launching call"),
    Issue("half_flow", Severity.INFO, "flow arrows of which one end is missing"),
    Issue("crossing_slices", Severity.INFO, "host rows that outlive the row around them"),
    Issue("rank_from_name", Severity.INFO, "the rank was read from the file name"),
    Issue(
        "rank_from_order", Severity.NOTICE, "no rank recorded: numbered in the order of the files"
    ),
    Issue(
        "kernel_before_launch", Severity.NOTICE, "device rows that began before their call; moved"
    ),
    Issue("kernel_moved_along", Severity.NOTICE, "device rows moved with one that began too early"),
    Issue(
        "device_time_missing", Severity.NOTICE, "device rows with time 0; now at their call's start"
    ),
    Issue(
        "duration_clipped",
        Severity.NOTICE,
        "device rows (ROCm) that ran over 1 ms into later ones of their stream; clipped",
    ),
    Issue("duration_clipped_ns", Severity.NOTICE, "what was cut off such rows, in all (ns)"),
    Issue(
        "annotation_padded",
        Severity.INFO,
        "annotations of streams that the profiler widened by 1 ns; undone",
    ),
    Issue("device_clock_shift", Severity.INFO, "device times were shifted to the host clock (ns)"),
    Issue("collective_unmatched", Severity.NOTICE, "members without a counterpart on other ranks"),
    Issue("collective_desync", Severity.NOTICE, "ranks record different operations at one place"),
    Issue("collective_partner_absent", Severity.INFO, "members whose partners' files are missing"),
    Issue("counter_without_value", Severity.NOTICE, "counter events that hold no number"),
    Issue("step_number_unusable", Severity.NOTICE, "steps whose number no column holds; no step"),
    Issue("event_without_phase", Severity.DATA_LOSS, "events without ph; in no table"),
    Issue("event_instant", Severity.INFO, "instant events other than allocations; in no table"),
    Issue("event_other", Severity.INFO, "events of other phases; in no table"),
    Issue("duplicate_file", Severity.NOTICE, "files with the content of another; read once"),
    Issue("file_failed", Severity.ERROR, "files that could not be read at all"),
)
BY_NAME = {issue.name: issue for issue in ISSUES}


@dataclass(frozen=True, slots=True)
class Logged:
    """One occurrence, with its place."""

    name: str
    byte_offset: int | None
    excerpt: str
    action: str


LOG_LIMIT = 100
"""Occurrences of one kind that are logged with their place; all are counted."""


@dataclass(slots=True)
class IssueLog:
    """Counts of the oddities of one file, and the first places of each."""

    counts: dict[str, int] = field(default_factory=dict)
    places: list[Logged] = field(default_factory=list)
    _logged: dict[str, int] = field(default_factory=dict)

    def count(self, name: str, number: int = 1) -> None:
        """Count an oddity without a place."""
        assert name in BY_NAME, f"unknown issue {name}"
        if number:
            self.counts[name] = self.counts.get(name, 0) + number

    def at(self, name: str, *, byte_offset: int | None, excerpt: str, action: str) -> None:
        """Count an oddity and keep its place (the first `LOG_LIMIT` of its kind)."""
        self.count(name)
        self._keep(Logged(name, byte_offset, excerpt[:200], action))

    def take(self, other: "IssueLog") -> None:
        """Add what another log holds."""
        for name, number in other.counts.items():
            self.count(name, number)
        for place in other.places:
            self._keep(place)

    def _keep(self, place: Logged) -> None:
        logged = self._logged.get(place.name, 0)
        if logged < LOG_LIMIT:
            self._logged[place.name] = logged + 1
            self.places.append(place)

    @property
    def repairs(self) -> dict[str, int]:
        """What had to be repaired or left out so far; harmless oddities are not among it."""
        return {
            name: number
            for name, number in sorted(self.counts.items())
            if BY_NAME[name].severity is not Severity.INFO
        }

    def stats(self) -> Iterator[tuple[str, str, int, str]]:
        """Name, severity, count and meaning of each oddity that occurred."""
        for name, number in sorted(self.counts.items()):
            yield name, BY_NAME[name].severity.value, number, BY_NAME[name].description
