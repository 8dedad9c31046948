"""Section `communication`: per process group, kind, size and phase; against the link's roof."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ingest.units import format_ms
from whatif.parallelism import Axis
from whatif.postmortem.contract import Missing, Section
from whatif.postmortem.group_links import (
    TO_SAY,
    GroupLink,
    Key,
    gigabytes,
    group_links,
    key_of,
    key_of_row,
)
from whatif.postmortem.host_exposure import host_exposure
from whatif.postmortem.material import Material, Rows
from whatif.postmortem.shares import ROUNDING_NS, fitted_ns, whole_ns
from whatif.report.blocks import (
    Block,
    Cell,
    Column,
    DataTable,
    Dot,
    Part,
    Query,
    Roof,
    Scatter,
    StackedBars,
    Unit,
    details,
)
from whatif.report.text import numbers

KEY = "communication"
TITLE = "Communication"

GROUPS_SHOWN = 16
SIZES_SHOWN = 20
REST = "not by group"
LONGEST_NUMBER = 6
"""Digits of a name that are not yet an address."""
METADATA = (
    "record with PyTorch 2.2 or newer, whose profiler writes size and group of each NCCL call, or "
    "with record_shapes=True"
)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """A process group with what it did per step, in the mean of the ranks."""

    row: Row
    label: str
    link: GroupLink | None
    hidden_ns: int
    moving_ns: int
    """Exposed, and some member of the rank moves data."""
    waiting_ns: int
    """Exposed, and all only wait for other ranks."""

    @property
    def exposed_ns(self) -> int:
        return self.moving_ns + self.waiting_ns

    @property
    def comm_ns(self) -> int:
        return self.hidden_ns + self.exposed_ns


def section(material: Material) -> Section:
    """What the groups moved, how fast that was, and what of it the step felt."""
    rows = material.ask("comm_by_group")
    if not rows.rows:
        return Section(key=KEY, title=TITLE, summary=_nothing(material))
    links = group_links(material.findings.graph, material.recorded)
    groups, rest_ns = _groups(material, rows, links)
    sizes = material.ask("comm_by_size")
    labels = {group.row["pg_key"]: group for group in groups}
    return Section(
        key=KEY,
        title=TITLE,
        summary=_summary(material, groups),
        blocks=(
            _bars(material, groups, rest_ns, rows.query),
            _group_table(groups, rows.query),
            _bandwidth_table(groups, rows.query),
            *details(
                *_scatters(sizes, labels),
                _size_table(sizes, labels),
                *_phases(material),
                *_balance(material),
                *_unknown(material),
            ),
        ),
        missing=tuple(_missing(material, groups, sizes)),
    )


def _nothing(material: Material) -> str:
    trace = material.answer.trace
    if (trace.world_size or 1) > 1:
        return (
            f"No collective runs in the steps of these files, though the job has "
            f"{trace.world_size} ranks."
        )
    return "One rank alone: nothing is communicated."


def _groups(
    material: Material, rows: Rows, links: Mapping[Key, GroupLink]
) -> tuple[tuple[_Group, ...], int]:
    """The groups, and exposed communication of the breakdown that none of them has, ns."""
    found = rows.dicts()
    parts = [_parts(material, row) for row in found]
    total_ns = _exposed_ns(material, parts)
    exposed = [part for hidden, moving, waiting in parts for part in (moving, waiting)]
    fitted, rest_ns = fitted_ns(exposed, total_ns)
    hidden = whole_ns([part[0] for part in parts])
    labels = _labels(found, links)
    groups = tuple(
        _Group(
            row=row,
            label=labels[place],
            link=links.get(key_of_row(row)),
            hidden_ns=hidden[place],
            moving_ns=fitted[2 * place],
            waiting_ns=fitted[2 * place + 1],
        )
        for place, row in enumerate(found)
    )
    return tuple(sorted(groups, key=lambda group: -group.exposed_ns)), rest_ns


def _exposed_ns(material: Material, parts: Sequence[tuple[float, float, float]]) -> int:
    """Exposed communication of a step: of the breakdown where that is as recorded."""
    if material.findings.unprofiled is not None:
        return round(sum(moving + waiting for _, moving, waiting in parts))
    return material.answer.breakdown.baseline.exposed_comm_ns


def _parts(material: Material, row: Row) -> tuple[float, float, float]:
    """Hidden, exposed moving and exposed waiting, ns per step."""
    if row["comm_ns"] is not None:
        waiting = row["exposed_wait_ns"]
        return row["hidden_ns"], row["exposed_ns"] - waiting, waiting
    findings = material.findings
    by_group = host_exposure(findings.graph, findings.recorded.schedule)
    mine = [
        exposure
        for number, exposure in by_group.items()
        if key_of(findings.graph.groups[number]) == key_of_row(row)
    ]
    waiting = sum(exposure.exposed_wait_ns for exposure in mine)
    exposed = sum(exposure.exposed_ns for exposure in mine)
    return sum(exposure.hidden_ns for exposure in mine), exposed - waiting, waiting


def _labels(rows: Sequence[Row], links: Mapping[Key, GroupLink]) -> tuple[str, ...]:
    """What to call each group; where two have one name their ranks, or keys, tell them apart."""
    labels = [_plain_label(row, links.get(key_of_row(row))) for row in rows]
    for told in (
        [f"{label}: {_ranks(row)}" for label, row in zip(labels, rows, strict=True)],
        [f"{label}, key {row['pg_key']}" for label, row in zip(labels, rows, strict=True)],
    ):
        labels = _told_apart(labels, told)
    return tuple(labels)


def _told_apart(labels: Sequence[str], longer: Sequence[str]) -> list[str]:
    """The longer label where the short one is not the only one of its kind and the longer is."""
    often, then = Counter(labels), Counter(longer)
    return [
        more if often[label] > 1 and then[more] == 1 else label
        for label, more in zip(labels, longer, strict=True)
    ]


def _ranks(row: Row) -> str:
    """Members as `0-7`; those beyond the known ones as a number."""
    text = row["member_ranks"]
    if not text:
        return "not recorded"
    ranks = sorted(int(rank) for rank in text.split(","))
    more = (row["members"] or 0) - len(ranks)
    return f"{numbers(ranks)} and {more:,} more" if more > 0 else numbers(ranks)


def _plain_label(row: Row, link: GroupLink | None) -> str:
    """Name and size; the role where the name is none or an address."""
    size = row["members"]
    members = f"({size} rank{'' if size == 1 else 's'})"
    if row["pg_key"] is None:
        return f"no group recorded {members}"
    name = next((text for text in (row["description"], row["name"]) if _is_telling(text)), None)
    if name is not None:
        return f"{'group ' if name.isdigit() else ''}{name} {members}"
    role = None if link is None or link.role == str(Axis.UNCLEAR) else link.role
    return f"{role or 'nameless'} group {members}"


def _is_telling(name: str | None) -> bool:
    """A word of a person or a framework, no address of a communicator."""
    if not name or name == "undefined":
        return False
    return not name.isdigit() or len(name) <= LONGEST_NUMBER


def _summary(material: Material, groups: Sequence[_Group]) -> str:
    step_ns = material.answer.baseline.measured_ns
    exposed_ns = sum(group.exposed_ns for group in groups)
    waiting_ns = sum(group.waiting_ns for group in groups)
    hidden_ns = sum(group.hidden_ns for group in groups)
    text = f"Communication runs {format_ms(exposed_ns + hidden_ns)} of a step and rank"
    if not exposed_ns:
        text += ", all of it beside compute"
    else:
        share = exposed_ns / max(step_ns, 1)
        text += f"; nothing hides {format_ms(exposed_ns)} of it ({share:.1%} of the step)"
    if waiting_ns:
        text += f", of which {format_ms(waiting_ns)} only wait for other ranks"
    largest = max(groups, key=lambda group: group.row["bytes_per_step"] or 0)
    return f"{text}{_speed(material, largest)}."


def _speed(material: Material, group: _Group) -> str:
    """Bus bandwidth of a group against its roof; empty where it is not known."""
    busbw = group.row["busbw_bytes_per_s"]
    if not busbw:
        return ""
    roof = _roof_of(group)
    against = f", {busbw / roof:.0%} of what its link allows" if roof else ""
    unsure = (
        " (or more: waiting for ranks without a file may be in it)" if _is_unsure(material) else ""
    )
    return f"; {group.label} moves its bytes at {gigabytes(busbw)} bus bandwidth{against}{unsure}"


def _is_unsure(material: Material) -> bool:
    """Some transfers have waiting in them that too few equal calls tell apart."""
    late = material.findings.run.late
    return late.outside_wait_high_ns > late.outside_wait_ns


def _bars(material: Material, groups: Sequence[_Group], rest_ns: int, query: Query) -> StackedBars:
    shown, others = groups[:GROUPS_SHOWN], groups[GROUPS_SHOWN:]
    names = [group.label for group in shown]
    moving = [group.moving_ns for group in shown]
    waiting = [group.waiting_ns for group in shown]
    hidden = [group.hidden_ns for group in shown]
    if others:
        names.append(f"{len(others)} more groups")
        moving.append(sum(group.moving_ns for group in others))
        waiting.append(sum(group.waiting_ns for group in others))
        hidden.append(sum(group.hidden_ns for group in others))
    if rest_ns:
        names.append(REST)
        moving.append(rest_ns)
        waiting.append(0)
        hidden.append(0)
    return StackedBars(
        key="communication.exposed",
        title="Communication of a step by process group",
        about=(
            "A moment belongs to the collective that began first of those that run on the device. "
            "Hidden: a compute kernel runs beside it (without devices: the step's threads work). "
            "Exposed: none does; waiting: all communication of the rank waits for other ranks. "
            "Mean over ranks; the exposed parts add up to the exposed communication of the step."
            f"{_other_split(material, sum(moving), sum(waiting))}"
        ),
        unit=Unit.NS,
        categories=tuple(names),
        parts=(
            Part(name="exposed, waiting for other ranks", role="wait", values=tuple(waiting)),
            Part(name="exposed, moving data", role="comm", values=tuple(moving)),
            Part(name="hidden by compute", role="compute", values=tuple(hidden)),
        ),
        query=None if any(group.row["comm_ns"] is None for group in groups) else query,
    )


def _other_split(material: Material, moving_ns: int, waiting_ns: int) -> str:
    """Where the breakdown tells waiting and transfer apart in another way, that it does."""
    parts = material.answer.breakdown.baseline
    apart_ns = abs(parts.exposed_wait_ns - waiting_ns)
    whole = moving_ns + waiting_ns == parts.exposed_comm_ns
    if not whole or apart_ns <= ROUNDING_NS:
        return ""
    return (
        f" The breakdown takes {format_ms(parts.exposed_wait_ns)} of it for waiting: it estimates "
        "transfers with ranks that have no file by the collective model, too."
    )


def _group_table(groups: Sequence[_Group], query: Query) -> DataTable:
    return DataTable(
        key="communication.groups",
        title="Process groups",
        about="Per step, mean over the ranks. What a group is for is told from what it carries.",
        columns=(
            Column(name="group", unit=Unit.TEXT),
            Column(name="role", unit=Unit.TEXT, about="Axis of parallelism, inferred."),
            Column(name="ranks", unit=Unit.TEXT, about="Members."),
            Column(name="where", unit=Unit.TEXT, about="The farthest link between its members."),
            Column(name="calls", unit=Unit.COUNT, about="Operations a step, of all ranks once."),
            Column(name="bytes", unit=Unit.BYTES, about="Sizes as nccl-tests count them, a step."),
            Column(name="transfer", unit=Unit.NS, about="Sum over its calls, without waiting."),
            Column(name="wait", unit=Unit.NS, about="Sum over its calls of waiting for members."),
            Column(name="exposed", unit=Unit.NS, about="No compute beside it.", has_bar=True),
            Column(name="hidden", unit=Unit.NS, about="Compute beside it."),
            Column(name="overlap", unit=Unit.FRAC, about="Hidden share of its time."),
        ),
        rows=tuple(_group_row(group) for group in groups[:GROUPS_SHOWN]),
        query=query,
        left_out=max(len(groups) - GROUPS_SHOWN, 0),
    )


def _group_row(group: _Group) -> tuple[Cell, ...]:
    row, link = group.row, group.link
    return (
        group.label,
        None if link is None else link.role,
        _ranks(row),
        None if link is None else link.place,
        round(row["operations_per_step"], 2),
        row["bytes_per_step"],
        _int(row["transfer_ns"]),
        _int(row["wait_ns"]),
        group.exposed_ns,
        group.hidden_ns,
        group.hidden_ns / group.comm_ns if group.comm_ns else None,
    )


def _bandwidth_table(groups: Sequence[_Group], query: Query) -> DataTable:
    return DataTable(
        key="communication.bandwidth",
        title="Bus bandwidth of the groups against their links",
        about=(
            "Bus bandwidth as nccl-tests count it, over transfers without waiting. Reductions in "
            "the switch (NVLS) may pass the roof, which is the plain rate of one direction."
        ),
        columns=(
            Column(name="group", unit=Unit.TEXT),
            Column(name="achieved", unit=Unit.BYTES_PER_S, about="All bytes over all transfers."),
            Column(name="p50", unit=Unit.BYTES_PER_S, about="Median over calls."),
            Column(name="p95", unit=Unit.BYTES_PER_S, about="What the fast calls reach."),
            Column(name="own best", unit=Unit.BYTES_PER_S, about="Of any call of the group."),
            Column(name="roof", unit=Unit.BYTES_PER_S, about="What the link allows."),
            Column(name="of roof", unit=Unit.FRAC, about="Achieved against the roof."),
            Column(name="of own best", unit=Unit.FRAC, about="Achieved against the own best."),
            Column(
                name="over fastest",
                unit=Unit.NS,
                about="A step: transfers beyond the fastest of at least three equal calls.",
            ),
            Column(name="roof is", unit=Unit.TEXT, about="Where the roof is from."),
        ),
        rows=tuple(_bandwidth_row(group) for group in groups[:GROUPS_SHOWN]),
        query=query,
        left_out=max(len(groups) - GROUPS_SHOWN, 0),
    )


def _bandwidth_row(group: _Group) -> tuple[Cell, ...]:
    row, link = group.row, group.link
    roof = None if link is None else link.roof_bytes_per_s
    achieved, best = row["busbw_bytes_per_s"], row["busbw_best_bytes_per_s"]
    return (
        group.label,
        achieved,
        row["busbw_p50_bytes_per_s"],
        row["busbw_p95_bytes_per_s"],
        best,
        roof,
        _share(achieved, roof),
        _share(achieved, best),
        _int(row["above_best_ns"]),
        None if link is None else link.source,
    )


def _size_table(sizes: Rows, groups: Mapping[Any, _Group]) -> DataTable:
    rows = sizes.dicts()
    return DataTable(
        key="communication.sizes",
        title="Calls by kind and size",
        about=(
            "Per step, mean over the ranks; the most exposed first. Small calls are bound by "
            "latency and cannot reach the roof."
        ),
        columns=(
            Column(name="kind", unit=Unit.TEXT),
            Column(name="group", unit=Unit.TEXT),
            Column(name="type", unit=Unit.TEXT),
            Column(name="size", unit=Unit.BYTES, about="As nccl-tests count it, of one call."),
            Column(name="calls", unit=Unit.COUNT, about="Operations a step."),
            Column(name="one transfer", unit=Unit.NS, about="Median, without waiting."),
            Column(name="busbw p50", unit=Unit.BYTES_PER_S),
            Column(name="busbw p95", unit=Unit.BYTES_PER_S),
            Column(name="of roof", unit=Unit.FRAC, about="p50 against the roof of the group."),
            Column(name="of own best", unit=Unit.FRAC, about="p50 against the best equal call."),
            Column(name="transfer", unit=Unit.NS),
            Column(name="wait", unit=Unit.NS),
            Column(name="exposed", unit=Unit.NS, about="Told of devices only.", has_bar=True),
        ),
        rows=tuple(_size_row(row, groups) for row in rows[:SIZES_SHOWN]),
        query=sizes.query,
        left_out=max(len(rows) - SIZES_SHOWN, 0),
    )


def _size_row(row: Row, groups: Mapping[Any, _Group]) -> tuple[Cell, ...]:
    group = groups.get(row["pg_key"])
    busbw = row["busbw_p50_bytes_per_s"]
    return (
        row["kind"],
        None if group is None else group.label,
        row["dtype"],
        row["bytes"],
        round(row["operations_per_step"], 2),
        _int(row["transfer_p50_ns"]),
        busbw,
        row["busbw_p95_bytes_per_s"],
        _share(busbw, _roof_of(group)),
        _share(busbw, row["busbw_best_bytes_per_s"]),
        _int(row["transfer_ns"]),
        _int(row["wait_ns"]),
        _int(row["exposed_ns"]),
    )


def _roof_of(group: _Group | None) -> float | None:
    return None if group is None or group.link is None else group.link.roof_bytes_per_s


def _scatters(sizes: Rows, groups: Mapping[Any, _Group]) -> Iterator[Scatter]:
    """Calls by size and bus bandwidth under the roofs of their links; none without sizes."""
    known = [row for row in sizes.dicts() if row["bytes"] and row["busbw_p50_bytes_per_s"]]
    if not known:
        return
    dots = tuple(
        Dot(
            name=_dot_name(row, groups.get(row["pg_key"])),
            role="comm",
            x=float(row["bytes"]),
            y=row["busbw_p50_bytes_per_s"],
            weight=float(row["transfer_ns"]),
        )
        for row in known
    )
    span = (min(dot.x for dot in dots), max(dot.x for dot in dots))
    roofs = {
        (_roof_of(group), group.link.source)
        for group in groups.values()
        if group.link is not None and group.link.roof_bytes_per_s is not None
    }
    yield Scatter(
        key="communication.bandwidth_by_size",
        title="Bus bandwidth by size of the call",
        about=(
            f"Median bus bandwidth of {len(dots)} kinds of calls by their size; the area is the "
            "time that they transfer. The lines are what the links allow."
        ),
        x_name="size of one call",
        x_unit=Unit.BYTES,
        y_name="bus bandwidth",
        y_unit=Unit.BYTES_PER_S,
        is_log=True,
        dots=dots,
        roofs=tuple(
            Roof(name=source, points=tuple((x, roof) for x in span))
            for roof, source in sorted(roofs, key=str)
            if roof is not None
        ),
        query=sizes.query,
    )


def _dot_name(row: Row, group: _Group | None) -> str:
    where = "" if group is None else f" in {group.label}"
    return f"{row['kind']}{where}, {row['operations_per_step']:.3g} a step"


def _phases(material: Material) -> Iterator[DataTable]:
    """Communication of devices by phase; none on hosts."""
    rows = material.ask("comm_by_phase")
    if not rows.rows:
        return
    yield DataTable(
        key="communication.phases",
        title="Communication by phase",
        about="Phase of the launching call. Per step, mean over the ranks.",
        columns=(
            Column(name="phase", unit=Unit.TEXT),
            Column(name="communication", unit=Unit.NS),
            Column(name="hidden", unit=Unit.NS),
            Column(name="exposed", unit=Unit.NS, has_bar=True),
            Column(name="waiting", unit=Unit.NS, about="Part of exposed."),
            Column(name="overlap", unit=Unit.FRAC, about="Hidden share of its time."),
        ),
        rows=tuple(
            (
                "not known" if row["phase"] == "unknown" else row["phase"],
                _int(row["comm_ns"]),
                _int(row["hidden_ns"]),
                _int(row["exposed_ns"]),
                _int(row["exposed_wait_ns"]),
                row["hidden_frac"],
            )
            for row in rows.dicts()
        ),
        query=rows.query,
    )


def _balance(material: Material) -> Iterator[DataTable]:
    """All-to-alls whose sizes the calls recorded, the most uneven first."""
    rows = material.ask("alltoall_balance")
    if not rows.rows:
        return
    yield DataTable(
        key="communication.balance",
        title="How evenly all-to-alls are shared out",
        about="Elements that a rank sends or gets in one call, against the mean of the ranks seen.",
        columns=(
            Column(name="operation", unit=Unit.COUNT, about="coll_id in the tables."),
            Column(name="ranks seen", unit=Unit.COUNT),
            Column(name="most sent by rank", unit=Unit.COUNT),
            Column(name="most sent", unit=Unit.COUNT, about="Elements."),
            Column(name="sent, most to mean", unit=Unit.FACTOR, has_bar=True),
            Column(name="got, most to mean", unit=Unit.FACTOR),
            Column(name="largest split", unit=Unit.COUNT, about="Elements to one rank."),
            Column(name="transfer", unit=Unit.NS),
        ),
        rows=tuple(
            (
                row["coll_id"],
                row["seen"],
                row["most_sent_rank"],
                row["most_sent_elements"],
                row["sent_over_mean"],
                row["got_over_mean"],
                row["largest_split"],
                _int(row["transfer_ns"]),
            )
            for row in rows.dicts()
        ),
        query=rows.query,
    )


def _unknown(material: Material) -> Iterator[Block]:
    """Members of which something is not known, counted."""
    rows = material.ask("comm_unmatched")
    if not rows.rows:
        return
    yield DataTable(
        key="communication.unknown",
        title="Members of collectives of which something is not known",
        about=(
            "Absent: a partner has no file. Uncovered: no counterpart in the files. Desync: "
            "another operation there. A member may stand in several rows."
        ),
        columns=(
            Column(name="what", unit=Unit.TEXT),
            Column(name="kind", unit=Unit.TEXT),
            Column(name="members", unit=Unit.COUNT, has_bar=True),
            Column(name="ranks", unit=Unit.COUNT),
            Column(name="time", unit=Unit.NS, about="Sum of their durations, all steps."),
            Column(name="waiting", unit=Unit.NS, about="Part of it."),
        ),
        rows=tuple(
            (
                row["fault"],
                row["kind"],
                row["members"],
                row["ranks"],
                _int(row["total_ns"]),
                _int(row["wait_ns"]),
            )
            for row in rows.dicts()
        ),
        query=rows.query,
    )


def _missing(material: Material, groups: Sequence[_Group], sizes: Rows) -> Iterator[Missing]:
    without = sum(group.row["without_size"] for group in groups)
    total = sum(group.row["operations"] for group in groups)
    if without:
        yield Missing(
            what=f"size and bandwidth of {without:,} of {total:,} collectives in the steps",
            how=METADATA,
        )
    yield from _roofless(groups)
    reading = material.answer.reading
    if reading is not None and reading.outside_wait_high_ns:
        yield Missing(
            what="how long members that are not in these files made these wait: it is told by the "
            "fastest of equal calls",
            how="give the traces of all ranks",
        )
    if _has_all_to_all(sizes) and not material.ask("alltoall_balance", limit=1).rows:
        yield Missing(what="how evenly all-to-alls are shared out over the ranks", how=METADATA)


def _roofless(groups: Sequence[_Group]) -> Iterator[Missing]:
    unknown: dict[str, list[str]] = {}
    for group in groups:
        if group.link is not None and group.link.roof_bytes_per_s is None:
            unknown.setdefault(TO_SAY[group.link.level], []).append(group.label)
    for how, labels in unknown.items():
        more = f" and {len(labels) - 1} more groups" if len(labels) > 1 else ""
        yield Missing(what=f"what the link of {labels[0]}{more} allows", how=how)


def _has_all_to_all(sizes: Rows) -> bool:
    return "all_to_all" in sizes.column("kind")


def _share(value: float | None, of: float | None) -> float | None:
    return value / of if value is not None and of else None


def _int(value: float | None) -> int | None:
    return None if value is None else round(value)
