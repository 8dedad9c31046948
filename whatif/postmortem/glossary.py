"""Words of the report, in the order in which a reader meets them."""

GLOSSARY: tuple[tuple[str, str], ...] = (
    ("rank", "One process of the job; a trace file is that of one rank."),
    (
        "step",
        "From boundary to boundary: each is the later of the end of the hosts' ProfilerStep and "
        "the end of all device work launched up to then, on all ranks. A host that runs ahead does "
        "not shorten a step. Without recorded steps the recording counts as one.",
    ),
    (
        "step of the host",
        "The ProfilerStep of a rank on its CPU: section Host counts by these, since the host is "
        "often a whole step ahead of its device.",
    ),
    (
        "compute, exposed communication, exposed copies, idle",
        "What a device does at a moment: compute if any compute kernel runs, else exposed "
        "communication (waiting included), else exposed copies, else idle. They add up to a step.",
    ),
    ("hidden", "Communication or copies while a compute kernel runs on the same device."),
    (
        "wait and transfer",
        "A collective moves data from the moment at which its last member arrived; before that a "
        "member waits. Wait and transfer make the recorded kernel.",
    ),
    (
        "straggler",
        "A rank that others wait for at collectives. Waits below the uncertainty of the clocks "
        "are not resolvable.",
    ),
    (
        "bus bandwidth",
        "As nccl-tests: bytes over time, by the factor of the collective; GB = 1e9 B.",
    ),
    (
        "task, edge",
        "A node of the dependency graph (host work, a call, a kernel, a transfer), and a "
        "dependency between two with a lag.",
    ),
    (
        "evidence",
        "How an edge is known: recorded, ordered (by the order of calls) or inferred (from time).",
    ),
    (
        "critical path",
        "The chain of tasks and lags that the end of the last step hangs on, over all ranks. "
        "Making anything else faster changes nothing, as long as it stays off the path.",
    ),
    ("slack", "How much later a task could start and end without the end of a step moving."),
    (
        "replay",
        "The graph run again by its edges. Unchanged and calibrated it is the recording; strict, "
        "with typical lags and nothing fitted to single tasks, it shows how well the graph knows.",
    ),
    ("strict error", "Step of the strict replay against the measured one, signed."),
    (
        "explained",
        "Share of the critical path that neither residuals nor silence without cause make.",
    ),
    ("residual", "Recorded start of a task less what its edges explain, signed."),
    (
        "grade",
        "A, B, C or D, from strict error and explained share; lower where repairs or unmatched "
        "collectives weigh.",
    ),
    (
        "predicted, low to high",
        "The step of the changed graph, and the least and most over bounds of the models, over "
        "residuals kept or dropped, and over the measured steps.",
    ),
    (
        "lever",
        "One what-if, replayed alone on the unchanged run; savings of several do not add up.",
    ),
    (
        "host-late, sync, launch",
        "Causes of idle gaps: the host was still working up to the launch; it had waited for the "
        "device before; the launch itself took the time.",
    ),
    (
        "lead of the host",
        "Time from the end of a launching call to the start of its work on the device.",
    ),
    (
        "roof",
        "What the device can do at most: the dense peak of its matrix units for the type, or its "
        "memory bandwidth; the lower one at the kernel's FLOPs per byte binds.",
    ),
    (
        "FLOPs, bytes of a kernel",
        "By the shapes of its operator: 2 M N K of a product; each tensor read or written once.",
    ),
    ("occupancy", "Estimated by the profiler from the launch: resident warps over the most."),
    (
        "allocated, reserved",
        "Bytes in tensors, and bytes that the caching allocator holds of the device.",
    ),
    (
        "profiler overhead",
        "The recording makes the host slower; --unprofiled-step TIME scales host work to a step "
        "that was measured without it.",
    ),
)
"""Term and meaning."""
