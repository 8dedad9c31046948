"""Ranks that compute longer than the others in every step."""

import numpy as np

from ingest.units import format_ms
from replay.results.metrics import rank_breakdowns
from whatif.postmortem.contract import Finding
from whatif.postmortem.findings.saving import Told, finding, is_worth, twice
from whatif.postmortem.findings.straggler import LEVER
from whatif.postmortem.findings.straggler import rule as straggler
from whatif.postmortem.material import Material
from whatif.report.text import numbers

LEAST_FRAC = 0.05
"""Of the step above the median rank: five times what two runs of one job differ by."""


def rule(material: Material) -> Finding | None:
    """Uneven compute, unless the rank that all wait for tells it already."""
    graph, moved = material.findings.graph, twice(material, LEVER)
    if not material.findings.facts.has_device or not is_worth(material, moved):
        return None
    if straggler(material) is not None:
        return None
    parts = rank_breakdowns(graph, material.findings.baseline.schedule)
    compute_ns = np.array([one.compute_ns for one in parts])
    median_ns, step_ns = float(np.median(compute_ns)), material.levers.step_ns
    heavy = np.flatnonzero(compute_ns > median_ns + LEAST_FRAC * step_ns)
    if not len(heavy):
        return None
    ranks = [graph.ranks[place].rank for place in heavy]
    most_ns = int(compute_ns.max())
    told = Told(
        key="unbalanced_ranks",
        section="breakdown",
        insight=f"rank {numbers(ranks)} computes {format_ms(most_ns)} a step, the median rank "
        f"{format_ms(round(median_ns))}",
        evidence=f"compute per step, {format_ms(int(compute_ns.min()))} to {format_ms(most_ns)} "
        f"over the ranks; told from {LEAST_FRAC:.0%} of the step above the median on",
        query=material.ask.query("time_by_rank"),
        action="divide the work evenly: sequence packing, balanced pipeline stages, equal shards",
    )
    return finding(material, told, moved)
