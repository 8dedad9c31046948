"""Conclusions of a report: each rule looks at the material and says what it found, or nothing."""

from collections.abc import Callable

from whatif.postmortem.contract import Finding, Verdict
from whatif.postmortem.material import Material

Rule = Callable[[Material], Finding | None]

RULES: tuple[Rule, ...] = ()


def findings(material: Material) -> tuple[Finding, ...]:
    """What was found, the biggest saving first; what has none comes last."""
    found = [finding for rule in RULES if (finding := rule(material)) is not None]
    return tuple(sorted(found, key=lambda one: -(one.saving_ns or 0)))


def verdict(material: Material, found: tuple[Finding, ...]) -> Verdict:
    """Page one in a sentence."""
    return Verdict(sentence=material.name, not_fixed="", is_healthy=not found)
