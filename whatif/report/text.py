"""The answer on one screen, for people: plain text, milliseconds with two decimals."""

from collections.abc import Iterator
from textwrap import wrap

import numpy as np

from ingest.units import format_ms
from whatif.report.advice import advice
from whatif.report.cross_rank import absent_lines, clock_lines, desync_lines, skew_lines
from whatif.report.findings import Findings, Reading
from whatif.report.flops import flops_after
from whatif.report.rates import PREDICTED, accelerators, rate_lines
from whatif.report.reading import bound_sentence, late_sentences, long_step_sentences
from whatif.report.view import gpu_names
from whatif.study import Study

WIDTH = 100
LINES = 40
ERROR_LINES = 3
FEWEST_NOTES = 3
"""Lines that the notes need to say that there are some."""
LACKS_SHOWN = 3
"""What a recording lacks most, where the grade is D."""
NOTABLE_FRAC = 0.02
"""A rank is told where its step is this far from the median rank's."""
RANKS_SHOWN = 4
_LEAST_CLEAN_FRAC = 0.2
"""A step without the profiler that is shorter is met by no replay."""
_SAME_STEP_FRAC = NOTABLE_FRAC
"""Two measurements of a step differ by so much by themselves."""
RECORDED = "distributedInfo"
"""Source of a rank that the file itself states."""

DEVICE_ROWS = (
    ("compute", "compute_ns"),
    ("exposed communication", "exposed_comm_ns"),
    ("  of it waiting for others", "exposed_wait_ns"),
    ("exposed copies", "exposed_memcpy_ns"),
    ("idle", "idle_ns"),
    ("total", "total_ns"),
)
HOST_ROWS = (
    ("CPU work", "compute_ns"),
    ("waiting for collectives", "exposed_comm_ns"),
    ("  of it waiting for others", "exposed_wait_ns"),
    ("other waiting", "idle_ns"),
    ("total", "total_ns"),
)


def render(findings: Findings) -> str:
    """The whole answer on a screen.

    Where it would not fit, the levers give way to what a what-if takes for granted, then what is
    waited for, then the notes.
    """
    assumed = list(_assumed(findings.study))
    room = LINES - max(len(_listed(assumed)) + 2, FEWEST_NOTES)
    levers, waits = True, True
    if len(_lines(findings, levers=levers, waits=waits)) > room:
        levers = not assumed
        waits = len(_lines(findings, levers=levers, waits=True)) <= room
    lines = _lines(findings, levers=levers, waits=waits)
    notes = [*assumed, *(() if waits else _waited(findings)), *_notes(findings)]
    return "\n".join([*lines, *_notes_that_fit(notes, LINES - len(lines) - 2)]) + "\n"


def _assumed(study: Study | None) -> Iterator[str]:
    """What a what-if takes for granted, but for what has a line of its own."""
    if study is None:
        return
    shown = {study.memory.verdict if study.memory is not None else ""}
    shown |= {study.rests_on.told if study.rests_on is not None else ""}
    yield from (told for told in study.assumptions if told not in shown)


def _lines(findings: Findings, *, levers: bool, waits: bool) -> list[str]:
    """All but the notes, an empty line between sections."""
    sections = (
        list(_read(findings)),
        list(_trust(findings)),
        list(_scenario(findings)),
        list(_steps(findings)),
        list(_ranks(findings)),
        [*_bound(findings), *(_waits(findings) if waits else ())],
        list(_rates(findings)),
        list(_breakdown(findings)),
        list(_levers(findings)) if levers else [],
    )
    lines: list[str] = []
    for section in filter(None, sections):
        lines += ["", *section] if lines else section
    return lines


