"""How much of a step matrix kernels take."""

from whatif.postmortem.material import Material


def matrix_frac(material: Material) -> float:
    """Time of matrix products, convolution and attention over the step, mean over the devices.

    0 where shapes were not recorded.
    """
    flops, graph = material.findings.flops, material.findings.graph
    step_ns = int(material.findings.baseline.measured.mean_ns)
    if not flops.devices or not step_ns:
        return 0.0
    return flops.matrix_ns / (flops.devices * len(graph.steps) * step_ns)
