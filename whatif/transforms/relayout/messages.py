"""Messages between pipeline stages: how many bytes, how long they take."""

from dataclasses import dataclass
from math import isnan

import numpy as np

from ingest.errors import ScenarioError
from ingest.units import BytesPerSecond
from ingest.vocab import CollectiveKind, TaskKind
from replay.graph.arrays import Int64, TaskGraph
from replay.graph.hosts import computes_on_hosts
from whatif.models import gloo
from whatif.models.collectives.calls import Calls
from whatif.models.collectives.model import model_ns, scaled_ns
from whatif.models.shape import RunShape
from whatif.models.volumes import stage_message_bytes
from whatif.parallelism import Axis
from whatif.tape.insert import without
from whatif.tape.messages import ENDS
from whatif.tape.segments import Tape
from whatif.transforms.host_transfers import moving_ns
from whatif.transforms.relayout.parts import Ask

PAIRED = (CollectiveKind.SEND, CollectiveKind.RECV, CollectiveKind.SEND_RECV)
KB, MB = 1e3, 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """What a stage hands to the next for one micro-batch, in either direction."""

    size_bytes: int
    inside_ns: int
    """Between stages that share a scale-up domain, or over the network of CPU runs."""
    across_ns: int
    """Between stages on different nodes."""
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """Messages as recorded: the median of those that tell a size."""

    size_bytes: int
    transfer_ns: int


def messages_of(graph: TaskGraph, ask: Ask) -> Messages:
    """Sizes by formula or as recorded, times as recorded or by the collective model.

    Raises:
        ScenarioError: neither the recording nor the shape of the model tells the size, or the link
            is not known.
    """
    seen = _seen(graph)
    size = _size_bytes(ask, seen)
    on_host = computes_on_hosts(graph)
    time_ns = _on_hosts if on_host else _on_devices
    inside, told = time_ns(graph, ask, size, seen, nodes=1)
    across = inside if on_host or not _crosses(ask) else time_ns(graph, ask, size, seen, nodes=2)[0]
    return Messages(
        size_bytes=size,
        inside_ns=inside,
        across_ns=across,
        told=(f"messages between stages: {_size(size)} each, {told}",),
    )


def _size(size_bytes: float) -> str:
    if size_bytes < MB:
        return f"{size_bytes / KB:,.3g} kB"
    return f"{size_bytes / MB:,.4g} MB"


def without_messages(tape: Tape, ask: Ask) -> Tape:
    """The tape without the recorded messages between its stages."""
    calls = tape.graph.collectives
    paired = np.isin(calls.kind, [int(kind) for kind in PAIRED])
    if ask.before.degrees.pp == 1 or not paired.any():
        return tape
    others = [
        number
        for number, role in enumerate(ask.described.layout.roles)
        if role.axis in (Axis.CONTEXT, Axis.TENSOR, Axis.EXPERT)
    ]
    return without(tape, paired & ~np.isin(calls.group, others))


def _crosses(ask: Ask) -> bool:
    ranks = np.arange(ask.target.degrees.world, dtype=np.int64)
    domain = ask.context.places.domain_of(ranks)
    step = ask.target.degrees.world // ask.target.degrees.pp
    return bool((domain[step:] != domain[:-step]).any())


def _size_bytes(ask: Ask, seen: _Seen | None) -> int:
    target = stage_message_bytes(ask.target)
    if seen is not None:
        before = stage_message_bytes(ask.before)
        known = before > 0 and target > 0
        factor = target / before if known else _ratio(ask.before, ask.target)
        return max(round(seen.size_bytes * factor), 1)
    if target <= 0:
        raise ScenarioError(
            "the bytes that a stage hands to the next are not known: neither width of the model "
            "nor tokens of a micro-batch were found in the trace",
            hint="--describe FILE with model: {hidden: N} and batch: {samples: N, sequence: N}, or "
            "a trace with record_shapes=True",
        )
    return target


def _ratio(before: RunShape, after: RunShape) -> float:
    """Bytes of a message against those before, as far as both tell."""

    def tokens(shape: RunShape) -> float:
        batch, degrees = shape.batch, shape.degrees
        rows = degrees.tp if degrees.sp else 1
        return (batch.samples or 1.0) * (batch.sequence or 1) / degrees.cp / rows

    return tokens(after) / tokens(before)


