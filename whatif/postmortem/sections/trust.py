"""Section `trust`: how far the replay, and with it every prediction, can be relied on."""

from collections.abc import Iterator

from ingest.vocab import EdgeKind, Evidence
from whatif.postmortem.contract import Missing, Section
from whatif.postmortem.material import Material
from whatif.postmortem.wording import percent
from whatif.report.advice import ABSENT_MEMBERS
from whatif.report.answer import JudgedFacts, TrustFacts
from whatif.report.blocks import Block, Column, DataTable, Unit, Words, details
from whatif.report.columns import short_name
from whatif.report.cross_rank import absent_lines, clock_lines, desync_lines, skew_lines
from whatif.report.text import numbers

KEY = "trust"
TITLE = "Can you trust it"
ROWS = 16
"""Ranks, steps and places that are shown."""
MEANING = {
    "A": "off by at most 2 %, with a cause for 97 % of the critical path",
    "B": "off by at most 5 %, with a cause for 90 % of it",
    "C": "off by at most 15 %, or something is only copied from the recording",
    "D": "does not reproduce the recording, or there is too little in it",
}
"""What a grade stands for (`replay.results.fidelity`)."""
RECORDED_RANK = "distributedInfo"


def section(material: Material) -> Section:
    """Grade with its reasons, figures behind it, and what to record to do better."""
    trust = material.answer.trust
    blocks: list[Block] = [Words(paragraphs=tuple(_reasons(material)))]
    blocks += [_figures(material), *details(_quality(material), _clocks(material))]
    blocks += details(*_judged(material), _edges(material))
    blocks += details(*(table for table in (_places(trust), _issues(material)) if table.rows))
    return Section(
        key=KEY,
        title=TITLE,
        summary=f"Grade {trust.grade}: the strict replay is {trust.strict_error_frac:+.1%} off the "
        f"measured step, {percent(trust.explained_frac)} of the critical path has a known cause.",
        blocks=tuple(blocks),
        missing=tuple(_missing(material)),
    )


def _reasons(material: Material) -> Iterator[str]:
    trust = material.answer.trust
    yield f"Grade {trust.grade}: {MEANING[trust.grade]}."
    for reason in trust.reasons:
        yield reason[0].upper() + reason[1:] + "."
    for sentence in (
        *absent_lines(material.findings),
        *clock_lines(material.findings),
        *skew_lines(material.findings),
        *desync_lines(material.findings),
    ):
        yield sentence[0].upper() + sentence[1:] + "."


def _missing(material: Material) -> Iterator[Missing]:
    """What the recording lacks, and the profiler's option that supplies it."""
    left_out = _left_out(material)
    for sentence in material.answer.trust.advice:
        what, _, how = sentence.partition(": ")
        if sentence == ABSENT_MEMBERS and left_out:
            how = f"leave --ranks out: the files of rank {numbers(left_out)} are there"
        yield Missing(what=what, how=how)


def _left_out(material: Material) -> list[int]:
    """Ranks that have a file and do not count, by --ranks."""
    with_files = {source.rank for source in material.sources if source.rank is not None}
    return sorted(with_files.difference(material.answer.trace.ranks))


def _figures(material: Material) -> DataTable:
    return DataTable(
        key=f"{KEY}.figures",
        title="What the grade rests on",
        columns=(
            Column(name="what", unit=Unit.TEXT),
            Column(name="found", unit=Unit.TEXT),
            Column(name="meaning", unit=Unit.TEXT),
        ),
        rows=tuple(_figure_rows(material)),
    )


def _figure_rows(material: Material) -> Iterator[tuple[str, str, str]]:
    yield from _file_rows(material)
    trust, facts = material.answer.trust, material.findings.facts
    yield (
        "strict replay",
        f"{trust.strict_error_frac:+.2%}",
        "recorded durations and typical lags, nothing fitted: against the measured step",
    )
    yield (
        "critical path explained",
        f"{trust.explained_frac:.1%}",
        "the rest is residuals and silence without a known cause",
    )
    yield (
        "of the path host work",
        f"{trust.host_path_frac:.1%}",
        "its durations are copied from the recording: above 50 % a small error proves little",
    )
    if facts.has_device:
        median_us, p90_us = trust.start_error_ns / 1e3, trust.start_error_p90_ns / 1e3
        yield (
            "start of device work",
            f"{median_us:,.1f} us median, {p90_us:,.1f} us p90",
            "strict start against the recorded one",
        )
        yield (
            "device work without its launch",
            f"{trust.unlinked_frac:.1%}",
            "its start is copied from the recording",
        )
    shares = ", ".join(f"{share:.1%} {how}" for how, share in trust.evidence_frac.items())
    yield ("dependencies", shares or "none", "how they are known, order on a thread left out")
    yield from _row_figures(material)
    yield (
        "not made, against the recording",
        f"{sum(facts.contradicted.values()):,}",
        "dependencies that the recorded times contradict",
    )
    if facts.members:
        yield (
            "members of collectives matched",
            f"{facts.members_matched:,} of {facts.members:,}",
            "over ranks; the others have no partner among those that count",
        )
        yield (
            "collectives with every member",
            f"{facts.members_complete:,} of {facts.members:,} members",
            "where members are missing, waiting and transfer cannot be told apart for certain",
        )


