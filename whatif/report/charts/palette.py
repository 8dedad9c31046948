"""Colours by role, for both themes; every mark has at least 3:1 against its ground, letters 4.5:1.

Roles that stand side by side differ in lightness as well as in hue, waiting and idling are hatched,
and every chart also names its parts in words, so that nothing hangs on colour alone.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Tone(NamedTuple):
    """One colour in the two themes."""

    light: str
    dark: str


GROUND = Tone("#ffffff", "#15181c")
RAISED = Tone("#f6f7f8", "#1c2026")
"""Ground of cards, heads of tables and code."""
INK = Tone("#1b1f24", "#e3e6ea")
MUTED = Tone("#57606a", "#9aa5b1")
"""Letters of second rank."""
LINE = Tone("#d5d9de", "#343a42")
"""Hairlines, which say nothing by themselves."""
LINK = Tone("#0b5cad", "#7ab8f5")
GOOD = Tone("#1a6b3c", "#63c78c")
BAD = Tone("#a6320b", "#f2936b")

PAGE = {
    "ground": GROUND,
    "raised": RAISED,
    "ink": INK,
    "muted": MUTED,
    "line": LINE,
    "link": LINK,
    "good": GOOD,
    "bad": BAD,
}
ROLES = {
    "compute": Tone("#2166ac", "#5aa0e0"),
    "comm": Tone("#c8500a", "#ee8a3c"),
    "wait": Tone("#b5651d", "#e8b07a"),
    "memcpy": Tone("#4d1f6e", "#dcc6fb"),
    "idle": Tone("#6f7780", "#8d97a3"),
    "host": Tone("#0d7a6f", "#3fbfae"),
    "other": Tone("#7d7468", "#a39a8e"),
    "gemm": Tone("#1b4f8f", "#4f8fe0"),
    "attention": Tone("#a87400", "#e3b341"),
    "convolution": Tone("#5b3fb5", "#a493f5"),
    "normalisation": Tone("#2e7d32", "#66bb6a"),
    "elementwise": Tone("#b8326b", "#f07ba6"),
    "reduction": Tone("#0a7890", "#4cc3dc"),
    "embedding": Tone("#7a5213", "#cf9a52"),
    "forward": Tone("#0a7890", "#4cc3dc"),
    "backward": Tone("#5b3fb5", "#a493f5"),
    "optimizer": Tone("#56720b", "#a8cc4b"),
    "runtime": Tone("#7a5213", "#cf9a52"),
    "python": Tone("#b8326b", "#f07ba6"),
    "input": Tone("#a87400", "#e3b341"),
    "allocated": Tone("#2166ac", "#5aa0e0"),
    "reserved": Tone("#6f7780", "#8d97a3"),
    "rise": Tone("#c8500a", "#ee8a3c"),
    "up": Tone("#c8500a", "#ee8a3c"),
    "down": Tone("#2166ac", "#5aa0e0"),
}
ALIASES = {
    "collective": "comm",
    "collectives": "comm",
    "communication": "comm",
    "exposed_comm": "comm",
    "transfer": "comm",
    "exposed_wait": "wait",
    "copy": "memcpy",
    "exposed_memcpy": "memcpy",
    "memset": "memcpy",
    "device": "compute",
    "kernel": "compute",
    "launch": "host",
}
"""Other words for the same role."""
HATCHED = ("wait", "idle")
SERIES = (
    ROLES["compute"],
    ROLES["comm"],
    ROLES["host"],
    ROLES["memcpy"],
    ROLES["attention"],
    ROLES["elementwise"],
    ROLES["normalisation"],
    ROLES["reduction"],
)
"""For parts that have no role of their own: ranks, runs."""


def marks(roles: Sequence[str]) -> tuple[str, ...]:
    """Classes of the style sheet for parts of one chart: by role, else one after the other."""
    names = [ALIASES.get(role, role) for role in roles]
    if len(set(names)) == len(names) and set(names) <= set(ROLES):
        return tuple(f"c-{name}" for name in names)
    return tuple(f"s-{at % len(SERIES) + 1}" for at in range(len(names)))


def mark(role: str) -> str:
    """The class of one mark, where many share a role."""
    name = ALIASES.get(role, role)
    return f"c-{name}" if name in ROLES else "c-other"


def variables() -> str:
    """The style sheet's part that follows from the colours: variables of both themes, classes."""
    tones = PAGE | ROLES | {f"s{at}": tone for at, tone in enumerate(SERIES, start=1)}
    light = "".join(f"--{name}:{tone.light};" for name, tone in tones.items())
    dark = "".join(f"--{name}:{tone.dark};" for name, tone in tones.items())
    classes = [f".c-{name}{{--c:var(--{name})}}" for name in ROLES]
    classes += [f".s-{at}{{--c:var(--s{at})}}" for at in range(1, len(SERIES) + 1)]
    classes += [f".c-{name}{{--f:url(#hatch-{name})}}" for name in HATCHED]
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light])"
        f"{{color-scheme:dark;{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}\n"
        f"{''.join(classes)}\n"
    )
