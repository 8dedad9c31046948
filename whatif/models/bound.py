"""Which end of a cost model's uncertainty an answer asks for."""

from enum import IntEnum


class Bound(IntEnum):
    """A scenario is applied once per member; the answers span `low_ns..high_ns`."""

    NOMINAL = 0
    LOW = 1
    """The part of a cost that hardware does not change is smallest."""
    HIGH = 2
    """The part of a cost that hardware does not change is largest."""