def _seen(graph: TaskGraph) -> _Seen | None:
    tasks, calls = graph.tasks, graph.collectives
    task = np.flatnonzero(tasks.kind == TaskKind.TRANSFER)
    number = tasks.collective[task]
    paired = np.isin(calls.kind[number], [int(kind) for kind in PAIRED])
    task = task[paired & (calls.size_bytes[number] > 0) & (tasks.step[task] >= 0)]
    if not len(task):
        return None
    sizes = graph.collectives.size_bytes[tasks.collective[task]]
    size = int(np.median(sizes))
    times_ns = moving_ns(graph, task)[sizes == size] if (sizes == size).any() else None
    times_ns = moving_ns(graph, task) if times_ns is None else times_ns
    return _Seen(size_bytes=size, transfer_ns=round(float(np.median(times_ns))))


def _calls(size_bytes: int, nodes: int) -> Calls:
    def row(value: int) -> Int64:
        return np.array([value], np.int64)

    return Calls(
        kind=row(CollectiveKind.SEND_RECV),
        size_bytes=row(size_bytes),
        members=row(ENDS),
        nodes=row(nodes),
        largest_node=row(ENDS // nodes),
        sites=row(1),
    )


def _on_devices(
    _: TaskGraph, ask: Ask, size: int, seen: _Seen | None, *, nodes: int
) -> tuple[int, str]:
    links, bound = ask.context.links, ask.context.bound
    after = _calls(size, nodes)
    if seen is not None and nodes == 1:
        measured = np.array([seen.transfer_ns], np.int64)
        before = _calls(seen.size_bytes, nodes)
        moved = scaled_ns(measured, before=before, base=links, after=after, new=links, bound=bound)
        return int(moved[0]), "as long as recorded ones, by their bytes"
    made_ns = float(model_ns(after, links, bound)[0])
    if isnan(made_ns):
        raise ScenarioError(
            "the link between the stages is not known",
            hint="--base-gpu NAME, or --base-nvlink RATE; between nodes --base-net RATE",
        )
    return round(made_ns), "timed by the collective model alone"


def _on_hosts(
    graph: TaskGraph, ask: Ask, size: int, seen: _Seen | None, *, nodes: int
) -> tuple[int, str]:
    after = _host_calls(size, nodes)
    bound = ask.context.bound
    if seen is not None:
        measured = np.array([seen.transfer_ns], np.int64)
        before = _host_calls(seen.size_bytes, nodes)
        moved = gloo.resized_ns(measured, before, after, bound=bound)
        return int(moved[0]), "as long as recorded ones, by their bytes"
    rate = ask.context.links.nic_bytes_per_s or _rate_of_calls(graph)
    wire_ns = 0.0 if rate is None else float(gloo.wire_bytes(after)[0]) * 1e9 / rate
    core_ns = size * gloo.CORE_NS_PER_BYTE_OF_MESSAGE * gloo.CORE_SHARE[bound]
    fixed_ns = gloo.STEP_NS * gloo.FIXED_SHARE[bound] * float(gloo.steps(after)[0])
    delay_ns = ask.context.links.net_latency_ns or 0.0
    link = "no faster than a core sends" if rate is None else f"{rate / 1e6:,.0f} MB/s"
    return round(fixed_ns + delay_ns + max(wire_ns, core_ns)), f"timed by the gloo model ({link})"


def _host_calls(size: int, nodes: int) -> gloo.HostCalls:
    calls = _calls(size, nodes)
    return gloo.HostCalls(kind=calls.kind, size_bytes=calls.size_bytes, members=calls.members)


def _rate_of_calls(graph: TaskGraph) -> BytesPerSecond | None:
    task = np.flatnonzero(graph.tasks.kind == TaskKind.TRANSFER)
    if not len(task):
        return None
    calls, number = graph.collectives, graph.tasks.collective[task]
    return gloo.inferred_rate(
        moving_ns(graph, task),
        gloo.HostCalls(
            kind=calls.kind[number].astype(np.int64),
            size_bytes=calls.size_bytes[number],
            members=calls.members_expected[number].astype(np.int64),
        ),
    )
