"""Section `stragglers`: who comes last to collectives, what it costs the others, and why."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ingest.units import format_ms
from replay.results.causes import Cause
from replay.results.clocks import unsure_clocks
from replay.results.stragglers import NOT_RESOLVED, RankLateness
from whatif.postmortem.contract import Missing, Section
from whatif.postmortem.host_work import task_called
from whatif.postmortem.material import Material, Rows
from whatif.postmortem.path_timeline import ROLES
from whatif.postmortem.shares import whole_ns
from whatif.report.blocks import (
    Block,
    Column,
    DataTable,
    Part,
    StackedBars,
    Unit,
    Words,
    details,
)
from whatif.report.reading import late_by, late_sentences, why_late

KEY = "stragglers"
TITLE = "Stragglers"

RANKS_SHOWN = 16
PAIRS_SHOWN = 20
REASONS_SHOWN = 12
CALLS_SHOWN = 10
WORK_SHOWN = 12
LEAST_FRAC = 0.005
"""Ranks that cost less than this part of the worst are not drawn."""
BELOW_CLOCKS = "below the clocks"

Row = Mapping[str, Any]


def section(material: Material) -> Section:
    """Lateness by rank, pair, cause and call; of one rank alone what it waited for others."""
    late = material.findings.run.late
    met = len(late.meetings.collective) > 0
    return Section(
        key=KEY,
        title=TITLE,
        summary=_summary(material),
        blocks=tuple(_blocks(material)) if met else tuple(_alone(material)),
        missing=tuple(_missing(material)),
    )


def _summary(material: Material) -> str:
    """The `waits` line of the plain answer, or that nothing in it costs 1 % of a step."""
    told = list(late_sentences(material.findings.run, _step_ns(material), _n_ranks(material)))
    if told:
        return _sentence(told[0])
    worst = material.findings.run.late.worst
    if worst is not None:
        return (
            f"No rank makes the others wait 1 % of a step: the latest, rank {worst.rank}, costs "
            f"each that it meets {format_ms(worst.cost_ns)}."
        )
    if len(material.findings.run.late.meetings.collective):
        return "No rank makes another wait where the waiting is felt."
    if _n_ranks(material) > 1:
        return "The ranks of these files meet in no collective: nobody waits for anybody."
    return _alone_summary(material)


def _sentence(told: str) -> str:
    return f"Waits {told}." if told[0].isdigit() else f"{told[0].upper()}{told[1:]}."


def _alone_summary(material: Material) -> str:
    if not len(material.findings.graph.collectives.kind):
        return "One rank alone, without collectives: it waits for no other."
    late = material.findings.run.late
    if late.outside_wait_high_ns:
        return (
            f"Waits {format_ms(late.outside_wait_ns)} a step for ranks that are not in these "
            f"files, at most {format_ms(late.outside_wait_high_ns)}: less than 1 % of it."
        )
    return "One rank of several: it does not wait for the others in its collectives."


def _step_ns(material: Material) -> int:
    return material.findings.baseline.replayed.mean_ns


def _n_ranks(material: Material) -> int:
    return len(material.findings.graph.ranks)


def _blocks(material: Material) -> Iterator[Block]:
    matrix = material.ask("wait_matrix")
    yield from _costs(material)
    yield _ranks(material)
    yield from _pairs(matrix)
    yield from details(
        *_groups(matrix),
        *_reasons(material),
        *_slower(material),
        *_calls(material),
    )
    yield from _outside(material)


def _costs(material: Material) -> Iterator[StackedBars]:
    """What the late ranks cost the others, by cause."""
    late = material.findings.run.late
    if late.worst is None:
        return
    least_ns = LEAST_FRAC * late.worst.cost_ns
    ranks = [row for row in late.ranks if row.cost_ns > least_ns][:RANKS_SHOWN]
    causes = [cause for cause in Cause if any(cause in row.causes for row in ranks)]
    shared = [_cost_by_cause(row, causes) for row in ranks]
    yield StackedBars(
        key="stragglers.cost",
        title="What each rank costs the others, by why it was late",
        about=(
            "Exposed waiting of a rank that meets it, per step: the mean over these ranks. The "
            "cause is what the late rank did longer than the others since the group last met."
        ),
        unit=Unit.NS,
        categories=tuple(f"rank {row.rank}" for row in ranks),
        parts=tuple(
            Part(
                name=late_by(cause),
                role=ROLES[cause],
                values=tuple(values[place] for values in shared),
            )
            for place, cause in enumerate(causes)
        ),
        query=material.ask.query("wait_matrix"),
    )


def _cost_by_cause(row: RankLateness, causes: Sequence[Cause]) -> tuple[int, ...]:
    total_ns = sum(row.causes.values())
    return whole_ns([row.cost_ns * row.causes.get(cause, 0) / total_ns for cause in causes])


def _ranks(material: Material) -> DataTable:
    rows = material.findings.run.late.ranks
    files = {file.rank: file for file in material.findings.facts.files}
    return DataTable(
        key="stragglers.ranks",
        title="Who comes last",
        about=(
            "Over all collectives with another member in these files. Resolved: later than the "
            "clocks of its ranks are uncertain; costs and causes rest on these alone. The query "
            "counts and sums the same; cost and cause follow the replay (`replay check`)."
        ),
        columns=(
            Column(name="rank", unit=Unit.COUNT),
            Column(name="collectives", unit=Unit.COUNT),
            Column(name="last", unit=Unit.COUNT, about="How often it came last."),
            Column(name="share last", unit=Unit.FRAC),
            Column(name="resolved", unit=Unit.COUNT, about="Of these, beyond the clocks."),
            Column(name="late by", unit=Unit.NS, about="Median of the resolved ones."),
            Column(name="others wait", unit=Unit.NS, about="Sum over the other members, in all."),
            Column(name="own wait", unit=Unit.NS, about="Sum over its collectives, in all."),
            Column(
                name="cost a step",
                unit=Unit.NS,
                about="What a rank that meets it waits for it, exposed.",
                has_bar=True,
            ),
            Column(name="why", unit=Unit.TEXT, about="Share of the waiting that it caused."),
            Column(name="clock uncertain by", unit=Unit.NS, about="Of its file."),
        ),
        rows=tuple(
            (
                row.rank,
                row.meetings,
                row.times_last,
                row.times_last / row.meetings if row.meetings else None,
                row.times_resolved,
                row.late_ns,
                row.caused_wait_ns,
                row.own_wait_ns,
                row.cost_ns,
                why_late(row),
                files[row.rank].clock_uncertainty_ns if row.rank in files else None,
            )
            for row in rows[:RANKS_SHOWN]
        ),
        query=material.ask.query("late_ranks", first_step=None, last_step=None),
        left_out=max(len(rows) - RANKS_SHOWN, 0),
    )


def _pairs(matrix: Rows) -> Iterator[DataTable]:
    """Who waited for whom: a matrix, of many ranks the costliest pairs."""
    found = _by_pair(matrix)
    if not found:
        return
    ranks = sorted({rank for pair in found for rank in pair})
    about = f"{_waited(matrix)}, per step; {_unresolved(matrix)}"
    if len(ranks) <= RANKS_SHOWN:
        late = sorted({pair[1] for pair in found})
        yield DataTable(
            key="stragglers.matrix",
            title="Who waited for whom",
            about=f"Row: the rank that waits; column: the rank that comes last. {about}",
            columns=(
                Column(name="waits", unit=Unit.TEXT),
                *(Column(name=f"for rank {rank}", unit=Unit.NS) for rank in late),
            ),
            rows=tuple(
                (f"rank {rank}", *(found.get((rank, other)) for other in late)) for rank in ranks
            ),
            query=matrix.query,
            is_map=True,
        )
        return
    pairs = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    yield DataTable(
        key="stragglers.matrix",
        title="Who waited for whom: the costliest pairs",
        about=about,
        columns=(
            Column(name="waits", unit=Unit.TEXT),
            Column(name="for", unit=Unit.TEXT),
            Column(name="a step", unit=Unit.NS, has_bar=True),
        ),
        rows=tuple(
            (f"rank {rank}", f"rank {late}", wait_ns)
            for (rank, late), wait_ns in pairs[:PAIRS_SHOWN]
        ),
        query=matrix.query,
        left_out=max(len(pairs) - PAIRS_SHOWN, 0),
    )


def _by_pair(matrix: Rows) -> dict[tuple[int, int], int]:
    """Waiting rank and late rank to what was waited a step, ns; beyond the clocks only."""
    sums: dict[tuple[int, int], float] = {}
    for row in matrix.dicts():
        if row["is_resolvable"]:
            pair = (row["rank"], row["late_rank"])
            sums[pair] = sums.get(pair, 0.0) + _felt(row)
    return {pair: round(value) for pair, value in sums.items()}


def _felt(row: Row) -> float:
    """Exposed waiting where devices tell it, else all waiting."""
    exposed = row["exposed_ns"]
    return float(row["wait_ns"] if exposed is None else exposed)


def _waited(matrix: Rows) -> str:
    known = any(row["exposed_ns"] is not None for row in matrix.dicts())
    return "Waiting that no compute of the rank hides" if known else "Waiting at collectives"


def _unresolved(matrix: Rows) -> str:
    below = sum(_felt(row) for row in matrix.dicts() if not row["is_resolvable"])
    if round(below) == 0:
        return "all of it is beyond what the clocks are uncertain"
    return f"{format_ms(round(below))} more over all ranks lie below what the clocks can tell"


def _groups(matrix: Rows) -> Iterator[DataTable]:
    """The same by process group, where there are several."""
    rows = [row for row in matrix.dicts() if row["is_resolvable"]]
    if len({row["pg_key"] for row in rows}) < 2:  # noqa: PLR2004  (one group is the matrix)
        return
    sums: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        name = row["description"] or row["name"] or "without a name"
        told = sums.setdefault((f"{name} (group {row['pg_key']})", row["late_rank"]), [0.0] * 3)
        for place, value in enumerate((row["waits"], row["wait_ns"], _felt(row))):
            told[place] += value
    pairs = sorted(sums.items(), key=lambda item: -item[1][2])
    yield DataTable(
        key="stragglers.groups",
        title="Late ranks by process group",
        about=f"{_waited(matrix)}, per step, summed over the ranks that wait.",
        columns=(
            Column(name="group", unit=Unit.TEXT),
            Column(name="late", unit=Unit.TEXT),
            Column(name="waits", unit=Unit.COUNT, about="Members that waited, all steps."),
            Column(name="waiting", unit=Unit.NS),
            Column(name="felt", unit=Unit.NS, has_bar=True),
        ),
        rows=tuple(
            (group, f"rank {late}", round(told[0]), round(told[1]), round(told[2]))
            for (group, late), told in pairs[:PAIRS_SHOWN]
        ),
        query=matrix.query,
        left_out=max(len(pairs) - PAIRS_SHOWN, 0),
    )


def _reasons(material: Material) -> Iterator[DataTable]:
    """Rank, cause and the task that took most of the time before the arrivals."""
    graph, late = material.findings.graph, material.findings.run.late
    meetings = late.meetings
    chosen = np.flatnonzero(meetings.resolved & (meetings.exposed_wait_ns > 0))
    sums: dict[tuple[int, int, str], list[int]] = {}
    for place in chosen.tolist():
        key = (
            int(meetings.last_rank[place]),
            int(meetings.cause[place]),
            _task_name(material, int(meetings.task[place])),
        )
        sums.setdefault(key, []).append(place)
    others = {row.rank: max(row.others, 1) for row in late.ranks}
    rows = [
        (
            f"rank {rank}",
            late_by(Cause(cause)),
            name or None,
            len(places),
            int(np.median(meetings.late_ns[places])),
            round(int(meetings.exposed_wait_ns[places].sum()) / (others[rank] * len(graph.steps))),
        )
        for (rank, cause, name), places in sums.items()
    ]
    if not rows:
        return
    rows.sort(key=lambda row: -row[5])
    yield DataTable(
        key="stragglers.reasons",
        title="What the late ranks were doing",
        about=(
            "Before a late arrival, since the group had last met: the cause that exceeds the other "
            "members most, and the task that took most of the time. `replay check` follows the "
            "same chains."
        ),
        columns=(
            Column(name="late", unit=Unit.TEXT),
            Column(name="why", unit=Unit.TEXT),
            Column(name="longest task", unit=Unit.CODE),
            Column(name="collectives", unit=Unit.COUNT),
            Column(name="late by", unit=Unit.NS, about="Median."),
            Column(name="cost a step", unit=Unit.NS, about="To a rank it meets.", has_bar=True),
        ),
        rows=tuple(rows[:REASONS_SHOWN]),
        left_out=max(len(rows) - REASONS_SHOWN, 0),
    )


def _task_name(material: Material, task: int) -> str:
    graph = material.findings.graph
    if task < 0 or graph.tasks.name[task] < 0:
        return ""
    return task_called(graph.names[int(graph.tasks.name[task])]) or ""


def _slower(material: Material) -> Iterator[DataTable]:
    """Kernels and host work of the worst rank against the others."""
    worst = material.findings.run.late.worst
    if worst is None:
        return
    rows = material.ask("slower_work", late_rank=worst.rank, top=WORK_SHOWN)
    if not rows.rows:
        return
    yield DataTable(
        key="stragglers.slower",
        title=f"What rank {worst.rank} spends more time on than the others",
        about=(
            "Per step, against the median of the other ranks. Host rows count the time that is "
            "their own, waiting inside them too (as for an autograd thread); calls that wait for a "
            "device are left out. Where `others` is empty no other rank has work of that name: it "
            "may be theirs under another one."
        ),
        columns=(
            Column(name="name", unit=Unit.CODE),
            Column(name="on", unit=Unit.TEXT),
            Column(name="calls", unit=Unit.COUNT, about="A step."),
            Column(name="own", unit=Unit.NS),
            Column(name="others", unit=Unit.NS, about="Median of the other ranks."),
            Column(name="more", unit=Unit.NS, has_bar=True),
        ),
        rows=tuple(
            (
                row["name"],
                row["place"],
                round(row["calls_per_step"], 2),
                round(row["own_ns"]),
                round(row["usual_ns"]) if row["other_ranks"] else None,
                round(row["more_ns"]) if row["other_ranks"] else None,
            )
            for row in rows.dicts()
        ),
        query=rows.query,
    )


def _calls(material: Material) -> Iterator[DataTable]:
    """The collectives at which the others waited most."""
    rows = material.ask("late_collectives", top=CALLS_SHOWN)
    if not rows.rows:
        return
    found = rows.dicts()
    causes = _causes_of(material, [row["late_kernel_id"] for row in found])
    yield DataTable(
        key="stragglers.collectives",
        title="Collectives at which the others waited most",
        about="Waits are sums over the members that waited; `why` follows the replay.",
        columns=(
            Column(name="collective", unit=Unit.TEXT),
            Column(name="group", unit=Unit.TEXT),
            Column(name="size", unit=Unit.BYTES),
            Column(name="step", unit=Unit.COUNT),
            Column(name="late", unit=Unit.TEXT),
            Column(name="apart", unit=Unit.NS, about="Last arrival after the first."),
            Column(name="others wait", unit=Unit.NS),
            Column(name="exposed", unit=Unit.NS, about="On devices only.", has_bar=True),
            Column(name="why", unit=Unit.TEXT),
        ),
        rows=tuple(
            (
                row["kind"],
                f"{row['description'] or row['name'] or 'without a name'} ({row['members']} ranks)",
                row["bytes"],
                row["step"],
                f"rank {row['late_rank']}",
                row["skew_ns"],
                row["wait_ns"],
                row["exposed_ns"],
                causes.get(row["late_kernel_id"]) if row["is_resolvable"] else BELOW_CLOCKS,
            )
            for row in found
        ),
        query=rows.query,
    )


def _causes_of(material: Material, slices: Sequence[int]) -> dict[int, str]:
    """Why the members with these slices were late; without those that the replay does not know."""
    tasks, meetings = material.findings.graph.tasks, material.findings.run.late.meetings
    causes = dict(
        zip(
            zip(meetings.collective.tolist(), meetings.last_rank.tolist(), strict=True),
            meetings.cause.tolist(),
            strict=True,
        )
    )
    found: dict[int, str] = {}
    for task in np.flatnonzero(np.isin(tasks.slice_id, slices)).tolist():
        cause = causes.get((int(tasks.collective[task]), int(tasks.rank[task])), NOT_RESOLVED)
        if cause != NOT_RESOLVED:
            found[int(tasks.slice_id[task])] = late_by(Cause(cause))
    return found


def _alone(material: Material) -> Iterator[Block]:
    """Of ranks that meet no other in these files."""
    yield from _outside(material)


def _outside(material: Material) -> Iterator[Words]:
    late = material.findings.run.late
    if not late.outside_wait_high_ns:
        return
    step_ns = max(_step_ns(material), 1)
    low_ns, high_ns = late.outside_wait_ns, late.outside_wait_high_ns
    yield Words(
        paragraphs=(
            f"Waiting for ranks that are not in these files, per step and rank: "
            f"{format_ms(low_ns)} ({low_ns / step_ns:.1%} of the step) by the fastest of equal "
            f"calls, which is taken for the transfer. At most {format_ms(high_ns)} "
            f"({high_ns / step_ns:.1%}), if calls with too few equals to compare with did nothing "
            "but wait.",
        )
    )


def _missing(material: Material) -> Iterator[Missing]:
    late = material.findings.run.late
    if late.outside_wait_high_ns:
        yield Missing(
            what="which of the ranks without a file comes late, and why",
            how="give the traces of all ranks of the same steps",
        )
    for reason in unsure_clocks(material.findings.facts):
        yield Missing(
            what=f"who is late by less than the clocks are apart: {reason}",
            how="record more steps, so that more collectives tie the clocks together",
        )
    unresolved = int((~late.meetings.resolved).sum())
    if unresolved:
        yield Missing(
            what=(
                f"who came last in {unresolved:,} of {len(late.meetings.resolved):,} collectives: "
                "their skew is below the uncertainty of the clocks (not resolvable)"
            ),
            how="record more steps: the uncertainty falls with the number of collectives",
        )
