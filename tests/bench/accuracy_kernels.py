"""The tables of docs/accuracy.md about other accelerators and precisions, measured again.

    python -m tests.bench.accuracy_kernels ../shared

Every prediction is from one measured time to another; readings of the data set that judges are left
out of the model (`Shares.without`).
"""

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from statistics import median

import numpy as np

from ingest.pipeline import IngestOptions, open_run
from ingest.vocab import ElementType, KernelClass
from replay.api import analyse
from replay.graph.build import build
from replay.results.kernel_work import find_kernel_work
from tests.bench.scatter import scatter
from tests.bench.transformer import Shape, kernels_of_model, kernels_of_products
from whatif.models.bound import Bound
from whatif.models.hardware import require
from whatif.models.kernels.machine import Machine, machine_of
from whatif.models.kernels.precision import recast
from whatif.models.kernels.roofline import Kernels, Precision, model_ns, scaled_ns
from whatif.models.kernels.shares import Shares, published
from whatif.scenario import Scenario
from whatif.transforms.gpu import Gpu, located

WIDEST = 2.0
"""A range wider than this is a miss, whatever it holds."""
LARGE_FRAC = 0.01
MANY_PAIRS = 10
LOW_POWER = "NeuSight, cards below 100 W"
FIGURE = "img/kernels.svg"
INTRODUCTION = """## Other accelerators and precisions

`--gpu` and `--precision` (the kernel model, docs/what-if.md). From one measured time another is
predicted; readings of the data set that judges are left out of the model's shares of peak, those of
the pair's own devices where a row is such a reading. *Inside*: the truth lies in the printed range
and the range is at most a factor of two wide. *Peaks alone*: the error of plain scaling by
published peaks."""
TRACES = """Three Hugging Face models, each traced on an H100 and on an MI300X (TraceLens): steps by
the command line (the hosts differ, so that host-bound steps differ too), then kernels by class. No
rate of the model is taken from these traces; which of its parts are there, and how wide its ranges
are, was chosen with all tables of this section in sight. Convolutions are one kernel each, for
which the two libraries took unlike algorithms: 3 times apart, and on the other side of what the
roofs say. Kernels of attention of 10 us are bound by what neither roof tells. Both are known
failures."""
TABLES = """Kernels and whole models. Whole models are made of the kernels of a transformer of
their shape, whose sum is scaled to the measured time; communication is taken as hidden. SimuMax:
the same shapes on both, tiles of 256 x 128 presumed. MAMF: the best of many shapes, predicted from
shares of usual ones, so that plain scaling is about as good. NeuSight: transformers in fp32,
forward or with backward. Cards below 100 W (L4, T4, P4) keep a part of the usual share, taken here
from the two others."""
PRECISION = """Best products in bf16 and in fp8 on the same device (MAMF), and Llama 3.1 8B in
torchtitan with bf16 and with Float8 (tensorwise scales). Rowwise scales are a known failure: in the
same project's tables with tensor parallelism they gain nothing or lose (0.81 to 1.04 times as
fast), as their casts and kernels cost what the products gain."""
PAIR = "pair_hf_infer_h100_vs_mi300"
PAIR_DEVICES = {"h100": "NVIDIA H100 80GB HBM3", "mi300": "AMD Instinct MI300X"}


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One prediction beside what was measured; any unit of time."""

    source: str
    pair: str
    what: str
    base: float
    predicted: float
    low: float
    high: float
    truth: float
    plain: float
    """What the ratio of the published peaks alone gives."""

    @property
    def plain_error_frac(self) -> float:
        return self.plain / self.truth - 1

    @property
    def error_frac(self) -> float:
        return self.predicted / self.truth - 1

    @property
    def width(self) -> float:
        return self.high / self.low

    @property
    def is_inside(self) -> bool:
        return self.low <= self.truth <= self.high and self.width <= WIDEST * 1.001


def judged(
    source: str,
    pair: tuple[str, str],
    what: str,
    base: float,
    truth: float,
    ratios: Sequence[float],
) -> Judged:
    """From ratios (nominal, low, high, by peaks alone) of the new time to the base."""
    nominal, low, high, plain = (base * ratio for ratio in ratios)
    return Judged(
        source=source,
        pair=" to ".join(pair),
        what=what,
        base=base,
        predicted=nominal,
        low=low,
        high=high,
        truth=truth,
        plain=plain,
    )


def ratios(kernels: Kernels, dur_ns: np.ndarray, base: Machine, new: Machine) -> list[float]:
    """Of the sum of times: nominal, low, high, and by the peaks of the usual type alone."""
    total = max(int(dur_ns.sum()), 1)
    usual = ElementType(int(np.bincount(kernels.dtype).argmax()))
    usual = usual if usual in base.flops_per_s else ElementType.BF16
    return [
        *(
            float(scaled_ns(dur_ns, kernels, base, new, bound=bound).sum()) / total
            for bound in (Bound.NOMINAL, Bound.LOW, Bound.HIGH)
        ),
        base.flops_per_s[usual] / new.flops_per_s[usual],
    ]


def machines(names: Iterable[str], shares: Shares) -> dict[str, Machine]:
    return {name: machine_of(require(name), shares) for name in names}


def without_devices(shares: Shares, names: Iterable[str]) -> Shares:
    """The readings of other devices."""
    short = {name.replace("Instinct ", "").split()[0] for name in names}
    return Shares(
        tuple(
            each for each in shares.readings if not short & set(each.what.replace(":", "").split())
        )
    )


# Traces of the same model on two devices


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Kernels of one trace."""

    dur_ns: np.ndarray
    kernels: Kernels
    op: np.ndarray
    """Name of the operator that launched each."""