def _read(findings: Findings) -> Iterator[str]:
    graph, facts, reading = findings.graph, findings.facts, findings.reading
    ranks = numbers([info.rank for info in graph.ranks])
    of = f" of {graph.world_size}" if graph.world_size else ""
    noun = "rank" if len(graph.ranks) == 1 else "ranks"
    gpu = (gpu_names(graph) or "GPU not named") if facts.has_device else "no GPU rows"
    steps = f"{_steps_noun(graph.steps)} {numbers(graph.steps)}"
    if not graph.steps_recorded:
        some = any(file.steps_recorded for file in facts.files)
        lack = "no step is whole on all ranks" if some else "no steps recorded"
        steps = f"{lack}: the whole recording is one"
    parts = (
        f"{_count(len(facts.files), 'file')}, {noun} {ranks}{of}",
        gpu,
        _count(facts.events, "event"),
        steps,
    )
    yield from _folded(f"{'read':<9}", " | ".join(parts))
    yield f"{'store':<9}{_store(reading)} | {reading.seconds:.1f} s"
    for line in clock_lines(findings):
        yield from _folded(f"{'':<9}", line)
    if facts.made:
        yield from _folded(f"{'made':<9}", facts.made.removeprefix("made "))
    if reading.failed:
        yield f"{'':<9}{_count(len(reading.failed), 'file')} could not be read and left out"


def _store(reading: Reading) -> str:
    size = f"{reading.store_bytes / 1e6:,.1f} MB"
    if reading.store is None:
        return f"none kept ({size})"
    return f"{reading.store} ({size}, {'already there' if reading.is_cached else 'new'})"


def _trust(findings: Findings) -> Iterator[str]:
    trust = findings.baseline.trust
    shares = [f"{share:.0%} {name}" for name, share in trust.evidence.items() if share]
    parts = (
        f"strict replay {trust.strict_error_frac:+.1%} off",
        f"{trust.explained_frac:.0%} of the critical path explained",
        f"edges {', '.join(shares) or 'none'}",
    )
    yield from _folded(f"{'trust ' + trust.grade:<9}", " | ".join(parts))
    for reason in trust.reasons:
        yield from _folded(f"{'':<9}- ", reason)
    if trust.grade == "D":
        lacks = list(advice(findings))
        more = "" if len(lacks) <= LACKS_SHOWN else " (`replay check` has all)"
        yield f"{'':<9}- the prediction is not to be trusted; it lacks{more}:"
        for lack in lacks[:LACKS_SHOWN]:
            yield from _folded(f"{'':<11}- ", lack)


def _scenario(findings: Findings) -> Iterator[str]:
    if findings.study is not None:
        named = f"{findings.study.name}: " if findings.study.name else ""
        yield from _folded(f"{'what if':<9}", named + ", then ".join(findings.study.labels))


def _steps(findings: Findings) -> Iterator[str]:
    baseline, study = findings.baseline, findings.study
    yield f"{'step':<9}{'measured':<11}{format_ms(baseline.measured.mean_ns):>14}"
    yield f"{'':<9}{'replayed':<11}{format_ms(baseline.replayed.mean_ns):>14}" + _host(findings)
    if study is not None:
        speed = "nothing is left" if study.speedup is None else f"speedup {study.speedup:.3f}x"
        yield (
            f"{'':<9}{'predicted':<11}{format_ms(study.step_ns):>14}   {speed}   "
            f"range {format_ms(study.low_ns)} to {format_ms(study.high_ns)}"
        )
        if study.known_errors:
            yield from _known_errors(study.known_errors)
        if study.jitter is not None:
            p50, p95 = format_ms(study.jitter.p50_ns), format_ms(study.jitter.p95_ns)
            yield (
                f"{'':<9}{'jitter':<11}{p50:>14}   p50 of single steps   p95 {p95}   "
                f"{study.jitter.samples:,} samples"
            )
            if study.jitter.ranks_as_chance:
                reason = "of one step a slow rank counts as chance: p50 may lie off for that alone"
                yield f"{'':<20}{reason}"
        if study.samples_factor != 1 and study.speedup is not None:
            gain = study.samples_factor * study.speedup
            yield (
                f"{'':<9}{study.samples_factor:g} times the samples in a step: throughput "
                f"{gain:.3g} times as high"
            )
        if study.layout is not None:
            noun = "GPU" if findings.facts.has_device else "rank"
            yield from _folded(f"{'layout':<9}", study.layout.told(noun))
        if study.memory is not None:
            yield from _folded(f"{'memory':<9}", study.memory.verdict.removeprefix("memory: "))
        if study.rests_on is not None:
            yield from _folded(f"{'rests on':<9}", study.rests_on.told.removeprefix("rests on: "))
        for reason in study.no_effect:
            yield from _folded(f"{'':<9}no effect: ", reason)


