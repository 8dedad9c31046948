"""The program that the eight ranks run: two warm-up steps, then two that are recorded.

Left out on purpose, so that the truth stays simple to state: compute kernels do not slow down
beside communication, and the profiler costs nothing.
"""

from collections.abc import Generator
from dataclasses import dataclass

import ddp8_model as model
from ddp8_events import Collective, Process, Signal, Simulator, Work
from ddp8_host import Host, Rank

RANKS = 8
WARM_UP_STEPS = 2
RECORDED_STEPS = 2
STEPS = WARM_UP_STEPS + RECORDED_STEPS
FIRST_STEP_NUMBER = 10
"""`ProfilerStep` number of the first recorded step."""

STRAGGLER = 3
STRAGGLER_SLOWNESS = 1.12
LATE_RANK = 5
LATE_NS = 3_000_000

LATENCY_NS = 22_000
LINK_SHARE = 0.8
"""Share of the link's rate (one direction) that an all-reduce reaches at any size."""
SEQUENCE_BASE = 214
"""Collectives of the process group before the simulation."""

EVALUATE = "autograd::engine::evaluate_function: "
ACCUMULATE = "torch::autograd::AccumulateGrad"
NCCL_KERNEL = model.Kernel(
    name="ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    dur_ns=0,
    grid=(24, 1, 1),
    block=544,
    registers=96,
    shared_bytes=103_808,
)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One simulated run."""

    nvlink_bytes_per_s: float
    """In the warm-up steps always, in all steps where `changed` is not given."""
    changed_nvlink_bytes_per_s: float | None = None
    """For all-reduces launched in or after the first recorded step."""
    straggler: bool = True
    straggler_recovers: bool = False
    """It computes like the others from the first recorded step on."""
    loss_item: bool = False
    """The main thread reads the loss at the end of every step, and waits for the device."""
    bucket_view: bool = False
    """Gradients live in their bucket: nothing is copied back after the all-reduce."""
    latency_ns: int = LATENCY_NS
    link_share: float = LINK_SHARE
    seed: int = 8

    def all_reduce_ns(self, size_bytes: int, step: int) -> int:
        """Time of an all-reduce launched by `step`, from the start of its last member.

        A latency that no link rate changes, then 2(n-1)/n of the bytes at a share of one
        direction of the link (the vendor's rate counts both).
        """
        rate = self.nvlink_bytes_per_s
        if self.changed_nvlink_bytes_per_s is not None and step >= WARM_UP_STEPS:
            rate = self.changed_nvlink_bytes_per_s
        wire_bytes = 2 * (RANKS - 1) * size_bytes / RANKS
        return self.latency_ns + round(wire_bytes * 1e9 / (self.link_share * rate / 2))


class World:
    """The collectives that the ranks have in common."""

    def __init__(self, setting: Setting) -> None:
        self.buckets = model.buckets()
        self._setting = setting
        self._collectives: dict[int, Collective] = {}

    def sequence(self, step: int, bucket: int) -> int:
        """Ordinal of a bucket's all-reduce within the process group."""
        return SEQUENCE_BASE + step * len(self.buckets) + bucket

    def all_reduce(self, step: int, bucket: int) -> Collective:
        """The all-reduce of a bucket, the same for every rank that asks."""
        sequence = self.sequence(step, bucket)
        if sequence not in self._collectives:
            size_bytes = self.elements(bucket) * model.BF16_BYTES
            transfer_ns = self._setting.all_reduce_ns(size_bytes, step)
            self._collectives[sequence] = Collective(RANKS, transfer_ns)
        return self._collectives[sequence]

    def elements(self, bucket: int) -> int:
        """Gradients in a bucket."""
        return sum(parameter.elements for parameter in self.buckets[bucket])


class Trainer:
    """One rank's threads at work."""

    def __init__(self, rank: Rank, world: World, setting: Setting) -> None:
        self.rank = rank
        self._world = world
        self._setting = setting
        self._main = Host(rank, rank.process, "main")
        self._autograd = Host(rank, rank.process + 87, "autograd")
        self._watchdog = Host(rank, rank.process + 1_061_000, "watchdog")
        self._asked = [Signal() for _ in range(STEPS)]
        self._answered = [Signal() for _ in range(STEPS)]
        for thread in (self._run_main(), self._run_autograd(), self._run_watchdog()):
            rank.simulator.start(thread)

    def _run_main(self) -> Process:
        host, rank = self._main, self.rank
        yield from host.work(200)
        if rank.number == LATE_RANK:
            yield LATE_NS
        for step in range(STEPS):
            if step == WARM_UP_STEPS:
                if self._setting.straggler_recovers:
                    rank.slowness = 1.0
                rank.start_recording()
                yield from host.work(90)
            rank.window_starts.append(rank.simulator.now)
            number = FIRST_STEP_NUMBER + step - WARM_UP_STEPS
            with host.row("user_annotation", f"ProfilerStep#{number}"):
                yield from self._train_step(step)
            rank.window_ends.append(rank.simulator.now)
            yield from host.work(30)
        drained = tuple(work.done for work in rank.launched[-40:])
        yield from host.call("cudaDeviceSynchronize", 8, until=drained)
        rank.stop_recording()

    def _run_autograd(self) -> Process:
        for asked, answered, step in zip(self._asked, self._answered, range(STEPS), strict=True):
            yield asked
            yield from self._autograd.work(130)
            yield from self._backward(step)
            self.rank.simulator.fire(answered)

    def _run_watchdog(self) -> Process:
        """NCCL's watchdog polls the events of collectives in flight, now and then."""
        host = self._watchdog
        yield 24_000_000
        yield from host.work(3_000)
        for name in ("cudaThreadExchangeStreamCaptureMode", "cudaEventQuery", "cudaEventQuery"):
            yield from host.call(name, 1)
            yield from host.work(2)

    def _train_step(self, step: int) -> Process:
        host = self._main
        yield from host.work(60)
        with host.row("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter"):
            yield from host.work(110)
        with host.operators(("aten::to", "aten::_to_copy", "aten::copy_"), {}):
            yield from host.work(8)
            yield from host.copy("Memcpy HtoD (Pinned -> Device)", 2 * 8 * model.TOKENS)
        yield from host.work(25)
        with host.row("user_annotation", "Optimizer.zero_grad#AdamW.zero_grad"):
            yield from host.work(45)
        yield from self._forward(step)
        yield from self._hand_over(step)
        with host.row("user_annotation", "Optimizer.step#AdamW.step"):
            yield from host.work(150)
            yield from host.run(model.optimizer())
            yield from host.work(20)
        if self._setting.loss_item:
            yield from self._read_loss()
        yield from host.work(40)

    def _forward(self, step: int) -> Process:
        host = self._main
        yield from host.work(40)
        sequence = 1_000 * step
        with host.row("user_annotation", "DistributedDataParallel.forward"):
            yield from host.work(90)
            for op in model.forward():
                yield from host.work(48)
                sequence += op.differentiable
                yield from host.run(op, sequence)
        yield from host.work(60)

    def _hand_over(self, step: int) -> Process:
        """`loss.backward()`: the autograd thread works, the main thread waits for it."""
        yield from self._main.run(model.first_gradient())
        yield from self._main.work(30)
        self.rank.simulator.fire(self._asked[step])
        yield self._answered[step]
        yield from self._main.work(60)

    def _backward(self, step: int) -> Process:
        host = self._autograd
        missing = [len(bucket) for bucket in self._world.buckets]
        place = {p.name: b for b, bucket in enumerate(self._world.buckets) for p in bucket}
        reduced: list[Work] = []
        sequence = 1_000 * step + sum(op.differentiable for op in model.forward())
        for node in model.backward():
            args: dict[str, object] = {"Sequence number": sequence, "Fwd thread id": 1}
            sequence -= 1
            with host.operators((EVALUATE + node.node, node.node), args):
                yield from host.work(6)
                for op in node.ops:
                    yield from host.run(op)
            yield from host.work(5)
            if node.completes is None:
                continue
            bucket = place[node.completes.name]
            missing[bucket] -= 1
            with host.operators((EVALUATE + ACCUMULATE, ACCUMULATE), {}):
                yield from host.work(4)
                yield from host.run(model.into_bucket(node.completes))
                if missing[bucket] == 0:
                    work = yield from self._all_reduce(step, bucket)
                    reduced.append(work)
            yield from host.work(4)
        yield from self._finish_backward(reduced)

    def _all_reduce(self, step: int, bucket: int) -> Generator[int | Signal, None, Work]:
        """Start a bucket's all-reduce on the library's stream, after the work launched so far."""
        host, rank = self._autograd, self.rank
        elements = self._world.elements(bucket)
        metadata = self._metadata(step, bucket)
        with host.row("cpu_op", "c10d::allreduce_", all_reduce_args(elements)):
            yield from host.work(9)
            shown = record_args(metadata, rank.number)
            with host.row("cpu_op", "record_param_comms", shown):
                yield from self._order_after_gradients()
                with host.row("user_annotation", "nccl:all_reduce", tensor_args(elements)):
                    for name in ("cudaStreamGetCaptureInfo_v2", "cudaEventRecord"):
                        yield from host.call(name, 0.6)
                        yield from host.work(2)
                    yield from host.call("cudaStreamWaitEvent", 0.6)
                    yield from host.call("cudaGetFuncBySymbol", 0.3)
                    collective = self._world.all_reduce(step, bucket)
                    work = yield from host.join(NCCL_KERNEL, collective, metadata)
                    yield from host.call("cudaEventRecord", 0.4)
                    yield from host.call("cudaStreamWaitEvent", 0.5)
                yield from host.call("cudaStreamIsCapturing", 0.3)
                yield from host.call("cudaEventRecordWithFlags", 1)
                yield from host.work(5)
            yield from host.work(3)
        return work

    def _order_after_gradients(self) -> Process:
        host, rank = self._autograd, self.rank
        for _ in range(2):
            yield from host.call("cudaStreamIsCapturing", 0.4)
        yield from host.call("cudaEventRecordWithFlags", 1)
        gradients = rank.compute.record()
        yield from host.call("cudaStreamIsCapturing", 0.3)
        yield from host.call("cudaStreamWaitEvent", 0.7)
        rank.nccl.wait(gradients)
        yield from host.work(3)

    def _finish_backward(self, reduced: list[Work]) -> Process:
        """Make the compute stream wait for every bucket and copy the gradients back."""
        host, rank = self._autograd, self.rank
        for bucket, work in zip(self._world.buckets, reduced, strict=True):
            yield from host.work(6)
            yield from host.call("cudaStreamWaitEvent", 0.8)
            rank.compute.wait(work)
            if self._setting.bucket_view:
                continue
            for parameter in bucket:
                yield from host.work(4)
                yield from host.run(model.out_of_bucket(parameter))
        yield from host.work(12)

    def _read_loss(self) -> Process:
        host = self._main
        with host.operators(("aten::item", "aten::_local_scalar_dense"), {}):
            yield from host.work(5)
            copy = yield from host.copy("Memcpy DtoH (Device -> Pinned)", 4)
            yield from host.call("cudaStreamSynchronize", 3, until=(copy.done,))
            yield from host.work(2)

    def _metadata(self, step: int, bucket: int) -> dict[str, object]:
        elements = self._world.elements(bucket)
        return {
            "Collective name": "allreduce",
            "In msg nelems": elements,
            "Out msg nelems": elements,
            "Group size": RANKS,
            "dtype": "BFloat16",
            "In split size": "[]",
            "Out split size": "[]",
            "Process Group Name": "0",
            "Process Group Description": "default_pg",
            "Process Group Ranks": str(list(range(RANKS))),
            "Seq": self._world.sequence(step, bucket),
        }


def tensor_args(elements: int) -> dict[str, object]:
    """Arguments of an operator that takes one flat bf16 tensor."""
    return {
        "Concrete Inputs": [""],
        "Input type": ["c10::BFloat16"],
        "Input Strides": [[1]],
        "Input Dims": [[elements]],
    }


def all_reduce_args(elements: int) -> dict[str, object]:
    """Arguments of `c10d::allreduce_`."""
    return {
        "Concrete Inputs": ["", "", "", "", "True", "-1"],
        "Input type": ["TensorList", "", "", "", "Scalar", "Scalar"],
        "Input Dims": [[[elements]], [], [], [], [], []],
    }


def record_args(metadata: dict[str, object], rank: int) -> dict[str, object]:
    """Arguments of the host record of a collective."""
    return {**metadata, "Rank": rank, "Global rank start": 0, "Global rank stride": 1}


def simulate(setting: Setting) -> list[Rank]:
    """Let the eight ranks train; they hold what happened, on the wire and in their recordings."""
    simulator = Simulator()
    world = World(setting)
    ranks = []
    for number in range(RANKS):
        is_slow = setting.straggler and number == STRAGGLER
        slowness = STRAGGLER_SLOWNESS if is_slow else 1.0
        rank = Rank(simulator, number, seed=setting.seed, slowness=slowness)
        Trainer(rank, world, setting)
        ranks.append(rank)
    simulator.run()
    return ranks


def step_ns(ranks: list[Rank]) -> int:
    """Time of a recorded step, from what happened (not from what was recorded).

    Boundary k of a rank is the later of the host end of its k-th recorded step and the end of
    the last device work launched before it; boundary 0 likewise, with the host start of the
    first one. A boundary of the run is the latest over the ranks.
    """
    first = max(_boundary(rank, rank.window_starts[WARM_UP_STEPS]) for rank in ranks)
    last = max(_boundary(rank, rank.window_ends[STEPS - 1]) for rank in ranks)
    return round((last - first) / RECORDED_STEPS)


def _boundary(rank: Rank, host_ns: int) -> int:
    launched = [work for work in rank.launched if work.launched_ns < host_ns]
    return max(host_ns, launched[-1].end_ns if launched else host_ns)