def read_trace(path: Path) -> Trace:
    with open_run([path], options=IngestOptions()) as run:
        built = build(run.store)
        work = find_kernel_work(run.store, built.graph.names, built.facts)
    graph = replace(built.graph, work=work)
    found = located(graph)
    names = np.array([*graph.names, ""])
    return Trace(
        dur_ns=graph.tasks.dur_ns[found.task],
        kernels=found.kernels,
        op=names[graph.tasks.op[found.task]],
    )


def rows_of(kernels: Kernels, keep: np.ndarray) -> Kernels:
    return Kernels(**{name: getattr(kernels, name)[keep] for name in Kernels.__dataclass_fields__})


def trace_pairs(shared: Path, shares: Shares) -> Iterator[Judged]:
    """The same models on H100 and MI300X, in both directions, in all and by class."""
    folder = shared / "traces" / PAIR
    known = machines(PAIR_DEVICES.values(), shares)
    for model in _models(folder):
        traces = {key: read_trace(folder / f"{model}.{key}.json.gz") for key in PAIR_DEVICES}
        for here, there in permutations(PAIR_DEVICES, 2):
            base, new = (known[PAIR_DEVICES[key]] for key in (here, there))
            yield from _by_class(model, (here, there), traces[here], traces[there], base, new)


def by_operator(shared: Path, shares: Shares) -> Iterator[Judged]:
    """Kernels matched by the operator that launched them, where both traces have as many."""
    folder = shared / "traces" / PAIR
    known = machines(PAIR_DEVICES.values(), shares)
    for model in _models(folder):
        traces = {key: read_trace(folder / f"{model}.{key}.json.gz") for key in PAIR_DEVICES}
        for pair in permutations(PAIR_DEVICES, 2):
            mine, other = (traces[key] for key in pair)
            base, new = (known[PAIR_DEVICES[key]] for key in pair)
            for op in sorted({*mine.op} & {*other.op} - {""}):
                here, there = mine.op == op, other.op == op
                if here.sum() == there.sum():
                    yield judged(
                        "traces by operator",
                        pair,
                        f"{_short(model)}: {op}",
                        float(mine.dur_ns[here].sum()) / 1e6,
                        float(other.dur_ns[there].sum()) / 1e6,
                        ratios(rows_of(mine.kernels, here), mine.dur_ns[here], base, new),
                    )


