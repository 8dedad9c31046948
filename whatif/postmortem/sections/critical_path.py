"""Section `critical_path`: what the steps hang on, across ranks, and what comes next."""

from collections.abc import Iterator, Mapping

import numpy as np

from ingest.units import format_ms
from ingest.vocab import EdgeKind
from replay.results.causes import WORDS, Cause
from replay.results.critical_path import (
    PathPieces,
    cut_at_steps,
    modules,
    shares_by_collective,
    shares_by_module,
    shares_by_phase,
)
from whatif.postmortem.contract import Missing, Section
from whatif.postmortem.material import Material
from whatif.postmortem.path_timeline import MOST_PIECES, ROLES, drawn, lane_of, name_of, stretches
from whatif.postmortem.untold import TRANSFERS, is_untold
from whatif.postmortem.wording import joined, percent
from whatif.report.blocks import (
    Block,
    Cell,
    Column,
    DataTable,
    Part,
    StackedBars,
    Timeline,
    Unit,
    Words,
    details,
)
from whatif.report.columns import short_name

KEY = "critical_path"
TITLE = "Critical path"
LONGEST, SHARES, CANDIDATES = 10, 12, 10
"""Rows that are shown."""
LANES = 32
NOTABLE_FRAC = 0.03
"""Of the path without a cause: above it the grade is no longer A."""
LEAST_TOLD = 0.005
"""A share below rounds to nothing."""


def section(material: Material) -> Section:
    """Shares by cause and rank, the path over time, the longest pieces, the next candidates."""
    base = material.findings.baseline
    pieces = cut_at_steps(base.path, base.replayed.boundary_ns)
    if not len(pieces.task):
        return _empty()
    code = _code(material, pieces)
    blocks: list[Block] = [_by_rank(material, pieces), _timeline(material, pieces)]
    blocks += [_causes(material), _longest(material, pieces, code)]
    more = (*_shares(material, pieces), _next(material))
    blocks += details(*(table for table in more if table.rows))
    blocks.append(Words(paragraphs=(DEFINITION,)))
    return Section(
        key=KEY,
        title=TITLE,
        summary=_summary(material),
        blocks=tuple(blocks),
        missing=tuple(_missing(material, code)),
    )


DEFINITION = (
    "The critical path is walked back from the task that ends the last step, along the dependency "
    "that each task waited for last: its pieces follow one another without a hole and add up to "
    "the steps. Work that is not on it may grow by its slack before any step gets longer; work on "
    "it may be shortened only until another chain takes over, which the what-ifs replay."
)


def _empty() -> Section:
    return Section(
        key=KEY,
        title=TITLE,
        summary="Nothing is replayed: no critical path.",
        missing=(
            Missing(
                what="work inside the steps",
                how="record whole steps with activities=[ProfilerActivity.CPU, "
                "ProfilerActivity.CUDA]",
            ),
        ),
    )


def _cause_ns(material: Material) -> dict[Cause, float]:
    """Time of the path by cause, ns per step, largest first."""
    bound, base = material.findings.run.bound, material.findings.baseline
    per_step_ns = base.path.length_ns / len(material.findings.graph.steps)
    shares = sorted(bound.path_frac.items(), key=lambda share: -share[1])
    return {cause: frac * per_step_ns for cause, frac in shares if frac > 0}


def _summary(material: Material) -> str:
    bound = material.findings.run.bound
    shares = sorted(bound.path_frac.items(), key=lambda share: -share[1])
    words = _words(material)
    told = [f"{percent(frac)} {words[cause]}" for cause, frac in shares[:3] if frac >= LEAST_TOLD]
    where = "" if bound.rank is None else f", most of it on rank {bound.rank}"
    return f"What the steps hang on: {joined(told)}{where}."


def _words(material: Material) -> Mapping[Cause, str]:
    """Of the causes; transfers that waiting cannot be told from are called so."""
    return {**WORDS, **({Cause.TRANSFER: TRANSFERS} if is_untold(material) else {})}


def _causes(material: Material) -> DataTable:
    times_ns = _cause_ns(material)
    total_ns = max(sum(times_ns.values()), 1.0)
    words = _words(material)
    return DataTable(
        key=f"{KEY}.causes",
        title="By cause",
        about="Shares of the path; they add up to the step.",
        columns=(
            Column(name="cause", unit=Unit.TEXT),
            Column(name="per step", unit=Unit.NS, has_bar=True),
            Column(name="share", unit=Unit.FRAC),
        ),
        rows=tuple(
            (words[cause], round(value), value / total_ns) for cause, value in times_ns.items()
        ),
        query=material.ask.query("critical_path"),
    )


