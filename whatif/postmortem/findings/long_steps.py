"""Steps far longer than the others."""

from ingest.units import format_ms
from replay.graph.thresholds import LONG_STEP
from whatif.postmortem.contract import Confidence, Finding
from whatif.postmortem.findings.saving import Told, finding
from whatif.postmortem.material import Material
from whatif.postmortem.wording import counted
from whatif.report.reading import long_step_sentences

TOLD = 3


def rule(material: Material) -> Finding | None:
    """Outlier steps, where they lengthen the mean by more than noise."""
    long, steps = material.findings.run.long_steps, len(material.findings.graph.steps)
    above_ns = round(sum(one.step_ns - one.median_ns for one in long) / steps)
    if not long or above_ns < material.levers.noise_ns:
        return None
    sentences = list(long_step_sentences(material.findings.run))[:TOLD]
    told = Told(
        key="long_steps",
        section="steps",
        insight=f"{counted(len(long), 'step')} of {steps} took more than {LONG_STEP}x the median: "
        f"they add {format_ms(above_ns)} to the mean step",
        evidence=f"{'; '.join(sentences)}; told where they add noise "
        f"({format_ms(material.levers.noise_ns)}) or more to the mean",
        query=material.ask.query("steps"),
        action="look at what grew in them: checkpoints, evaluation, garbage collection, recompiles "
        "(TORCH_LOGS=recompiles), the profiler's first step; leave warm-up out with --steps",
    )
    return finding(
        material,
        told,
        None,
        most=Confidence.HIGH if steps >= 5 else Confidence.MEDIUM,  # noqa: PLR2004
        why="few steps were recorded: how often this happens is not known",
    )