def without_shapes(shared: Path, shares: Shares) -> Iterator[Judged]:
    """The same kernels, as a recording without shapes has them: names and times alone."""
    folder = shared / "traces" / PAIR
    known = machines(PAIR_DEVICES.values(), shares)
    for model in _models(folder):
        traces = {key: read_trace(folder / f"{model}.{key}.json.gz") for key in PAIR_DEVICES}
        for here, there in permutations(PAIR_DEVICES, 2):
            kernels = traces[here].kernels
            nothing = np.full(len(kernels.flops), np.nan)
            bare = replace(kernels, flops=nothing, bytes=nothing, tiles=np.full(len(nothing), -1))
            base, new = (known[PAIR_DEVICES[key]] for key in (here, there))
            yield judged(
                "traces, shapes left out",
                (here, there),
                f"{_short(model)}: all kernels",
                float(traces[here].dur_ns.sum()) / 1e6,
                float(traces[there].dur_ns.sum()) / 1e6,
                ratios(bare, traces[here].dur_ns, base, new),
            )


def whole_steps(shared: Path) -> Iterator[Judged]:
    """The step of each trace predicted for the other device; the hosts differ too."""
    folder = shared / "traces" / PAIR
    for model in _models(folder):
        paths = {key: folder / f"{model}.{key}.json.gz" for key in PAIR_DEVICES}
        measured = {key: analyse([path]).baseline.measured_ns for key, path in paths.items()}
        for here, there in permutations(PAIR_DEVICES, 2):
            scenario = Scenario(transforms=(Gpu(name=PAIR_DEVICES[there]),))
            found = analyse([paths[here]], scenario).prediction
            assert found is not None, "a what-if was asked"
            ends = (found.step_ns, found.low_ns, found.high_ns)
            made = [end / measured[here] for end in ends]
            peaks = [
                machine_of(require(PAIR_DEVICES[key])).flops_per_s[ElementType.BF16]
                for key in (here, there)
            ]
            yield judged(
                "whole steps",
                (here, there),
                _short(model),
                measured[here] / 1e6,
                measured[there] / 1e6,
                [*made, peaks[0] / peaks[1]],
            )


def _models(folder: Path) -> list[str]:
    return sorted({path.name.removesuffix(".h100.json.gz") for path in folder.glob("*.h100.*")})


def _short(model: str) -> str:
    return model.split("-")[0].split("_")[-1]


def _by_class(
    model: str,
    pair: tuple[str, str],
    mine: Trace,
    other: Trace,
    base: Machine,
    new: Machine,
) -> Iterator[Judged]:
    short = _short(model)
    classes = np.unique(mine.kernels.kernel_class).tolist()
    for kind in (None, *classes):
        here = mine.kernels.kernel_class == kind if kind is not None else mine.dur_ns >= 0
        there = other.kernels.kernel_class == kind if kind is not None else other.dur_ns >= 0
        name = "all kernels" if kind is None else KernelClass(kind).name.lower()
        yield judged(
            PAIR,
            pair,
            f"{short}: {name}",
            float(mine.dur_ns[here].sum()) / 1e6,
            float(other.dur_ns[there].sum()) / 1e6,
            ratios(rows_of(mine.kernels, here), mine.dur_ns[here], base, new),
        )


# Tables of single kernels


def simumax(shared: Path, shares: Shares) -> Iterator[Judged]:
    """The same shapes measured on A100 PCIe and B200: products, grouped products, attention."""
    rows = _csv(shared / "facts/gemm_tables/simumax_a100_b200_bf16_efficiency.csv")
    names = {"A100 80GB PCIe": "A100 PCIe 80 GB", "B200 SXM": "B200 SXM 180 GB"}
    known = machines(names.values(), shares)
    by_shape: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for row in rows:
        by_shape.setdefault((row["op"], row["shape_key"]), {})[names[row["gpu"]]] = row
    for (op, shape), found in by_shape.items():
        for here, there in permutations(found, 2):
            flops, kernels = kernels_of_products(op, shape, found[here])
            times = [flops / (float(found[at]["achieved_tflops"]) * 1e3) for at in (here, there)]
            dur_ns = np.array([round(times[0])], np.int64)
            yield judged(
                f"SimuMax {op}",
                (here, there),
                shape,
                times[0],
                times[1],
                ratios(kernels, dur_ns, known[here], known[there]),
            )


