"""How well formulas tell the memory of a rank, on published tables.

    python -m tests.bench.accuracy_memory ../shared

Nothing is fitted to a row: how each system runs (optimizer divided or not, kind of loss, what is
recomputed) is what its documents and code say.
"""

import csv
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from tests.bench.tables import Table, percent
from tests.published_models import LLAMA3, SIMUMAX
from whatif.models.memory.device import RESERVED, needed
from whatif.models.memory.rank import activations_of, fullest, memory_of
from whatif.models.memory.stages import stages_of
from whatif.models.shape import (
    Batch,
    ContextKind,
    Degrees,
    Elements,
    ModelShape,
    Options,
    Recompute,
    RunShape,
)

GIB = 2**30
NEAR_FRAC = 0.1
Cells = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One figure of a table, in GiB."""

    table: str
    run: str
    what: str
    true: float
    predicted: float
    low: float | None = None
    high: float | None = None
    """None: the figure is a part, which has no range."""

    @property
    def error_frac(self) -> float:
        """Signed."""
        return self.predicted / self.true - 1

    @property
    def inside(self) -> bool | None:
        """The truth lies in the range."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.true <= self.high


MEGATRON: Mapping[str, tuple[int, int, int, int, int, int, int]] = {
    "megatron-22B": (48, 6144, 64, 8, 1, 1, 4),
    "gpt3-175B": (96, 12288, 96, 8, 8, 3, 1),
    "turing-530B": (105, 20480, 128, 8, 35, 3, 1),
    "megatron-1T": (128, 25600, 160, 8, 64, 1, 1),
}
"""Layers, hidden, heads, tp, pp, virtual stages, micro-batch: table 3 of arXiv:2205.05198."""
MODES = {
    "none": (False, Recompute.NONE),
    "seq": (True, Recompute.NONE),
    "sel": (False, Recompute.SELECTIVE),
    "seqsel": (True, Recompute.SELECTIVE),
    "full": (False, Recompute.FULL),
}


