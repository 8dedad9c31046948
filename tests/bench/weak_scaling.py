"""Published weak-scaling tables: from one row of a table, the others.

No trace of these runs is public. So the row that is given becomes a small graph of one rank: a
kernel per layer, with the collectives that the parallelism needs, timed by the collective model;
the kernels take what is left of the published step. Then `--dp` predicts the step of other rows.
Sizes are those of the published architectures; nothing is taken from the rows that are predicted.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ingest.vocab import CollectiveKind, KernelClass, Phase, TaskKind
from replay.engine.run import replay
from replay.graph.arrays import TaskGraph
from replay.results.metrics import step_times
from tests.builders import GraphBuilder, baseline_of
from whatif.models.collectives import model
from whatif.recorded import Recorded
from whatif.scenario import Scenario
from whatif.study import study
from whatif.transforms.base import Context, with_durations
from whatif.transforms.machine import known
from whatif.transforms.replicas import Replicas
from whatif.transforms.retime import calls_of

MILLION = 1e6
BF16, FP32 = 2, 4
ROUNDS = 8
COMPUTE, GATHER, SCATTER = 7, 20, 21
"""Streams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of one run at several sizes."""

    name: str
    base: Recorded
    gpu: str
    sharded: bool
    layers: tuple[float, ...]
    """Parameters of each part that is gathered or reduced as a whole, in forward order."""
    reduced_bytes: int
    """Per parameter, of the gradients."""
    steps_s: dict[int, float]
    """By number of GPUs; the smallest is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """One row predicted from another."""

    name: str
    before: int
    after: int
    true_s: float
    predicted_s: float
    low_s: float
    high_s: float
    unchanged_s: float

    @property
    def error_frac(self) -> float:
        """Of the step."""
        return self.predicted_s / self.true_s - 1

    @property
    def inside(self) -> bool:
        """The truth lies in the range."""
        return self.low_s <= self.true_s <= self.high_s


LLAMA31_8B = (525.3e6, *(218.1e6,) * 32, 525.3e6)
LLAMA2_7B = (131.1e6, *(202.4e6,) * 32, 131.1e6)
LLAMA2_34B = (262.1e6, *(692.1e6,) * 48, 262.1e6)
RESNET50 = (5.5e6, 5.0e6, 7.1e6, 8.0e6)
VGG16 = (14.7e6, 102.8e6, 16.8e6, 4.1e6)
"""Parts of about 20 to 30 MB in forward order; of VGG the convolutions and three dense layers."""


def tables(shared: Path) -> Iterator[Table]:
    """Those with several sizes of one run."""
    yield from _torchtitan(shared)
    yield from _yafsdp(shared)
    yield from _byteps(shared)


def _rows(shared: Path, name: str) -> list[dict[str, str]]:
    with (shared / "facts" / "scaling_tables" / name).open(newline="") as stream:
        return list(csv.DictReader(stream))


def _torchtitan(shared: Path) -> Iterator[Table]:
    rows = [row for row in _rows(shared, "torchtitan.csv") if row["model"] == "Llama3.1-8B"]
    for gpu, catalog, technique in (
        ("H100", "NVIDIA H100", "FSDP"),
        ("H100", "NVIDIA H100", "FSDP+compile"),
        ("H100", "NVIDIA H100", "FSDP+compile+Float8"),
        ("H200", "NVIDIA H200", "FSDP+compile+float8"),
    ):
        steps_s = {
            int(row["gpus"]): float(row["step_time_s_derived"])
            for row in rows
            if row["gpu"] == gpu and row["technique"] == technique and row["step_time_s_derived"]
        }
        yield Table(
            name=f"torchtitan Llama 3.1 8B {gpu} {technique}",
            base=Recorded(gpus_per_node=8, net="400Gbps"),
            gpu=catalog,
            sharded=True,
            layers=LLAMA31_8B,
            reduced_bytes=FP32,
            steps_s=steps_s,
        )


