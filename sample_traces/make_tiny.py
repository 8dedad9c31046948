"""Makes `tiny/`: one small trace per oddity that real files were seen to have.

    python sample_traces/make_tiny.py -o DIR

Each function below is one oddity; its name is that of the file (or of the folder, where the
oddity needs several ranks), its docstring says what is odd. Times are microseconds.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

Event = dict[str, Any]
Files = dict[str, bytes]

BASE_NS = 1_767_189_312_000_000_000
GPU = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}
HOST, MAIN = 900, 900
COMPUTE, NCCL = 7, 23


def row(category: str, name: str, span: tuple[float, float], **args: object) -> Event:
    """A host row over `span`."""
    start, end = span
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": HOST,
        "tid": MAIN,
        "ts": start,
        "dur": round(end - start, 3),
        "args": args,
    }


def step(number: int, span: tuple[float, float]) -> Event:
    """A profiled step."""
    return row("user_annotation", f"ProfilerStep#{number}", span)


def launch(correlation: int, start: float, name: str = "cudaLaunchKernel") -> Event:
    """A launching call of 5 us."""
    return row("cuda_runtime", name, (start, start + 5), correlation=correlation)


def kernel(correlation: int, name: str, span: tuple[float, float], **args: object) -> Event:
    """A kernel on the compute stream, unless `stream` says otherwise."""
    shown: dict[str, object] = {"device": 0, "stream": COMPUTE, "correlation": correlation, **args}
    return row("kernel", name, span, **shown) | {"pid": 0, "tid": shown["stream"]}


def copy(correlation: int, span: tuple[float, float], rate: float) -> Event:
    """A copy to the device."""
    event = kernel(correlation, "Memcpy HtoD (Pinned -> Device)", span, bytes=4096)
    event["args"]["memory bandwidth (GB/s)"] = rate
    return event | {"cat": "gpu_memcpy"}


def all_reduce(correlation: int, span: tuple[float, float], sequence: int, size: int) -> Event:
    """One rank's member of an all-reduce over `size` ranks."""
    return kernel(
        correlation,
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        span,
        stream=NCCL,
        **{
            "Collective name": "allreduce",
            "In msg nelems": 1_000_000,
            "Out msg nelems": 1_000_000,
            "Group size": size,
            "dtype": "BFloat16",
            "Process Group Name": "0",
            "Process Group Description": "default_pg",
            "Process Group Ranks": str(list(range(size))),
            "Seq": sequence,
        },
    )


def document(events: Iterable[Event], rank: int = 0, size: int = 1, **header: object) -> str:
    """A whole trace, one event a line."""
    shown: dict[str, object] = {
        "schemaVersion": 1,
        "deviceProperties": [GPU],
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": size},
        "baseTimeNanoseconds": BASE_NS,
        **header,
    }
    head = json.dumps({key: value for key, value in shown.items() if value is not None})
    return f'{head[:-1]}, "traceEvents": {_listed(events)}}}\n'


def _listed(events: Iterable[Event]) -> str:
    return "[\n" + ",\n".join(json.dumps(event) for event in events) + "\n]"


def _simple() -> list[Event]:
    """One step, two kernels, both launched in it."""
    return [
        step(1, (0, 100)),
        row("cpu_op", "aten::mm", (10, 25)),
        launch(11, 15),
        kernel(11, "gemm", (22, 62)),
        row("cpu_op", "aten::relu", (30, 42)),
        launch(12, 34),
        kernel(12, "relu", (63.5, 73.25)),
    ]


def kernel_without_launch() -> str:
    """Two kernels were launched before the window; only the third has its launch."""
    head = [kernel(3, "gemm", (1, 31)), kernel(4, "relu", (32.5, 42.5))]
    return document([*head, step(1, (0, 90)), launch(5, 20), kernel(5, "gemm", (44, 80))])


def absolute_microseconds() -> str:
    """Times are epoch microseconds with three decimals: 19 digits, more than a double holds."""
    epoch = 1_767_189_317_250_000
    text = document(_simple(), baseTimeNanoseconds=None)
    for event in _simple():
        whole, _, decimals = f"{event['ts']:.3f}".partition(".")
        old = json.dumps(event)
        new = old.replace(f'"ts": {event["ts"]},', f'"ts": {epoch + int(whole)}.{decimals},')
        text = text.replace(old, new)
    return text