def best_products(shared: Path, shares: Shares) -> Iterator[Judged]:
    """Best bf16 product of every device from every other: peaks and shares alone."""
    rows = _csv(shared / "facts/gemm_tables/mamf_achievable_matmul.csv")
    names = {
        "NVIDIA A100 SXM": "A100 SXM4 80 GB",
        "NVIDIA A100 PCIe": "A100 PCIe 80 GB",
        "NVIDIA H100 SXM": "H100 SXM5 80 GB",
        "NVIDIA GH200 SXM": "GH200 144 GB",
        "NVIDIA B200 SXM": "B200 SXM 180 GB",
        "NVIDIA GB200 SXM": "GB200 186 GB",
        "AMD MI300X": "MI300X",
        "AMD MI325X": "MI325X",
        "AMD MI355X": "MI355X",
    }
    found = {
        names[row["gpu"]]: float(row["mamf_tflops"])
        for row in rows
        if row["dtype"] == "bf16" and row["gpu"] in names
    }
    flops = 2 * 8192.0**3
    for here, there in permutations(found, 2):
        known = machines((here, there), without_devices(shares, (here, there)))
        _, kernels = kernels_of_products("matmul", "", {"m": "8192", "n": "8192", "k": "8192"})
        base, truth = (flops / (found[at] * 1e3) for at in (here, there))
        dur_ns = np.array([round(base)], np.int64)
        yield judged(
            "MAMF best shape",
            (here, there),
            "bf16 product",
            base,
            truth,
            ratios(kernels, dur_ns, known[here], known[there]),
        )


# Whole models: kernels made from the model's shape, their sum scaled to the measured time


def whole(  # noqa: PLR0913  (all but two are what a row shows)
    source: str,
    pair: tuple[str, str],
    what: str,
    kernels: Kernels,
    times: tuple[float, float],
    known: dict[str, Machine],
    *,
    to_ns: float = 1e6,
) -> Judged:
    """The measured total, dealt out to the kernels as the model would."""
    base, new = (known[name] for name in pair)
    alone = model_ns(kernels, base)
    scale = times[0] * to_ns / alone.sum()
    dur_ns = np.rint(alone * scale).astype(np.int64)
    return judged(source, pair, what, times[0], times[1], ratios(kernels, dur_ns, base, new))


NEUSIGHT_DEVICES = {
    "Tesla_V100-PCIE-32GB": "V100 PCIe 32 GB",
    "NVIDIA_A100-PCIE-40GB": "A100 PCIe 40 GB",
    "NVIDIA_A100_80GB_PCIe": "A100 PCIe 80 GB",
    "NVIDIA_H100_80GB_HBM3": "H100 SXM5 80 GB",
    "NVIDIA_L4": "L4 24 GB",
    "AMD_Instinct_MI100": "Instinct MI100",
    "AMD_Instinct_MI210": "Instinct MI210",
    "AMD_Instinct_MI250": "Instinct MI250, 1 die",
    "Tesla_P100-PCIE-16GB": "Tesla P100 PCIe 16 GB",
    "Tesla_P4": "Tesla P4",
    "Tesla_T4": "Tesla T4",
}
NEUSIGHT_MODELS = {
    "bert_large": Shape(hidden=1024, heads=16, wide=4096),
    "gpt2_large": Shape(hidden=1280, heads=20, wide=5120),
    "gpt3_xl": Shape(hidden=2048, heads=24, wide=8192),
    "opt_13": Shape(hidden=2048, heads=32, wide=8192),
    "gpt3_27": Shape(hidden=2560, heads=32, wide=10240),
}


