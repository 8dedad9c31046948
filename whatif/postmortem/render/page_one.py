"""What page one shows under the verdict and the findings."""

from collections.abc import Iterator

from whatif.postmortem.contract import Report, Section
from whatif.report.blocks import Block, Words

REPEATED = ("verdict.findings",)
"""Tables that say again what the findings above them do."""


def new_on(section: Section, report: Report) -> Iterator[Block]:
    """Blocks of page one that repeat neither the verdict nor the findings."""
    said = {report.verdict.sentence, report.verdict.not_fixed}
    for block in section.blocks:
        if isinstance(block, Words):
            if not set(block.paragraphs) <= said:
                yield block
        elif block.key not in REPEATED:
            yield block
