"""Trust in figures, for `replay check`: per step, per rank, and what is not explained by place."""

from collections.abc import Iterator, Sequence

from ingest.units import format_ms
from replay.results.judgement import Judged, by_rank, by_step
from replay.results.unexplained import Place, places
from whatif.report.columns import aligned, short_name
from whatif.report.findings import Findings
from whatif.report.text import numbers

SHOWN = 16
"""Rows of each table; the worst where there are more."""
LEAST_NS = 5_000
"""Less than this on the path rounds to 0.00 ms."""
HEAD = (
    "measured", "calibrated", "strict", "error", "start error median", "p90", "device tasks",
    "no known cause",
)  # fmt: skip


def steps(findings: Findings) -> Iterator[str]:
    """The replays of each step."""
    return _table("step", list(by_step(findings.graph, findings.recorded)))


def ranks(findings: Findings) -> Iterator[str]:
    """The mean step of each rank."""
    return _table("rank", list(by_rank(findings.graph, findings.recorded)))


def _table(noun: str, judged: Sequence[Judged]) -> Iterator[str]:
    chosen = sorted(judged, key=lambda one: -abs(one.strict_error_frac or 0.0))[:SHOWN]
    shown = [one for one in judged if one in chosen]
    yield from aligned([(noun, *HEAD), *map(_cells, shown)], "<" + ">" * len(HEAD))
    if len(judged) > len(shown):
        yield f"{len(judged) - len(shown):,} more, each with a smaller error"


def _cells(one: Judged) -> tuple[str, ...]:
    frac = one.strict_error_frac
    has_device = one.start.tasks > 0
    return (
        str(one.number),
        format_ms(one.measured_ns),
        format_ms(one.replayed_ns),
        format_ms(one.strict_ns),
        "-" if frac is None else f"{frac:+.2%}",
        _micros(one.start.median_ns) if has_device else "-",
        _micros(one.start.p90_ns) if has_device else "-",
        f"{one.start.tasks:,}",
        format_ms(one.unexplained_ns),
    )


def unexplained(findings: Findings) -> Iterator[str]:
    """Residuals and silence by place: on the critical path first, then by size."""
    base = findings.recorded
    found = places(findings.graph, base.schedule, base.path)
    if not found:
        return
    shown = [place for place in found[:SHOWN] if place.on_path_ns >= LEAST_NS]
    head = ("on the path", "in all", "times", "largest", "late after", "e.g.", "where")
    if shown:
        yield from aligned([head, *map(_place_cells, shown)], ">>>><<<")
    rest = found[len(shown) :]
    if rest:
        on_path_ns = sum(place.on_path_ns for place in rest)
        total_ns = sum(place.total_ns for place in rest)
        yield (
            f"{len(rest):,}{' more' * bool(shown)} place{'s' * (len(rest) > 1)}: "
            f"{_fine(on_path_ns)} on the path, "
            f"{_fine(total_ns)} in all"
        )


def _place_cells(place: Place) -> tuple[str, ...]:
    where = short_name(place.name) or "between its rows"
    if place.op:
        where += f" of {short_name(place.op)}"
    lane = f" on {place.lane_role}" if place.lane_role else ""
    places_in_run = f"{_numbered('rank', place.ranks)}{_numbered('step', place.steps)}"
    return (
        format_ms(place.on_path_ns),
        format_ms(place.total_ns),
        f"{place.count:,}",
        _fine(place.largest_ns),
        place.edge or f"({place.what})",
        f"rank {place.example_rank} at {format_ms(place.example_ts_ns)}",
        f"{where}{lane}{places_in_run}",
    )


def _numbered(noun: str, values: tuple[int, ...]) -> str:
    """`, rank 3` or `, steps 4-6`; nothing for none."""
    plural = "" if len(values) == 1 else "s"
    return f", {noun}{plural} {numbers(values)}" if values else ""


def _fine(value_ns: int) -> str:
    """In microseconds where milliseconds would round to nothing."""
    return _micros(value_ns) if abs(value_ns) < LEAST_NS else format_ms(value_ns)


def _micros(value_ns: int) -> str:
    return f"{value_ns / 1e3:,.1f} us"
