"""What the steps hang on, and why devices did nothing: two sections of `replay check`."""

from collections.abc import Iterator, Sequence
from itertools import islice
from textwrap import wrap

import numpy as np

from ingest.units import format_ms
from ingest.vocab import HOST_KINDS, EdgeKind, KernelClass, TaskKind
from replay.graph.arrays import TaskGraph
from replay.results.critical_path import (
    PathPieces,
    Share,
    cut_at_steps,
    pieces_of,
    shares_by_class,
    shares_by_collective,
    shares_by_module,
    shares_by_phase,
    shares_by_rank,
)
from replay.results.idle import (
    CAUSES,
    Idle,
    device_idle,
    idle_by_cause,
    idle_of,
    n_devices,
    stream_idle,
)
from whatif.report.findings import Findings

WIDTH = 98
LEAST_SHARE = 0.0005
"""Of the path or of a step, for a part to be told."""
PARTS, STEPS, LONGEST, STREAMS, GAPS = 5, 8, 5, 6, 3
"""How many of each are told."""
CAUSES_OF_STREAM = 3
NAME_WIDTH = 40
BY = (
    ("by class", shares_by_class, ""),
    ("by rank", shares_by_rank, "all ranks"),
    ("by collective", shares_by_collective, ""),
    ("by module", shares_by_module, "outside of modules"),
    ("by phase", shares_by_phase, "no known phase"),
)
"""Title, how it is shared out, and what the part without a name is called (empty: not told)."""
NOTABLE_WAIT = 0.05
"""Of a piece, for the time before the task began to be told."""
_LABEL = 16


def path_lines(findings: Findings) -> Iterator[str]:
    """Shares of the critical path, each step, the longest pieces."""
    graph, base = findings.graph, findings.baseline
    pieces = cut_at_steps(base.path, base.replayed.boundary_ns)
    total_ns = base.path.length_ns
    for title, shares_of, nameless in BY:
        shares = shares_of(graph, pieces)
        if any(
            share.label is not None and share.total_ns >= LEAST_SHARE * total_ns for share in shares
        ):
            # Classes add up to the path, so none of them is left out.
            most = len(KernelClass) + 3 if shares_of is shares_by_class else PARTS
            yield from _row(title, _told(shares, total_ns, nameless, most))
    yield from _steps(findings, pieces)
    longest = np.argsort(-pieces.total_ns, kind="stable")[:LONGEST]
    for place, row in enumerate(longest):
        yield f"{'' if place else 'longest':<{_LABEL}}{_piece(graph, pieces, int(row))}"


def idle_lines(findings: Findings) -> Iterator[str]:
    """Idle time by cause, of the devices (the mean of them and of the steps) and of each stream.

    The longest gaps come last.
    """
    graph, schedule = findings.graph, findings.baseline.schedule
    idle = device_idle(graph, schedule)
    share = n_devices(graph) * len(graph.steps)
    if not len(idle):
        return
    total_ns = int(idle.dur_ns.sum())
    mean = format_ms(round(total_ns / share))
    yield f"{'a step':<{_LABEL}}{mean} of a device, by what the next work waited for"
    for cause, dur_ns in idle_by_cause(idle).items():
        gaps = int(idle.gaps[idle.cause == CAUSES.index(cause)].sum())
        yield (
            f"{cause:<{_LABEL}}{format_ms(round(dur_ns / share)):>11}{dur_ns / total_ns:>8.1%}"
            f"{gaps:>9,} {'gap' if gaps == 1 else 'gaps'}"
        )
    yield from _streams(findings)
    long = np.flatnonzero(idle.cause != CAUSES.index("short"))
    long = long[np.argsort(-idle.dur_ns[long], kind="stable")][:GAPS]
    for place, row in enumerate(long):
        yield f"{'' if place else 'longest':<{_LABEL}}{_gap(graph, idle, int(row))}"


