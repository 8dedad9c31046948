"""Section `what_ifs`."""

from whatif.postmortem.contract import Section
from whatif.postmortem.material import Material

KEY = "what_ifs"
TITLE = "What-ifs"


def section(material: Material) -> Section:
    """Nothing yet but the name."""
    return Section(key=KEY, title=TITLE, summary=material.name)
