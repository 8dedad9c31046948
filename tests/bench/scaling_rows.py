"""Rows of public scaling tables as runs: what their papers, scripts and pages say was run.

Conventions come from those documents, never from errors of a prediction; what none of them tells is
said here as an assumption.

- Megatron 2020 (tables.tex of its repository): GPT-2 with recomputation, dropout, fp16, attention
  that writes its scores, gradients reduced behind backward (local DDP), one micro-batch.
- SC21 (arXiv:2104.04473, examples/sc21/run_table_1.sh): micro-batch sizes, layers per virtual stage
  and the kind of DDP are in the script; recomputation of every layer (uniform), fp16.
- Megatron-core r0.8 (README, Performance Benchmarking): gradients, parameters and tensor-parallel
  collectives overlapped; sequence parallel with TP; bf16; no recomputation. Assumed: micro-batches
  of 4 sequences without and 1 with a pipeline, one layer per virtual stage (the largest number; all
  rows divide as interleaving needs).
- torchtitan (benchmarks/*.md): FSDP2, gradients reduced in fp32, as many micro-batches as stages
  (its default), two chunks per rank where interleaved, compiled kernels where the row says so; H100
  of 500 W with HBM2e.
- YaFSDP (its README): FSDP, so many layers recomputed as the table says; its network is not told
  (25 GB/s assumed), so the longest sequences calibrate.
- IBM (fms-fsdp's README): layers recomputed so many as hardware over model FLOP/s tell.
- SimuMax (simu_tools/megatron_scripts): distributed optimizer without any overlap, sequence
  parallel, gradients accumulated in fp32 inside the products, fused loss, capacity factor 1
  (balanced experts), context ranks by all-to-all; one node of 8 B200.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from tests.published_models import LLAMA3, SIMUMAX
from whatif.models.fabric import Shape
from whatif.models.shape import (
    Batch,
    ContextKind,
    Degrees,
    Elements,
    ModelShape,
    Options,
    Recompute,
    RunShape,
    Schedule,
)
from whatif.synth.document import MachineSaid

HALF = Elements(parameter=2, gradient=2, optimizer=12, product="fp16")
MIXED = Elements(parameter=2, gradient=4, optimizer=12, product="bf16")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measured step."""

    table: str
    system: str
    """Rows of one system are calibrated on its first one."""
    name: str
    shape: RunShape
    machine: MachineSaid
    measured_ms: float
    asked: bool = True
    """Among the tables that the issue names."""


def rows(shared: Path) -> Iterator[Row]:
    """All of them, those that calibrate first in their system."""
    folder = shared / "facts" / "scaling_tables"
    yield from _megatron_2020(folder)
    yield from _sc21(folder)
    yield from _core(folder)
    yield from _torchtitan(folder)
    yield from _simumax(folder)
    yield from _yafsdp(folder)
    yield from _ibm(folder)


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _gpt(row: dict[str, str], *, dropout: bool) -> ModelShape:
    hidden = int(row["hidden"])
    return ModelShape(
        layers=int(row["layers"]),
        hidden=hidden,
        heads=int(row["heads"]),
        ffn=4 * hidden,
        vocab=int(row["vocab"]),
        tied=True,
        bias=True,
        dropout=dropout,
    )


_OLD = Options(scores_written=True, recompute=Recompute.FULL, overlap_params=False)


def _megatron_2020(folder: Path) -> Iterator[Row]:
    for row in _read(folder / "megatron_2020_2021_v100_a100.csv"):
        if row["set"].startswith("SC21"):
            continue
        gpu, dp = row["gpu"], int(row["dp"])
        machine = (
            MachineSaid(gpu="V100 SXM2 32 GB", nodes_of=16, joined_by=Shape.SWITCH)
            if gpu == "V100"
            else MachineSaid(gpu="A100 SXM4 40 GB", net_gb_per_s=25)
        )
        shape = RunShape(
            model=_gpt(row, dropout=True),
            degrees=Degrees(tp=int(row["tp"]), dp=dp),
            batch=Batch(samples=int(row["global_batch"]) / dp, sequence=int(row["seq_len"])),
            elements=HALF,
            options=replace(_OLD, overlap_grads=False),
        )
        name = f"{row['model']} tp{row['tp']} dp{dp}"
        yield Row(
            table="megatron_2020",
            system=f"2020 {gpu}",
            name=name,
            shape=shape,
            machine=machine,
            measured_ms=float(row["iter_time_ms"]),
        )


SC21: dict[str, tuple[int, int | None, bool]] = {
    "1.7B": (16, None, True),
    "3.6B": (16, None, True),
    "7.5B": (16, None, True),
    "18B": (8, None, True),
    "39B": (4, None, False),
    "76B": (2, 5, False),
    "145B": (2, 5, False),
    "310B": (1, 3, False),
    "530B": (1, 1, False),
    "1T": (1, None, False),
}
"""Samples of a micro-batch, layers per virtual stage, whether torch's DDP overlaps gradients."""


