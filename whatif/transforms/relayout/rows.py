"""Instances of a program while it is written."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from whatif.tape.segments import OUTSIDE, Peers, Program


class At(NamedTuple):
    """Where an instance belongs in the new run."""

    step: int
    layer: int
    micro_batch: int


class Message(NamedTuple):
    """One end of a message."""

    kind: int
    """SEND or RECEIVE."""
    peer: int
    """New rank at the other end."""
    key: int
    """Equal on both ends."""
    size_bytes: int
    transfer_ns: int


NOTHING = Message(0, -1, -1, -1, 0)


@dataclass(slots=True)
class Rows:
    """Columns of a program; plain lists while they grow."""

    segment: list[int] = field(default_factory=list)
    direction: list[int] = field(default_factory=list)
    at: list[At] = field(default_factory=list)
    message: list[Message] = field(default_factory=list)

    def add(self, segments: Sequence[int], directions: Sequence[int], at: At) -> None:
        """Segments, one after another."""
        self.segment.extend(segments)
        self.direction.extend(directions)
        self.at.extend([at] * len(segments))
        self.message.extend([NOTHING] * len(segments))

    def send(self, message: Message, at: At) -> None:
        """A send or a receive."""
        self.segment.append(OUTSIDE)
        self.direction.append(0)
        self.at.append(at)
        self.message.append(message)

    def program(self, *, rank: int, like: int, stage: int) -> Program:
        """As a value."""
        at = np.array(self.at, np.int32).reshape(-1, 3)
        return Program(
            rank=rank,
            like=like,
            stage=stage,
            segment=np.array(self.segment, np.int32),
            step=at[:, 0].copy(),
            layer=at[:, 1].copy(),
            micro_batch=at[:, 2].copy(),
            p2p=self._peers(),
            direction=np.array(self.direction, np.int8),
        )

    def _peers(self) -> Peers | None:
        if all(message is NOTHING for message in self.message):
            return None
        kind, peer, key, size_bytes, transfer_ns = np.array(self.message, np.int64).T
        return Peers(
            kind=kind.astype(np.int8),
            peer=peer.astype(np.int32),
            key=key.copy(),
            size_bytes=size_bytes.copy(),
            transfer_ns=transfer_ns.copy(),
        )
