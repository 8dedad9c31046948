"""What the catalog tells of accelerators and links, as rows and as text."""

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap

from whatif.models.hardware import Accelerator, Link, Number, Precision, Shape
from whatif.report.columns import aligned

WIDTH = 100
LABEL = 14
GIB = float(1 << 30)
MIB = float(1 << 20)
LIST_COLUMNS = (
    "name",
    "architecture",
    "bf16_flops_per_s",
    "fp8_flops_per_s",
    "memory_bytes",
    "memory_bytes_per_s",
    "link",
    "link_one_way_bytes_per_s",
    "link_shape",
    "link_joins",
)
LINK_COLUMNS = ("name", "scope", "one_way_bytes_per_s", "both_ways_bytes_per_s", "latency_ns")
FIGURE_COLUMNS = ("figure", "value", "unit", "low", "high", "source", "date", "note")
SHORT_COLUMNS = (
    "name",
    "architecture",
    "bf16",
    "fp8",
    "GB",
    "GB/s",
    "link",
    "one way",
    "joins",
)
SHORT_UNITS = """\
bf16 (fp16 where the device has no bf16), fp8: dense TFLOP/s; GB, GB/s: memory and its bandwidth;
one way: GB/s of one accelerator over its links, one direction (vendors print both together);
joins: accelerators of one link domain
`replay hardware show NAME` has every figure with its source and range"""
SHORT_LINK_COLUMNS = ("name", "of", "one way", "both ways", "latency")
SHORT_LINK_UNITS = """\
of: one gpu, port, node (all its ports) or site; one way, both ways: GB/s; latency: us, one way
`replay hardware show NAME` has sources and what was achieved"""

Cells = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """How a figure is shown to a person."""

    base: str
    """Of the number in the catalog."""
    shown: str
    per: float
    """Base units in a shown one."""


