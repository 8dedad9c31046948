"""The words for quantities, and every conversion of the product."""

import re
from decimal import Decimal, InvalidOperation
from typing import NamedTuple, NewType

from ingest.errors import UsageError

Nanos = NewType("Nanos", int)
"""Time or duration in integer nanoseconds."""
Bytes = NewType("Bytes", int)
"""Size in bytes."""
BytesPerSecond = NewType("BytesPerSecond", float)
"""Rate in bytes per second; 1 GB/s = 1e9 bytes per second."""

MOST_FACTOR = 1e9
LEAST_RATE, MOST_RATE = 1e2, 1e18
"""Bytes per second: from a tenth of a modem to what makes the bytes of any job nothing. Nanoseconds
of slower links run over."""
MOST_TIME_NS = 10**15
"""Twelve days."""
_RATE = re.compile(
    r"(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<prefix>[KMGT]?)(?P<unit>[Bb])(?:ps|/s)", re.ASCII
)
_FACTOR = re.compile(r"[xX](?P<number>\d+(?:\.\d*)?|\.\d+)", re.ASCII)
_TIME = re.compile(r"(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>ns|us|µs|μs|ms|s)", re.ASCII)
_NANOS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9}
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


class Rate(NamedTuple):
    """What a person typed for a bandwidth: an absolute rate, or a factor on the base.

    Exactly one of the two is set.
    """

    bytes_per_s: BytesPerSecond | None
    factor: float | None
    in_bits: bool = False
    """Typed in bits, so that it is repeated in both."""

    @property
    def understood(self) -> str:
        """The rate as it was understood, to be repeated in the answer."""
        if self.factor is not None:
            return f"x{self.factor:g}"
        assert self.bytes_per_s is not None, "a rate is absolute or a factor"
        in_bytes = f"{self.bytes_per_s / 1e9:g} GB/s"
        return f"{self.bytes_per_s * 8 / 1e9:g} Gbps = {in_bytes}" if self.in_bits else in_bytes


def parse_rate(text: str) -> Rate:
    """Read `900GBps`, `900GB/s`, `400Gbps`, `400Gb/s` or a factor `x2`.

    A capital B counts bytes, a small b counts bits: they differ by 8.

    Raises:
        UsageError: no unit, a malformed number, or a rate that is not above zero.
    """
    stripped = text.strip()
    if factor := _FACTOR.fullmatch(stripped):
        return Rate(None, _within(float(factor["number"]), 1 / MOST_FACTOR, MOST_FACTOR, text))
    if rate := _RATE.fullmatch(stripped):
        bits = 8.0 if rate["unit"] == "b" else 1.0
        value = float(rate["number"]) * _PREFIX[rate["prefix"]] / bits
        value = _within(value, LEAST_RATE, MOST_RATE, text)
        return Rate(BytesPerSecond(value), None, in_bits=rate["unit"] == "b")
    raise UsageError(
        f"`{text}` is not a rate",
        hint="write a number with its unit: 900GBps (bytes), 400Gbps (bits), or a factor like x2",
    )


def parse_time(text: str) -> Nanos:
    """Read `412ms`, `0.5s`, `350us` or `80ns`, to the nanosecond.

    Raises:
        UsageError: no unit, a malformed number, or a time that is not above zero.
    """
    found = _TIME.fullmatch(text.strip())
    value = Decimal(found["number"]) * _NANOS[found["unit"]] if found else Decimal(0)
    if value < 1:
        raise UsageError(
            f"`{text}` is not a time above zero",
            hint="write a number with its unit: 412ms, 0.412s, 350us",
        )
    if value > MOST_TIME_NS:
        raise UsageError(f"`{text}` is too long", hint=f"at most {MOST_TIME_NS // 10**9:,}s")
    return Nanos(int(value.to_integral_value()))


def _within(value: float, least: float, most: float, text: str) -> float:
    if value <= 0 or value == float("inf"):
        raise UsageError(f"`{text}` is not a rate above zero", hint="for example 900GBps or x2")
    if not least <= value <= most:
        raise UsageError(
            f"`{text}` is no rate of a link",
            hint=f"from {LEAST_RATE:g} to {MOST_RATE:g} bytes per second, or from "
            f"x{1 / MOST_FACTOR:g} to x{MOST_FACTOR:g}",
        )
    return value


def micros_to_nanos(text: str | Decimal) -> Nanos:
    """Exact nanoseconds of a decimal number of microseconds, rounded half to even below 1 ns.

    A double cannot hold an absolute time in microseconds with three decimals (19 digits), hence
    the decimal.

    Raises:
        ValueError: the text is no finite decimal number.
    """
    try:
        value = Decimal(text) * 1000
    except InvalidOperation as error:
        raise ValueError(f"not a decimal number: {text!r}") from error
    if not value.is_finite():
        raise ValueError(f"not a finite number: {text!r}")
    return Nanos(int(value.to_integral_value()))


def format_ms(value: int | None) -> str:
    """Milliseconds with two decimals, or a dash where the value is not known."""
    return "-" if value is None else f"{value / 1e6:,.2f} ms"


def format_gib(size_bytes: float) -> str:
    """Memory with three digits, in 2^30 bytes: as devices count theirs."""
    return f"{size_bytes / 2**30:.3g} GiB"
