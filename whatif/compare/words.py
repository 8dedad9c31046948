"""How changes are put in words, the same in text, Markdown and reports."""

import re

from ingest.units import format_ms
from whatif.compare.contract import Cause, Diff, Gate, Group, Run
from whatif.compare.match import How
from whatif.report.columns import NO_NAME

NOTABLE_EFFECT = 0.2
"""An effect is told where it makes up so much of the change."""
_NAMESPACES = re.compile(
    r"^(?:void|std::enable_if<.*?>::type) |at::native::|\(anonymous namespace\)::|internal::"
)
_LONGEST = 1_000
WITHIN_NOISE = "within noise"
COLLECTIVE_PARTS = ("exposed_transfer", "exposed_wait")


def signed_ms(change_ns: float) -> str:
    """`+1.20 ms`."""
    return f"{change_ns / 1e6:+,.2f} ms"


def noise_ms(noise_ns: int | None) -> str:
    """`±1.20 ms`; empty where not known."""
    return "" if noise_ns is None else f"±{format_ms(noise_ns)}"


def short_name(name: str, width: int) -> str:
    """A kernel's name without return type, namespaces of torch and template arguments."""
    bare = _NAMESPACES.sub("", name[:_LONGEST]).strip() or NO_NAME
    while len(bare) > width and "<" in bare:
        bare = bare[: bare.rindex("<")]
    return bare if len(bare) <= width else f"{bare[: width - 3]}..."


def what(cause: Cause, width: int) -> str:
    """The work in words: operator first, which says more than the name of a generic kernel."""
    name = cause.name or cause.name_b
    if cause.part in COLLECTIVE_PARTS and cause.name_b and cause.name_b != name:
        name = f"{name} -> {cause.name_b}"
    phases = dict.fromkeys(phase for phase in (cause.phase, cause.phase_b) if phase)
    place = f" ({' -> '.join(phases)})" if phases else ""
    if cause.op and cause.part in ("compute", "exposed_memcpy"):
        head = f"{short_name(cause.op, width)}{place}"
        room = width - len(head) - 2
        return f"{head}: {short_name(name, room)}" if room >= 12 else head  # noqa: PLR2004
    return short_name(name, width - len(place)) + place


def is_within_noise(change: Cause | Group) -> bool:
    """Chance alone makes changes as large; not told where the noise is not known."""
    return change.noise_ns is not None and 0 < abs(change.change_ns) <= change.noise_ns


def why(cause: Cause) -> str:
    """What changed of it: number, duration, how much is hidden, or the kernel; if within noise."""
    said = [WITHIN_NOISE] if is_within_noise(cause) else []
    if cause.matched_by in (How.NEW, How.GONE):
        return ", ".join([*said, str(cause.matched_by)])
    size_ns = NOTABLE_EFFECT * abs(cause.change_ns)
    effects = cause.effects
    if abs(effects.count_ns) > size_ns and effects.count_ns:
        said.append(f"{_number(cause.count_a)} -> {_number(cause.count_b)} times")
    if abs(effects.longer_ns) > size_ns and cause.mean_a_ns and cause.mean_b_ns:
        said.append(f"{cause.mean_b_ns / cause.mean_a_ns:.2f}x as long")
    if abs(effects.exposed_ns) > size_ns:
        said.append("less hidden" if effects.exposed_ns > 0 else "more hidden")
    if cause.matched_by == How.RENAMED and cause.name != cause.name_b:
        said.append(f"now {short_name(cause.name_b, 32)}")
    return ", ".join(said)


def _number(count: float) -> str:
    return f"{count:,.0f}" if count >= 100 else f"{count:.3g}"  # noqa: PLR2004  (three digits)


def run_words(run: Run) -> str:
    """A run in a line: machine, ranks, steps, trust."""
    trace = run.trace
    ranks = f"{len(trace.ranks)} rank{'' if len(trace.ranks) == 1 else 's'}"
    world = f" of {trace.world_size}" if trace.world_size else ""
    steps = f"{len(run.steps_ns)} steps" if len(run.steps_ns) > 1 else "1 step"
    recorded = steps if trace.steps else "no steps recorded"
    unnamed = "GPU not named" if run.has_device else "no GPU rows"
    return f"{trace.gpu or unnamed}, {ranks}{world}, {recorded}, trust {run.grade}"


def step_words(found: Diff) -> str:
    """Both steps, the change and its noise."""
    share = "" if found.change_frac is None else f" ({found.change_frac:+,.1%})"
    noise = (
        "noise not known: one step each"
        if found.noise_ns is None
        else f"{noise_ms(found.noise_ns)} by chance (95%)"
    )
    return (
        f"A {format_ms(found.a.step_ns)}, B {format_ms(found.b.step_ns)}: "
        f"{signed_ms(found.change_ns)}{share}; {noise}"
    )


def gate_words(gate: Gate) -> str:
    """Whether it is passed, and why."""
    return f"{'passed' if gate.is_passed else 'FAILED'}: {gate.reason}"


def match_words(found: Diff) -> str:
    """How far the runs can be compared."""
    seen = found.comparability
    return (
        f"confidence {seen.confidence}: {seen.matched_frac:.0%} of the time found again by name "
        f"and place, {seen.renamed_frac:.0%} by less, {seen.lone_frac:.0%} in one run only"
    )


def explained_words(found: Diff) -> str:
    """How much of the change has a named cause; nothing where the change may be chance."""
    if found.explained_frac is None or found.is_noise:
        return ""
    return f"{found.explained_frac:.1%} of the difference has a named cause"
