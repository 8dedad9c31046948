"""Section `trust`."""

from whatif.postmortem.contract import Section
from whatif.postmortem.material import Material

KEY = "trust"
TITLE = "Can you trust it"


def section(material: Material) -> Section:
    """Nothing yet but the name."""
    return Section(key=KEY, title=TITLE, summary=material.name)