def _by_rank(material: Material, pieces: PathPieces) -> StackedBars:
    """A bar for each rank that the path lies on; together they are a step."""
    graph = material.findings.graph
    parts = stretches(graph, pieces)
    ranks = np.unique(parts.rank)
    by_rank = {int(rank): int(parts.dur_ns[parts.rank == rank].sum()) for rank in ranks}
    shown = sorted(by_rank, key=lambda rank: -by_rank[rank])[:LANES]
    causes = [cause for cause in Cause if (parts.cause == cause).any()]
    words = _words(material)
    steps = len(graph.steps)

    def spent(rank: int, cause: Cause) -> float:
        mine = (parts.rank == rank) & (parts.cause == cause)
        return float(parts.dur_ns[mine].sum()) / steps

    total_ns = max(sum(by_rank.values()), 1)
    told = ", ".join(f"{lane_of(rank)} {by_rank[rank] / total_ns:.0%}" for rank in shown[:4])
    return StackedBars(
        key=f"{KEY}.ranks",
        title="On which rank the path lies, per step",
        about=f"The bars together are a step: {told}. Work of the data loader counts as host work.",
        unit=Unit.NS,
        categories=tuple(map(lane_of, shown)),
        parts=tuple(
            Part(
                name=words[cause],
                role=ROLES[cause],
                values=tuple(spent(rank, cause) for rank in shown),
            )
            for cause in causes
        ),
        query=material.ask.query("critical_by_rank"),
    )


def _timeline(material: Material, pieces: PathPieces) -> Timeline:
    graph = material.findings.graph
    shown, exact = drawn(graph, stretches(graph, pieces))
    lanes = sorted({piece.lane for piece in shown}, key=lambda lane: (len(lane), lane))
    how = (
        "Neighbouring pieces of one rank, cause and name are drawn as one."
        if exact
        else f"Time is cut into {MOST_PIECES} equal slots; each shows the rank and cause that take "
        "most of it."
    )
    return Timeline(
        key=f"{KEY}.timeline",
        title="The path over time",
        about=f"From the first to the last step boundary. {how}",
        lanes=tuple(lanes),
        pieces=shown,
        query=material.ask.query("critical_path"),
    )


def _longest(
    material: Material, pieces: PathPieces, code: Mapping[int, Mapping[str, str]]
) -> DataTable:
    order = np.argsort(-pieces.total_ns, kind="stable")[:LONGEST].tolist()
    return DataTable(
        key=f"{KEY}.longest",
        title="The longest pieces",
        columns=(
            Column(name="what", unit=Unit.CODE),
            Column(name="takes", unit=Unit.NS, has_bar=True),
            Column(name="before it", unit=Unit.NS, about="lag and time without a known cause"),
            Column(name="share", unit=Unit.FRAC, about="of the step that it lies in"),
            Column(name="rank", unit=Unit.TEXT),
            Column(name="step", unit=Unit.TEXT),
            Column(name="lane", unit=Unit.TEXT),
            Column(name="operator", unit=Unit.CODE),
            Column(name="module", unit=Unit.TEXT),
            Column(name="Python", unit=Unit.CODE, about="function around it, or around its launch"),
            Column(
                name="waited by", unit=Unit.TEXT, about="kind of dependency that bound its start"
            ),
        ),
        rows=tuple(_longest_row(material, pieces, row, code) for row in order),
        left_out=len(pieces.task) - len(order),
        query=material.ask.query("critical_path", top=LONGEST),
    )


def _longest_row(
    material: Material, pieces: PathPieces, row: int, code: Mapping[int, Mapping[str, str]]
) -> tuple[Cell, ...]:
    graph = material.findings.graph
    tasks, task = graph.tasks, int(pieces.task[row])
    step_ns = material.findings.baseline.replayed.per_step_ns
    edge, step, lane = int(pieces.edge[row]), int(pieces.step[row]), int(tasks.lane[task])
    around = code.get(int(tasks.slice_id[task]), {})
    module = int(modules(graph)[task])
    return (
        short_name(name_of(graph, task)),
        int(pieces.total_ns[row]),
        int(pieces.lag_ns[row] + pieces.residual_ns[row]),
        float(pieces.total_ns[row] / max(int(step_ns[step]), 1)),
        lane_of(int(tasks.rank[task])).removeprefix("rank "),
        str(graph.steps[step]) if graph.steps_recorded else None,
        graph.lanes[lane].role if lane >= 0 else None,
        _text(graph.names, int(tasks.op[task])) or around.get("op"),
        _text(graph.names, module) or around.get("module"),
        around.get("frame"),
        EdgeKind(graph.edges.kind[edge]).name.lower().replace("_", " ") if edge >= 0 else "release",
    )


