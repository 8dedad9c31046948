"""Section `critical_path`."""

from whatif.postmortem.contract import Section
from whatif.postmortem.material import Material

KEY = "critical_path"
TITLE = "Critical path"


def section(material: Material) -> Section:
    """Nothing yet but the name."""
    return Section(key=KEY, title=TITLE, summary=material.name)
