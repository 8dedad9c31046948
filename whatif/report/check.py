"""What the trust in a replay rests on, in full: for `replay check`."""

from collections.abc import Iterator

from ingest.issues import BY_NAME
from ingest.units import format_ms
from ingest.vocab import EdgeKind, Evidence
from replay.graph.facts import FileFacts
from replay.results.critical_path import path_shares
from whatif.report.advice import advice
from whatif.report.findings import Findings
from whatif.report.text import long_steps, render

LEAST_SHARE = 0.0005
"""Of the critical path, for a class to be told."""


def render_check(findings: Findings) -> str:
    """The answer, then files, edges, lags, the critical path and the oddities of the data."""
    sections = (
        ("files", _files(findings)),
        ("edges", _edges(findings)),
        ("lags", _lags(findings)),
        ("critical path", _path(findings)),
        ("data", _issues(findings)),
        ("steps", long_steps(findings)),
        ("what would raise the grade", advice(findings)),
    )
    lines = [render(findings)]
    for title, section in sections:
        body = list(section)
        if body:
            lines += [title, *(f"  {line}" for line in body), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _files(findings: Findings) -> Iterator[str]:
    yield (
        f"{'rank':>6}  {'rank from':<16}{'events':>11}{'clock':>24}{'drift':>12}  {'from':<24}"
        f"{'device clock':>14}  host"
    )
    for file in findings.facts.files:
        sure = (
            ""
            if file.clock_uncertainty_ns is None
            else f" +/-{file.clock_uncertainty_ns / 1e3:.1f}"
        )
        clock = f"{file.clock_offset_ns / 1e3:+,.1f}{sure} us"
        drift = f"{file.clock_drift_ppm:+.1f} ppm" if file.clock_drift_ppm else "-"
        yield (
            f"{file.rank:>6}  {file.rank_source:<16}{file.events:>11,}{clock:>24}{drift:>12}  "
            f"{_clock_source(file):<24}"
            f"{file.device_clock_offset_ns / 1e3:>+11,.1f} us  {file.host or '-'}"
            + ("" if file.complete else "  cut off")
        )


def _clock_source(file: FileFacts) -> str:
    """What the offset of a file's clock rests on."""
    if file.clock_method == "ends":
        return f"ends of {file.clock_samples:,} with rank {file.clock_base_rank}"
    return file.clock_method.replace("_", " ")


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
    shares = path_shares(findings.graph, findings.baseline.path)
    for name, share in sorted(shares.items(), key=lambda item: -item[1]):
        if share >= LEAST_SHARE:
            yield f"{name:<16}{share:>7.1%}"
    trust = findings.baseline.trust
    yield f"without a known cause: {format_ms(trust.unexplained_path_ns)} of the whole window"
    yield f"median error of a device start, strict: {trust.start_error_ns / 1e3:,.1f} us"
    yield f"device tasks without a recorded launch: {trust.unlinked_frac:.1%}"


def _issues(findings: Findings) -> Iterator[str]:
    for name, count in sorted(findings.baseline.trust.issues.items()):
        known = BY_NAME.get(name)
        yield f"{name:<26}{count:>10,}  " + (
            f"{known.severity}: {known.description}" if known else ""
        )