def collective_missing_rank() -> dict[str, str]:
    """Three ranks reduce together; the file of rank 1 is missing."""
    arrivals = {0: 40, 2: 55}
    files = {}
    for rank, start in arrivals.items():
        calls = [launch(correlation, 10 + 8 * correlation) for correlation in (1, 2, 3)]
        first, second = all_reduce(1, (start, 130), 7, 3), all_reduce(2, (150, 190), 8, 3)
        events = [step(1, (0, 250)), *calls, first, second, kernel(3, "adam", (192, 230))]
        files[f"rank{rank}.json"] = document(events, rank, 3)
    return files


def truncated() -> str:
    """The job was killed while the file was being written, inside the last event."""
    text = document(_simple())
    return text[: text.rindex('"relu"') + 3]


def bad_escape() -> str:
    r"""A Windows path, not escaped: `\m` and `\unet` are no JSON, `\b` is, by chance."""
    frame = row("python_function", "PATH(31): forward", (5, 95))
    text = document([*_simple(), frame])
    return text.replace("PATH", r"D:\models\unet\blocks.py")


def unescaped_quote() -> str:
    """A kernel name with quotes of its own."""
    text = document(_simple())
    return text.replace('"name": "relu"', '"name": "fused_"fast"_relu"')


def bare_nan() -> str:
    """Bandwidths of zero-length copies, written as words that are not JSON."""
    copies = [
        copy(21, (75, 75), float("inf")),
        copy(22, (77, 77), float("nan")),
        copy(23, (79, 81), 2.048),
    ]
    return document([*_simple(), *copies]).replace("Infinity", "inf")


def graph_launch() -> str:
    """One call launches a graph of four kernels, which all carry its correlation."""
    nodes = [((40, 60), 1), ((61, 91), 2), ((92, 97), 3), ((98, 118), 4)]
    kernels = [
        kernel(9, f"node_{node}", span, **{"graph id": 2, "graph node id": node})
        for span, node in nodes
    ]
    call = row("cuda_runtime", "cudaGraphLaunch", (12, 30), correlation=9)
    wait = row("cuda_runtime", "cudaDeviceSynchronize", (33, 124), correlation=10)
    return document([step(1, (0, 130)), call, *kernels, wait])


def cpu_only() -> str:
    """No GPU, no rank, no steps: operators alone."""
    events = [row("cpu_op", "aten::mm", (0, 40)), row("cpu_op", "aten::relu", (45, 60))]
    return document(events, distributedInfo=None, deviceProperties=[])


def late_metadata() -> str:
    """What the header usually holds comes after the events (on-demand captures)."""
    tail = {
        "deviceProperties": [GPU],
        "distributedInfo": {"backend": "nccl", "rank": 6, "world_size": 8},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
    }
    return f'{{"schemaVersion": 1, "traceEvents": {_listed(_simple())}, {json.dumps(tail)[1:]}\n'


def zero_correlation() -> str:
    """Zero means that there is no correlation: it links nothing, however often it occurs."""
    query = row("cuda_runtime", "hipGetDevice", (5, 6), correlation=0)
    named = [launch(31, 10, "hipLaunchKernel"), kernel(31, "Cijk_Ailk_Bljk_HB", (20, 40))]
    nameless = [kernel(0, "ncclDevKernel_Generic", (42, 60)), kernel(0, "__amd_copy", (61, 65))]
    return document([step(1, (0, 80)), query, *named, *nameless])


def clock_skew() -> dict[str, str]:
    """Two hosts whose clocks differ by 7 ms: every all-reduce ends on both at the same time."""
    ends = (130.0, 260.0, 390.0, 520.0)
    files = {}
    for rank, (skew, early) in enumerate(((0.0, 30.0), (7_000.0, 5.0))):
        events = [step(1, (skew, skew + 600))]
        for sequence, end in enumerate(ends):
            start = end - 20 - (early if sequence % 2 == rank else 0)
            events.append(launch(sequence + 1, skew + start - 60))
            events.append(all_reduce(sequence + 1, (skew + start, skew + end), sequence, 2))
        files[f"rank{rank}.json"] = document(events, rank, 2, host_name=f"node{rank}")
    return files


def string_timestamps() -> str:
    """Times are JSON strings (Ascend's profiler writes them so)."""
    events = [event | {"ts": str(event["ts"]), "dur": str(event["dur"])} for event in _simple()]
    return document(events)


