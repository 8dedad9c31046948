"""Material -> report: the sections in their order."""

from collections.abc import Callable

from whatif.postmortem.conclusion import verdict
from whatif.postmortem.contract import Report, Section
from whatif.postmortem.findings.rules import findings
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
    appendix.section,
)
"""All but page one, which is written from the findings."""


def build_report(material: Material, *, program: str) -> Report:
    """The whole report of a run."""
    found = findings(material)
    said = verdict(material, found)
    return Report(
        title=material.name,
        program=program,
        command=material.command,
        verdict=said,
        findings=found,
        sections=(
            page_one.section(material, said, found),
            *(section(material) for section in SECTIONS),
        ),
        failed=material.findings.reading.failed,
    )