def _yafsdp(shared: Path) -> Iterator[Table]:
    rows = _rows(shared, "yafsdp_a100_fsdp_iter.csv")
    for name, layers, length in (
        ("Llama 2 7B", LLAMA2_7B, "2048"),
        ("Llama 2 7B", LLAMA2_7B, "4096"),
        ("Llama 2 7B", LLAMA2_7B, "8192"),
        ("Llama 2 34B", LLAMA2_34B, "2048"),
    ):
        yield Table(
            name=f"YaFSDP's FSDP {name} {length}",
            base=Recorded(gpus_per_node=8, net="200Gbps"),
            gpu="NVIDIA A100-SXM4-80GB",
            sharded=True,
            layers=layers,
            reduced_bytes=BF16,
            steps_s={
                int(row["gpus"]): float(row["fsdp_iter_s"])
                for row in rows
                if row["model"] == name and row["seq_len"] == length
            },
        )


def _byteps(shared: Path) -> Iterator[Table]:
    rows = _rows(shared, "byteps_v100_20G_vs_100G.csv")
    for words, net, gpu in (
        ("20 Gbps", "2.5Gbps", "Tesla V100-SXM2-32GB"),
        ("100 Gbps", "12.5Gbps", "Tesla V100-PCIE-32GB"),
    ):
        for name, layers in (("resnet50", RESNET50), ("vgg16", VGG16)):
            steps_s = {
                int(row["gpus"]): float(row["batch_per_gpu"])
                * int(row["gpus"])
                / float(row["images_per_s"])
                for row in rows
                if row["model"] == name
                and row["framework"] == "horovod_nccl"
                and words in row["network"]
            }
            yield Table(
                name=f"Horovod {name} V100, {words} a node",
                base=Recorded(gpus_per_node=8, net=net, pcie="16GBps"),
                gpu=gpu,
                sharded=False,
                layers=layers,
                reduced_bytes=FP32,
                steps_s=steps_s,
            )


def predict(table: Table) -> list[Scaled]:
    """The other rows of a table from its smallest."""
    first, *others = sorted(table.steps_s)
    graph = graph_of(table, first)
    base = baseline_of(graph)
    given_s = table.steps_s[first]
    found = []
    for gpus in others:
        scenario = Scenario(base=table.base, transforms=(Replicas(replicas=gpus),))
        answer = study(graph, base, scenario)
        found.append(
            Scaled(
                name=table.name,
                before=first,
                after=gpus,
                true_s=table.steps_s[gpus],
                predicted_s=answer.step_ns / 1e9,
                low_s=answer.low_ns / 1e9,
                high_s=answer.high_ns / 1e9,
                unchanged_s=given_s,
            )
        )
    return found


def graph_of(table: Table, gpus: int) -> TaskGraph:
    """One rank of the given row, its kernels as long as meets the published step."""
    graph = _timed(_sharded(table, gpus) if table.sharded else _reduced(table, gpus), table)
    wanted_ns = table.steps_s[gpus] * 1e9
    kernel = graph.tasks.kind == TaskKind.KERNEL
    for _ in range(ROUNDS):
        step_ns = float(step_times(graph, replay(graph)).mean_ns)
        kernels_ns = float(graph.tasks.dur_ns[kernel].sum())
        factor = max(1.0 + (wanted_ns - step_ns) / kernels_ns, 0.1)
        dur_ns = np.where(kernel, np.rint(graph.tasks.dur_ns * factor), graph.tasks.dur_ns)
        graph = with_durations(graph, dur_ns.astype(np.int64))
    return replace(graph, tasks=replace(graph.tasks, ts_ns=replay(graph).start_ns.copy()))


def _timed(graph: TaskGraph, table: Table) -> TaskGraph:
    """The graph with its transfers as long as the model says of the given row."""
    context = known(graph, Context(recorded=table.base))
    numbers = np.arange(len(graph.collectives.kind), dtype=np.int64)
    calls = calls_of(graph, context.places, numbers)
    time_ns = np.rint(model.model_ns(calls, context.links)).astype(np.int64)
    transfer = graph.tasks.kind == TaskKind.TRANSFER
    dur_ns = np.where(transfer, np.append(time_ns, 0)[graph.tasks.collective], graph.tasks.dur_ns)
    timed = with_durations(graph, dur_ns)
    return replace(timed, collectives=replace(graph.collectives, transfer_ns=time_ns))