def bare_list() -> str:
    """No object around the events, and a comma after the last one."""
    return _listed(_simple()).removesuffix("\n]") + ",\n]\n"


def kernel_before_launch() -> str:
    """A kernel starts 1.2 us before the call that launched it: two clocks."""
    late = [launch(41, 50), kernel(41, "gemm", (48.8, 60))]
    return document([step(1, (0, 90)), launch(40, 10), kernel(40, "relu", (17, 27)), *late])


def crossing_slices() -> str:
    """Two Python frames that overlap without nesting, and an operator that crosses both."""
    frames = [
        row("python_function", "train.py(12): step", (10, 50)),
        row("python_function", "train.py(40): log", (30, 70)),
        row("cpu_op", "aten::mean", (45, 60)),
    ]
    return document([*frames, step(1, (0, 80)), launch(51, 46), kernel(51, "mean", (54, 58))])


def stream_overlap() -> str:
    """A kernel starts 3 us before the one ahead of it on its stream ends (dependent launch)."""
    calls = [launch(61, 10, "cuLaunchKernelEx"), launch(62, 16, "cuLaunchKernelEx")]
    return document(
        [step(1, (0, 80)), *calls, kernel(61, "a", (18, 48)), kernel(62, "b", (45, 66))]
    )


def negative_duration() -> str:
    """One kernel ends before it starts, another takes no time at all."""
    calls = [launch(71, 10), launch(72, 16), launch(73, 22)]
    spans = [("a", (20.0, 18.5)), ("b", (30.0, 30.0)), ("c", (32.0, 52.0))]
    kernels = [kernel(71 + index, name, span) for index, (name, span) in enumerate(spans)]
    return document([step(1, (0, 80)), *calls, *kernels])


def old_categories() -> str:
    """A file of 2021: other category names, whole microseconds, no base, no header to speak of."""
    renamed = {"kernel": "Kernel", "cuda_runtime": "Runtime", "cpu_op": "Operator"}
    events = [event | {"cat": renamed.get(event["cat"], event["cat"])} for event in _simple()]
    for event in events:
        event["ts"], event["dur"] = 1_620_000_000_000_000 + int(event["ts"]), int(event["dur"])
    return f'{{"schemaVersion": 1, "traceEvents": {_listed(events)}}}\n'


def default_stream() -> str:
    """ROCm: the default stream is number 0, and runtime calls are named hip..."""
    calls = [launch(81, 10, "hipExtModuleLaunchKernel"), launch(82, 20, "hipLaunchKernel")]
    kernels = [
        kernel(81, "Cijk_Ailk_Bljk_HB", (17, 40), stream=0, kind="Dispatch Kernel"),
        kernel(82, "elementwise_kernel", (41, 50), stream=0, kind="Dispatch Kernel"),
    ]
    wait = row("cuda_runtime", "hipDeviceSynchronize", (26, 56), correlation=83)
    gpu = {"id": 0, "name": "AMD Instinct MI300X"}
    return document([step(1, (0, 70)), *calls, *kernels, wait], deviceProperties=[gpu])


def gzip_named_json() -> bytes:
    """Compressed, though its name does not say so."""
    return gzip.compress(document(_simple()).encode(), mtime=0)


ODDITIES: tuple[Callable[[], str | bytes | dict[str, str]], ...] = (
    kernel_without_launch,
    absolute_microseconds,
    collective_missing_rank,
    truncated,
    bad_escape,
    unescaped_quote,
    bare_nan,
    graph_launch,
    cpu_only,
    late_metadata,
    zero_correlation,
    clock_skew,
    string_timestamps,
    bare_list,
    kernel_before_launch,
    crossing_slices,
    stream_overlap,
    negative_duration,
    old_categories,
    default_stream,
    gzip_named_json,
)


def files() -> Files:
    """All files by their path inside `tiny/`."""
    found: Files = {}
    for oddity in ODDITIES:
        name, content = oddity.__name__, oddity()
        if isinstance(content, dict):
            found |= {f"{name}/{file}": text.encode() for file, text in content.items()}
        else:
            data = content if isinstance(content, bytes) else content.encode()
            found[f"{name}.json"] = data
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Write every file below the folder that is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the traces")
    folder = parser.parse_args(arguments).output
    for name, data in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
