"""Kineto files for tests: one call writes one row, times in microseconds, as a profiler would."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

Span = tuple[float, float]
"""Start and end, us."""
Json = dict[str, object]

PROCESS = 400
MAIN, AUTOGRAD = 400, 431
"""Thread ids."""
COMPUTE, NETWORK = 7, 20
"""Streams."""
BASE_NS = 1_900_000_000_000_000_000
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
GPU = "NVIDIA H100 80GB HBM3"


@dataclass(kw_only=True)
class KinetoFile:
    """One rank's file; methods that write a runtime call answer its correlation."""

    rank: int = 0
    ranks: Sequence[int] = (0,)
    """Members of the only communicator."""
    gpus: int = 1
    host: str | None = None
    rows: list[Json] = field(default_factory=list)
    last_correlation: int = 0

    def step(self, number: int, span: Span) -> None:
        """A `ProfilerStep` window on the main thread."""
        self.host_row("user_annotation", f"ProfilerStep#{number}", span)

    def op(self, name: str, span: Span, *, thread: int = MAIN, **args: object) -> None:
        """A framework operator."""
        self.host_row("cpu_op", name, span, thread=thread, **args)

    def annotation(self, name: str, span: Span, *, thread: int = MAIN, **args: object) -> None:
        """A user annotation; `gloo:*` are those of the library's worker threads."""
        self.host_row("user_annotation", name, span, thread=thread, **args)

    def call(self, name: str, span: Span, *, thread: int = MAIN) -> int:
        """A runtime call."""
        self.last_correlation += 1
        self.host_row("cuda_runtime", name, span, thread=thread, correlation=self.last_correlation)
        return self.last_correlation

    def kernel(
        self, name: str, span: Span, *, stream: int = COMPUTE, call: int = 0, device: int = 0
    ) -> None:
        """A kernel; without `call` its launch lies before the window."""
        self._device_row("kernel", name, span, _place(stream, call, device))

    def launched(
        self, name: str, call: Span, run: Span, *, stream: int = COMPUTE, thread: int = MAIN
    ) -> int:
        """A launching call and its kernel."""
        correlation = self.call("cudaLaunchKernel", call, thread=thread)
        self.kernel(name, run, stream=stream, call=correlation)
        return correlation

    def copy(
        self, kind: str, call: Span, run: Span, *, api: str = "cudaMemcpyAsync", stream: int = 7
    ) -> int:
        """A copying call and its copy; `kind` as in `Memcpy DtoH (Device -> Pageable)`."""
        correlation = self.call(api, call)
        self._device_row("gpu_memcpy", f"Memcpy {kind}", run, _place(stream, correlation, 0))
        return correlation

    def all_reduce(
        self, sequence: int, call: Span, run: Span, *, stream: int = NETWORK, elements: int = 1000
    ) -> int:
        """A launching call and one member of an all-reduce with NCCL's metadata."""
        correlation = self.call("cudaLaunchKernel", call)
        self.member(sequence, run, stream=stream, call=correlation, elements=elements)
        return correlation

    def member(
        self,
        sequence: int,
        run: Span,
        *,
        stream: int = NETWORK,
        call: int = 0,
        elements: int = 1000,
    ) -> None:
        """A member of an all-reduce alone."""
        self._device_row(
            "kernel",
            ALL_REDUCE,
            run,
            _place(stream, call, 0)
            | {
                "Collective name": "allreduce",
                "In msg nelems": elements,
                "Out msg nelems": elements,
                "Group size": len(self.ranks),
                "dtype": "Float",
                "Process Group Name": "0",
                "Process Group Description": "default_pg",
                "Process Group Ranks": str(list(self.ranks)),
                "Seq": sequence,
            },
        )

    def record(self, span: Span, *, thread: int = MAIN) -> int:
        """An event is recorded."""
        return self.call("cudaEventRecord", span, thread=thread)

    def wait(
        self,
        span: Span,
        *,
        on: tuple[int, int] | None = None,
        event: int | None = None,
        waiting: int = COMPUTE,
        thread: int = MAIN,
    ) -> int:
        """A stream waits for an event.

        With `on` = (recorded stream, correlation of the record) the profiler's `cuda_sync` row
        says so; without, only the order of calls does. `event` is the event's id, else a new one.
        """
        correlation = self.call("cudaStreamWaitEvent", span, thread=thread)
        if on is not None:
            self.sync_row(
                "Stream Wait Event",
                (span[0], span[0]),
                correlation,
                stream=waiting,
                wait_on_stream=on[0],
                wait_on_cuda_event_record_corr_id=on[1],
                wait_on_cuda_event_id=on[1] if event is None else event,
            )
        return correlation

    def sync_row(self, kind: str, span: Span, correlation: int, **args: object) -> None:
        """A `cuda_sync` row, as recorded with `enable_cuda_sync_events`."""
        stream = args.get("stream", -1)
        shown: Json = {"cuda_sync_kind": kind, "correlation": correlation, "device": 0, **args}
        self._row("cuda_sync", kind, span, (0, stream), shown)

    def host_row(
        self, category: str, name: str, span: Span, *, thread: int = MAIN, **args: object
    ) -> None:
        """A row of a CPU thread."""
        self._row(category, name, span, (PROCESS, thread), args)

    def write(self, path: Path) -> Path:
        """The file, with the header of a job of this many ranks."""
        listed = {"pg_name": "0", "pg_desc": "default_pg", "ranks": list(self.ranks)}
        listed |= {"backend_config": "cuda:nccl", "pg_size": len(self.ranks)}
        document: Json = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": number, "name": GPU} for number in range(self.gpus)],
            "distributedInfo": {
                "backend": "nccl",
                "rank": self.rank,
                "world_size": len(self.ranks),
                "pg_count": 1,
                "pg_config": [listed],
            },
            "baseTimeNanoseconds": BASE_NS,
            "traceEvents": self.rows,
        }
        if self.host is not None:
            document["host_name"] = self.host
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    def _device_row(self, category: str, name: str, span: Span, args: Json) -> None:
        self._row(category, name, span, (args["device"], args["stream"]), args)

    def _row(
        self, category: str, name: str, span: Span, track: tuple[object, object], args: Json
    ) -> None:
        start, end = span
        row = {"ph": "X", "cat": category, "name": name, "pid": track[0], "tid": track[1]}
        self.rows.append({**row, "ts": start, "dur": round(end - start, 3), "args": args})


def _place(stream: int, call: int, device: int) -> Json:
    return {"device": device, "stream": stream, "correlation": call}