FLOPS = Unit(base="FLOP/s", shown="TFLOP/s", per=1e12)
OPS = Unit(base="OP/s", shown="TOP/s", per=1e12)
MEMORY = Unit(base="B", shown="GB (2^30)", per=GIB)
CACHE = Unit(base="B", shown="MB (2^20)", per=MIB)
RATE = Unit(base="B/s", shown="GB/s", per=1e9)
COUNT = Unit(base="", shown="", per=1.0)
CLOCK = Unit(base="Hz", shown="MHz", per=1e6)
POWER = Unit(base="W", shown="W", per=1.0)
TIME = Unit(base="ns", shown="us", per=1e3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number of an entry."""

    name: str
    number: Number
    unit: Unit


def figures(entry: Accelerator | Link) -> tuple[Figure, ...]:
    """All numbers of an entry that are known, in the order of reading."""
    parts = _of_link(entry) if isinstance(entry, Link) else _of_accelerator(entry)
    return tuple(
        Figure(name=name, number=number, unit=unit)
        for name, number, unit in parts
        if number is not None
    )


def figure_rows(entry: Accelerator | Link) -> tuple[Cells, ...]:
    """The same under `FIGURE_COLUMNS`, in base units."""
    return tuple(
        (
            figure.name,
            figure.number.value,
            figure.unit.base,
            figure.number.low,
            figure.number.high,
            figure.number.source,
            figure.number.date,
            figure.number.note,
        )
        for figure in figures(entry)
    )


def device_rows(devices: tuple[Accelerator, ...]) -> tuple[Cells, ...]:
    """Under `LIST_COLUMNS`, in base units."""
    return tuple(_device_row(device) for device in devices)


def short_device_rows(devices: tuple[Accelerator, ...]) -> tuple[Cells, ...]:
    """Under `SHORT_COLUMNS`, in the units of `SHORT_UNITS`."""
    return tuple(_short_device_row(device) for device in devices)


def link_rows(links: tuple[Link, ...]) -> tuple[Cells, ...]:
    """Under `LINK_COLUMNS`, in base units."""
    return tuple(
        (
            kind.name,
            kind.scope.value,
            _value(kind.one_way_bytes_per_s),
            _value(kind.both_ways_bytes_per_s),
            _value(kind.latency_ns),
        )
        for kind in links
    )


def short_link_rows(links: tuple[Link, ...]) -> tuple[Cells, ...]:
    """Under `SHORT_LINK_COLUMNS`, in the units of `SHORT_LINK_UNITS`."""
    return tuple(
        (
            kind.name,
            kind.scope.value,
            _value(kind.one_way_bytes_per_s, 1e9),
            _value(kind.both_ways_bytes_per_s, 1e9),
            _value(kind.latency_ns, 1e3),
        )
        for kind in links
    )


def render(entry: Accelerator | Link) -> str:
    """Everything of one entry to read: words, figures with range and page, pages, notes."""
    lines = [line for label, text in _facts(entry) for line in _labelled(label, text)]
    pages = list(_pages(entry))
    table = [("figure", "value", "range", "source")]
    table += [
        (
            figure.name,
            _shown(figure.number.value, figure.unit),
            _range(figure),
            f"[{pages.index(_page(figure.number)) + 1}]",
        )
        for figure in figures(entry)
    ]
    notes = [f"{each.name}: {each.number.note}" for each in figures(entry) if each.number.note]
    sources = [
        f"[{number}] {source}" + (f" (read {date})" if date else "")
        for number, (source, date) in enumerate(pages, start=1)
    ]
    for block in (list(aligned(table, "<>><")), notes, sources):
        lines += ["", *block] if block else []
    return "".join(f"{line}\n" for line in lines)


def _facts(entry: Accelerator | Link) -> Iterator[tuple[str, str]]:
    yield "name", entry.name
    if entry.aliases:
        yield "aliases", ", ".join(entry.aliases)
    if isinstance(entry, Link):
        yield "of", f"one {entry.scope}"
        if entry.made_of:
            yield "made of", entry.made_of
    else:
        yield "architecture", entry.architecture
        yield "confidence", entry.confidence
        yield "link", _link_text(entry)
        if entry.scale_up and entry.scale_up.note:
            yield "", entry.scale_up.note
        if entry.devices_per_package > 1:
            yield "module", f"of {entry.devices_per_package} such devices"
    if entry.note:
        yield "note", entry.note


def _labelled(label: str, text: str) -> Iterator[str]:
    indent = " " * LABEL
    yield from wrap(f"{label:<{LABEL}}{text}", WIDTH, subsequent_indent=indent)


def _of_accelerator(device: Accelerator) -> Iterator[tuple[str, Number | None, Unit]]:
    for precision in Precision:
        unit = OPS if precision is Precision.INT8 else FLOPS
        yield f"{precision} matrix, dense", device.matrix_flops_per_s.get(precision), unit
    for precision in Precision:
        yield f"{precision} vector", device.vector_flops_per_s.get(precision), FLOPS
    yield "memory", device.memory_bytes, MEMORY
    yield "memory bandwidth", device.memory_bytes_per_s, RATE
    yield "L2 cache", device.l2_bytes, CACHE
    yield "last-level cache", device.last_level_cache_bytes, CACHE
    yield "SMs or compute units", device.sms, COUNT
    yield "boost clock", device.clock_hz, CLOCK
    if device.scale_up:
        both = device.scale_up.bytes_per_s
        yield f"{device.scale_up.link}, both directions", both, RATE
        yield f"{device.scale_up.link}, one direction", _halved(both), RATE
        yield "to one peer, one direction", device.scale_up.peer_one_way_bytes_per_s, RATE
    if device.pcie:
        name = f"PCIe {device.pcie.generation} x16, one direction"
        yield name, device.pcie.one_way_bytes_per_s, RATE
    yield "power (TDP)", device.tdp_w, POWER


def _of_link(kind: Link) -> Iterator[tuple[str, Number | None, Unit]]:
    yield "one direction", kind.one_way_bytes_per_s, RATE
    yield "both directions", kind.both_ways_bytes_per_s, RATE
    yield "latency, one way", kind.latency_ns, TIME
    for achieved in kind.achieved:
        yield achieved.what, achieved.one_way_bytes_per_s, RATE


def _halved(both: Number) -> Number:
    return Number(
        value=both.value / 2,
        low=None if both.low is None else both.low / 2,
        high=None if both.high is None else both.high / 2,
        source=both.source,
        date=both.date,
    )


def _link_text(device: Accelerator) -> str:
    if device.scale_up is None:
        return "none but PCIe"
    joins = device.scale_up.joins
    how = {
        Shape.SWITCH: "through a switch",
        Shape.MESH: "one to each other",
        Shape.CUBE_MESH: "as a hybrid cube mesh",
        Shape.PAIRS: "in pairs",
        Shape.TORUS: "as a torus",
    }[device.scale_up.shape]
    return f"{device.scale_up.link}, joins {joins or 'those of a node'} {how}"


def _device_row(device: Accelerator) -> Cells:
    link = device.scale_up
    return (
        device.name,
        device.architecture,
        device.peak_flops_per_s("bf16"),
        device.peak_flops_per_s("fp8"),
        _value(device.memory_bytes),
        _value(device.memory_bytes_per_s),
        link.link if link else None,
        device.scale_up_one_way_bytes_per_s,
        link.shape.value if link else None,
        link.joins if link else None,
    )


def _short_device_row(device: Accelerator) -> Cells:
    link, matrix = device.scale_up, device.matrix_flops_per_s
    half = matrix.get(Precision.BF16) or matrix.get(Precision.FP16)
    return (
        device.name,
        device.architecture,
        _value(half, 1e12),
        _value(matrix.get(Precision.FP8), 1e12),
        _value(device.memory_bytes, GIB),
        _value(device.memory_bytes_per_s, 1e9),
        link.link if link else None,
        link.bytes_per_s.value / 2e9 if link else None,
        (link.joins or "node") if link else None,
    )


def _value(number: Number | None, unit: float = 1.0) -> float | None:
    return None if number is None else number.value / unit


def _shown(value: float, unit: Unit) -> str:
    return f"{value / unit.per:,.6g} {unit.shown}".rstrip()


def _range(figure: Figure) -> str:
    number, per = figure.number, figure.unit.per
    if number.lowest == number.highest:
        return ""
    return f"{number.lowest / per:,.6g} to {number.highest / per:,.6g}"


def _page(number: Number) -> tuple[str, str]:
    return number.source, number.date


def _pages(entry: Accelerator | Link) -> tuple[tuple[str, str], ...]:
    return tuple(dict.fromkeys(_page(figure.number) for figure in figures(entry)))