Job = tuple[str, ...]


def neusight(shared: Path, shares: Shares) -> Iterator[Judged]:
    """Transformers in fp32 on every device from every other."""
    rows = _csv(shared / "facts/scaling_tables/neusight_measured_cross_gpu.csv")
    plain = machines(NEUSIGHT_DEVICES.values(), shares)
    jobs: dict[tuple[str, ...], dict[str, tuple[float, dict[str, str]]]] = {}
    for row in rows:
        name = NEUSIGHT_DEVICES.get(row["gpu"])
        if name and row["option"] == "" and row["model"] in NEUSIGHT_MODELS and row["gpus"] == "1":
            key = (row["model"], row["mode"], row["seq_len"], row["global_batch"])
            jobs.setdefault(key, {})[name] = (float(row["e2e_ms"]), row)
    made = {
        (model, mode, length, batch): kernels_of_model(
            NEUSIGHT_MODELS[model],
            batch=int(batch),
            length=int(length),
            dtype=ElementType.FP32,
            layers=int(next(iter(found.values()))[1]["num_layer"]),
            training=mode == "train",
            flash=False,
        ).kernels
        for (model, mode, length, batch), found in jobs.items()
    }
    times = {job: {name: time for name, (time, _) in found.items()} for job, found in jobs.items()}
    judging = {name: _without_card(plain, name, made, times) for name in plain}
    for job, found in times.items():
        for here, there in permutations(found, 2):
            weak = min(judging[here].power_share, judging[there].power_share) < 1
            yield whole(
                LOW_POWER if weak else "NeuSight fp32 models",
                (here, there),
                f"{job[0]} {job[1]} {job[3]}",
                made[job],
                (found[here], found[there]),
                judging,
            )


def _without_card(
    known: dict[str, Machine],
    name: str,
    made: dict[Job, Kernels],
    times: dict[Job, dict[str, float]],
) -> Machine:
    """The machine; of low power, with what the other cards of low power keep of their share."""
    if known[name].power_share == 1:
        return known[name]
    kept = [
        _kept(card, known, made, times)
        for card in known
        if card != name and known[card].power_share < 1
    ]
    return replace(known[name], power_share=float(np.exp(np.mean(np.log(kept)))))


def _kept(
    card: str,
    known: dict[str, Machine],
    made: dict[Job, Kernels],
    times: dict[Job, dict[str, float]],
) -> float:
    """Predicted over measured time of a card at its full share, from all but those of low power."""
    at_full = {**known, card: replace(known[card], power_share=1.0)}
    rows = [
        whole("", (other, card), "", made[job], (found[other], found[card]), at_full)
        for job, found in times.items()
        if card in found
        for other in found
        if known[other].power_share == 1
    ]
    return median(row.predicted / row.truth for row in rows)


LLAMA_8B = Shape(hidden=4096, heads=32, wide=14336, key_heads=8, gated=True)
LLAMA_2 = {
    "llama2-7b": (Shape(hidden=4096, heads=32, wide=11008, gated=True), 32),
    "llama2-13b": (Shape(hidden=5120, heads=40, wide=13824, gated=True), 40),
    "llama2-34b": (Shape(hidden=8192, heads=64, wide=22016, key_heads=8, gated=True), 48),
    "llama2-70b": (Shape(hidden=8192, heads=64, wide=28672, key_heads=8, gated=True), 80),
}


def fsdp_runs(shared: Path, shares: Shares) -> Iterator[Judged]:
    """Llama 2 training on 128 A100 and on 96 H100; communication is taken as hidden."""
    rows = _csv(shared / "facts/scaling_tables/ibm_fms_fsdp_a100_vs_h100.csv")
    names = {"A100-80GB": "A100 SXM4 80 GB", "H100-80GB": "H100 SXM5 80 GB"}
    known = machines(names.values(), shares)
    for model, (shape, layers) in LLAMA_2.items():
        found = {
            names[row["gpu"]]: 1e6 / float(row["tok_per_s_per_gpu"])
            for row in rows
            if row["model"] == model
        }
        kernels = kernels_of_model(
            shape, batch=2, length=4096, dtype=ElementType.BF16, layers=layers, training=True
        ).kernels
        for here, there in permutations(found, 2):
            times = (found[here], found[there])
            yield whole(
                "Llama 2, FSDP", (here, there), model, kernels, times, known, to_ns=1e3 * 8192
            )


