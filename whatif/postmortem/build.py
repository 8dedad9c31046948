"""Material -> report: the sections in their order."""

from collections.abc import Callable

from whatif.postmortem.contract import Report, Section
from whatif.postmortem.findings import RULES, findings, verdict
from whatif.postmortem.material import Material
from whatif.postmortem.sections import (
    appendix,
    breakdown,
    communication,
    comparison,
    critical_path,
    host,
    idle,
    kernels,
    memory,
    run_card,
    steps,
    stragglers,
    trust,
    what_ifs,
)
from whatif.postmortem.sections import verdict as page_one

SECTIONS: tuple[Callable[[Material], Section], ...] = (
    page_one.section,
    trust.section,
    run_card.section,
    steps.section,
    breakdown.section,
    critical_path.section,
    communication.section,
    stragglers.section,
    idle.section,
    kernels.section,
    host.section,
    memory.section,
    what_ifs.section,
    comparison.section,
)
"""All but the appendix, which is written from them."""


def build_report(material: Material, *, program: str) -> Report:
    """The whole report of a run."""
    found = findings(material)
    sections = tuple(section(material) for section in SECTIONS)
    last = appendix.section(material, sections, rules=RULES, program=program)
    return Report(
        title=material.name,
        program=program,
        command=material.command,
        verdict=verdict(material, found),
        findings=found,
        sections=(*sections, last),
    )