def _row_figures(material: Material) -> Iterator[tuple[str, str, str]]:
    """What the profiler cost, and how many rows were repaired."""
    rows = material.ask("quality_checks", with_ok=True).dicts()
    worst = {row["check_name"]: row["worst"] for row in rows}
    if "profiler_overhead_frac" in worst:
        yield (
            "profiler's own rows",
            f"{worst['profiler_overhead_frac']:.1%} of the time",
            "of the file with most of them; the time that tracing adds to calls is not in it",
        )
    if "repaired_frac" in worst:
        yield (
            "device rows repaired",
            f"{worst['repaired_frac']:.1%}",
            "of the file with most of them: moved, clamped or clipped",
        )


def _file_rows(material: Material) -> Iterator[tuple[str, str, str]]:
    trace, facts, graph = material.answer.trace, material.findings.facts, material.findings.graph
    of = f" of {trace.world_size}" if trace.world_size else ", size of the job not recorded"
    yield ("ranks found", f"{len(trace.ranks)}{of}", numbers(list(trace.ranks)))
    if left_out := _left_out(material):
        yield ("ranks left out", numbers(left_out), "by --ranks: their files are there")
    guessed = [file.rank for file in facts.files if file.rank_source != RECORDED_RANK]
    if guessed:
        yield ("rank not recorded", numbers(guessed), "told by file name or order")
    if trace.files_failed:
        yield ("files not read", str(trace.files_failed), "everything below lacks them")
    cut = [file.rank for file in facts.files if not file.complete]
    if cut:
        yield ("files cut off", f"rank {numbers(cut)}", "what the missing end held is not known")
    steps = numbers(list(trace.steps)) if graph.steps_recorded else "none recorded"
    left = f"; {facts.steps_left_out} more are not whole on all ranks" * bool(facts.steps_left_out)
    yield ("steps complete", steps, f"whole on all ranks of these files{left}")


def _quality(material: Material) -> DataTable:
    rows = material.ask("quality_checks")
    return DataTable(
        key=f"{KEY}.checks",
        title="What to use with care",
        about="Checks of the files that are not ok; an empty table means all are.",
        columns=(
            Column(name="check", unit=Unit.TEXT),
            Column(name="verdict", unit=Unit.TEXT),
            Column(name="ranks", unit=Unit.COUNT),
            Column(name="worst", unit=Unit.TEXT, about="1 is yes, _frac a share, _ns nanoseconds"),
            Column(name="affects", unit=Unit.TEXT),
        ),
        rows=tuple(
            (
                row["check_name"].replace("_", " "),
                "do not trust" if row["distrust"] else "care",
                row["ranks"],
                f"{row['worst']:,.4g}",
                row["affects"],
            )
            for row in rows.dicts()
        ),
        query=rows.query,
    )


def _clocks(material: Material) -> DataTable:
    files = material.findings.facts.files
    return DataTable(
        key=f"{KEY}.clocks",
        title="Clocks",
        about="By how much each file's times were moved, and how far that is uncertain: waits "
        "below the uncertainty are not resolved.",
        columns=(
            Column(name="rank", unit=Unit.TEXT),
            Column(name="offset", unit=Unit.NS, about="taken off the host clock of the file"),
            Column(name="uncertain", unit=Unit.NS, about="one standard deviation"),
            Column(name="drift, ppm", unit=Unit.TEXT),
            Column(name="method", unit=Unit.TEXT),
            Column(name="samples", unit=Unit.COUNT, about="collectives that it rests on"),
            Column(name="device clock", unit=Unit.NS, about="added to its device times"),
            Column(name="host", unit=Unit.TEXT),
        ),
        rows=tuple(
            (
                str(file.rank),
                file.clock_offset_ns,
                file.clock_uncertainty_ns,
                f"{file.clock_drift_ppm:+.2f}" if file.clock_drift_ppm else None,
                _method(file.clock_method, file.clock_base_rank),
                file.clock_samples,
                file.device_clock_offset_ns,
                file.host,
            )
            for file in files[: 4 * ROWS]
        ),
        left_out=max(len(files) - 4 * ROWS, 0),
    )


