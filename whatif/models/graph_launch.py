"""What one launch of a CUDA or HIP graph costs its host thread, by the number of its nodes.

Sources: NVIDIA's "Constant Time Launch for Straight-Line CUDA Graphs" (developer blog, 2024): a
repeated launch takes 2.5 us and about 1 ns per node with CUDA 12.6, 2.0 us and 200 ns per node with
11.8. Recorded launches take longer, as the profiler looks at each node: 3.5 ms for 2,537 nodes on
an H200 (LightLLM), 38 us for 15 on an MI300X (vLLM).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whatif.models.bound import Bound

Int64 = NDArray[np.int64]

FIXED_NS = {Bound.LOW: 2_500.0, Bound.NOMINAL: 10_000.0, Bound.HIGH: 10_000.0}
PER_NODE_NS = {Bound.LOW: 1.0, Bound.NOMINAL: 200.0, Bound.HIGH: 1_400.0}
QUANTILE = {Bound.LOW: 0.25, Bound.NOMINAL: 0.5, Bound.HIGH: 0.75}
"""Of the recorded launches against the nominal cost, where there are any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchCost:
    """Host time of a launch: fixed + nodes x per node."""

    fixed_ns: float
    per_node_ns: float
    recorded: int
    """Launches of the run that it was read from; 0: from the sources above."""

    def ns(self, nodes: Int64) -> Int64:
        """Of graphs with so many nodes."""
        cost_ns: Int64 = np.rint(self.fixed_ns + self.per_node_ns * nodes).astype(np.int64)
        return cost_ns

    @property
    def source(self) -> str:
        """In words."""
        if self.recorded:
            return f"as the {self.recorded} graph launches in this trace"
        return "by NVIDIA's figures for repeated launches"


def launch_cost(recorded_ns: Int64, nodes: Int64, bound: Bound) -> LaunchCost:
    """The cost that a run shows, or that of the sources.

    Args:
        recorded_ns: durations of the graph launches of the run; may be empty.
        nodes: how many device tasks each of them launched.
        bound: end of the range.
    """
    if not len(recorded_ns):
        return LaunchCost(fixed_ns=FIXED_NS[bound], per_node_ns=PER_NODE_NS[bound], recorded=0)
    fixed_ns, per_node_ns = FIXED_NS[Bound.NOMINAL], PER_NODE_NS[Bound.NOMINAL]
    ratio = float(np.quantile(recorded_ns / (fixed_ns + per_node_ns * nodes), QUANTILE[bound]))
    return LaunchCost(
        fixed_ns=fixed_ns * ratio, per_node_ns=per_node_ns * ratio, recorded=len(recorded_ns)
    )
