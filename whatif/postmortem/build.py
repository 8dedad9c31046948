"""Material -> report: the sections in their order."""

from collections.abc import Callable
from dataclasses import replace

from whatif.postmortem.conclusion import verdict
from whatif.postmortem.contract import Report, Section
from whatif.postmortem.findings.rules import RULES, findings
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
"""All but page one, written from the findings, and the appendix, from the other sections."""


def build_report(material: Material, *, program: str) -> Report:
    """The whole report of a run."""
    found = findings(material)
    material = replace(material, found=found)
    said = verdict(material, found)
    first = page_one.section(material, said, found)
    sections = (first, *(section(material) for section in SECTIONS))
    last = appendix.section(material, sections, rules=RULES, program=program)
    return Report(
        title=material.name,
        program=program,
        command=material.command,
        verdict=said,
        findings=found,
        sections=(*sections, last),
        failed=material.findings.reading.failed,
    )
