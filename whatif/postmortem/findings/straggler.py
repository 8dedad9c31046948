"""One rank that the others wait for."""

from ingest.units import format_ms
from replay.graph.thresholds import STRAGGLER_FRAC
from whatif.postmortem.contract import Confidence, Finding
from whatif.postmortem.findings.saving import Told, finding, is_worth, twice
from whatif.postmortem.material import Material
from whatif.postmortem.wording import counted, percent
from whatif.report.answer import LateRank

LEVER = "stragglers"
OFTEN = 3
"""Late so many times, above the clocks' uncertainty, a rank is no chance."""
WORDS = {
    "host": "its host is late",
    "input": "its data loader is late",
    "compute": "its kernels take longer",
    "copies": "its copies take longer",
    "transfer": "it is held by other transfers",
    "wait": "it waits in other groups",
    "unknown": "no cause is recorded",
}
ACTIONS = {
    "host": "compare this rank's Python and calls with another's (section Host): pinning, noisy "
    "neighbours, logging or checkpoints on one rank",
    "input": "give this rank's data loader more workers, or its data the same size as the others'",
    "compute": "compare this rank's kernels with another's: clocks and temperature (nvidia-smi -q "
    "-d CLOCK,PERFORMANCE), sequence lengths, uneven shards",
    "copies": "look at what this rank copies that the others do not",
}
OTHERWISE = "look at what this rank does before the collectives that it comes last to"


def rule(material: Material) -> Finding | None:
    """The rank that costs the others most, counting lateness above the clocks' uncertainty only."""
    reading, step_ns = material.answer.reading, material.levers.step_ns
    worst = None if reading is None else next(iter(reading.stragglers), None)
    moved = twice(material, LEVER)
    if worst is None or worst.cost_ns < STRAGGLER_FRAC * step_ns or not is_worth(material, moved):
        return None
    cause = next(iter(worst.causes), "unknown")
    told = Told(
        key="straggler",
        section="stragglers",
        insight=f"the others wait {format_ms(worst.cost_ns)} a step "
        f"({percent(worst.cost_ns / step_ns)}) for rank {worst.rank}: "
        f"{WORDS.get(cause, 'no cause is recorded')}",
        evidence=_evidence(material, worst),
        query=material.ask.query("late_ranks"),
        action=ACTIONS.get(cause, OTHERWISE),
    )
    if worst.times_resolved >= OFTEN:
        return finding(material, told, moved)
    why = f"it was late {counted(worst.times_resolved, 'time')}: that may be chance"
    return finding(material, told, moved, most=Confidence.LOW, why=why)


def _evidence(material: Material, worst: LateRank) -> str:
    causes = ", ".join(f"{cause} {format_ms(wait_ns)}" for cause, wait_ns in worst.causes.items())
    return (
        f"last in {worst.times_last} of {worst.collectives} collectives, in {worst.times_resolved} "
        f"of them by more than the clocks are uncertain ({_clocks(material)}), by "
        f"{format_ms(worst.late_ns)} in the median; told from {STRAGGLER_FRAC:.0%} of the step on; "
        f"exposed waiting in all steps by cause: {causes or 'none'}"
    )


def _clocks(material: Material) -> str:
    known = [
        file.clock_uncertainty_ns
        for file in material.findings.facts.files
        if file.clock_uncertainty_ns is not None
    ]
    return f"up to {max(known) / 1e3:,.1f} us" if known else "not known"
