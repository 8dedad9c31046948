"""Quantities as the answers of network what-ifs print them."""

from ingest.units import BytesPerSecond, Rate


def counted(number: int, one: str, several: str | None = None) -> str:
    """`1 stage`, `2 stages`."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))


def rate_in_bits(bytes_per_s: float) -> str:
    """`400 Gbps = 50 GB/s`."""
    return Rate(BytesPerSecond(bytes_per_s), None, in_bits=True).understood


def rate_in_bytes(bytes_per_s: float) -> str:
    """`50 GB/s`."""
    return Rate(BytesPerSecond(bytes_per_s), None).understood


def time_in_words(time_ns: float) -> str:
    """`20 us`, in the largest unit of which there is a whole one."""
    for size, unit in _UNITS:
        if time_ns >= size:
            return f"{time_ns / size:g} {unit}"
    return f"{time_ns:g} ns"
