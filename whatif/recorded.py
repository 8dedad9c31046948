"""What is said of the recorded machine where the trace does not tell, or tells it wrong."""

import re
from typing import Any

from msgspec import Struct

from ingest.errors import UsageError
from ingest.units import BytesPerSecond, Nanos, parse_rate, parse_time

_ZERO = re.compile(r"0+(?:\.0*)?\s*(?:ns|us|µs|ms|s)", re.ASCII)
RATES = ("nvlink", "net", "pcie")


class Recorded(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The `base:` of a scenario; on the command line `--base-gpu`, `--base-nvlink` and so on."""

    gpu: str | None = None
    """Name in the catalog."""
    nvlink: str | None = None
    """Scale-up link (NVLink, xGMI) of one accelerator as vendors print it: both directions."""
    net: str | None = None
    """NIC share of one accelerator (of one rank without accelerator), one direction."""
    net_latency: str | None = None
    """One way, between nodes, beside what the library adds."""
    pcie: str | None = None
    """Of one accelerator, one direction."""
    gpus_per_node: int | None = None
    topology: str | None = None
    """Path of a file that says which ranks share nodes and sites, and what joins them."""
    describe: str | None = None
    """Path of a file that says what the run is: model, degrees, batch."""

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        for name in RATES:
            self._rate(name)
        if self.net_latency is not None:
            parse_latency(self.net_latency)
        if self.gpus_per_node is not None and not 1 <= self.gpus_per_node <= MOST_GPUS:
            raise UsageError(
                f"{self.gpus_per_node} GPUs per node", hint=f"a number from 1 to {MOST_GPUS:,}"
            )
        if self.gpus_per_node is not None and self.topology is not None:
            raise UsageError(
                "GPUs per node and a topology both say which ranks share a node",
                hint="give --gpus-per-node or --topology FILE",
            )

    @property
    def is_given(self) -> bool:
        """Anything is said at all."""
        return any(getattr(self, name) is not None for name in self.__struct_fields__)

    @property
    def flags(self) -> str:
        """As typed on a command line; empty where nothing is said."""
        options = ((_option(name), getattr(self, name)) for name in self.__struct_fields__)
        return " ".join(f"{option} {value}" for option, value in options if value is not None)

    @property
    def nvlink_bytes_per_s(self) -> BytesPerSecond | None:
        """Both directions together."""
        return self._rate("nvlink")

    @property
    def net_bytes_per_s(self) -> BytesPerSecond | None:
        """One direction."""
        return self._rate("net")

    @property
    def pcie_bytes_per_s(self) -> BytesPerSecond | None:
        """One direction."""
        return self._rate("pcie")

    @property
    def net_latency_ns(self) -> Nanos | None:
        """One way."""
        return None if self.net_latency is None else parse_latency(self.net_latency)

    def over(self, other: "Recorded") -> "Recorded":
        """What is said here, and for the rest what `other` says.

        Which ranks share a node is one fact: said here in either way, it is not taken from there.
        """
        said: dict[str, Any] = {}
        placed = self.gpus_per_node is not None or self.topology is not None
        for name in self.__struct_fields__:
            mine = getattr(self, name)
            theirs = None if placed and name in PLACES else getattr(other, name)
            said[name] = theirs if mine is None else mine
        return Recorded(**said)

    def _rate(self, name: str) -> BytesPerSecond | None:
        text = getattr(self, name)
        if text is None:
            return None
        rate = parse_rate(text).bytes_per_s
        if rate is None:
            raise UsageError(
                f"`{text}` is no rate of the recorded run",
                hint="the base is absolute, for example 900GBps",
            )
        return rate


MOST_GPUS = 1_000_000
PLACES = ("gpus_per_node", "topology")
UNPREFIXED = (*PLACES, "describe")
"""Options without `base-`."""
NOTHING_SAID = Recorded()


def parse_latency(text: str) -> Nanos:
    """Read `20us`, or `0us` for none.

    Raises:
        UsageError: no time.
    """
    if _ZERO.fullmatch(text.strip()):
        return Nanos(0)
    try:
        return parse_time(text)
    except UsageError as error:
        raise UsageError(f"`{text}` is no latency", hint="write 20us, 3ms or 0us") from error


def _option(name: str) -> str:
    prefix = "" if name in UNPREFIXED else "base-"
    return f"--{prefix}{name.replace('_', '-')}"
