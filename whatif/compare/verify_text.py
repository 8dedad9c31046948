"""How good a prediction was, on one screen."""

from collections.abc import Iterator
from textwrap import wrap

from ingest.units import format_ms
from whatif.compare.text import WIDTH, labelled
from whatif.compare.verify import PredictedPart, Verification
from whatif.compare.words import gate_words, noise_ms, run_words, signed_ms

RANKS = 4
NAMES = {
    "compute": "compute",
    "exposed_transfer": "exposed transfers",
    "exposed_wait": "waiting for members",
    "exposed_memcpy": "exposed copies",
    "idle": "idle",
    "rest": "rest of the step",
}
HOST_NAMES = NAMES | {"compute": "CPU work", "idle": "other waiting"}


def render_verification(found: Verification, *, width: int = WIDTH) -> str:
    """The whole answer."""
    width = max(width, WIDTH)
    sections = (
        wrap(found.sentence, width),
        list(_head(found, width)),
        list(_parts(found)),
        list(_ranks(found)),
    )
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def part_names(found: Verification) -> dict[str, str]:
    """Of the parts, of runs with and without a GPU."""
    return NAMES if found.measured.has_device else HOST_NAMES


def _head(found: Verification, width: int) -> Iterator[str]:
    yield from labelled("what if", f"{', then '.join(found.scenario)}  ({found.name})", width)
    yield from labelled("run", f"{found.measured.name}  ({run_words(found.measured)})", width)
    yield from labelled(
        "change",
        f"predicted {signed_ms(found.predicted_change_ns)} of {format_ms(found.baseline_ns)}, "
        f"measured {signed_ms(found.measured_change_ns)}",
        width,
    )
    told = "not known: one step" if found.noise_ns is None else f"{noise_ms(found.noise_ns)} (95%)"
    yield from labelled("noise", f"of the measured step: {told}", width)
    for reason in found.reasons:
        yield from labelled("beware", reason, width)
    if found.gate is not None:
        yield from labelled("gate", gate_words(found.gate), width)


def _parts(found: Verification) -> Iterator[str]:
    names = part_names(found)
    yield f"{'where, ms of a step':<24}{'before':>11}{'predicted':>11}{'measured':>11}{'error':>11}"
    for part in found.parts:
        if any((part.baseline_ns, part.predicted_ns, part.measured_ns)):
            yield _row(names[part.part], part)
    yield _row(
        "step",
        PredictedPart(
            part="step",
            baseline_ns=found.baseline_ns,
            predicted_ns=found.predicted_ns,
            measured_ns=found.measured.step_ns,
            error_ns=found.error_ns,
        ),
    )
    worst = max(found.parts, key=lambda part: abs(part.error_ns))
    if worst.error_ns:
        yield f"most of the error: {names[worst.part]}, {signed_ms(worst.error_ns)}"


def _row(name: str, part: PredictedPart) -> str:
    columns = (part.baseline_ns, part.predicted_ns, part.measured_ns)
    return (
        f"{name:<24}"
        + "".join(f"{value / 1e6:>11,.2f}" for value in columns)
        + f"{part.error_ns / 1e6:>+11,.2f}"
    )


def _ranks(found: Verification) -> Iterator[str]:
    if len(found.ranks) < 2:  # noqa: PLR2004  (a single rank is the run)
        return
    worst = sorted(found.ranks, key=lambda rank: -abs(rank.error_ns))
    yield f"{'rank':<24}{'':>11}{'predicted':>11}{'measured':>11}{'error':>11}"
    for rank in worst[:RANKS]:
        yield (
            f"{rank.rank:<24}{'':>11}{rank.predicted_ns / 1e6:>11,.2f}"
            f"{rank.measured_ns / 1e6:>11,.2f}{rank.error_ns / 1e6:>+11,.2f}"
        )
    if len(worst) > RANKS:
        yield f"and {len(worst) - RANKS} more (--json), with less error"
