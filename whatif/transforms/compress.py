"""Gradients sent in fewer bytes: narrower elements, or only the largest of them."""

from dataclasses import dataclass, replace

import numpy as np
from msgspec import Struct

from ingest.errors import ScenarioError, UsageError
from ingest.vocab import CollectiveKind, TaskKind
from replay.graph.arrays import NONE, Bool, Float64, Int64, TaskGraph
from whatif.models.bound import Bound
from whatif.transforms.base import Applied, Context, free
from whatif.transforms.codec import Codec, with_codec
from whatif.transforms.gradients import NO_GRADIENTS, gradient_reductions
from whatif.transforms.machine import known, owner
from whatif.transforms.reach import changeable, nothing_to_change
from whatif.transforms.retime import retimed, with_rate_of_hosts
from whatif.transforms.select import select

ITEM_BYTES = {"fp8": 1, "bf16": 2}
WIDEST_BYTES = 4
"""Wider elements are indices and counters, not gradients."""
TOPK = "topk"
INDEX_BYTES = 4
HINT = "write fp8, bf16 or topk:0.01 (the part that is sent), with @SELECTOR for other collectives"
MEMORY_SHARE = 0.8
"""Part of the memory's rate that a cast of a large tensor reaches: copies 0.82 on Blackwell
(https://github.com/microsoft/superbenchmark, tests/data/gpu_stream.log), elementwise kernels of
0.2 GB and more 0.83 to 0.87 on A100 (https://github.com/sitar-lab/NeuSight)."""
CODEC_SHARE = {Bound.NOMINAL: 1.0, Bound.LOW: 0.5, Bound.HIGH: 2.0}
SELECT_PASSES = 5
"""Times that a selection of the largest reads its input: one pass per 8 bits of a 32-bit key, and
one that writes what was found (radix select, as torch.topk does it)."""
HOST_NS_PER_BYTE = 0.05
"""Of a core that reads, scales and writes a gradient as DDP does, median of gradients of 1 MB and
more in the measured runs over gloo."""
NOT_JUDGED = "compressed gradients not judged: no public pair of runs differs in this alone"
UNJUDGED = (
    "what the narrower gradients do to convergence is not predicted; the codec's own time is bytes "
    "over the memory's rate, from half to twice of it in the range"
)


@dataclass(frozen=True, slots=True)
class Method:
    """How gradients are made smaller."""

    name: str
    kept_frac: float | None
    """Part of the elements that are sent; None: all of them, narrower."""

    def sizes(self, size_bytes: Int64, item_bytes: Int64, members: Int64) -> Int64:
        """Bytes of each call as nccl-tests counts them; those of `kept_frac` are all-gathers."""
        if self.kept_frac is None:
            return size_bytes * ITEM_BYTES[self.name] // np.maximum(item_bytes, 1)
        kept = np.ceil(size_bytes / np.maximum(item_bytes, 1) * self.kept_frac)
        return (members * kept * (item_bytes + INDEX_BYTES)).astype(np.int64)


def parse_method(text: str) -> Method:
    """Read `fp8`, `bf16` or `topk:0.01`.

    Raises:
        UsageError: none of these.
    """
    if text in ITEM_BYTES:
        return Method(text, None)
    name, _, part = text.partition(":")
    try:
        kept_frac = float(part)
    except ValueError:
        kept_frac = 0.0
    if name != TOPK or not 0 < kept_frac <= 1:
        raise UsageError(f"`{text}` is no way to compress gradients", hint=HINT)
    return Method(name, kept_frac)


class Compress(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="compress"
):
    """Send gradients narrower (fp8, bf16), or only the largest (topk:0.01)."""

    method: str
    where: str = ""
    """Selector of the collectives; empty: those that reduce gradients."""

    def __post_init__(self) -> None:
        """Refuse what can be refused without a trace."""
        parse_method(self.method)

    @property
    def flag(self) -> str:
        """As typed."""
        return f"--compress {self.method}" + (f"@{self.where}" if self.where else "")

    def apply(self, graph: TaskGraph, context: Context) -> Applied:
        """Fewer bytes by the collective model, and the codec's kernels before and after.

        Raises:
            ScenarioError: the selector matches nothing, or the accelerator's memory is not known.
        """
        method = parse_method(self.method)
        label = f"compress {self.method}" + (f" of {self.where}" if self.where else "")
        now = known(graph, context)
        chosen = self._chosen(graph)
        changed, sized = _smaller(graph, chosen, method)
        reason = nothing_to_change(graph)
        if reason is None and not chosen.any():
            reason = NO_GRADIENTS
        elif reason is None and not sized.any():
            reason = _why_none(graph, chosen, method)
        if reason is not None:
            return Applied(graph=graph, label=label, context=context, no_effect=reason)
        result = retimed(graph, now, now, changed=changed)
        codec = _codec(graph, result.graph, sized, method, now)
        told = [_told(graph, chosen, sized, method), UNJUDGED, *result.assumptions]
        return Applied(
            graph=with_codec(result.graph, codec),
            label=label,
            context=replace(with_rate_of_hosts(graph, result.context), anchor=None),
            assumptions=tuple(told),
            known_errors=(NOT_JUDGED, *result.known_errors),
        )

    def _chosen(self, graph: TaskGraph) -> Bool:
        if not self.where:
            return gradient_reductions(graph)
        mine = free(graph, select(graph, self.where) & (graph.tasks.kind == TaskKind.TRANSFER))
        chosen = np.zeros(len(graph.collectives.kind), bool)
        chosen[graph.tasks.collective[mine]] = True
        if not chosen.any():
            raise ScenarioError(
                f"no collective matches `{self.where}`", hint="for example class:collective"
            )
        return chosen & changeable(graph)