def _method(method: str, base_rank: int | None) -> str:
    if method == "ends":
        return f"ends of collectives with rank {base_rank}"
    return method.replace("_", " ")


def _judged(material: Material) -> Iterator[DataTable]:
    """The strict replay beside the recording, step by step and rank by rank."""
    trust = material.answer.trust
    for noun, judged in (("step", trust.by_step), ("rank", trust.by_rank)):
        worst = sorted(judged, key=lambda one: -abs(one.strict_error_frac or 0.0))[:ROWS]
        yield DataTable(
            key=f"{KEY}.by_{noun}",
            title=f"Replay error by {noun}",
            about="Strict: nothing is fitted to a single task. Without a known cause: residuals "
            "and silence on the critical path.",
            columns=(
                Column(name=noun, unit=Unit.TEXT),
                Column(name="measured", unit=Unit.NS),
                Column(name="strict", unit=Unit.NS),
                Column(name="error", unit=Unit.FRAC),
                Column(name="start error", unit=Unit.NS, about="median over its device tasks"),
                Column(name="p90", unit=Unit.NS),
                Column(name="no known cause", unit=Unit.NS),
            ),
            rows=tuple(_judged_row(one) for one in judged if one in worst),
            left_out=len(judged) - len(worst),
        )


def _judged_row(one: JudgedFacts) -> tuple[str | int | float | None, ...]:
    has_device = one.device_tasks > 0
    return (
        str(one.number),
        one.measured_ns,
        one.strict_ns,
        one.strict_error_frac,
        one.start_error_ns if has_device else None,
        one.start_error_p90_ns if has_device else None,
        one.unexplained_ns,
    )


def _edges(material: Material) -> DataTable:
    facts = material.findings.facts
    kinds = [kind for kind in EdgeKind if any(key[0] == kind for key in facts.edges)]
    return DataTable(
        key=f"{KEY}.graph",
        title="Dependencies by kind",
        about="Recorded: the profiler says so. Ordered: the order of calls does. Inferred: only "
        "times do, which lowers the strict error by construction.",
        columns=(
            Column(name="kind", unit=Unit.TEXT),
            *(Column(name=how.name.lower(), unit=Unit.COUNT) for how in Evidence),
        ),
        rows=tuple(
            (
                kind.name.lower().replace("_", " "),
                *(facts.edges.get((kind, how), 0) for how in Evidence),
            )
            for kind in kinds
        ),
    )


def _places(trust: TrustFacts) -> DataTable:
    shown = trust.unexplained[:ROWS]
    return DataTable(
        key=f"{KEY}.places",
        title="Places without a known cause",
        about="Residual: work began later than what it waited for. Silence: a thread did nothing "
        "that is recorded.",
        columns=(
            Column(name="where", unit=Unit.TEXT),
            Column(name="what", unit=Unit.TEXT),
            Column(name="on the path", unit=Unit.NS, has_bar=True),
            Column(name="in all", unit=Unit.NS),
            Column(name="times", unit=Unit.COUNT),
            Column(name="largest", unit=Unit.NS, about="negative: it began before its causes"),
            Column(name="ranks", unit=Unit.TEXT),
        ),
        rows=tuple(
            (
                f"{short_name(place.name) or 'between rows'}"
                f"{f' of {short_name(place.op)}' if place.op else ''}",
                f"{place.what}{f' after {place.edge}' if place.edge else ''} on "
                f"{place.lane or 'no lane'}",
                place.on_path_ns,
                place.total_ns,
                place.count,
                place.largest_ns,
                numbers(list(place.ranks)),
            )
            for place in shown
        ),
        left_out=len(trust.unexplained) - len(shown),
    )


def _issues(material: Material) -> DataTable:
    rows = material.ask("import_issues")
    return DataTable(
        key=f"{KEY}.issues",
        title="Oddities of the files",
        about="Counted before anything was repaired; data_loss and error mean that rows are "
        "missing from every figure.",
        columns=(
            Column(name="name", unit=Unit.TEXT),
            Column(name="severity", unit=Unit.TEXT),
            Column(name="times", unit=Unit.COUNT),
            Column(name="files", unit=Unit.COUNT),
            Column(name="meaning", unit=Unit.TEXT),
        ),
        rows=tuple(
            (row["name"], row["severity"], row["value"], row["files"], row["description"])
            for row in rows.dicts()
        ),
        query=rows.query,
    )