def _known_errors(errors: tuple[str, ...]) -> Iterator[str]:
    """Those that fit a few lines; at least one."""
    head = f"{'':<9}known error: "
    for n_shown in range(len(errors), 0, -1):
        left = len(errors) - n_shown
        more = [f"{left} more: `--json` tells them"] if left else []
        lines = list(_folded(head, "; ".join([*errors[:n_shown], *more])))
        if len(lines) <= ERROR_LINES or n_shown == 1:
            yield from lines
            return


def _host(findings: Findings) -> str:
    given = findings.unprofiled
    return "" if given is None else f"   host x{given.host_factor:.3f}, without the profiler"


def _ranks(findings: Findings) -> Iterator[str]:
    """The ranks whose own step is far from the median rank's, farthest first."""
    measured = findings.baseline.measured
    own_ns = np.array([measured.rank_mean_ns(place) for place in range(len(findings.graph.ranks))])
    median_ns = float(np.median(own_ns))
    if median_ns <= 0:
        return
    far_frac = own_ns / median_ns - 1
    order = np.argsort(-np.abs(far_frac), kind="stable")[:RANKS_SHOWN]
    label = "ranks"
    for place in order[np.abs(far_frac[order]) > NOTABLE_FRAC]:
        rank = findings.graph.ranks[place].rank
        line = f"{label:<9}rank {rank:<6}{format_ms(own_ns[place]):>14}   "
        line += f"{far_frac[place]:+.1%} against the median rank"
        if findings.study is not None:
            predicted_ns = findings.study.rank_ns[place]
            told = "-" if predicted_ns is None else format_ms(predicted_ns)
            line += f"   predicted {told}"
        yield line
        label = ""


def _bound(findings: Findings) -> Iterator[str]:
    """What holds the unchanged run back."""
    sentence = bound_sentence(findings.run, has_device=findings.facts.has_device)
    yield from _folded(f"{'bound':<9}", sentence)


def _waits(findings: Findings) -> Iterator[str]:
    label = "waits"
    for sentence in _waited(findings):
        yield from _folded(f"{label:<9}", sentence)
        label = ""


def _waited(findings: Findings) -> Iterator[str]:
    """Whom the unchanged run waits for."""
    step_ns = findings.baseline.replayed.mean_ns
    return late_sentences(findings.run, step_ns, len(findings.graph.ranks))


def _rates(findings: Findings) -> Iterator[str]:
    """Tokens, samples, MFU and GPU-hours, where the step's work was given or its shapes tell it."""
    label = "rates"
    for line in dict.fromkeys(_rate_lines(findings)):
        yield from _folded(f"{label:<9}", line)
        label = ""


def _rate_lines(findings: Findings) -> Iterator[str]:
    """Of the recorded job, then of the job to be: where it has other GPUs, with their number."""
    steps = [("measured", findings.baseline.measured.mean_ns)]
    if findings.unprofiled is not None:
        steps = [("replayed", findings.baseline.replayed.mean_ns)]
    study, workload = findings.study, findings.workload
    resized = study is not None and study.samples_factor != 1
    if study is not None and not resized:
        steps.append((PREDICTED, study.step_ns))
    machine = accelerators(findings.graph, has_device=findings.facts.has_device)
    after = None
    if study is not None and not resized:
        after = accelerators(study.graph, has_device=findings.facts.has_device)
    after = after if after != machine else None
    flops = findings.flops
    then = flops if study is None else flops_after(flops, findings.graph, study.graph)
    yield from rate_lines(workload, tuple(steps), machine, (flops, then), after)
    if study is not None and resized:
        machine = accelerators(study.graph, has_device=findings.facts.has_device)
        workload = workload.times(study.samples_factor)
        steps = [(PREDICTED, study.step_ns)]
        yield from rate_lines(workload, tuple(steps), machine, (flops, then))