def _text(names: tuple[str, ...], number: int) -> str | None:
    return names[number] if number >= 0 else None


def _code(material: Material, pieces: PathPieces) -> dict[int, Mapping[str, str]]:
    """Operator, module and Python function around the longest pieces, by slice."""
    order = np.argsort(-pieces.total_ns, kind="stable")[:LONGEST]
    slices = material.findings.graph.tasks.slice_id[pieces.task[order]]
    ids = ",".join(map(str, slices[slices >= 0].tolist()))
    if not ids:
        return {}
    return {int(row["id"]): row for row in material.ask("code_of_slices", ids=ids).dicts()}


def _shares(material: Material, pieces: PathPieces) -> Iterator[DataTable]:
    """By module, collective and phase, where they are known."""
    graph = material.findings.graph
    steps, total_ns = len(graph.steps), max(int(pieces.total_ns.sum()), 1)
    for key, title, shares in (
        ("modules", "By module or annotation", shares_by_module(graph, pieces)),
        ("collectives", "By collective", shares_by_collective(graph, pieces)),
        ("phases", "By phase", shares_by_phase(graph, pieces)),
    ):
        named = [share for share in shares if share.label is not None]
        if not named:
            continue
        rest_ns = total_ns - sum(share.total_ns for share in named[:SHARES])
        rows = [(share.label, share.total_ns) for share in named[:SHARES]]
        yield DataTable(
            key=f"{KEY}.{key}",
            title=title,
            columns=(
                Column(name="part", unit=Unit.TEXT),
                Column(name="per step", unit=Unit.NS, has_bar=True),
                Column(name="share of the path", unit=Unit.FRAC),
            ),
            rows=tuple(
                (label, round(value / steps), value / total_ns)
                for label, value in (*rows, ("all the rest", rest_ns))
                if value
            ),
            query=material.ask.query("critical_by_module") if key == "modules" else None,
        )


def _next(material: Material) -> DataTable:
    rows = material.ask("slack_candidates", top=CANDIDATES)
    return DataTable(
        key=f"{KEY}.next",
        title="What comes next",
        about="Work off the path that may run at most 1 ms later before the end of the last step "
        "moves: it takes over when the path gets shorter.",
        columns=(
            Column(name="what", unit=Unit.CODE),
            Column(name="rank", unit=Unit.TEXT),
            Column(name="class", unit=Unit.TEXT),
            Column(name="tasks", unit=Unit.COUNT),
            Column(name="in all", unit=Unit.NS, has_bar=True),
            Column(name="least slack", unit=Unit.NS),
            Column(name="median slack", unit=Unit.NS),
        ),
        rows=tuple(
            (
                short_name(row["name"] or "between rows"),
                None if row["rank"] is None else str(row["rank"]),
                row["class"],
                row["tasks"],
                round(row["total_ms"] * 1e6),
                round(row["least_slack_us"] * 1e3),
                round(row["median_slack_us"] * 1e3),
            )
            for row in rows.dicts()
        ),
        query=rows.query,
    )


def _missing(material: Material, code: Mapping[int, Mapping[str, str]]) -> Iterator[Missing]:
    if not any(row.get("frame") for row in code.values()):
        yield Missing(
            what="the Python function of the longest pieces",
            how="with_stack=True (it slows the host: record it apart from timings)",
        )
    unexplained_ns = material.findings.recorded.trust.unexplained_path_ns
    length_ns = max(material.findings.baseline.path.length_ns, 1)
    if unexplained_ns > NOTABLE_FRAC * length_ns:
        yield Missing(
            what=f"the cause of {format_ms(unexplained_ns)} on the path "
            f"({unexplained_ns / length_ns:.0%})",
            how="section Trust lists the places, and which option of the profiler helps",
        )