def upgrades(shared: Path, shares: Shares) -> Iterator[Judged]:
    """Llama 3.1 8B on H200 and B200: attention, everything else, and totals by length."""
    rows = _csv(shared / "facts/scaling_tables/stas_h200_vs_b200_llama8b.csv")
    known = machines(("H200 SXM5 141 GB", "B200 SXM 180 GB"), shares)
    by_name = {"H200": "H200 SXM5 141 GB", "B200": "B200 SXM 180 GB"}
    jobs: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in rows:
        if "sweep" not in row["config"] and "offload" not in row["config"].replace(
            "no offload", ""
        ):
            key = (row["bucket"], row["seq_len"], row["config"])
            jobs.setdefault(key, {})[by_name[row["gpu"]]] = float(row["model_tflops_per_gpu"])
    for row in rows:
        if "+CPU AdamW offload" in row["config"] and int(row["seq_len"]) >= 65536:
            key = (row["bucket"], row["seq_len"], row["config"])
            jobs.setdefault(key, {})[by_name[row["gpu"]]] = float(row["model_tflops_per_gpu"])
    for (bucket, length, config), rates in jobs.items():
        full = kernels_of_model(
            LLAMA_8B,
            batch=1,
            length=int(length),
            dtype=ElementType.BF16,
            layers=32,
            training=True,
            recomputed="act-ckpt" in config and "no act-ckpt" not in config,
        ).kernels
        attention = full.kernel_class == KernelClass.ATTENTION
        keep = {"attention": attention, "everything_else": ~attention}.get(bucket, attention | True)
        counted = np.where(attention, 0.5, 1.0) * np.nan_to_num(full.flops)
        steps = 4 / 3 if "act-ckpt" in config and "no act-ckpt" not in config else 1.0
        work = float(counted[keep].sum()) / steps
        found = {name: work / (rate * 1e3) / 1e6 for name, rate in rates.items()}
        for here, there in permutations(found, 2):
            yield whole(
                "Llama 3.1 8B",
                (here, there),
                f"{bucket} {length}",
                rows_of(full, keep),
                (found[here], found[there]),
                known,
            )


# Precision


def precisions(shared: Path, shares: Shares) -> Iterator[Judged]:
    """Best product in bf16 and in fp8 on the same device."""
    rows = _csv(shared / "facts/gemm_tables/mamf_achievable_matmul.csv")
    names = {
        "NVIDIA H100 SXM": "H100 SXM5 80 GB",
        "NVIDIA GH200 SXM": "GH200 144 GB",
        "NVIDIA B200 SXM": "B200 SXM 180 GB",
        "NVIDIA GB200 SXM": "GB200 186 GB",
        "NVIDIA B300 SXM": "B300 SXM",
    }
    rates: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["gpu"] in names and "mamf" and row["software"]:
            rates.setdefault(names[row["gpu"]], {})[row["dtype"]] = float(row["mamf_tflops"])
    flops = 2 * 8192.0**3
    _, kernels = kernels_of_products("matmul", "", {"m": "8192", "n": "8192", "k": "8192"})
    fp8 = Precision(dtype=np.array([ElementType.FP8], np.int8), bytes_factor=np.array([0.5]))
    for name, rate in rates.items():
        known = machines((name,), without_devices(shares, (name,)))
        base, truth = (flops / (rate[dtype] * 1e3) for dtype in ("bf16", "fp8_e4m3"))
        dur_ns = np.array([round(base)], np.int64)
        made = [
            float(
                scaled_ns(dur_ns, kernels, known[name], known[name], precision=fp8, bound=bound)[0]
            )
            / base
            for bound in (Bound.NOMINAL, Bound.LOW, Bound.HIGH)
        ]
        pair = (f"{name} bf16", "fp8")
        yield judged("MAMF best shape", pair, "product", base / 1e6, truth / 1e6, [*made, 0.5])


