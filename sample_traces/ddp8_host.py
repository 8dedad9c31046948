"""A rank: its host threads, its GPU with two streams, and what a profiler sees of them."""

import random
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from ddp8_events import Collective, Process, Signal, Simulator, Stream, Work
from ddp8_model import Kernel, Op

COMPUTE_STREAM = 7
NCCL_STREAM = 23
LAUNCH_LAG_NS = 2_000
"""From the end of a launching call to the earliest start of its work on an idle stream."""
STREAM_GAP_NS = 1_300
"""Between two pieces of work of a stream."""
HOST_JITTER = 0.25
DEVICE_JITTER = 0.01
MEMBER_SKEW_NS = 400
"""The members of a collective end up to that much apart."""

CALLBACK_IDS = {
    "cudaLaunchKernel": 211,
    "cuLaunchKernelEx": 652,
    "cudaMemcpyAsync": 41,
    "cudaEventRecord": 135,
    "cudaEventRecordWithFlags": 370,
    "cudaEventQuery": 138,
    "cudaStreamWaitEvent": 147,
    "cudaStreamIsCapturing": 317,
    "cudaStreamGetCaptureInfo_v2": 409,
    "cudaStreamSynchronize": 131,
    "cudaDeviceSynchronize": 165,
    "cudaGetFuncBySymbol": 336,
    "cudaThreadExchangeStreamCaptureMode": 327,
}


@dataclass(frozen=True, kw_only=True)
class HostRow:
    """A row of a host thread; `correlation` is 0 for rows that are no runtime calls."""

    category: str
    name: str
    thread: int
    start_ns: int
    end_ns: int
    args: dict[str, object]
    correlation: int = 0


@dataclass(kw_only=True)
class Recording:
    """What the profiler of one rank has seen."""

    on: bool = False
    start_ns: int = 0
    stop_ns: int = 0
    externals: int = 0
    rows: list[HostRow] = field(default_factory=list)


class Rank:
    """One process with one GPU."""

    def __init__(self, simulator: Simulator, number: int, *, seed: int, slowness: float) -> None:
        self.simulator = simulator
        self.number = number
        self.seed = seed
        self.slowness = slowness
        self.compute = Stream(simulator, COMPUTE_STREAM)
        self.nccl = Stream(simulator, NCCL_STREAM)
        self.launched: list[Work] = []
        self.recording = Recording()
        self.correlation = 31_000 + 577 * number
        self.window_starts: list[int] = []
        self.window_ends: list[int] = []

    @property
    def process(self) -> int:
        """Number of the process; also that of its main thread."""
        return 41_000 + 113 * self.number

    def start_recording(self) -> None:
        """Let the profiler see what starts from now on."""
        self.recording.on = True
        self.recording.start_ns = self.simulator.now

    def stop_recording(self) -> None:
        """Nothing later is seen."""
        self.recording.on = False
        self.recording.stop_ns = self.simulator.now


