"""Transfers of collectives that no compute hides."""

from ingest.units import format_ms
from whatif.levers import HOST_LINK, NODE_LINK
from whatif.postmortem.contract import Confidence, Finding
from whatif.postmortem.findings.saving import Told, best, finding, is_worth, twice
from whatif.postmortem.material import Material
from whatif.postmortem.untold import SLOW_FRAC, TRANSFERS, is_untold, untold_frac
from whatif.postmortem.wording import percent

LEAST_FRAC = 0.05
"""Of the step. Links twice as fast save at most half of it: 2.5 %, where two runs of one job differ
by 1 %."""
LINKS = ("NVLink or xGMI", NODE_LINK, HOST_LINK)
ANY_LINK = "network"
OVERLAP = "overlap with compute"


def rule(material: Material) -> Finding | None:
    """Exposed transfers, waiting for late members left out, where a link or overlap would help."""
    parts, step_ns = material.answer.breakdown.baseline, material.levers.step_ns
    exposed_ns = parts.exposed_comm_ns - parts.exposed_wait_ns
    link = best(*(twice(material, name) for name in LINKS)) or twice(material, ANY_LINK)
    overlap = twice(material, OVERLAP)
    if is_untold(material) and exposed_ns >= LEAST_FRAC * step_ns:
        return _untold(material, exposed_ns)
    moved = best(link, overlap)
    if exposed_ns < LEAST_FRAC * step_ns or moved is None or not is_worth(material, moved):
        return None
    told = Told(
        key="exposed_communication",
        section="communication",
        insight=f"{format_ms(exposed_ns)} of a step ({percent(exposed_ns / step_ns)}) is transfers "
        "that no compute hides",
        evidence=_evidence(material, exposed_ns),
        query=material.ask.query("comm_by_size"),
        action=_action(is_link=moved is link),
    )
    return finding(material, told, moved)


def _untold(material: Material, exposed_ns: int) -> Finding:
    """Ranks without files may be what these transfers wait for: no what-if stands for that."""
    share = percent(exposed_ns / material.levers.step_ns)
    told = Told(
        key="exposed_communication",
        section="communication",
        insight=f"{format_ms(exposed_ns)} of a step ({share}) is {TRANSFERS}: the two cannot be "
        "told apart",
        evidence=f"these calls lack members and run at {percent(untold_frac(material))} of what "
        f"their links allow; told below {SLOW_FRAC:.0%}, from {LEAST_FRAC:.0%} of the step on",
        query=material.ask("comm_by_group", limit=1).query,
        action="record all ranks of the job in the same steps and report on the folder: the last "
        "to arrive is then known, and so is what is left for the links",
    )
    why = "that it is not compute is recorded; how it divides is not"
    return finding(material, told, None, most=Confidence.MEDIUM, why=why)


def _evidence(material: Material, exposed_ns: int) -> str:
    parts, step_ns = material.answer.breakdown.baseline, material.levers.step_ns
    savings = [
        f"{name} saves {format_ms(lever.saving_ns)}"
        for name in (*LINKS, ANY_LINK, OVERLAP)
        if (lever := twice(material, name)) is not None
    ]
    return (
        f"mean over ranks: exposed communication {format_ms(parts.exposed_comm_ns)}, of it waiting "
        f"for others {format_ms(parts.exposed_wait_ns)}; the rest is {exposed_ns / step_ns:.1%} of "
        f"the step, told from {LEAST_FRAC:.0%} on; replayed twice as fast (overlap: as far as it "
        f"goes): {', '.join(savings)}"
    )


def _action(*, is_link: bool) -> str:
    hide = (
        "start transfers earlier and under compute: smaller DDP buckets, prefetch of FSDP "
        "all-gathers, gradient accumulation, no use of the result right after the call"
    )
    if not is_link:
        return hide
    return f"{hide}; send less (bf16 gradients, sharding inside the node), or take a faster link"
