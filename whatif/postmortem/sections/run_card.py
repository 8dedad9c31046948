"""Section `run_card`."""

from whatif.postmortem.contract import Section
from whatif.postmortem.material import Material

KEY = "run_card"
TITLE = "Run card"


def section(material: Material) -> Section:
    """Nothing yet but the name."""
    return Section(key=KEY, title=TITLE, summary=material.name)
