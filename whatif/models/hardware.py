"""The catalog of accelerators: names as profilers write them, matrix peaks, scale-up links."""

from functools import cache
from pathlib import Path

import msgspec
import yaml

from ingest.errors import ScenarioError, nearest

CATALOG = Path(__file__).with_name("catalog") / "accelerators.yaml"
MAKERS = ("nvidia ", "amd ", "tesla ", "instinct ")


class Number(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A published number and where it was read."""

    value: float
    source: str
    """Address of a public page."""
    date: str
    """When the page was read, YYYY-MM."""


class ScaleUp(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The link between the accelerators of one node: NVLink, xGMI."""

    link: str
    bytes_per_s: Number
    """Of one accelerator, both directions together, as vendors print it."""
    joins: int | None = None
    """Accelerators that one link domain joins where that is not the node: 2 for a bridge."""


class Matmul(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dense matrix peak, without sparsity: what MFU is measured against."""

    dtype: str
    flops_per_s: Number


class Accelerator(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One device of the catalog."""

    name: str
    aliases: tuple[str, ...]
    """As profilers write the device, and short names; case and maker do not matter."""
    matmul: Matmul | None = None
    scale_up: ScaleUp | None = None
    note: str = ""


class Catalog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All devices, in the order of the file."""

    accelerators: tuple[Accelerator, ...]


@cache
def catalog() -> Catalog:
    """The catalog that ships with the product."""
    text = CATALOG.read_text(encoding="utf-8")
    return msgspec.convert(yaml.safe_load(text), Catalog)


def find(name: str) -> Accelerator | None:
    """The device of that name or alias; None when the catalog does not know it."""
    return _by_key().get(_key(name))


def require(name: str) -> Accelerator:
    """The device of that name or alias.

    Raises:
        ScenarioError: the catalog does not know it.
    """
    if device := find(name):
        return device
    known = [alias for device in catalog().accelerators for alias in (device.name, *device.aliases)]
    raise ScenarioError(f"no accelerator `{name}` in the catalog", hint=nearest(name, known))


@cache
def _by_key() -> dict[str, Accelerator]:
    table: dict[str, Accelerator] = {}
    for device in catalog().accelerators:
        for alias in (device.name, *device.aliases):
            assert table.setdefault(_key(alias), device) is device, f"alias `{alias}` twice"
    return table


def _key(name: str) -> str:
    """Lower case, words joined by one dash, without the maker's name in front."""
    text = " ".join(name.lower().replace("-", " ").replace("_", " ").split())
    for maker in MAKERS:
        text = text.removeprefix(maker)
    return text.replace(" ", "-")