FLOAT8_RUNS = (
    ("FSDP 8", LLAMA_8B, 32, "Llama3.1-8B", "FSDP8", "FSDP+compile", "FSDP+compile+Float8"),
    ("FSDP 128", LLAMA_8B, 32, "Llama3.1-8B", "FSDP128", "FSDP+compile", "FSDP+compile+Float8"),
)


def float8_runs(shared: Path, shares: Shares) -> Iterator[Judged]:
    """Llama 3.1 8B of torchtitan in bf16 and with Float8 (tensorwise scales)."""
    rows = _csv(shared / "facts/scaling_tables/torchtitan.csv")
    machine = machine_of(require("H100 SXM5 96 GB HBM2e"), shares)
    for name, shape, layers, model, parallel, plain, narrow in FLOAT8_RUNS:
        step_s = {
            row["technique"]: float(row["step_time_s_derived"])
            for row in rows
            if row["model"] == model
            and row["parallelism"] == parallel
            and row["step_time_s_derived"]
        }
        made = kernels_of_model(
            shape, batch=2, length=8192, dtype=ElementType.BF16, layers=layers, training=True
        )
        alone = model_ns(made.kernels, machine)
        dur_ns = np.rint(alone * (step_s[plain] * 1e9 / alone.sum())).astype(np.int64)
        times = [
            recast(dur_ns, made.kernels, made.operand_bytes, machine, ElementType.FP8, bound)
            for bound in (Bound.NOMINAL, Bound.LOW, Bound.HIGH)
        ]
        found = [float(one.dur_ns.sum()) / float(dur_ns.sum()) for one in times]
        pair = ("H100 96 GB bf16", "fp8")
        times_ms = (step_s[plain] * 1e3, step_s[narrow] * 1e3)
        yield judged("torchtitan", pair, name, *times_ms, [*found, 0.5])


HEAD = "| data | pair | n | median error | worst | inside | width | peaks alone |"


def summary(rows: Sequence[Judged], *, parts: bool = True) -> Iterator[str]:
    """Per source, and per pair, or per new device where there are many pairs."""
    yield HEAD
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for source in dict.fromkeys(row.source for row in rows):
        mine = [row for row in rows if row.source == source]
        pairs = list(dict.fromkeys(row.pair for row in mine))
        many = len(pairs) > MANY_PAIRS
        names = dict.fromkeys(_part(row, many=many) for row in mine)
        if parts and 1 < len(names) < len(mine):
            for name in names:
                yield _line(source, name, [row for row in mine if _part(row, many=many) == name])
        yield _line(source, "**all**" if len(pairs) > 1 else pairs[0], mine)


def _part(row: Judged, *, many: bool) -> str:
    """What a line of a table stands for: the new device where there are many pairs."""
    return f"to {row.pair.partition(' to ')[2]}" if many else row.pair


def every(rows: Sequence[Judged]) -> Iterator[str]:
    """Row by row."""
    yield "| pair | what | from ms | predicted ms | range ms | measured ms | error | inside |"
    yield "|---|---|---:|---:|---:|---:|---:|---|"
    for row in rows:
        yield (
            f"| {row.pair} | {row.what} | {row.base:.3f} | {row.predicted:.3f} "
            f"| {row.low:.3f} to {row.high:.3f} | {row.truth:.3f} | {row.error_frac:+.0%} "
            f"| {'yes' if row.is_inside else 'no'} |"
        )