def _sc21(folder: Path) -> Iterator[Row]:
    for row in _read(folder / "megatron_2020_2021_v100_a100.csv"):
        if not row["set"].startswith("SC21"):
            continue
        samples, chunk, overlapped = SC21[row["model"]]
        pp, dp = int(row["pp"]), int(row["dp"])
        layers = int(row["layers"])
        chunks = 1 if chunk is None else layers // pp // chunk
        shape = RunShape(
            model=_gpt(row, dropout=True),
            degrees=Degrees(tp=int(row["tp"]), pp=pp, dp=dp, virtual_stages=chunks),
            batch=Batch(
                samples=samples,
                sequence=int(row["seq_len"]),
                micro_batches=int(row["global_batch"]) // dp // samples,
            ),
            elements=HALF,
            options=replace(_OLD, overlap_grads=overlapped, schedule=_schedule(pp, chunks)),
        )
        yield Row(
            table="megatron_sc21",
            system="SC21",
            name=f"{row['model']} tp{row['tp']} pp{pp} dp{dp}",
            shape=shape,
            machine=MachineSaid(gpu="A100 SXM4 80 GB", net_gb_per_s=25),
            measured_ms=1e3 * float(row["iter_time_s_derived"]),
        )


def _schedule(pp: int, chunks: int) -> Schedule:
    if pp == 1:
        return Schedule.NONE
    return Schedule.INTERLEAVED if chunks > 1 else Schedule.ONE_F_ONE_B


def _core(folder: Path) -> Iterator[Row]:
    for row in _read(folder / "megatron_core_r0.8_h100_scaling.csv"):
        tp, pp, dp = (int(row[key]) for key in ("tp", "pp", "dp"))
        samples = 1 if pp > 1 else 4
        chunks = int(row["layers"]) // pp if pp > 1 else 1
        shape = RunShape(
            model=_gpt(row, dropout=False),
            degrees=Degrees(tp=tp, sp=tp > 1, pp=pp, dp=dp, virtual_stages=chunks, zero=1),
            batch=Batch(
                samples=samples,
                sequence=int(row["seq_len"]),
                micro_batches=int(row["global_batch"]) // dp // samples,
            ),
            elements=MIXED,
            options=Options(
                schedule=_schedule(pp, chunks),
                async_tp=tp > 1,
                fused_accumulation=True,
                bucket_bytes=4.0 * max(40_000_000, 1_000_000 * dp),
            ),
        )
        yield Row(
            table="megatron_core_r0.8",
            system="r0.8",
            name=f"{row['set']} {row['model_params']} tp{tp} pp{pp} dp{dp}",
            shape=shape,
            machine=MachineSaid(gpu="H100 SXM5 80 GB", net_gb_per_s=50),
            measured_ms=1e3 * float(row["step_time_s_derived"]),
        )


FLASH_2 = 0.37
"""Of the H100's peak (arXiv:2407.08608): with context ranks torchtitan takes FlashAttention 2
(`get_train_context`), without them cuDNN's may run."""
_DEGREE = re.compile(r"(FSDP|TP|PP|CP)(\d+)")


