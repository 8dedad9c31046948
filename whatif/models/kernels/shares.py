"""Which part of its published peaks an architecture reaches, and how far readings disagree."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

import msgspec
import yaml

FILE = Path(__file__).with_name("shares.yaml")
ONE_READING_SPREAD = 0.2
"""Of the logarithm, where one reading stands alone: about what several of one device differ."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Work(StrEnum):
    """What a peak is reached at."""

    MATMUL = "matmul"
    FP8 = "fp8"
    """Matrix products in 8 bits; its readings are over the share in 16 bits."""
    SINGLE = "single"
    """Matrix products in fp32."""
    ATTENTION = "attention"
    CONVOLUTION = "convolution"
    MEMORY = "memory"


STANDS_FOR: dict[Work, Work] = {
    Work.SINGLE: Work.MATMUL,
}
"""What is taken where nothing was read of an architecture."""


class Reading(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One public measurement, or the median of one data set."""

    architecture: str
    work: Work
    value: float
    """Reached over published dense peak; of FP8, over the share in 16 bits."""
    what: str
    group: str
    """Data set that it is from."""
    source: str
    date: str


class _File(msgspec.Struct, frozen=True, kw_only=True):
    readings: tuple[Reading, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """Part of a peak."""

    value: float
    spread: float
    """Standard deviation of the logarithm over the readings."""


@dataclass(frozen=True)
class Shares:
    """What readings say of every architecture."""

    readings: tuple[Reading, ...]

    def of(self, architecture: str, work: Work) -> Share:
        """Of that architecture; where nothing was read of it, of others, or of alike work."""
        if work is Work.FP8:
            wide, narrow = self.of(architecture, Work.MATMUL), self._read(architecture, Work.FP8)
            return Share(wide.value * narrow.value, math.hypot(wide.spread, narrow.spread))
        return self._read(architecture, work)

    def _read(self, architecture: str, work: Work) -> Share:
        family = architecture.split("_")[0]  # Blackwell Ultra reaches what Blackwell does
        alike = STANDS_FOR.get(work, work)
        for wanted, of_family in ((work, family), (alike, family), (work, None), (alike, None)):
            if found := self._values(wanted, of_family):
                return _share(found)
        return _share(self._values(Work.MATMUL, None))

    def without(self, *groups: str) -> "Shares":
        """The same without some data sets, to be judged on them."""
        return Shares(tuple(each for each in self.readings if each.group not in groups))

    def _values(self, work: Work, architecture: str | None) -> list[float]:
        return [
            each.value
            for each in self.readings
            if each.work is work and architecture in (None, each.architecture)
        ]


@cache
def published() -> Shares:
    """All readings that ship with the product."""
    document = yaml.load(FILE.read_text(encoding="utf-8"), Loader=_LOADER)
    return Shares(msgspec.convert(document, _File).readings)


def _share(values: Sequence[float]) -> Share:
    logs = [math.log(value) for value in values]
    middle = sum(logs) / len(logs)
    if len(logs) == 1:
        return Share(math.exp(middle), ONE_READING_SPREAD)
    variance = sum((log - middle) ** 2 for log in logs) / (len(logs) - 1)
    return Share(math.exp(middle), math.sqrt(variance))
