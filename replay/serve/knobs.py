"""The knobs of the page, and which of them can do something for a run."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ingest.errors import ScenarioError
from replay.engine.kernel import WIDTH
from replay.graph.arrays import TaskGraph
from replay.results.fidelity import Baseline
from replay.serve.contract import Kind, Knob, KnobState, Position
from whatif.many import Outcome, Ranges, outcomes
from whatif.models.hardware import catalog
from whatif.parallelism import layout_of
from whatif.recorded import Recorded
from whatif.scenario import Scenario
from whatif.study import OFF_PATH, is_unmoved, readings_of
from whatif.transforms.base import Context
from whatif.transforms.machine import BOTH_WAYS, known, recorded_device
from whatif.transforms.words import time_in_words

AS_RECORDED = Position(flags=(), label="as recorded")
SLOWER = ("0.1", "0.125", "0.2", "0.25", "0.33", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9")
FASTER = ("1.1", "1.25", "1.5", "1.75", "2", "2.5", "3", "4", "5", "6", "8", "10", "12", "16")
"""Factors of a slider, with the recording between them."""
LATENCIES = (
    *("0us", "1us", "2us", "5us", "10us", "20us", "50us", "100us", "200us", "500us"),
    *("1ms", "2ms", "5ms", "10ms", "20ms", "50ms"),
)
BUCKETS_MIB = ("1", "2", "5", "10", "25", "50", "100", "250", "500", "1000")
REPLICAS = tuple(str(1 << power) for power in range(11))
LINKS, WORK, SCALE = "Machine and links", "Work and waiting", "Scale and chance"
JITTER = "jitter"
PROBES = 3
"""Positions of a knob that are tried."""

Parse = Callable[[Sequence[str]], Scenario]


def knobs_of(graph: TaskGraph, base: Recorded) -> tuple[Knob, ...]:
    """All knobs, in the order in which their what-ifs stack.

    Args:
        graph: of the unchanged run.
        base: what is said of the recorded machine.
    """
    return (*_machine(graph, base), *_traffic(), *_work(), *_scale(graph))


class _Told(NamedTuple):
    """How a knob is shown."""

    group: str
    label: str
    about: str


def _machine(graph: TaskGraph, base: Recorded) -> Iterator[Knob]:
    links = known(graph, Context(recorded=base)).links
    both = None if links.scale_up_bytes_per_s is None else BOTH_WAYS * links.scale_up_bytes_per_s
    yield _gpu(graph, base)
    yield _choice(
        "precision",
        _Told(LINKS, "Matrix products in", "A narrower type, with the casts that it needs."),
        _values("precision", ("bf16", "fp16", "fp8")),
    )
    yield _factor(
        "nvlink",
        _Told(
            LINKS, "NVLink or xGMI", "Link between the GPUs of a node, both directions together."
        ),
        _Rate(both, _gigabytes, "900GBps"),
    )
    yield _factor(
        "net",
        _Told(LINKS, "Network between nodes", "Share of one GPU (or rank), one direction."),
        _Rate(links.nic_bytes_per_s, _gigabits, "400Gbps"),
    )
    latency_ns = links.net_latency_ns
    yield _slider(
        "net-latency",
        _Told(LINKS, "Network latency", "Between nodes, one way, beside what the library takes."),
        (AS_RECORDED, *_values("net-latency", LATENCIES)),
        now="" if latency_ns is None else time_in_words(latency_ns),
        example="20us",
    )
    yield _factor(
        "pcie",
        _Told(LINKS, "PCIe", "Of one GPU, one direction: copies, and links that go over it."),
        _Rate(links.pcie_bytes_per_s, _gigabytes, "64GBps"),
    )


def _gpu(graph: TaskGraph, base: Recorded) -> Knob:
    device = recorded_device(graph, base)
    names = [each.name for each in catalog().accelerators if each is not device]
    recorded = next((info.gpu for info in graph.ranks if info.gpu), "")
    told = _Told(LINKS, "GPU", "Compute, memory and its link are another's; network cards stay.")
    return _choice(
        "gpu", told, _values("gpu", names), now=recorded if device is None else device.name
    )


def _traffic() -> Iterator[Knob]:
    yield _choice(
        "in-network",
        _Told(
            LINKS,
            "Reduction in switches",
            "Switches of nodes (NVLS) and of the network (SHARP) reduce.",
        ),
        _values("in-network", ("on", "off")),
    )
    yield _slider(
        "bucket-mb",
        _Told(
            LINKS,
            "Gradient bucket",
            "Gradients are sent in buckets of that many MiB (DDP's bucket_cap_mb).",
        ),
        (AS_RECORDED, *_values("bucket-mb", BUCKETS_MIB, " MiB")),
        example="25",
    )
    yield _choice(
        "compress",
        _Told(LINKS, "Gradients sent as", "Fewer bytes, and the kernels that pack and unpack."),
        _values("compress", ("bf16", "fp8", "topk:0.01")),
    )
    yield _factor(
        "network-scale",
        _Told(LINKS, "All transfers, speed", "Every transfer, latency included."),
        PLAIN,
    )


def _work() -> Iterator[Knob]:
    yield _slider(
        "compute",
        _Told(WORK, "Compute kernels, speed", "All kernels that compute."),
        (*map(_compute, SLOWER), AS_RECORDED, *map(_compute, FASTER)),
    )
    yield _factor(
        "host-scale",
        _Told(WORK, "CPU, speed", "All that host threads do; what they wait for stays."),
        PLAIN,
    )
    yield _switch(
        "cuda-graphs",
        _Told(
            WORK,
            "CUDA graphs",
            "CUDA (HIP) graphs launch the work: host code between launches is gone.",
        ),
    )
    yield _switch(
        "no-stragglers",
        _Told(
            WORK,
            "No stragglers",
            "Every task takes the median time of the same task on all ranks.",
        ),
    )
    yield _choice(
        "overlap",
        _Told(WORK, "Transfers and kernels", "Whether they run at the same time, and who waits."),
        (
            Position(flags=("--no-overlap",), label="take turns"),
            Position(flags=("--perfect-overlap",), label="kernels never wait: an upper bound"),
        ),
    )


def _scale(graph: TaskGraph) -> Iterator[Knob]:
    yield _slider(
        "dp",
        _Told(
            SCALE,
            "Data-parallel replicas",
            "Each with its batch: weak scaling. N@NAME names their communicators.",
        ),
        (AS_RECORDED, *_values("dp", REPLICAS)),
        now=f"{layout_of(graph).replicas}",
        example="64",
    )
    yield _choice(
        JITTER,
        _Told(
            SCALE,
            "Steps that vary",
            "p50 and p95 of single steps over replays with the measured variation.",
        ),
        _values(JITTER, ("100", "200", "1000"), " replays"),
    )


def _values(key: str, texts: Iterable[str], unit: str = "") -> tuple[Position, ...]:
    return tuple(Position(flags=(f"--{key}", text), label=f"{text}{unit}") for text in texts)


def _compute(speed: str) -> Position:
    return Position(flags=("--scale", f"class:compute={1 / float(speed):.4g}"), label=f"x{speed}")


def _choice(key: str, told: _Told, turned: Iterable[Position], now: str = "") -> Knob:
    return _knob(key, Kind.CHOICE, told, (AS_RECORDED, *turned), now=now)


def _switch(key: str, told: _Told) -> Knob:
    on = Position(flags=(f"--{key}",), label="on")
    return _knob(key, Kind.SWITCH, told, (AS_RECORDED, on))


def _slider(
    key: str, told: _Told, positions: tuple[Position, ...], *, now: str = "", example: str = ""
) -> Knob:
    return _knob(key, Kind.SLIDER, told, positions, now=now, example=example)


class _Rate(NamedTuple):
    """What a slider of factors is a factor of."""

    base_per_s: float | None
    shown: Callable[[float], str]
    example: str
    """Of an absolute value."""


PLAIN = _Rate(None, str, "2")
"""Factors of what the run had, whatever that was; typed without an x."""


def _factor(key: str, told: _Told, rate: _Rate) -> Knob:
    """A slider of factors; where the base is known, each says what it makes of it."""
    prefix = "" if rate is PLAIN else "x"
    base_per_s = rate.base_per_s

    def position(factor: str) -> Position:
        made = "" if base_per_s is None else f" · {rate.shown(float(factor) * base_per_s)}"
        return Position(flags=(f"--{key}", f"{prefix}{factor}"), label=f"x{factor}{made}")

    return _slider(
        key,
        told,
        (*map(position, SLOWER), AS_RECORDED, *map(position, FASTER)),
        now="" if base_per_s is None else rate.shown(base_per_s),
        example=rate.example,
    )


def _knob(
    key: str,
    kind: Kind,
    told: _Told,
    positions: tuple[Position, ...],
    *,
    now: str = "",
    example: str = "",
) -> Knob:
    return Knob(
        key=key,
        group=told.group,
        label=told.label,
        about=told.about,
        kind=kind,
        positions=positions,
        now=now,
        example=example,
    )


def _gigabytes(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e9:,.4g} GB/s"


def _gigabits(bytes_per_s: float) -> str:
    return f"{bytes_per_s * 8 / 1e9:,.4g} Gbps"


@dataclass(frozen=True, slots=True)
class Trial:
    """Tries what knobs do for a run."""

    graph: TaskGraph
    """Of the unchanged run."""
    baseline: Baseline
    parse: Parse
    """Reads the flags of a position."""
    go_on: Callable[[], None] = lambda: None
    """Called between parts; what it raises ends the trial."""

    def states(self, knobs: Sequence[Knob], scenario: Scenario) -> tuple[KnobState, ...]:
        """Which of them move the step on top of a scenario; a few positions of each are replayed.

        Raises:
            ScenarioError: the scenario does not fit the run.
        """
        tried = [(knob.key, self.parse(at.flags)) for knob in knobs for at in probes(knob)]
        stacks = [scenario, *(scenario.then(*one.transforms) for _, one in tried)]
        base, *found = self._replayed(stacks)
        if not isinstance(base, Outcome):
            raise base
        answers: dict[str, list[Outcome | ScenarioError]] = {}
        for (key, _), outcome in zip(tried, found, strict=True):
            answers.setdefault(key, []).append(outcome)
        return tuple(_state(knob, base, answers.get(knob.key, [])) for knob in knobs)

    def _replayed(self, stacks: Sequence[Scenario]) -> Iterator[Outcome | ScenarioError]:
        """Part by part on one processor: whoever turns a knob meanwhile is served by the others."""
        readings = readings_of(self.graph)
        for first in range(0, len(stacks), WIDTH):
            self.go_on()
            part = stacks[first : first + WIDTH]
            yield from outcomes(readings, self.baseline, part, ranges=Ranges.STEPS)


def probes(knob: Knob) -> list[Position]:
    """The positions that are tried: the first, one in the middle, the last.

    Jitter changes no step, it only asks about it: it is never refused beforehand.
    """
    turned = [at for at in knob.positions if at.flags]
    if knob.key == JITTER:
        return []
    if len(turned) <= PROBES:
        return turned
    return [turned[0], turned[len(turned) // 2], turned[-1]]


def _state(knob: Knob, base: Outcome, tried: list[Outcome | ScenarioError]) -> KnobState:
    moved = [
        one
        for one in tried
        if isinstance(one, Outcome) and not is_unmoved(one.step_ns, base.step_ns)
    ]
    if moved or not tried:
        return KnobState(key=knob.key, can_act=True)
    return KnobState(key=knob.key, can_act=False, reason=_reason(base, tried))


def _reason(base: Outcome, tried: Sequence[Outcome | ScenarioError]) -> str:
    """Why none of the tried positions does anything: told by one that fits the run, where one does.

    The last of them is the farthest from the recording.
    """
    last = max(reversed(tried), key=lambda one: isinstance(one, Outcome))
    if isinstance(last, ScenarioError):
        return f"{last} ({last.hint})" if last.hint else str(last)
    own = [reason for reason in last.no_effect if reason not in base.no_effect]
    return own[-1].partition(": ")[2] or own[-1] if own else OFF_PATH
