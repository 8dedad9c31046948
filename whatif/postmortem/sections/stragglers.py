"""Section `stragglers`."""

from whatif.postmortem.contract import Section
from whatif.postmortem.material import Material

KEY = "stragglers"
TITLE = "Stragglers"


def section(material: Material) -> Section:
    """Nothing yet but the name."""
    return Section(key=KEY, title=TITLE, summary=material.name)