def _streams(findings: Findings) -> Iterator[str]:
    """Streams by number, the mean of the ranks that have them: the busiest."""
    graph, base = findings.graph, findings.baseline
    idle = stream_idle(graph, base.schedule)
    lines = []
    for stream in np.unique(idle.stream):
        mine = idle_of(idle, idle.stream == stream)
        share = len(set(zip(mine.rank.tolist(), mine.device.tolist(), strict=True)))
        idle_ns = int(mine.dur_ns.sum())
        busy_ns = share * base.path.length_ns - idle_ns
        causes = ", ".join(
            f"{cause} {dur_ns / idle_ns:.0%}"
            for cause, dur_ns in islice(idle_by_cause(mine).items(), CAUSES_OF_STREAM)
        )
        share *= len(graph.steps)
        lines.append(
            (
                -busy_ns / share,
                f"{f'stream {stream}':<{_LABEL}}{format_ms(round(idle_ns / share)):>11} idle, "
                f"{format_ms(round(busy_ns / share))} busy: {causes}",
            )
        )
    lines.sort()
    yield from (line for _, line in lines[:STREAMS])
    if len(lines) > STREAMS:
        yield f"{'':<{_LABEL}}(the {STREAMS} busiest of {len(lines)} streams)"


def _told(shares: Sequence[Share], total_ns: int, nameless: str, most: int) -> str:
    named = ((nameless if one.label is None else _short(one.label), one.total_ns) for one in shares)
    parts = (
        f"{name} {part_ns / total_ns:.1%}"
        for name, part_ns in named
        if name and part_ns >= LEAST_SHARE * total_ns
    )
    return ", ".join(islice(parts, most))


def _row(title: str, text: str) -> Iterator[str]:
    indent = " " * _LABEL
    lines = wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent)
    yield from (title.ljust(_LABEL) + line[_LABEL:] for line in lines[:1])
    yield from lines[1:]


def _steps(findings: Findings, pieces: PathPieces) -> Iterator[str]:
    """Where there are several: what each step is made of; of many the longest."""
    graph, step_ns = findings.graph, findings.baseline.replayed.per_step_ns
    if len(step_ns) == 1:
        return
    chosen = np.sort(np.argsort(-step_ns, kind="stable")[:STEPS])
    for step in chosen:
        part = pieces_of(pieces, pieces.step == step)
        length_ns = int(step_ns[step])
        ranks = _told(shares_by_rank(graph, part), length_ns, "all ranks", 2)
        classes = _told(shares_by_class(graph, part), length_ns, "", 3)
        yield (
            f"{f'step {graph.steps[step]}':<{_LABEL}}{format_ms(length_ns):>11}"
            f"  {classes}; rank {ranks}"
        )
    if len(chosen) < len(step_ns):
        yield f"{'':<{_LABEL}}(the {len(chosen)} longest of {len(step_ns)} steps)"


def _piece(graph: TaskGraph, pieces: PathPieces, row: int) -> str:
    task, edge = int(pieces.task[row]), int(pieces.edge[row])
    by = EdgeKind(graph.edges.kind[edge]).name.lower() if edge >= 0 else "release"
    total_ns, before_ns = int(pieces.total_ns[row]), int(pieces.total_ns[row] - pieces.span_ns[row])
    unexplained = 2 * pieces.residual_ns[row] > before_ns
    waited = f", {format_ms(before_ns)} {'unexplained' if unexplained else f'lag of {by}'}"
    if before_ns < NOTABLE_WAIT * total_ns:
        waited = ""
    return (
        f"{format_ms(total_ns):>11}  {_place(graph, task)}"
        f" in step {graph.steps[pieces.step[row]]}{waited}"
    )


def _gap(graph: TaskGraph, idle: Idle, row: int) -> str:
    culprit = int(idle.culprit[row])
    busy = f": {_place(graph, culprit)}" if culprit >= 0 else ""
    return (
        f"{format_ms(int(idle.dur_ns[row])):>11}  rank {idle.rank[row]} in step "
        f"{graph.steps[idle.step[row]]}, {CAUSES[idle.cause[row]]}{busy}"
    )


def _place(graph: TaskGraph, task: int) -> str:
    """Rank, kind of work and name of a task."""
    tasks = graph.tasks
    nameless = "(waiting)" if tasks.kind[task] == TaskKind.HOST_WAIT else "between its rows"
    name = graph.names[tasks.name[task]] if tasks.name[task] >= 0 else nameless
    kind = KernelClass(tasks.kernel_class[task]).name.lower()
    work = "host" if tasks.kind[task] in HOST_KINDS else kind
    return f"rank {tasks.rank[task]} {work} {_short(name)}"


def _short(name: str) -> str:
    name = " ".join(name.split())
    return name if len(name) <= NAME_WIDTH else f"{name[: NAME_WIDTH - 3]}..."
