"""What the page and its server say to each other in JSON, beside the answer of `replay --json`."""

from enum import StrEnum

import msgspec

from whatif.report.answer import TraceFacts


class Kind(StrEnum):
    """How a knob is turned."""

    SLIDER = "slider"
    """Positions in order, one of which is the recording as it is."""
    CHOICE = "choice"
    SWITCH = "switch"


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """A place of a knob."""

    flags: tuple[str, ...]
    """What it adds to the command line, word by word; empty: as recorded."""
    label: str


class Knob(msgspec.Struct, frozen=True, kw_only=True):
    """A what-if of the page."""

    key: str
    group: str
    label: str
    about: str
    """What turning it means, in one sentence."""
    kind: Kind
    positions: tuple[Position, ...]
    now: str = ""
    """What the recorded run has, where it is known."""
    example: str = ""
    """Of a value that is typed behind `--KEY`; empty where there is no field for it."""


class KnobState(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a knob can do something for the run."""

    key: str
    can_act: bool
    reason: str = ""
    """Why not, as the program tells it where that what-if is asked."""


class Knobs(msgspec.Struct, frozen=True, kw_only=True):
    """All knobs, in the order in which their what-ifs stack."""

    knobs: tuple[Knob, ...]


class States(msgspec.Struct, frozen=True, kw_only=True):
    """What the knobs can do on top of a scenario."""

    states: tuple[KnobState, ...]
    """In the order of the knobs."""


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The run, before any what-if."""

    program: str
    name: str
    """The traces as typed."""
    trace: TraceFacts
    grade: str
    measured_ns: int
    replayed_ns: int
    """What predictions are compared with."""
    bound: str
    """What binds the run, in one sentence."""
    start: tuple[str, ...]
    """Flags that the page begins with."""


class Ask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question."""

    flags: tuple[str, ...] = ()
    """What-ifs as they are typed behind `replay TRACE`, word by word, in the order they stack."""
    ranges: str = "full"
    """`full`, or `steps`: one replay, whose range is that of the measured steps alone."""
    page: str = ""
    """Who asks: of the questions of one page that wait, only the newest is answered."""


class PathShares(msgspec.Struct, frozen=True, kw_only=True):
    """Share of the critical path by cause, before and after; each adds up to 1."""

    baseline: dict[str, float]
    predicted: dict[str, float] | None
    """None where no what-if was asked."""


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario as other tools take it."""

    command: str
    yaml: str


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no answer."""

    error: str
    hint: str = ""