def _breakdown(findings: Findings) -> Iterator[str]:
    study, before = findings.study, findings.breakdown
    after = None if study is None else study.predicted
    rows = DEVICE_ROWS if findings.facts.has_device else HOST_ROWS
    columns = f"{'before':>14}" + ("" if after is None else f"{'after':>14}{'change':>14}")
    yield f"{'where':<9}{'per step, mean over ranks':<28}{columns}"
    for title, name in rows:
        yield _row(title, getattr(before, name), None if after is None else getattr(after, name))


def _row(title: str, before_ns: int, after_ns: int | None) -> str:
    line = f"{'':<9}{title:<28}{format_ms(before_ns):>14}"
    if after_ns is None:
        return line
    return line + f"{format_ms(after_ns):>14}{_signed_ms(after_ns - before_ns):>14}"


def _signed_ms(change_ns: int) -> str:
    """With its sign, unless two decimals show nothing."""
    shown = f"{change_ns / 1e6:+,.2f} ms"
    return shown[1:] if shown[1:] == format_ms(0) else shown


def _levers(findings: Findings) -> Iterator[str]:
    label = "levers"
    for lever in findings.levers or ():
        share = lever.saving_ns / findings.baseline.replayed.mean_ns
        saving = f"{_signed_ms(-lever.saving_ns):>12}{-share:>8.1%}"
        yield from _folded(f"{label:<9}{lever.flag_text:<31}{saving}  ", lever.why)
        label = ""
    if not findings.levers:
        yield f"{label:<9}no everyday what-if saves 0.5 % of this step"


def _listed(notes: list[str]) -> list[str]:
    return [line for note in notes for line in _folded(f"{'':<9}- ", note)]


def _notes_that_fit(notes: list[str], room: int) -> list[str]:
    lines: list[str] = []
    for at, note in enumerate(notes):
        label = "notes" if at == 0 else ""
        folded = list(_folded(f"{label:<9}- ", note))
        if len(lines) + len(folded) > room - (at + 1 < len(notes)):
            left = len(notes) - at
            return ["", *lines, f"{label:<9}- {left} more: `--json` tells them"]
        lines += folded
    return ["", *lines] if lines else []


def _notes(findings: Findings) -> Iterator[str]:
    if not findings.facts.has_device:
        yield "no GPU rows in this trace: CPU threads and their collectives only, no GPU idle time"
    yield from _clean_step(findings)
    left_out = findings.facts.steps_left_out
    if left_out:
        noun = "more recorded step is" if left_out == 1 else "more recorded steps are"
        yield f"{left_out:,} {noun} not in the longest run of steps on all ranks: left out"
    yield from long_step_sentences(findings.run)
    yield from desync_lines(findings)
    yield from absent_lines(findings)
    yield from skew_lines(findings)
    guessed = [file.rank for file in findings.facts.files if file.rank_source != RECORDED]
    if guessed:
        noun = "rank" if len(guessed) == 1 else "ranks"
        yield f"{noun} {numbers(guessed)}: told by file name or order, not recorded"
    issues = findings.baseline.trust.issues
    if issues:
        told = ", ".join(f"{name} {count:,}" for name, count in sorted(issues.items()))
        yield f"oddities of the data: {told}"


def _clean_step(findings: Findings) -> Iterator[str]:
    """The option that takes the profiler's cost out, where the recording says what it is."""
    clean_ns = findings.reading.clean_step_ns
    measured_ns = findings.baseline.measured.mean_ns
    if clean_ns is None or findings.unprofiled:
        return
    most_ns = measured_ns * (1 - _SAME_STEP_FRAC)
    if not measured_ns * _LEAST_CLEAN_FRAC <= clean_ns < most_ns:
        return
    option = f"--unprofiled-step {format_ms(clean_ns).replace(' ', '').replace(',', '')}"
    yield f"without the profiler a step took {format_ms(clean_ns)}: {option} starts from there"


def numbers(values: list[int] | tuple[int, ...]) -> str:
    """Numbers with runs joined: 0-3, 6."""
    runs: list[list[int]] = []
    for value in sorted(values):
        if runs and value == runs[-1][1] + 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _steps_noun(steps: tuple[int, ...]) -> str:
    return "step" if len(steps) == 1 else "steps"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _folded(head: str, text: str) -> Iterator[str]:
    """A paragraph whose further lines stand under the first word of `text`."""
    yield from wrap(
        text,
        width=WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
