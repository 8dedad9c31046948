"""The catalog of accelerators and links: what pages print of them, by the names profilers write.

A person's own file may lie over it: `extended_by`, or the variable REPLAY_HARDWARE.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from ingest.errors import ScenarioError, nearest
from ingest.units import BytesPerSecond
from whatif.models.catalog_files import by_key, extended, key_of, read_part

SHIPPED = tuple(
    Path(__file__).with_name("catalog") / f"{name}.yaml"
    for name in ("nvidia", "amd", "others", "links")
)
OWN_FILE = "REPLAY_HARDWARE"
"""Environment variable with the path of a person's own file."""
MAKERS = ("nvidia-", "amd-", "tesla-", "instinct-")


class Precision(StrEnum):
    """Element types whose peaks differ."""

    FP64 = "fp64"
    FP32 = "fp32"
    TF32 = "tf32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    INT8 = "int8"
    FP4 = "fp4"


_RECORDED: Mapping[str, Precision] = {
    "double": Precision.FP64,
    "float64": Precision.FP64,
    "float": Precision.FP32,
    "float32": Precision.FP32,
    "bfloat16": Precision.BF16,
    "half": Precision.FP16,
    "float16": Precision.FP16,
    "signed char": Precision.INT8,
    "char": Precision.INT8,
    "unsigned char": Precision.INT8,
    "uint8": Precision.INT8,
}
"""Names of PyTorch's profiler and of torch, in lower case and without their namespace."""


def precision_of(recorded: str) -> Precision | None:
    """Of an element type as profilers write it (`c10::BFloat16`, `float`) or as here (`bf16`).

    `float` is fp32: that its matrix product ran as TF32 only the kernel's name tells.
    """
    name = recorded.lower().rpartition("::")[2].removeprefix("torch.")
    if name in set(Precision):
        return Precision(name)
    if name.startswith("float8"):
        return Precision.FP8
    if name.startswith("float4"):
        return Precision.FP4
    return _RECORDED.get(name)


