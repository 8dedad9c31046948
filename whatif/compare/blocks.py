"""The comparison as blocks of a report: the waterfall, and tables of what is in it."""

from collections.abc import Iterator

from whatif.compare.contract import Diff, Group
from whatif.compare.words import what, why
from whatif.report.blocks import (
    Block,
    Change,
    Column,
    DataTable,
    Unit,
    Waterfall,
    Words,
    details,
)

BARS = 10
ROWS = 25
NAME = 90
REST = "the rest"


def blocks(found: Diff) -> tuple[Block, ...]:
    """In the order in which a person asks: whether, where, what, who."""
    told = [
        waterfall(found),
        groups_table(found),
        causes_table(found),
        *details(*_collectives(found), *_ranks(found), *_long_steps(found)),
    ]
    reasons = found.comparability.reasons
    lines = tuple(f"Beware: {reason}." for reason in reasons)
    return (*((Words(paragraphs=lines),) if lines else ()), *told)


def waterfall(found: Diff) -> Waterfall:
    """From A's step to B's; small changes are one bar."""
    shown, rest = found.groups[:BARS], found.groups[BARS:]
    changes = [_bar(group) for group in shown if group.change_ns]
    rest_ns = sum(group.change_ns for group in rest)
    if rest_ns:
        changes.append(Change(name=REST, role="other", change=rest_ns))
    told = ", ".join(f"{bar.name} {bar.change / 1e6:+,.2f} ms" for bar in changes)
    return Waterfall(
        key="comparison.waterfall",
        title="From the baseline's step to this one",
        about=f"What the mean step gained or lost, mean over ranks: {told or 'nothing'}.",
        unit=Unit.NS,
        start=found.a.step_ns,
        start_name=f"A: {found.a.name}",
        end=found.b.step_ns,
        end_name=f"B: {found.b.name}",
        changes=tuple(changes),
    )


def _bar(group: Group) -> Change:
    return Change(name=group.name, role=group.role, change=group.change_ns)


def groups_table(found: Diff) -> DataTable:
    """All bars, with their noise."""
    return DataTable(
        key="comparison.groups",
        title="Where the difference is",
        about="Rows add up to the difference exactly.",
        columns=(
            Column(name="part", unit=Unit.TEXT),
            Column(name="A", unit=Unit.NS),
            Column(name="B", unit=Unit.NS),
            Column(name="B - A", unit=Unit.NS, has_bar=True),
            Column(
                name="noise",
                unit=Unit.NS,
                about="95 % of the differences that chance alone makes are smaller, by the spread "
                "of the steps; not known where both runs have one step",
            ),
        ),
        rows=tuple(
            (group.name, group.a_ns, group.b_ns, group.change_ns, group.noise_ns)
            for group in found.groups
        ),
    )


def causes_table(found: Diff) -> DataTable:
    """What accounts for most."""
    shown = [cause for cause in found.causes[:ROWS] if cause.change_ns]
    names = {group.key: group.name for group in found.groups}
    return DataTable(
        key="comparison.causes",
        title="What accounts for it",
        about="Exposed time: what something else hides does not count.",
        columns=(
            Column(name="work", unit=Unit.TEXT),
            Column(name="part", unit=Unit.TEXT),
            Column(name="A", unit=Unit.NS),
            Column(name="B", unit=Unit.NS),
            Column(name="B - A", unit=Unit.NS, has_bar=True),
            Column(name="by number", unit=Unit.NS, about="there is more or less of it"),
            Column(name="by duration", unit=Unit.NS, about="each takes longer or shorter"),
            Column(name="by overlap", unit=Unit.NS, about="less or more of it is hidden"),
            Column(name="how", unit=Unit.TEXT),
            Column(name="confidence", unit=Unit.TEXT),
        ),
        rows=tuple(
            (
                what(cause, NAME),
                names[cause.group],
                cause.a_ns,
                cause.b_ns,
                cause.change_ns,
                cause.effects.count_ns,
                cause.effects.longer_ns,
                cause.effects.exposed_ns,
                why(cause),
                cause.confidence,
            )
            for cause in shown
        ),
        left_out=len(found.causes) - len(shown),
    )


def _collectives(found: Diff) -> Iterator[DataTable]:
    if not found.collectives:
        return
    yield DataTable(
        key="comparison.collectives",
        title="Collectives of both runs",
        about="Transfer and wait of one call, whether hidden or not; exposed time of a step.",
        columns=(
            Column(name="collective", unit=Unit.TEXT),
            Column(name="communicator", unit=Unit.TEXT),
            Column(name="size", unit=Unit.BYTES),
            Column(name="calls A", unit=Unit.COUNT),
            Column(name="calls B", unit=Unit.COUNT),
            Column(name="transfer A", unit=Unit.NS),
            Column(name="transfer B", unit=Unit.NS),
            Column(name="wait A", unit=Unit.NS),
            Column(name="wait B", unit=Unit.NS),
            Column(name="exposed A", unit=Unit.NS),
            Column(name="exposed B", unit=Unit.NS),
        ),
        rows=tuple(
            (
                row.kind,
                row.communicator,
                row.size_bytes,
                row.calls_a,
                row.calls_b,
                row.transfer_a_ns,
                row.transfer_b_ns,
                row.wait_a_ns,
                row.wait_b_ns,
                row.exposed_a_ns,
                row.exposed_b_ns,
            )
            for row in found.collectives[:ROWS]
        ),
        left_out=max(len(found.collectives) - ROWS, 0),
    )


def _ranks(found: Diff) -> Iterator[DataTable]:
    if len(found.ranks) < 2:  # noqa: PLR2004  (a single rank is the run)
        return
    yield DataTable(
        key="comparison.ranks",
        title="Ranks of both runs",
        about="Own step, and what others wait for the rank, exposed, in a step.",
        columns=(
            Column(name="rank", unit=Unit.TEXT),
            Column(name="step A", unit=Unit.NS),
            Column(name="step B", unit=Unit.NS),
            Column(name="B - A", unit=Unit.NS, has_bar=True),
            Column(name="others wait A", unit=Unit.NS),
            Column(name="others wait B", unit=Unit.NS),
            Column(name="new straggler", unit=Unit.TEXT),
        ),
        rows=tuple(
            (
                str(rank.rank),
                rank.step_a_ns,
                rank.step_b_ns,
                rank.step_b_ns - rank.step_a_ns,
                rank.caused_wait_a_ns,
                rank.caused_wait_b_ns,
                "yes" if rank.is_new_straggler else "",
            )
            for rank in found.ranks
        ),
    )


def _long_steps(found: Diff) -> Iterator[DataTable]:
    if not found.long_steps:
        return
    yield DataTable(
        key="comparison.long_steps",
        title="Steps more than 1.5 times the median of their run",
        columns=(
            Column(name="run", unit=Unit.TEXT),
            Column(name="step", unit=Unit.COUNT),
            Column(name="took", unit=Unit.NS),
            Column(name="median", unit=Unit.NS),
        ),
        rows=tuple(
            (long.run.upper(), long.step, long.step_ns, long.median_ns) for long in found.long_steps
        ),
    )