class Host:
    """A CPU thread of a rank: it works, opens operators, calls the runtime."""

    def __init__(self, rank: Rank, thread: int, purpose: str) -> None:
        self.rank = rank
        self.thread = thread
        self._random = random.Random(f"{rank.seed}/{rank.number}/{purpose}")
        self._external: list[int] = []

    def work(self, microseconds: float) -> Process:
        """Python and operator code, about as long as said."""
        yield self._about(round(microseconds * 1_000), HOST_JITTER)

    @contextmanager
    def row(
        self, category: str, name: str, args: dict[str, object] | None = None
    ) -> Iterator[None]:
        """A row from now until the block ends; operators give their id to the calls inside."""
        recording = self.rank.recording
        recording.externals += 1
        external = recording.externals
        is_operator = category == "cpu_op"
        if is_operator:
            self._external.append(external)
        start_ns = self.rank.simulator.now
        yield
        if is_operator:
            self._external.pop()
        shown = {"External id": external, "Record function id": 0, **(args or {})}
        self._note(category, name, start_ns, shown)

    @contextmanager
    def operators(self, names: tuple[str, ...], args: dict[str, object]) -> Iterator[None]:
        """Operators inside each other, with nothing in between."""
        with ExitStack() as stack:
            for name in names:
                stack.enter_context(self.row("cpu_op", name, args))
            yield

    def run(self, op: Op, sequence: int | None = None) -> Process:
        """An operator and the kernels that it launches on the compute stream."""
        dims = [list(dim) for dim in op.dims]
        args: dict[str, object] = {
            "Concrete Inputs": [""] * len(dims),
            "Input type": ["c10::BFloat16"] * len(dims),
            "Input Dims": dims,
        }
        if sequence is not None and op.differentiable:
            args = {"Sequence number": sequence, "Fwd thread id": 0, **args}
        with self.operators(op.names, args):
            yield from self.work(14)
            for kernel in op.kernels:
                yield from self.launch(kernel, self.rank.compute)
                yield from self.work(6)

    def call(
        self, name: str, microseconds: float, until: tuple[Signal, ...] = ()
    ) -> Generator[int | Signal, None, int]:
        """A runtime call, which may block until something happened; returns its correlation."""
        rank = self.rank
        rank.correlation += 1
        correlation = rank.correlation
        start_ns = rank.simulator.now
        yield from self.work(microseconds)
        yield from until
        if until:
            yield from self.work(4)
        args = {"cbid": CALLBACK_IDS[name], "correlation": correlation}
        category = "cuda_driver" if name.startswith("cuL") else "cuda_runtime"
        self._note(category, name, start_ns, self._external_args() | args, correlation)
        return correlation

    def launch(self, kernel: Kernel, stream: Stream) -> Generator[int | Signal, None, Work]:
        """Launch a compute kernel."""
        start_ns = self.rank.simulator.now
        correlation = yield from self.call("cudaLaunchKernel", 5)
        work = self._work(kernel.name, "kernel", start_ns, correlation)
        work.dur_ns = round(self._about(kernel.dur_ns, DEVICE_JITTER) * self.rank.slowness)
        work.args = kernel_args(kernel)
        stream.launch(work)
        return work

    def copy(self, name: str, size_bytes: int) -> Generator[int | Signal, None, Work]:
        """Launch a copy between host and device on the compute stream."""
        start_ns = self.rank.simulator.now
        correlation = yield from self.call("cudaMemcpyAsync", 9)
        work = self._work(name, "gpu_memcpy", start_ns, correlation)
        work.dur_ns = self._about(1_400 + size_bytes // 25, DEVICE_JITTER)
        rate = size_bytes / work.dur_ns
        work.args = {"bytes": size_bytes, "memory bandwidth (GB/s)": rate}
        self.rank.compute.launch(work)
        return work

    def join(
        self, kernel: Kernel, collective: Collective, metadata: dict[str, object]
    ) -> Generator[int | Signal, None, Work]:
        """Launch this rank's member of a collective."""
        start_ns = self.rank.simulator.now
        correlation = yield from self.call("cuLaunchKernelEx", 8)
        work = self._work(kernel.name, "kernel", start_ns, correlation)
        work.dur_ns = self._about(MEMBER_SKEW_NS // 2, 1)
        work.args = kernel_args(kernel)
        work.metadata = metadata
        work.collective = collective
        self.rank.nccl.launch(work)
        return work

    def _work(self, name: str, category: str, start_ns: int, correlation: int) -> Work:
        work = Work(
            name=name,
            category=category,
            correlation=correlation,
            launched_ns=start_ns,
            ready_ns=self.rank.simulator.now + self._about(LAUNCH_LAG_NS, 0.2),
            gap_ns=self._about(STREAM_GAP_NS, 0.2),
            external=self._external[-1] if self._external else None,
        )
        self.rank.launched.append(work)
        return work

    def _external_args(self) -> dict[str, object]:
        return {"External id": self._external[-1]} if self._external else {}

    def _about(self, value: int, share: float) -> int:
        """`value`, off by up to `share` either way; drawn in program order, so in every run."""
        return round(value * (1 + share * (2 * self._random.random() - 1)))

    def _note(
        self, category: str, name: str, start_ns: int, args: dict[str, object], correlation: int = 0
    ) -> None:
        rank = self.rank
        if not rank.recording.on:
            return
        row = HostRow(
            category=category,
            name=name,
            thread=self.thread,
            start_ns=start_ns,
            end_ns=rank.simulator.now,
            args=args,
            correlation=correlation,
        )
        rank.recording.rows.append(row)


def kernel_args(kernel: Kernel) -> dict[str, object]:
    """What the profiler says of a kernel besides where and when it ran."""
    blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2]
    return {
        "registers per thread": kernel.registers,
        "shared memory": kernel.shared_bytes,
        "blocks per SM": round(blocks / 132, 6),
        "warps per SM": round(blocks * kernel.block / 32 / 132, 6),
        "grid": list(kernel.grid),
        "block": [kernel.block, 1, 1],
        "est. achieved occupancy %": 0,
    }
