"""The comparison on one screen, the verdict first."""

from collections.abc import Iterator
from textwrap import wrap

from whatif.compare.contract import Cause, Diff, Group
from whatif.compare.words import (
    WITHIN_NOISE,
    explained_words,
    gate_words,
    is_within_noise,
    match_words,
    run_words,
    signed_ms,
    step_words,
    what,
    why,
)

WIDTH = 100
GROUPS = 7
LEAST_SHARE = 0.02
"""Groups with less of all changes are added up in one line."""
CAUSES = 2
LEAST_OF_GROUP = 0.15
"""What makes up less of its group is not told."""
REASONS = 4
COLLECTIVES = 4
NAME = 44


def render(found: Diff, *, width: int = WIDTH) -> str:
    """The whole comparison."""
    width = max(width, WIDTH)
    sections = (
        wrap(found.sentence, width),
        list(_head(found, width)),
        list(_gate(found, width)),
        list(_waterfall(found, width)),
        list(_ranks(found, width)),
        list(_collectives(found)),
    )
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def labelled(label: str, text: str, width: int) -> list[str]:
    """Lines that begin with a word, folded."""
    return wrap(text, width, initial_indent=f"{label:<9}", subsequent_indent=" " * 9)


def _head(found: Diff, width: int) -> Iterator[str]:
    yield from labelled("A", f"{found.a.name}  ({run_words(found.a)})", width)
    yield from labelled("B", f"{found.b.name}  ({run_words(found.b)})", width)
    yield from labelled("step", step_words(found), width)
    yield from labelled("compared", match_words(found), width)
    reasons = found.comparability.reasons
    for reason in reasons[:REASONS]:
        yield from labelled("", f"- {reason}", width)
    if len(reasons) > REASONS:
        yield from labelled("", f"- and {len(reasons) - REASONS} more (--json)", width)


def _gate(found: Diff, width: int) -> Iterator[str]:
    if found.gate is not None:
        yield from labelled("gate", gate_words(found.gate), width)


def _shown(groups: tuple[Group, ...]) -> list[Group]:
    """The largest; something stands there even where all are small."""
    gross_ns = sum(abs(group.change_ns) for group in groups)
    return [
        group
        for group in groups[:GROUPS]
        if group.change_ns and abs(group.change_ns) >= LEAST_SHARE * gross_ns
    ]


def _waterfall(found: Diff, width: int) -> Iterator[str]:
    """From A's step to B's: groups, what is in them, the rest, the total."""
    shown = _shown(found.groups)
    if not shown:
        return
    yield f"{'where, ms of a step':<{NAME}}{'A':>10}{'B':>10}{'B - A':>11}{'noise':>10}"
    for group in shown:
        noise = "" if group.noise_ns is None else f"±{group.noise_ns / 1e6:,.2f}"
        mark = f"  {WITHIN_NOISE}" if is_within_noise(group) else ""
        yield _row(group.name, group.a_ns, group.b_ns, group.change_ns) + f"{noise:>10}{mark}"
        for cause in _inside(found, group):
            yield _cause_line(cause, width)
    rest = [group for group in found.groups if group not in shown]
    if rest:
        yield _row(
            f"{len(rest)} more",
            sum(group.a_ns for group in rest),
            sum(group.b_ns for group in rest),
            sum(group.change_ns for group in rest),
        )
    yield _row("step", found.a.step_ns, found.b.step_ns, found.change_ns)
    if explained_words(found):
        yield explained_words(found)


def _row(name: str, a_ns: int, b_ns: int, change_ns: int) -> str:
    cut = name if len(name) < NAME else f"{name[: NAME - 4]}..."
    return f"{cut:<{NAME}}{a_ns / 1e6:>10,.2f}{b_ns / 1e6:>10,.2f}{change_ns / 1e6:>+11,.2f}"


def _inside(found: Diff, group: Group) -> list[Cause]:
    causes = [cause for cause in found.causes if cause.group == group.key]
    if len(causes) == 1 and why(causes[0]) in ("", WITHIN_NOISE):
        return []
    return [
        cause
        for cause in causes[:CAUSES]
        if abs(cause.change_ns) >= LEAST_OF_GROUP * abs(group.change_ns)
    ]


def _cause_line(cause: Cause, width: int) -> str:
    """Name, change and reason; the columns of both runs give way to the name."""
    room = NAME + 18
    line = f"  {what(cause, room - 2):<{room}}{cause.change_ns / 1e6:>+11,.2f}"
    left = width - len(line) - 2
    return f"{line}  {_cut(why(cause), left)}".rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 3, 0)]}..."


def _ranks(found: Diff, width: int) -> Iterator[str]:
    """New stragglers, ranks that changed unlike the others, long steps."""
    for rank in found.ranks:
        if rank.is_new_straggler:
            yield from labelled(
                "ranks",
                f"rank {rank.rank} makes others wait {rank.caused_wait_b_ns / 1e6:,.2f} ms a step, "
                f"{rank.caused_wait_a_ns / 1e6:,.2f} ms in A: a new straggler",
                width,
            )
    changes = [rank.step_b_ns - rank.step_a_ns for rank in found.ranks]
    if len(changes) > 1 and found.ranks:
        least, most = min(changes), max(changes)
        at = found.ranks[changes.index(most)].rank
        yield from labelled(
            "ranks",
            f"their own steps change by {signed_ms(least)} to {signed_ms(most)} (rank {at})",
            width,
        )
    for long in found.long_steps:
        yield from labelled(
            "steps",
            f"step {long.step} of {long.run.upper()} took {long.step_ns / 1e6:,.2f} ms, "
            f"{long.step_ns / max(long.median_ns, 1):.1f}x the median",
            width,
        )


def _collectives(found: Diff) -> Iterator[str]:
    shown = found.collectives[:COLLECTIVES]
    if not shown:
        return
    yield (f"{'collective':<40}{'calls a step':>14}{'transfer each, ms':>20}{'wait each, ms':>18}")
    for row in shown:
        size = "" if row.size_bytes is None else f" {row.size_bytes / 1e6:,.2f} MB"
        name = _cut(f"{row.kind}{size} {row.communicator}".strip(), 38)
        yield (
            f"{name:<40}{_both(row.calls_a, row.calls_b, 1):>14}"
            f"{_both(row.transfer_a_ns, row.transfer_b_ns, 1e6):>20}"
            f"{_both(row.wait_a_ns, row.wait_b_ns, 1e6):>18}"
        )
    left = len(found.collectives) - len(shown)
    if left:
        yield f"and {left} more (--json)"


def _both(a: float | None, b: float | None, divisor: float) -> str:
    def one(value: float | None) -> str:
        return "-" if value is None else f"{value / divisor:,.3g}"

    return f"{one(a)} -> {one(b)}"
