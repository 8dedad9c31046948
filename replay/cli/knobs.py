"""`--vary NAME` -> a what-if with a number to be found."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ingest.errors import UsageError, nearest
from replay.cli.asked import Asked, asked
from replay.cli.stack import Typed
from replay.cli.what_ifs import BASE_OPTIONS, scenario_in
from whatif.scenario import Scenario
from whatif.solve import Knob
from whatif.transforms.machine import NIC, PCIE, SCALE_UP


class Numbers(NamedTuple):
    """Values of a kind of option, and how each is written."""

    least: float
    most: float
    text: Callable[[float], str]
    with_zero: bool = False
    is_whole: bool = False


UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns"))


def _plain(value: float) -> str:
    text = f"{value:.4g}"
    return f"{value:.0f}" if "e+" in text else text


def _time(value: float) -> str:
    """Nanoseconds in the largest unit of which there is a whole one."""
    size, unit = next(one for one in UNITS if value >= one[0])
    return f"{value / size:.4g}{unit}"


BY_METAVAR = {
    "RATE": Numbers(1e-3, 1e6, lambda value: f"x{_plain(value)}"),
    "X": Numbers(1e-3, 1e6, _plain),
    "SELECTOR=FACTOR": Numbers(1e-4, 1e4, _plain, with_zero=True),
    "TIME": Numbers(1, 1e9, _time, is_whole=True),
    "N": Numbers(1, 4096, lambda value: f"{value:.0f}", is_whole=True),
    "MB": Numbers(1, 4096, _plain),
}
"""Factors go from a thousandth to a million times, where only latency is left; 0 is free of cost;
times go to a second, counts to 4,096."""


LINKS = {"nvlink": SCALE_UP, "pcie": PCIE, "net": NIC}
"""Options that set the rate of a link."""


class Dial(NamedTuple):
    """A knob, and the text of its option."""

    knob: Knob
    name: str
    """`--nvlink`, `--scale class:gemm`."""
    flag: Callable[[float], str]


def dial_of(vary: str, order: Sequence[Typed]) -> Dial:
    """The knob that `--vary` names, on top of the what-ifs that stand beside it.

    Raises:
        UsageError: no what-if of that name, one without a number, or a selector is missing.
    """
    option, where = _named(vary)
    numbers = BY_METAVAR[option.metavar]
    before = f"{where}=" if where else ""

    def scenario(value: float) -> Scenario:
        return scenario_in([*order, Typed(option.name, f"{before}{numbers.text(value)}")])

    def flag(value: float) -> str:
        return f"{option.option} {before}{numbers.text(value)}"

    name = f"{option.option} {where}".strip()
    knob = Knob(
        name=name,
        least=numbers.least,
        most=numbers.most,
        with_zero=numbers.with_zero,
        is_whole=numbers.is_whole,
        scenario=scenario,
        link=LINKS.get(option.name),
    )
    return Dial(knob, name, flag)


def _named(vary: str) -> tuple[Asked, str]:
    name, colon, where = vary.strip().removeprefix("--").partition(":")
    known = {name: one for name, one in asked().items() if name not in BASE_OPTIONS}
    numeric = [one.option[2:] for one in known.values() if one.metavar in BY_METAVAR]
    option = known.get(name.strip().replace("-", "_"))
    if option is None or option.metavar not in BY_METAVAR:
        lack = "is no what-if" if option is None else "has no number to be found"
        raise UsageError(
            f"`--vary {vary}`: `{name}` {lack}", hint=nearest(name, numeric, limit=len(numeric))
        )
    needs_selector = "=" in option.metavar
    if needs_selector != bool(where):
        example = "scale:class:gemm" if needs_selector else name
        said = "has no selector" if needs_selector else f"takes no `{colon}{where}`"
        raise UsageError(f"`--vary {vary}` {said}", hint=f"for example --vary {example}")
    return option, where
