"""Section `breakdown`."""

from whatif.postmortem.contract import Section
from whatif.postmortem.material import Material

KEY = "breakdown"
TITLE = "Where GPU time goes"


def section(material: Material) -> Section:
    """Nothing yet but the name."""
    return Section(key=KEY, title=TITLE, summary=material.name)
