"""What would raise the grade: which recording supplies what the replay lacked."""

from collections.abc import Iterator

from ingest.vocab import Evidence
from whatif.report.findings import Findings

GOOD_GRADES = ("A", "B")
MANY = 0.1
"""A share above which something counts as lacking."""


def advice(findings: Findings) -> Iterator[str]:
    """One sentence per lack, most telling first; nothing for a good grade."""
    graph, facts, trust = findings.graph, findings.facts, findings.baseline.trust
    if trust.grade in GOOD_GRADES:
        return
    if not facts.has_device:
        yield "GPU rows: record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
    if (graph.collectives.members_seen < graph.collectives.members_expected).any():
        yield "the other members of the collectives: give the files of all ranks"
    if any(not file.complete for file in facts.files):
        yield "the end of a file: export the trace again, it was cut off"
    if trust.unlinked_frac > MANY:
        yield "the launches of device work: begin recording before it is launched (schedule warmup)"
    if facts.has_device and (
        facts.evidence_share(Evidence.INFERRED) > MANY or trust.explained_frac < 1 - MANY
    ):
        yield (
            "which event a wait means: record with experimental_config="
            "_ExperimentalConfig(enable_cuda_sync_events=True)"
        )
    if not graph.steps_recorded:
        yield "steps: call prof.step() once per step"
    elif len(graph.steps) == 1:
        yield "a second step to compare with: record two or more (schedule active)"
