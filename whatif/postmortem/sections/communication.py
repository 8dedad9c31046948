"""Section `communication`."""

from whatif.postmortem.contract import Section
from whatif.postmortem.material import Material

KEY = "communication"
TITLE = "Communication"


def section(material: Material) -> Section:
    """Nothing yet but the name."""
    return Section(key=KEY, title=TITLE, summary=material.name)
