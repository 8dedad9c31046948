"""What the trust in a replay rests on, in full: for `replay check`."""

from collections.abc import Iterator

from ingest.issues import BY_NAME
from ingest.units import format_ms
from ingest.vocab import EdgeKind, Evidence
from whatif.report.advice import advice
from whatif.report.findings import Findings
from whatif.report.path import idle_lines, path_lines
from whatif.report.reading import long_step_sentences, straggler_table
from whatif.report.text import render


def render_check(findings: Findings) -> str:
    """The answer, then files, edges, lags, the critical path, idle devices, odd data."""
    sections = (
        ("files", _files(findings)),
        ("edges", _edges(findings)),
        ("lags", _lags(findings)),
        ("critical path", _path(findings)),
        ("stragglers", straggler_table(findings.run, findings.graph)),
        ("ahead", _ahead(findings)),
        ("idle devices", idle_lines(findings)),
        ("data", _issues(findings)),
        ("steps", long_step_sentences(findings.run)),
        ("what would raise the grade", advice(findings)),
    )
    lines = [render(findings)]
    for title, section in sections:
        body = list(section)
        if body:
            lines += [title, *(f"  {line}" for line in body), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _files(findings: Findings) -> Iterator[str]:
    yield f"{'rank':>6}  {'rank from':<16}{'events':>11}{'clock':>17}{'device clock':>14}  host"
    for file in findings.facts.files:
        sure = (
            ""
            if file.clock_uncertainty_ns is None
            else f" +/-{file.clock_uncertainty_ns / 1e3:.1f}"
        )
        clock = f"{file.clock_offset_ns / 1e3:+,.1f}{sure} us"
        yield (
            f"{file.rank:>6}  {file.rank_source:<16}{file.events:>11,}{clock:>17}"
            f"{file.device_clock_offset_ns / 1e3:>+11,.1f} us  {file.host or '-'}"
            + ("" if file.complete else "  cut off")
        )


def _edges(findings: Findings) -> Iterator[str]:
    """One row per kind, one column per evidence, and what contradicted the recording."""
    facts = findings.facts
    yield f"{'kind':<16}" + "".join(f"{how.name.lower():>12}" for how in Evidence)
    for kind in EdgeKind:
        counts = [facts.edges.get((kind, how), 0) for how in Evidence]
        if any(counts):
            yield f"{kind.name.lower():<16}" + "".join(f"{count:>12,}" for count in counts)
    for rule, count in sorted(facts.contradicted.items()):
        yield f"not made, against the recording: {rule} {count:,}"
    yield (
        f"members of collectives: {facts.members:,}, matched over files {facts.members_matched:,}, "
        f"with every member there {facts.members_complete:,}"
    )


def _lags(findings: Findings) -> Iterator[str]:
    for name, lag in sorted(findings.facts.lags.items()):
        origin = "default" if lag.is_default else "median"
        yield f"{name:<32}{lag.lag_ns / 1e3:>9,.1f} us  {origin}, {lag.samples:,} samples"


def _path(findings: Findings) -> Iterator[str]:
    yield from path_lines(findings)
    trust = findings.baseline.trust
    yield f"without a known cause: {format_ms(trust.unexplained_path_ns)} of the whole window"
    yield f"median error of a device start, strict: {trust.start_error_ns / 1e3:,.1f} us"
    yield f"device tasks without a recorded launch: {trust.unlinked_frac:.1%}"


def _ahead(findings: Findings) -> Iterator[str]:
    """How long device work of each rank waits from the end of its launch to its start."""
    bound = findings.run.bound
    for rank, ahead_ns in bound.ahead_ns.items():
        steps = f"{ahead_ns / bound.step_ns:.2f} steps" if bound.step_ns else "-"
        yield f"rank {rank:<6}CPU ahead of its device by {format_ms(ahead_ns):>11}  {steps:>12}"


def _issues(findings: Findings) -> Iterator[str]:
    for name, count in sorted(findings.baseline.trust.issues.items()):
        known = BY_NAME.get(name)
        yield f"{name:<26}{count:>10,}  " + (
            f"{known.severity}: {known.description}" if known else ""
        )
