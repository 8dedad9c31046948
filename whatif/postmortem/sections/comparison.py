"""Section `comparison`: this run against a baseline, where one was given."""

from whatif.compare.blocks import blocks
from whatif.compare.contract import Diff
from whatif.compare.words import explained_words, gate_words, match_words
from whatif.postmortem.contract import Missing, Section
from whatif.postmortem.material import Material

KEY = "comparison"
TITLE = "Comparison"


def section(material: Material) -> Section:
    """Waterfall and tables of the comparison; without a baseline how to give one."""
    found = material.comparison
    if found is None:
        return Section(
            key=KEY,
            title=TITLE,
            summary="No baseline was given.",
            missing=(
                Missing(
                    what="what changed against an earlier run",
                    how=f"replay report {material.trace} --against BASELINE",
                ),
            ),
        )
    return Section(key=KEY, title=TITLE, summary=_summary(found), blocks=blocks(found))


def _summary(found: Diff) -> str:
    """Verdict, gate, and how far the two can be compared; B is this run."""
    told = [f"Against `{found.a.name}` (A), this run (B): {found.sentence}"]
    if found.gate is not None:
        told.append(f"Gate {gate_words(found.gate)}")
    told += filter(None, [explained_words(found), match_words(found)])
    return ". ".join(f"{one[0].upper()}{one[1:]}" for one in told) + "."