def _torchtitan(folder: Path) -> Iterator[Row]:
    read = _read(folder / "torchtitan.csv")
    for row in read:
        found = {name: int(value) for name, value in _DEGREE.findall(row["parallelism"])}
        technique = row["technique"].lower()
        size = row["model"].rpartition("-")[2]
        tp, pp, cp = found.get("TP", 1), found.get("PP", 1), found.get("CP", 1)
        compiled = "compile" in technique or row["model"].startswith("Llama3-")
        local, sequence = int(row["local_batch"]), int(row["seq_len"])
        is_interleaved = "interleaved" in technique
        samples = local // pp
        shape = RunShape(
            model=LLAMA3[size],
            degrees=Degrees(
                tp=tp,
                sp=tp > 1,
                pp=pp,
                cp=cp,
                dp=found.get("FSDP", 1),
                zero=3,
                virtual_stages=2 if is_interleaved else 1,
            ),
            batch=Batch(samples=samples, sequence=sequence, micro_batches=local // samples),
            elements=Elements(
                parameter=2,
                gradient=4,
                optimizer=12,
                product="fp8" if "float8" in technique else "bf16",
            ),
            options=Options(
                schedule=_schedule(pp, 2 if is_interleaved else 1),
                recompute=Recompute.FULL if row["act_ckpt"] == "full" else Recompute.SELECTIVE,
                async_tp="async" in technique,
                fused_loss=compiled,
                attention_frac=FLASH_2 if cp > 1 else None,
            ),
        )
        tokens = sequence * local / (tp * pp * cp)
        yield Row(
            table="torchtitan",
            system="torchtitan compiled" if compiled else "torchtitan eager",
            name=f"{size} {row['gpu']} {row['parallelism']} {row['technique']} s{sequence}",
            shape=shape,
            machine=MachineSaid(
                gpu="H200" if row["gpu"] == "H200" else "H100 SXM5 96 GB HBM2e", net_gb_per_s=50
            ),
            measured_ms=1e3 * tokens / float(row["tok_per_s_per_gpu"]),
        )


def _simumax(folder: Path) -> Iterator[Row]:
    read = _read(folder / "simumax_b200_8gpu_real_vs_sim.csv")
    first = next(row for row in read if row["tp"] == "2" and row["model"] == "llama3_70b")
    for row in (first, *(row for row in read if row is not first)):
        tp, cp, ep, pp, dp = (int(row[key]) for key in ("tp", "cp", "ep", "pp", "dp"))
        shape = RunShape(
            model=replace(SIMUMAX[row["model"]], layers=int(row["layers"])),
            degrees=Degrees(
                tp=tp,
                sp=tp > 1,
                cp=cp,
                cp_kind=ContextKind.ALL_TO_ALL,
                pp=pp,
                dp=dp,
                ep=ep,
                zero=1,
            ),
            batch=Batch(
                samples=1, sequence=int(row["seq_len"]), micro_batches=int(row["microbatches"])
            ),
            elements=MIXED,
            options=Options(
                schedule=_schedule(pp, 1),
                overlap_grads=False,
                overlap_params=False,
                fused_accumulation=True,
                fused_loss=True,
            ),
        )
        yield Row(
            table="simumax",
            system="SimuMax B200",
            name=row["case"].removesuffix("_cef"),
            shape=shape,
            machine=MachineSaid(gpu="B200 SXM 180 GB"),
            measured_ms=float(row["real_ms"]),
        )


LLAMA2 = {
    "7B": ModelShape(layers=32, hidden=4096, heads=32, ffn=11008, gated=True, vocab=32_000),
    "13B": ModelShape(layers=40, hidden=5120, heads=40, ffn=13824, gated=True, vocab=32_000),
    "34B": ModelShape(
        layers=48, hidden=8192, heads=64, kv_heads=8, ffn=22016, gated=True, vocab=32_000
    ),
    "70B": ModelShape(
        layers=80, hidden=8192, heads=64, kv_heads=8, ffn=28672, gated=True, vocab=32_000
    ),
}


def _yafsdp(folder: Path) -> Iterator[Row]:
    read = _read(folder / "yafsdp_a100_fsdp_iter.csv")
    for row in sorted(read, key=lambda row: -int(row["seq_len"])):
        family, size = row["model"].split()[1:]
        model = (LLAMA3 if family == "3" else LLAMA2)[size]
        ckpt = int(row["ckpt_layers"])
        yield Row(
            table="yafsdp",
            system="FSDP A100",
            name=f"Llama {family} {size} dp{row['gpus']} s{row['seq_len']} ckpt{ckpt}",
            shape=RunShape(
                model=model,
                degrees=Degrees(dp=int(row["gpus"]), zero=3),
                batch=Batch(samples=int(row["mbs"]), sequence=int(row["seq_len"])),
                elements=replace(MIXED, reduced=2),
                options=Options(
                    recompute=Recompute.FULL if ckpt else Recompute.NONE,
                    recompute_layers=ckpt or None,
                ),
            ),
            machine=MachineSaid(gpu="A100 SXM4 80 GB", net_gb_per_s=25),
            measured_ms=1e3 * float(row["fsdp_iter_s"]),
            asked=False,
        )


def _ibm(folder: Path) -> Iterator[Row]:
    for row in _read(folder / "ibm_fms_fsdp_a100_vs_h100.csv"):
        size = row["model"].rpartition("-")[2].upper()
        gpu = "A100 SXM4 80 GB" if row["gpu"].startswith("A100") else "H100 SXM5 80 GB"
        hybrid = row["sharding"] == "HSDP"
        samples, sequence = int(row["batch_per_gpu"]), int(row["seq_len"])
        again = _computed_again(row, LLAMA2[size].layers or 0)
        yield Row(
            table="ibm",
            system=f"IBM {row['gpu']}",
            name=f"{size} {row['gpu']} {row['sharding']} dp{row['gpus']}",
            shape=RunShape(
                model=LLAMA2[size],
                degrees=Degrees(dp=int(row["gpus"]), zero=3, shard=8 if hybrid else None),
                batch=Batch(samples=samples, sequence=sequence),
                elements=replace(MIXED, reduced=2),
                options=Options(
                    recompute=Recompute.FULL if again else Recompute.NONE,
                    recompute_layers=again or None,
                    fused_loss=True,
                ),
            ),
            machine=MachineSaid(gpu=gpu, net_gb_per_s=50 if gpu.startswith("A100") else 100),
            measured_ms=1e3 * samples * sequence / float(row["tok_per_s_per_gpu"]),
            asked=False,
        )


def _computed_again(row: dict[str, str], layers: int) -> int:
    """Layers whose forward runs twice: a third of model FLOPs each."""
    return min(round(layers * 3 * (float(row["hfu"]) / float(row["mfu"]) - 1)), layers)
