"""Makes the synthetic 8-GPU data-parallel traces, and knows their true step time.

    python sample_traces/make_ddp8.py --nvlink-gbps 900 -o DIR    writes rank0..7.json.gz
    python sample_traces/make_ddp8.py --truth 450 1800 3600       prints step times

Rates are the vendor's NVLink figures in GB/s (both directions). The program that trains is in
`ddp8_model.py` and `ddp8_training.py`; nothing here imports the product.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ddp8_kineto import write_trace
from ddp8_training import RANKS, Setting, simulate, step_ns

COMMITTED = Setting(nvlink_bytes_per_s=900e9)
"""The run whose traces lie in `ddp8_h100/`."""


def truth(nvlink_bytes_per_s: float, run: Setting = COMMITTED) -> int:
    """Step time (ns) of `run` if the all-reduces of its recorded steps had this link.

    Everything launched before the first recorded step keeps the link of `run`, so the steps begin
    in the state in which the traces show them: that is the question a what-if on them answers.
    """
    return step_ns(simulate(replace(run, changed_nvlink_bytes_per_s=nvlink_bytes_per_s)))


def write_traces(run: Setting, folder: Path) -> None:
    """Simulate `run` and write one trace per rank into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank in simulate(run):
        write_trace(rank, RANKS, folder / f"rank{rank.number}.json.gz")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write traces or print truths, as the options say."""
    options = _parser().parse_args(arguments)
    run = Setting(
        nvlink_bytes_per_s=options.nvlink_gbps * 1e9,
        straggler=not options.no_straggler,
        loss_item=options.loss_item,
        bucket_view=options.bucket_view,
    )
    if options.output is not None:
        write_traces(run, options.output)
    if options.truth:
        recorded_ns = truth(run.nvlink_bytes_per_s, run)
        for gbps in (options.nvlink_gbps, *options.truth):
            changed_ns = truth(gbps * 1e9, run)
            speedup = recorded_ns / changed_ns
            sys.stdout.write(f"{gbps:g} GB/s: {changed_ns / 1e6:.3f} ms, speedup {speedup:.4f}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nvlink-gbps", type=float, default=900.0, help="of the recorded run")
    parser.add_argument("-o", "--output", type=Path, help="folder for the traces")
    parser.add_argument("--truth", type=float, nargs="+", metavar="GBPS", help="print step times")
    parser.add_argument("--no-straggler", action="store_true", help="all GPUs equally fast")
    parser.add_argument("--loss-item", action="store_true", help="read the loss in every step")
    parser.add_argument("--bucket-view", action="store_true", help="do not copy gradients back")
    return parser


if __name__ == "__main__":
    sys.exit(main())