def _line(source: str, part: str, rows: Sequence[Judged]) -> str:
    inside = sum(row.is_inside for row in rows) / len(rows)
    plain = median(abs(row.plain_error_frac) for row in rows)
    worst = max(rows, key=lambda row: abs(row.error_frac))
    errors = [row.error_frac for row in rows]
    named = f"{worst.error_frac:+.0%}" + (f" ({worst.pair})" if part != worst.pair else "")
    return (
        f"| {source} | {part} | {len(rows)} | {median(map(abs, errors)):.0%} "
        f"({median(errors):+.0%}) | {named} | {inside:.0%} "
        f"| {median(row.width for row in rows):.2f}x | {plain:.0%} |"
    )


def _csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def table_rows(shared: Path, shares: Shares) -> list[Judged]:
    """Predictions between public tables, each without the readings of its own data set."""
    return [
        *simumax(shared, shares.without("simumax")),
        *best_products(shared, shares),
        *neusight(shared, shares.without("neusight")),
        *fsdp_runs(shared, shares.without("fms_fsdp")),
        *upgrades(shared, shares.without("when_to_upgrade")),
    ]


def section(shared: Path) -> str:
    """Markdown: what was judged, on what, and the tables."""
    shares = published()
    traces = list(trace_pairs(shared, shares))
    steps = list(whole_steps(shared))
    bare = list(without_shapes(shared, shares))
    operators = list(by_operator(shared, shares))
    of_all = sum(row.truth for row in operators)
    held = sum(row.truth for row in operators if row.is_inside) / of_all
    totals = [row for row in traces if row.what.endswith("all kernels")]
    tables = table_rows(shared, shares)
    narrow = [*precisions(shared, shares), *float8_runs(shared, shares)]
    large = [row for row in traces if row.base >= LARGE_FRAC * _total(row, traces)]
    return "\n".join(
        (
            INTRODUCTION,
            "",
            "### Traces of one model on two devices",
            "",
            TRACES,
            "",
            *every(steps),
            "",
            *every(traces),
            "",
            *summary([*steps, *traces, *operators, *bare], parts=False),
            "",
            f"Inside are {_inside(totals)} of the totals and {_inside(large)} of the {len(large)} "
            f"rows with at least {LARGE_FRAC:.0%} of the kernel time of their trace. By operator, "
            f"those whose truth lies inside have {held:.0%} of the time; most of the others launch "
            "kernels of a few us.",
            "",
            "### Public tables",
            "",
            TABLES,
            "",
            *summary(tables),
            "",
            f"Together: {_in_words(tables)}. Without the cards of low power: "
            f"{_in_words([row for row in tables if row.source != LOW_POWER])}.",
            "",
            f"![Predicted over measured ratios of times]({FIGURE})",
            "",
            "### Precision",
            "",
            PRECISION,
            "",
            *every(narrow),
            "",
            *summary(narrow, parts=False),
            "",
        )
    )


def _total(row: Judged, rows: Sequence[Judged]) -> float:
    model = row.what.partition(":")[0]
    return next(
        each.base for each in rows if each.pair == row.pair and each.what == f"{model}: all kernels"
    )


def _inside(rows: Sequence[Judged]) -> str:
    return f"{sum(row.is_inside for row in rows) / len(rows):.0%}"


def _in_words(rows: Sequence[Judged]) -> str:
    error = median(abs(row.error_frac) for row in rows)
    plain = median(abs(row.plain_error_frac) for row in rows)
    width = median(row.width for row in rows)
    return (
        f"{len(rows)} predictions, {_inside(rows)} inside, median error {error:.0%}, median width "
        f"{width:.2f}x, {plain:.0%} by peaks alone"
    )


def figures(shared: Path, folder: Path) -> None:
    """Write the plot that the section shows into a folder (`docs/img`)."""
    shares = published()
    rows = [*trace_pairs(shared, shares), *table_rows(shared, shares)]
    points: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        name = "traces H100, MI300X" if row.source == PAIR else row.source
        points.setdefault(name, []).append((row.truth / row.base, row.predicted / row.base))
    folder.mkdir(parents=True, exist_ok=True)
    drawn = scatter(points, "measured time, new over base", "predicted time, new over base")
    (folder / Path(FIGURE).name).write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    print(section(Path(sys.argv[1])))  # noqa: T201  (a table for the terminal)
