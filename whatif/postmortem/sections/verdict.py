"""Section `verdict`: the sentence, where the step goes, and the findings in one table."""

from collections.abc import Sequence

from whatif.postmortem.conclusion import part_names, part_values
from whatif.postmortem.contract import Finding, Section, Verdict
from whatif.postmortem.material import Material
from whatif.postmortem.wording import percents
from whatif.report.blocks import Block, Column, DataTable, Part, StackedBars, Unit, Words

KEY = "verdict"
TITLE = "Verdict"
ROLES = ("compute", "comm", "memcpy", "idle")
HOST_ROLES = ("host", "wait", "memcpy", "idle")
COLUMNS = (
    Column(name="finding", unit=Unit.TEXT),
    Column(name="saves a step", unit=Unit.NS, about="by a replay of the what-if", has_bar=True),
    Column(name="at least", unit=Unit.NS, about="low end of its range; of a bound there is none"),
    Column(name="at most", unit=Unit.NS, about="high end of its range"),
    Column(name="not in the range", unit=Unit.TEXT),
    Column(name="confidence", unit=Unit.TEXT),
    Column(name="replayed", unit=Unit.TEXT, about="the what-if that the saving is of"),
    Column(name="what to type", unit=Unit.CODE),
)


def section(material: Material, said: Verdict, found: Sequence[Finding]) -> Section:
    """Page one.

    Args:
        material: the run.
        said: its verdict.
        found: its findings, the biggest saving first.
    """
    blocks: list[Block] = [_bar(material)]
    if found:
        blocks.append(_table(found))
    if said.not_fixed:
        blocks.append(Words(paragraphs=(said.not_fixed,)))
    return Section(key=KEY, title=TITLE, summary=said.sentence, blocks=tuple(blocks))


def _bar(material: Material) -> StackedBars:
    names, values = part_names(material), part_values(material.answer.breakdown.baseline)
    roles = ROLES if material.findings.facts.has_device else HOST_ROLES
    told = ", ".join(
        f"{name} {share}" for name, share in zip(names, percents(values), strict=True) if share
    )
    return StackedBars(
        key=f"{KEY}.parts",
        title="Where a step goes, mean over ranks",
        about=f"One bar, a step: {told}.",
        unit=Unit.NS,
        categories=("step",),
        parts=tuple(
            Part(name=name, role=role, values=(value,))
            for name, role, value in zip(names, roles, values, strict=True)
            if value
        ),
        query=material.ask.query("time_by_rank") if material.findings.facts.has_device else None,
    )


def _table(found: Sequence[Finding]) -> DataTable:
    return DataTable(
        key=f"{KEY}.findings",
        title="Findings, what to act on first",
        about="Each saving is the replay of its what-if alone; they do not add up. Bounds, which "
        "no run reaches, come after what a run can reach, and guesses last.",
        columns=COLUMNS,
        rows=tuple(
            (
                one.insight,
                one.saving_ns,
                None if one.is_bound else one.saving_low_ns,
                one.saving_high_ns,
                one.not_in_range or None,
                str(one.confidence),
                one.what_if or None,
                one.flag or None,
            )
            for one in found
        ),
    )
