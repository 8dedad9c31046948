"""What one rank exchanges with others: collectives of a layout, and messages between stages."""

from dataclasses import replace

from ingest.vocab import CollectiveKind
from whatif.models.exchanges.volume import Along, Spot, Volume, Way
from whatif.models.volumes import stage_message_bytes
from whatif.synth.blueprint import Blueprint
from whatif.synth.groups import Groups
from whatif.synth.script import Exchange

_NARROW = "Float8_e4m3fn"


class Exchanges:
    """Of one rank of a stage."""

    def __init__(self, blueprint: Blueprint, stage: int, rank: int) -> None:
        self._shape, self._site = blueprint.shape, blueprint.site
        self._stage, self._rank = stage, rank
        self._groups = Groups(rank=rank, shape=blueprint.shape)

    @property
    def half(self) -> str:
        """Element type of activations, as profilers write it."""
        return "Half" if self._shape.elements.product == "fp16" else "BFloat16"

    @property
    def gradient_type(self) -> tuple[str, float]:
        """Element type of gradients on their way, and its bytes."""
        elements = self._shape.elements
        each = elements.gradient if elements.reduced is None else elements.reduced
        return ("Float", 4.0) if each > 2 else (self.half, each)  # noqa: PLR2004

    def over_stages(self, row: Volume, step: int) -> Exchange:
        """A collective in which all stages meet, once a step."""
        exchange = self.of_row(row)
        stages = self._shape.degrees.pp
        if stages == 1:
            return exchange
        return replace(exchange, meeting=(step, len(Way)), ends=stages)

    def message(self, kind: CollectiveKind, way: int, stage: int, key: tuple[int, ...]) -> Exchange:
        """One end of a message to or from another stage.

        Args:
            kind: SEND or RECV.
            way: which of the streams for messages.
            stage: at the other end.
            key: equal at both ends.
        """
        size = stage_message_bytes(self._shape)
        peer = self._rank + (stage - self._stage) * self._groups.apart
        elements = round(size / self._shape.elements.activation)
        ends = (min(self._rank, peer), max(self._rank, peer))
        sending = kind is CollectiveKind.SEND
        return Exchange(
            kind=kind,
            group=self._groups.pipeline(way),
            sent=elements if sending else 0,
            received=0 if sending else elements,
            dtype=self.half,
            transfer_ns=self._site.transfer_ns(CollectiveKind.SEND_RECV, size, ends),
            peer=peer,
            meeting=key,
        )

    def of_row(self, row: Volume) -> Exchange:
        """Of a row of the volumes."""
        elements = self._shape.elements
        own = (self.half, elements.activation)
        size = row.size_bytes
        if row.along is Along.TENSOR and self._is_narrow(row):
            own, size = (_NARROW, 1.0), round(size / elements.activation)
        if row.along in (Along.SHARDS, Along.REPLICAS):
            own = self.gradient_type
            if row.kind is CollectiveKind.ALL_GATHER:
                own = (self.half, elements.parameter)
        elif row.spot in (Spot.LOSS, Spot.CLIP):
            own = ("Float", 4.0)
        return self.exchange(row.along, row.kind, row.members, size, own)

    def _is_narrow(self, row: Volume) -> bool:
        """Rows are cast to 8 bits before they are gathered (torchtitan, docs/float8.md)."""
        is_gather = row.kind is CollectiveKind.ALL_GATHER and row.spot is not Spot.HEAD
        return is_gather and self._shape.elements.product == "fp8"

    def exchange(
        self,
        along: Along,
        kind: CollectiveKind,
        members: int,
        size_bytes: float,
        own: tuple[str, float],
    ) -> Exchange:
        """A collective of this rank.

        Args:
            along: its axis.
            kind: of it.
            members: of its group.
            size_bytes: as nccl-tests counts it.
            own: element type and its bytes.
        """
        dtype, each_bytes = own
        group = self._groups.of(along, members)
        whole = round(size_bytes / each_bytes)
        part = max(whole // members, 1)
        sent, received = whole, whole
        if kind is CollectiveKind.ALL_GATHER:
            sent = part
        elif kind is CollectiveKind.REDUCE_SCATTER:
            received = part
        return Exchange(
            kind=kind,
            group=group,
            sent=sent,
            received=received,
            dtype=dtype,
            transfer_ns=self._site.transfer_ns(kind, size_bytes, group.ranks),
        )
