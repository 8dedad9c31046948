"""How far the measured steps of a run are apart, in words."""

import numpy as np

from ingest.units import format_ms
from whatif.postmortem.material import Material

ENOUGH_FOR_P95 = 20
"""With fewer steps the 95th percentile is the longest step or guesswork between two."""


def spread_words(material: Material) -> str:
    """` (p95 430 ms)`; of few steps the longest; nothing for one."""
    steps_ns = material.findings.baseline.measured.per_step_ns
    if len(steps_ns) < 2:  # noqa: PLR2004  (one step has no spread)
        return ""
    if len(steps_ns) < ENOUGH_FOR_P95:
        return f" (longest of {len(steps_ns)}: {format_ms(int(steps_ns.max()))})"
    return f" (p95 {format_ms(round(float(np.percentile(steps_ns, 95))))})"
