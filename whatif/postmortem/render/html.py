"""Report -> one HTML page that needs no network."""

from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from whatif.postmortem.contract import PAGE_ONE, Finding, Report
from whatif.postmortem.render.page_one import new_on
from whatif.report.blocks import Unit
from whatif.report.charts.amounts import told, told_range
from whatif.report.charts.scale import from_zero
from whatif.report.charts.svg import element, per_cent, title
from whatif.report.page.environment import render

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A finding as it stands on the first screen."""

    finding: Finding
    saving: str
    """Empty where no what-if stands for the action."""
    reach: str
    """The range of the saving."""
    picture: Markup
    section_title: str
    """Of the section with the details; empty where this report has none."""


def page(report: Report) -> str:
    """The whole page."""
    first = next((one for one in report.sections if one.key == PAGE_ONE), None)
    return render(
        TEMPLATES,
        "report.html.j2",
        program=report.program,
        title=report.title,
        report=report,
        cards=_cards(report),
        first=() if first is None else tuple(new_on(first, report)),
        first_missing=() if first is None else first.missing,
        sections=[one for one in report.sections if one.key != PAGE_ONE],
    )


def _cards(report: Report) -> list[Card]:
    titles = {section.key: section.title for section in report.sections}
    largest = max((_high(finding) for finding in report.findings), default=0)
    return [_card(finding, titles, largest) for finding in report.findings]


def _high(finding: Finding) -> int:
    return max(finding.saving_high_ns or 0, finding.saving_ns or 0)


def _card(finding: Finding, titles: dict[str, str], largest: int) -> Card:
    saving = "" if finding.saving_ns is None else told(finding.saving_ns, Unit.NS)
    saving = f"at most {saving}" if finding.is_bound else saving
    has_range = finding.saving_low_ns is not None and finding.saving_high_ns is not None
    has_range = has_range and not finding.is_bound
    reach = (
        told_range(finding.saving_low_ns or 0, finding.saving_high_ns or 0, Unit.NS)
        if has_range
        else ""
    )
    if finding.not_in_range:
        reach = "; ".join([*filter(None, [reach]), f"not in the range: {finding.not_in_range}"])
    return Card(
        finding=finding,
        saving=saving,
        reach=reach,
        picture=_reach(finding, largest) if has_range and saving else Markup(),
        section_title=titles.get(finding.section, ""),
    )


def _reach(finding: Finding, largest: int) -> Markup:
    """The saving on its range; all cards have one scale, from nothing to the largest saving."""
    scale = from_zero(largest)
    low, value, high = (
        per_cent(scale.share(ns or 0))
        for ns in (finding.saving_low_ns, finding.saving_ns, finding.saving_high_ns)
    )
    return element(
        "svg",
        title("saving and its range; all findings on one scale"),
        element("line", x1="0", x2="100%", y1=6, y2=6, class_="grid"),
        element("line", x1=low, x2=high, y1=6, y2=6, class_="c-down line"),
        element("circle", cx=value, cy=6, r=4.5, class_="c-down fill"),
        width="100%",
        height=12,
        class_="reach-bar",
        aria_hidden="true",
    )