def _smaller(graph: TaskGraph, chosen: Bool, method: Method) -> tuple[TaskGraph, Bool]:
    """The graph with smaller calls, and which they are."""
    calls = graph.collectives
    kind, item = calls.kind.astype(np.int64), calls.item_bytes.astype(np.int64)
    members = calls.members_expected.astype(np.int64)
    sized = chosen & (calls.size_bytes > 0) & (item > 0) & (item <= WIDEST_BYTES)
    if method.kept_frac is not None:
        sized &= kind == CollectiveKind.ALL_REDUCE
    sizes = method.sizes(calls.size_bytes, item, members)
    if method.kept_frac is None:
        sized &= sizes < calls.size_bytes
    narrow = replace(
        calls,
        size_bytes=np.where(sized, sizes, calls.size_bytes),
        item_bytes=calls.item_bytes
        if method.kept_frac is not None
        else np.where(sized, ITEM_BYTES[method.name], calls.item_bytes).astype(np.int8),
        kind=calls.kind
        if method.kept_frac is None
        else np.where(sized, CollectiveKind.ALL_GATHER, calls.kind).astype(np.int8),
    )
    return replace(graph, collectives=narrow), sized


def _codec(
    before: TaskGraph, after: TaskGraph, sized: Bool, method: Method, context: Context
) -> Codec:
    """Kernels that make gradients small before a call and large after it."""
    calls = before.collectives
    transfer = np.flatnonzero(free(before, before.tasks.kind == TaskKind.TRANSFER))
    transfer = transfer[sized[before.tasks.collective[transfer]]]
    number = before.tasks.collective[transfer]
    members = np.maximum(calls.members_expected[number], 1).astype(np.float64)
    large = calls.size_bytes[number].astype(np.float64)
    small = after.collectives.size_bytes[number].astype(np.float64)
    if method.kept_frac is None:
        # What a member sends to an all-gather, and gets of a reduce-scatter, is its own part.
        gathered = calls.kind[number] == CollectiveKind.ALL_GATHER
        scattered = calls.kind[number] == CollectiveKind.REDUCE_SCATTER
        encoded = (large + small) / np.where(gathered, members, 1.0)
        decoded = (large + small) / np.where(scattered, members, 1.0)
    else:
        encoded = SELECT_PASSES * large + small / members
        decoded = large + small
    on_host = calls.on_host[number]
    share = CODEC_SHARE[context.bound]
    ns_per_byte = share * np.where(
        on_host, HOST_NS_PER_BYTE, _ns_per_byte(before, context, on_host)
    )
    return Codec(
        transfer=transfer,
        encode_ns=_rounded(encoded * ns_per_byte),
        decode_ns=_rounded(decoded * ns_per_byte),
        name=method.name,
    )


def _ns_per_byte(graph: TaskGraph, context: Context, on_host: Bool) -> float:
    """Of the accelerator's memory; irrelevant where all calls run on the host."""
    if on_host.all():
        return 0.0
    device = context.device
    if device is None or device.memory_bytes_per_s is None:
        name = owner(graph, context.recorded) or "the recorded GPU"
        raise ScenarioError(
            f"the memory of {name} is not known, which the compression reads and writes",
            hint="give --base-gpu NAME",
        )
    return 1e9 / (MEMORY_SHARE * device.memory_bytes_per_s.value)


def _rounded(time_ns: Float64) -> Int64:
    return np.rint(time_ns).astype(np.int64)


def _told(graph: TaskGraph, chosen: Bool, sized: Bool, method: Method) -> str:
    calls = graph.collectives
    total = int(calls.size_bytes[sized].sum())
    sent = "in all-gathers of values and indices" if method.kept_frac else f"as {method.name}"
    left = int((chosen & ~sized).sum())
    rest = f"; {left} stay (size or type not recorded, or no smaller)" if left else ""
    return f"{int(sized.sum())} collectives of {total / 1e6:,.0f} MB in all are sent {sent}{rest}"


def _why_none(graph: TaskGraph, chosen: Bool, method: Method) -> str:
    calls = graph.collectives
    if (calls.size_bytes[chosen] <= 0).all() or (calls.item_bytes[chosen] == NONE).all():
        return "sizes or element types of these collectives are not recorded"
    if method.kept_frac is not None:
        return "only all-reduces can send the largest gradients, and none of these is one"
    return f"these collectives send no wider elements than {method.name}"