class _Rank:
    """Adds the work of one rank of many, in the order of its streams."""

    def __init__(self, table: Table, gpus: int) -> None:
        self.build = GraphBuilder(gpu=table.gpu, world_size=gpus)
        self.group = tuple(range(gpus))
        self.phases: list[Phase] = []

    def compute(self, amount: float, phase: Phase, after: int | None) -> int:
        """A kernel; its duration counts only beside those of the others."""
        call = self.build.call(0, "launch", 1_000)
        kernel = self.build.kernel(
            0,
            "layer",
            max(round(amount), 1),
            caller=call,
            stream=COMPUTE,
            phase=phase,
            kernel_class=KernelClass.GEMM,
        )
        if after is not None:
            self.build.edge(after, kernel)
        return kernel

    def collective(
        self, kind: CollectiveKind, size: float, phase: Phase, stream: int, after: int | None
    ) -> int:
        """A transfer, to be timed later."""
        call = self.build.call(0, "launch", 1_000)
        (transfer,) = self.build.collective(
            1,
            callers={0: call},
            after=None if after is None else {0: after},
            kind=kind,
            size_bytes=round(size),
            stream=stream,
            group=self.group,
            expected=len(self.group),
        )
        self.phases.append(phase)
        return transfer

    def graph(self) -> TaskGraph:
        """With one communicator for all."""
        graph = self.build.build()
        phases = np.array([*self.phases, Phase.UNKNOWN], np.int8)[graph.tasks.collective]
        phase = np.where(graph.tasks.collective >= 0, phases, graph.tasks.phase).astype(np.int8)
        one = np.zeros(len(graph.collectives.kind), np.int32)
        return replace(
            graph,
            tasks=replace(graph.tasks, phase=phase),
            groups=graph.groups[:1],
            collectives=replace(graph.collectives, group=one),
        )


def _sharded(table: Table, gpus: int) -> TaskGraph:
    """FSDP: parameters gathered one layer ahead, again in backward; gradients scattered."""
    rank = _Rank(table, gpus)
    done: list[int] = []
    for parameters in table.layers:
        ahead = done[-2] if len(done) > 1 else None
        gathered = rank.collective(
            CollectiveKind.ALL_GATHER, BF16 * parameters, Phase.FORWARD, GATHER, ahead
        )
        done.append(rank.compute(parameters, Phase.FORWARD, gathered))
    scattered = done[-1]
    for number, parameters in enumerate(reversed(table.layers)):
        gathered = None
        if number:
            gathered = rank.collective(
                CollectiveKind.ALL_GATHER, BF16 * parameters, Phase.BACKWARD, GATHER, done[-2]
            )
        done.append(rank.compute(2 * parameters, Phase.BACKWARD, gathered))
        scattered = rank.collective(
            CollectiveKind.REDUCE_SCATTER,
            table.reduced_bytes * parameters,
            Phase.BACKWARD,
            SCATTER,
            done[-1],
        )
    rank.compute(1, Phase.OPTIMIZER, scattered)
    return rank.graph()


def _reduced(table: Table, gpus: int) -> TaskGraph:
    """Gradients reduced as backward makes them; dense layers compute next to nothing."""
    rank = _Rank(table, gpus)
    dense = table.layers == VGG16
    work = [1.0 if dense and number else 100.0 for number in range(len(table.layers))]
    for amount in work:
        rank.compute(amount * 1e6, Phase.FORWARD, None)
    reduced = None
    for parameters, amount in zip(reversed(table.layers), reversed(work), strict=True):
        kernel = rank.compute(2e6 * amount, Phase.BACKWARD, None)
        reduced = rank.collective(
            CollectiveKind.ALL_REDUCE,
            table.reduced_bytes * parameters,
            Phase.BACKWARD,
            GATHER,
            kernel,
        )
    rank.compute(1, Phase.OPTIMIZER, reduced)
    return rank.graph()