class Number(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A published number and where it was read; its unit stands in the name of the field."""

    value: float
    low: float | None = None
    high: float | None = None
    """Ends of what pages print, where they disagree; None where that end is `value`."""
    source: str
    """Address of a public page; in a person's own file any words."""
    date: str = ""
    """When the page was read, YYYY-MM."""
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse what no page can mean."""
        if not self.lowest <= self.value <= self.highest:
            raise ValueError("`value` lies outside of `low` and `high`")
        if self.lowest <= 0:
            raise ValueError("a number above zero is meant")

    @property
    def lowest(self) -> float:
        """The smallest that a page prints."""
        return self.value if self.low is None else self.low

    @property
    def highest(self) -> float:
        """The largest that a page prints."""
        return self.value if self.high is None else self.high


class Shape(StrEnum):
    """How the scale-up links of a domain join its accelerators."""

    SWITCH = "switch"
    """Any pair has the whole bandwidth."""
    MESH = "mesh"
    """One link to each other: a pair alone has only that."""
    CUBE_MESH = "cube_mesh"
    """As in a DGX-1: bandwidth depends on which take part."""
    PAIRS = "pairs"
    TORUS = "torus"


class ScaleUp(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The link between the accelerators of one domain: NVLink, xGMI."""

    link: str
    shape: Shape = Shape.SWITCH
    bytes_per_s: Number
    """Of one accelerator over all its links, both directions together, as vendors print it."""
    peer_one_way_bytes_per_s: Number | None = None
    """To one other accelerator, one direction; None where no page tells."""
    joins: int | None = None
    """Accelerators that one domain joins where that is not the node: 2 for a bridge, 72 for a
    rack."""
    note: str = ""
    """What an answer that uses the link has to say."""


class Pcie(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The link to the host."""

    generation: int
    one_way_bytes_per_s: Number
    """Of 16 lanes, one direction."""


class Accelerator(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One device as a profiler lists it; a field that no page tells is None or lacks its key."""

    name: str
    aliases: tuple[str, ...] = ()
    """As profilers write the device, and short names; case does not matter."""
    architecture: str
    """`hopper`, `cdna3`, …"""
    devices_per_package: int = 1
    """More than 1 where a module is several devices; the numbers here are those of one."""
    matrix_flops_per_s: dict[Precision, Number] = {}
    """Dense peaks of the matrix units, without sparsity; of int8 operations per second."""
    vector_flops_per_s: dict[Precision, Number] = {}
    """Peaks of the other units."""
    memory_bytes: Number | None = None
    memory_bytes_per_s: Number | None = None
    l2_bytes: Number | None = None
    last_level_cache_bytes: Number | None = None
    """A cache between L2 and memory."""
    sms: Number | None = None
    """Streaming multiprocessors or compute units."""
    clock_hz: Number | None = None
    """Boost clock, at which the peaks are meant where they agree with it."""
    scale_up: ScaleUp | None = None
    """None where the device has no link to others but PCIe."""
    pcie: Pcie | None = None
    tdp_w: Number | None = None
    confidence: Literal["high", "medium", "low"] = "medium"
    note: str = ""

    def peak(self, precision: str) -> Number | None:
        """Dense peak of matrix products of that element type, FLOP/s; None where no page tells.

        Where the matrix units do not take the type, the vector units do its products.

        Args:
            precision: as here (`bf16`) or as a profiler writes it (`c10::BFloat16`).
        """
        of = precision_of(precision)
        if of is None:
            return None
        return self.matrix_flops_per_s.get(of) or self.vector_flops_per_s.get(of)

    def peak_flops_per_s(self, precision: str) -> float | None:
        """The value of `peak`."""
        found = self.peak(precision)
        return None if found is None else found.value

    @property
    def usual_precision(self) -> Precision | None:
        """What training uses: bf16, or fp16 where the device has no bf16; None without a peak.

        Without matrix units for either it is fp32.
        """
        for each in (Precision.BF16, Precision.FP16):
            if each in self.matrix_flops_per_s:
                return each
        return Precision.FP32 if self.peak(Precision.FP32) else None

    @property
    def scale_up_one_way_bytes_per_s(self) -> BytesPerSecond | None:
        """Half of the vendor's figure: one direction, over all links of one accelerator."""
        return BytesPerSecond(self.scale_up.bytes_per_s.value / 2) if self.scale_up else None


class Scope(StrEnum):
    """What a link's figures are of."""

    GPU = "gpu"
    """One accelerator."""
    PORT = "port"
    """One port of a network card."""
    NODE = "node"
    """All ports of a machine, or its switches."""
    SITE = "site"
    """Between machine halls."""


class Achieved(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was measured on a link, or what a library plans with."""

    what: str
    one_way_bytes_per_s: Number
    """Bus bandwidth as nccl-tests counts it, or a plain copy: one direction."""


class Link(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of link; a figure that no page tells is None."""

    name: str
    aliases: tuple[str, ...] = ()
    scope: Scope
    made_of: str = ""
    one_way_bytes_per_s: Number | None = None
    both_ways_bytes_per_s: Number | None = None
    """As vendors of NVLink and xGMI print it."""
    latency_ns: Number | None = None
    """One way, of a small message."""
    achieved: tuple[Achieved, ...] = ()
    note: str = ""


class Catalog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All devices and links, in the order of the files; names and aliases are unique."""

    accelerators: tuple[Accelerator, ...] = ()
    links: tuple[Link, ...] = ()


def catalog() -> Catalog:
    """The catalog that ships with the product, with the person's own file over it.

    Raises:
        UsageError: the own file cannot be read.
        ScenarioError: it has an unknown field, a wrong value or a name that another entry has.
    """
    return _tables().catalog


@contextmanager
def extended_by(path: Path | None) -> Iterator[None]:
    """The catalog has that file over it for the length of the block; None changes nothing.

    It is set as the variable is, for the whole process, so that threads and children see it too.

    Raises:
        UsageError, ScenarioError: as `catalog`.
    """
    if path is None:
        yield
        return
    before = os.environ.get(OWN_FILE)
    os.environ[OWN_FILE] = str(path)
    try:
        catalog()
        yield
    finally:
        if before is None:
            del os.environ[OWN_FILE]
        else:
            os.environ[OWN_FILE] = before


def find(name: str) -> Accelerator | None:
    """The device of that name or alias; None when the catalog does not know it.

    Case does not matter, nor does the maker's name in front where that leaves one device: a
    profiler's `NVIDIA H100` is another card than the one that people call H100.
    """
    table = _tables().accelerators
    return table.get(key_of(name)) or table.get(_short_key(name))


def require(name: str) -> Accelerator:
    """The device of that name or alias.

    Raises:
        ScenarioError: the catalog does not know it.
    """
    if device := find(name):
        return device
    raise _unknown("accelerator", name, catalog().accelerators)


def find_link(name: str) -> Link | None:
    """The link of that name or alias (`InfiniBand NDR`, `ndr`); None when it is not known."""
    return _tables().links.get(key_of(name))


def link(name: str) -> Link:
    """The link of that name or alias.

    Raises:
        ScenarioError: the catalog does not know it.
    """
    if found := find_link(name):
        return found
    raise _unknown("link", name, catalog().links)


def require_any(name: str) -> Accelerator | Link:
    """The device or link of that name or alias.

    Raises:
        ScenarioError: the catalog does not know it.
    """
    if found := find(name) or find_link(name):
        return found
    entries: list[Accelerator | Link] = [*catalog().accelerators, *catalog().links]
    raise _unknown("accelerator or link", name, entries)


def _unknown(what: str, name: str, entries: Sequence[Accelerator | Link]) -> ScenarioError:
    known = [each for entry in entries for each in (entry.name, *entry.aliases)]
    return ScenarioError(f"no {what} `{name}` in the catalog", hint=nearest(name, known))


class _Tables(msgspec.Struct, frozen=True, kw_only=True):
    """A catalog and its entries by key."""

    catalog: Catalog
    accelerators: dict[str, Accelerator]
    links: dict[str, Link]


def _tables() -> _Tables:
    own = os.environ.get(OWN_FILE)
    if not own:
        return _shipped()
    path = Path(own)
    return _extended(path, path.stat().st_mtime_ns if path.exists() else 0)


@cache
def _shipped() -> _Tables:
    devices: list[Accelerator] = []
    links: list[Link] = []
    for path in SHIPPED:
        part = read_part(path)
        devices = extended(devices, {}, part.accelerators, Accelerator)
        links = extended(links, {}, part.links, Link)
    return _indexed(devices, links, where="the catalog")


@cache
def _extended(path: Path, _changed_ns: int) -> _Tables:
    """Entries of the file whose name the catalog knows change that entry; the others follow."""
    shipped, part = _shipped(), read_part(path)
    return _indexed(
        extended(
            shipped.catalog.accelerators, shipped.accelerators, part.accelerators, Accelerator
        ),
        extended(shipped.catalog.links, shipped.links, part.links, Link),
        where=str(path),
    )


def _indexed(devices: list[Accelerator], links: list[Link], *, where: str) -> _Tables:
    """Tables by key; names without their maker stand behind full ones.

    Raises:
        ScenarioError: two entries have one name.
    """
    by_name = by_key(devices, where)
    for device in devices:
        for each in (device.name, *device.aliases):
            by_name.setdefault(_short_key(each), device)
    return _Tables(
        catalog=Catalog(accelerators=tuple(devices), links=tuple(links)),
        accelerators=by_name,
        links=by_key(links, where),
    )


def _short_key(name: str) -> str:
    """The key without the maker's name in front."""
    short = key_of(name)
    for maker in MAKERS:
        short = short.removeprefix(maker)
    return short
