"""All rules, and what they find."""

from collections.abc import Callable

from whatif.postmortem.contract import Confidence, Finding
from whatif.postmortem.findings import (
    allocator_calls,
    data_loader,
    exposed_communication,
    exposed_copies,
    host_bound,
    long_steps,
    matrix_below_roof,
    matrix_precision,
    memory_full,
    slow_links,
    small_kernels,
    straggler,
    synchronising_calls,
    unbalanced_ranks,
)
from whatif.postmortem.material import Material

Rule = Callable[[Material], Finding | None]

RULES: tuple[Rule, ...] = (
    exposed_communication.rule,
    slow_links.rule,
    straggler.rule,
    unbalanced_ranks.rule,
    data_loader.rule,
    host_bound.rule,
    small_kernels.rule,
    synchronising_calls.rule,
    allocator_calls.rule,
    exposed_copies.rule,
    matrix_precision.rule,
    matrix_below_roof.rule,
    long_steps.rule,
    memory_full.rule,
)

RISKS = frozenset({memory_full.KEY})
"""Findings that cost no time yet."""


def findings(material: Material) -> tuple[Finding, ...]:
    """What was found, the biggest saving first; then bounds, what has no saving, and guesses."""
    found = [one for rule in RULES if (one := rule(material)) is not None]
    return tuple(sorted(found, key=_place))


def _place(one: Finding) -> tuple[bool, bool, bool, int]:
    is_guess = one.confidence is Confidence.LOW
    return is_guess, one.saving_ns is None, one.is_bound, -(one.saving_ns or 0)