def megatron(shared: Path) -> Iterator[Judged]:
    """Parts of the first stage's memory (parameters of a stage in the middle, as the paper has)."""
    name = "megatron_seqpar_2205.05198_times_memory"
    rows = list(_rows(shared, name))
    none = {row["model"]: float(row["activation_GiB"]) for row in rows if row["mode"] == "none"}
    for row in rows:
        shape = _megatron(row)
        stages = memory_of(shape)
        if row["mode"] == "none":
            state = stages[len(stages) // 2].state_bytes / GIB
            what = "parameters, gradients, optimizer"
            yield _part(row, what, float(row["param_opt_GiB"]), state)
        kept = activations_of(shape, stages_of(shape)[0]) / GIB
        true = none[row["model"]] * float(row["activation_pct_of_none"]) / 100
        yield _part(row, f"activations, {row['mode']}", true, kept)


def _part(row: Cells, what: str, true: float, predicted: float) -> Judged:
    return Judged(table="Megatron-LM", run=row["model"], what=what, true=true, predicted=predicted)


def _megatron(row: Cells) -> RunShape:
    layers, hidden, heads, tp, pp, virtual, samples = MEGATRON[row["model"]]
    sp, recompute = MODES[row["mode"]]
    return RunShape(
        model=ModelShape(
            layers=layers,
            hidden=hidden,
            heads=heads,
            ffn=4 * hidden,
            vocab=51200,
            bias=True,
            dropout=True,
            tied=True,
        ),
        degrees=Degrees(tp=tp, sp=sp, pp=pp, virtual_stages=virtual),
        batch=Batch(micro_batches=4 * pp, samples=samples, sequence=2048),
        options=Options(recompute=recompute, fused_attention=False),
    )


def simumax(shared: Path) -> Iterator[Judged]:
    """The most that `torch.cuda` had allocated on any rank.

    Rows that differ in micro-batches have one measurement.
    """
    seen = set()
    for row in _rows(shared, "simumax_b200_8gpu_real_vs_sim"):
        run = row["case"].replace(f"_mbc{row['microbatches']}_cef", "")
        if run in seen:
            continue
        seen.add(run)
        memory = fullest(_simumax(row))
        need = needed(memory.peak_bytes, beside_bytes=memory.beside_bytes)
        yield Judged(
            table="SimuMax",
            run=run,
            what="allocated",
            true=float(row["real_alloc_GiB"]),
            predicted=memory.peak_bytes / GIB,
            low=need.low_bytes / GIB,
            high=need.high_bytes / GIB,
        )


def _simumax(row: Cells) -> RunShape:
    count = {
        name: int(row[name])
        for name in ("layers", "tp", "cp", "ep", "pp", "dp", "seq_len", "microbatches")
    }
    return RunShape(
        model=replace(SIMUMAX[row["model"]], layers=count["layers"]),
        degrees=Degrees(
            tp=count["tp"],
            sp=count["tp"] > 1,
            cp=count["cp"],
            cp_kind=ContextKind.ALL_TO_ALL,
            ep=count["ep"],
            pp=count["pp"],
            dp=count["dp"],
        ),
        batch=Batch(micro_batches=count["microbatches"], samples=1, sequence=count["seq_len"]),
        options=Options(distributed_optimizer=True, logit_bytes=2),
    )


def torchtitan(shared: Path) -> Iterator[Judged]:
    """The most that the allocator had reserved on any rank."""
    for row in _rows(shared, "torchtitan"):
        if not row["memory_GiB"]:
            continue
        memory = fullest(_torchtitan(row))
        need = needed(memory.peak_bytes, beside_bytes=memory.beside_bytes)
        yield Judged(
            table="torchtitan",
            run=f"{row['model']} {row['gpu']} {row['parallelism']}, {row['technique']}",
            what=f"reserved, seq {row['seq_len']}",
            true=float(row["memory_GiB"]),
            predicted=memory.peak_bytes * RESERVED / GIB,
            low=need.low_bytes / GIB,
            high=need.high_bytes / GIB,
        )


def _torchtitan(row: Cells) -> RunShape:
    """State in fp32; compiled loss only in the rows of 2025; as many micro-batches as chunks."""
    degrees = {name: int(count) for name, count in re.findall(r"([A-Z]+)(\d+)", row["parallelism"])}
    pp, virtual = degrees.get("PP", 1), 2 if "Interleaved" in row["technique"] else 1
    micro_batches = pp * virtual if pp > 1 else 1
    full = row["act_ckpt"] == "full"
    return RunShape(
        model=LLAMA3[row["model"].rpartition("-")[2]],
        degrees=Degrees(
            tp=degrees.get("TP", 1),
            sp=degrees.get("TP", 1) > 1,
            cp=degrees.get("CP", 1),
            pp=pp,
            virtual_stages=virtual,
            dp=degrees["FSDP"],
            zero=3,
        ),
        batch=Batch(
            micro_batches=micro_batches,
            samples=int(row["local_batch"]) / micro_batches,
            sequence=int(row["seq_len"]),
        ),
        elements=Elements(parameter=4, gradient=4, optimizer=8),
        options=Options(
            recompute=Recompute.FULL if full else Recompute.SELECTIVE,
            selective_ops=True,
            logit_bytes=4 if "2025" in row["source"] else None,
        ),
    )


def _rows(shared: Path, name: str) -> Iterator[Cells]:
    path = shared / "facts" / "scaling_tables" / f"{name}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def judge(shared: Path) -> list[Judged]:
    """All figures of all tables."""
    return [*megatron(shared), *simumax(shared), *torchtitan(shared)]


WORDS = """\
Memory of the fullest rank by formula (`whatif/models/memory`) against published tables. Megatron-LM
is [arXiv:2205.05198](https://arxiv.org/abs/2205.05198): parts of it, which the paper has by formula
too, for a stage without embedding. SimuMax measured Megatron-LM with a distributed optimizer,
gradients in fp32, Transformer Engine's loss in place and context parallelism by all-to-all on B200
(its reproduction guide); the figure is what tensors held. torchtitan keeps state in fp32 under
FSDP2; its figure is what the allocator reserved, so the prediction has the 4.5 % that it reserved
over tensors in SimuMax's runs. Its loss is not compiled in the tables of 2024 and is in those of
2025; selective recomputation is its own, by operator. The range is from tensors alone to all that
may lie there at once, with what the allocator and the driver reserve. Under pipelines torchtitan
keeps what no formula here has: Float8 copies, outputs of all micro-batches, buffers of messages."""


def section(shared: Path) -> str:
    """Words and tables in Markdown."""
    rows = judge(shared)
    lines = [WORDS, ""]
    lines += Table(
        head=("table", "run", "what", "GiB", "predicted", "error", "range", "inside"),
        rows=tuple(_cells(row) for row in rows),
    ).lines()
    lines.append("")
    for table in dict.fromkeys(row.table for row in rows):
        lines.append(f"- {table}: {_summary([row for row in rows if row.table == table])}")
    return "\n".join(lines) + "\n"


def _cells(row: Judged) -> tuple[str, ...]:
    ranged = row.low is not None and row.high is not None
    return (
        row.table,
        row.run,
        row.what,
        f"{row.true:.2f}",
        f"{row.predicted:.2f}",
        percent(row.error_frac),
        f"{row.low:.1f} .. {row.high:.1f}" if ranged else "-",
        "-" if row.inside is None else ("yes" if row.inside else "no"),
    )


def _summary(rows: Iterable[Judged]) -> str:
    chosen = list(rows)
    sizes = np.abs([row.error_frac for row in chosen])
    median, p90 = np.percentile(sizes, [50, 90])
    text = (
        f"|error| median {median:.1%}, p90 {p90:.1%}, {int((sizes <= 0.1).sum())} of {len(sizes)} "
    )
    text += "within 10 %"
    ranged = [row for row in chosen if row.low is not None and row.high is not None]
    if not ranged:
        return text
    inside = sum(bool(row.inside) for row in ranged)
    widths = [row.high / row.low for row in ranged if row.high and row.low]
    return (
        f"{text}; {inside} of {len(ranged)} inside, width high/low median {np.median(widths):.2f}"
    )


def main() -> None:
    """Print the section."""
    sys.stdout.write(section(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
