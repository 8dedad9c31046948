"""What the trust in a replay rests on, in full: for `replay check`."""

from collections.abc import Iterator

from ingest.issues import BY_NAME
from ingest.units import format_ms
from ingest.vocab import EdgeKind, Evidence
from replay.graph.facts import FileFacts
from whatif.report import judged
from whatif.report.advice import advice
from whatif.report.columns import aligned
from whatif.report.findings import Findings
from whatif.report.flops import flops_lines
from whatif.report.path import idle_lines, path_lines
from whatif.report.reading import long_step_sentences, straggler_table
from whatif.report.text import render


def render_check(findings: Findings) -> str:
    """The answer, then files, edges, lags, the critical path, idle devices, FLOPs, odd data."""
    sections = (
        ("step by step", judged.steps(findings)),
        ("rank by rank", judged.ranks(findings)),
        ("files", _files(findings)),
        ("edges", _edges(findings)),
        ("lags", _lags(findings)),
        ("critical path", _path(findings)),
        ("stragglers", straggler_table(findings.run, findings.graph)),
        ("ahead", _ahead(findings)),
        ("idle devices", idle_lines(findings)),
        ("without a known cause", judged.unexplained(findings)),
        ("FLOPs of operators", flops_lines(findings)),
        ("data", _issues(findings)),
        ("long steps", long_step_sentences(findings.run)),
        ("what the recording lacks", advice(findings)),
    )
    lines = [render(findings)]
    for title, section in sections:
        body = list(section)
        if body:
            lines += [title, *(f"  {line}" for line in body), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _files(findings: Findings) -> Iterator[str]:
    head = ("rank", "rank from", "events", "clock", "drift", "from", "device clock", "host", "")
    rows = [head, *(_file_cells(file) for file in findings.facts.files)]
    yield from aligned(rows, "><>>><><<")


def _file_cells(file: FileFacts) -> tuple[str, ...]:
    sure_ns = file.clock_uncertainty_ns
    sure = "" if sure_ns is None else f" +/-{sure_ns / 1e3:,.1f}"
    return (
        str(file.rank),
        file.rank_source,
        f"{file.events:,}",
        f"{file.clock_offset_ns / 1e3:+,.1f}{sure} us",
        f"{file.clock_drift_ppm:+.1f} ppm" if file.clock_drift_ppm else "-",
        _clock_source(file),
        f"{file.device_clock_offset_ns / 1e3:+,.1f} us",
        file.host or "-",
        "" if file.complete else "cut off",
    )


def _clock_source(file: FileFacts) -> str:
    """What the offset of a file's clock rests on."""
    if file.clock_method == "ends":
        return f"ends of {file.clock_samples:,} with rank {file.clock_base_rank}"
    return file.clock_method.replace("_", " ")


def _edges(findings: Findings) -> Iterator[str]:
    """One row per kind, one column per evidence, and what contradicted the recording."""
    facts = findings.facts
    rows = [("kind", *(how.name.lower() for how in Evidence))]
    for kind in EdgeKind:
        counts = [facts.edges.get((kind, how), 0) for how in Evidence]
        if any(counts):
            rows.append((kind.name.lower(), *(f"{count:,}" for count in counts)))
    yield from aligned(rows, "<" + ">" * len(Evidence))
    for rule, count in sorted(facts.contradicted.items()):
        yield f"not made, against the recording: {rule} {count:,}"
    yield (
        f"members of collectives: {facts.members:,}, matched over files {facts.members_matched:,}, "
        f"with every member there {facts.members_complete:,}"
    )


def _lags(findings: Findings) -> Iterator[str]:
    rows = [
        (
            name,
            f"{lag.lag_ns / 1e3:,.1f} us",
            "default at most" if lag.is_default else "mean" if lag.is_mean else "median",
            f"{lag.samples:,} samples",
        )
        for name, lag in sorted(findings.facts.lags.items())
    ]
    if rows:
        yield from aligned(rows, "<><>")


def _path(findings: Findings) -> Iterator[str]:
    yield from path_lines(findings)
    trust = findings.baseline.trust
    yield f"median error of a device start, strict: {trust.start_error_ns / 1e3:,.1f} us"
    yield f"device tasks without a recorded launch: {trust.unlinked_frac:.1%}"


def _ahead(findings: Findings) -> Iterator[str]:
    """How long device work of each rank waits from the end of its launch to its start."""
    bound = findings.run.bound
    for rank, ahead_ns in bound.ahead_ns.items():
        steps = f"{ahead_ns / bound.step_ns:.2f} steps" if bound.step_ns else "-"
        yield f"rank {rank:<6}CPU ahead of its device by {format_ms(ahead_ns):>11}  {steps:>12}"


def _issues(findings: Findings) -> Iterator[str]:
    rows = []
    for name, count in sorted(findings.baseline.trust.issues.items()):
        known = BY_NAME.get(name)
        meaning = f"{known.severity}: {known.description}" if known else ""
        rows.append((name, f"{count:,}", meaning))
    if rows:
        yield from aligned(rows, "<><")
