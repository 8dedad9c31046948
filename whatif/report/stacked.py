"""A scenario in words: its name, the machine it says was recorded, and its what-ifs in order."""

from whatif.report.columns import to_type
from whatif.scenario import Scenario


def stacked(scenario: Scenario) -> str:
    """One line for each, with the option that says the same."""
    lines = [scenario.name or "no name"]
    if scenario.base.is_given:
        lines.append(f"  recorded machine: {scenario.base.flags}")
    lines += [f"  {to_type(change.flag)}" for change in scenario.transforms]
    if not scenario.transforms:
        lines.append("  no what-if: the run as it was")
    return "\n".join(lines) + "\n"
