"""How a number is written by what it counts: the same on pages, in Markdown and on axes."""

import re
from dataclasses import dataclass

from whatif.report.blocks import Cell, Unit

UNKNOWN = "-"
"""What stands for a value that is not known."""
MICROSECONDS_BELOW_NS = 100_000
SMALL_FRAC = 0.01
"""Shares below it have two decimals."""
_KILO = 1000.0
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")
_SUFFIX = {
    Unit.BYTES: "B",
    Unit.BYTES_PER_S: "B/s",
    Unit.FLOPS_PER_S: "FLOP/s",
}
"""Units that take a decimal prefix."""
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
)
"""What HTML does not allow, and what turns the direction of all that follows."""
_WORDS = {Unit.TEXT, Unit.CODE}


def told(value: Cell, unit: Unit) -> str:
    """A cell as it is shown."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) or unit in _WORDS:
        return str(value)
    return _number(value, unit)


def printable(text: str) -> str:
    """Without characters that cannot be shown: names in traces may hold anything."""
    return _UNPRINTABLE.sub("\ufffd", text)


def _number(value: float, unit: Unit) -> str:
    if unit is Unit.NS:
        return _time(value)
    if unit is Unit.FRAC:
        digits = 2 if 0 < abs(value) < SMALL_FRAC else 1
        return f"{value * 100:,.{digits}f} %"
    if unit is Unit.FACTOR:
        return f"{value:,.2f}x"
    if unit is Unit.FLOPS_PER_BYTE:
        return f"{_significant(value)} FLOP/B"
    if unit in _SUFFIX:
        return _prefixed(value, _SUFFIX[unit])
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}".removesuffix(".0")


def _time(value_ns: float) -> str:
    if value_ns == 0:
        return "0 ms"
    if abs(value_ns) < MICROSECONDS_BELOW_NS:
        return f"{value_ns / 1e3:,.2f} us"
    return f"{value_ns / 1e6:,.2f} ms"


def _prefixed(value: float, suffix: str) -> str:
    at, scaled = 0, float(value)
    while abs(scaled) >= _KILO and at < len(_PREFIXES) - 1:
        at, scaled = at + 1, scaled / _KILO
    return f"{_significant(scaled)} {_PREFIXES[at]}{suffix}"


def _significant(value: float) -> str:
    """Three digits, no exponent."""
    size = abs(value)
    digits = 0 if size >= 100 or size == 0 else 1 if size >= 10 else 2  # noqa: PLR2004 (digits)
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def told_range(low: float, high: float, unit: Unit) -> str:
    """`371.20-379.10 ms`: the unit once, where both ends have the same."""
    first, last = told(low, unit), told(high, unit)
    if first == last:
        return first
    number, _, word = first.partition(" ")
    return f"{number}-{last}" if word and last.endswith(f" {word}") else f"{first} - {last}"


def told_change(value: float, unit: Unit) -> str:
    """With its sign."""
    return told(value, unit) if value <= 0 else f"+{told(value, unit)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisUnit:
    """What numbers of an axis are divided by, and the unit that is then told beside them."""

    divisor: float
    name: str


def axis_unit(largest: float, unit: Unit) -> AxisUnit:
    """The unit of an axis up to this value."""
    size = abs(largest)
    if unit is Unit.NS:
        micros = size < MICROSECONDS_BELOW_NS
        return AxisUnit(divisor=1e3, name="us") if micros else AxisUnit(divisor=1e6, name="ms")
    if unit is Unit.FRAC:
        return AxisUnit(divisor=0.01, name="%")
    if unit is Unit.FACTOR:
        return AxisUnit(divisor=1.0, name="x")
    if unit is Unit.FLOPS_PER_BYTE:
        return AxisUnit(divisor=1.0, name="FLOP/B")
    if unit not in _SUFFIX:
        return AxisUnit(divisor=1.0, name="")
    at = 0
    while size >= _KILO and at < len(_PREFIXES) - 1:
        at, size = at + 1, size / _KILO
    return AxisUnit(divisor=_KILO**at, name=f"{_PREFIXES[at]}{_SUFFIX[unit]}")
