"""Records the 2-rank CPU traces of `gloo2_cpu/`: DDP over gloo on a tiny model, three steps.

    python sample_traces/record_gloo2.py -o DIR

Needs PyTorch. Every run gives other times, so the committed files are not made anew by tests.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.distributed as dist
from published import publish
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from replay.capture import capture

RANKS = 2
WIDTH = 384
BATCH = 256
WARM_UP_STEPS = 3
RECORDED_STEPS = 3
BUCKET_MB = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Train with two processes and write `rank0.json.gz` and `rank1.json.gz`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the traces")
    folder = parser.parse_args(arguments).output
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        context = multiprocessing.get_context("spawn")
        workers = [
            context.Process(target=_train, args=(rank, Path(scratch), folder))
            for rank in range(RANKS)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return max(abs(worker.exitcode or 0) for worker in workers)


def _train(rank: int, scratch: Path, folder: Path) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    meeting = (scratch / "rendezvous").as_uri()
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=RANKS)
    model = DistributedDataParallel(_model(), bucket_cap_mb=BUCKET_MB)
    optimizer = torch.optim.AdamW(model.parameters())
    with capture(
        scratch / "traces", skip=0, warmup=WARM_UP_STEPS, steps=RECORDED_STEPS
    ) as recording:
        for _ in range(WARM_UP_STEPS + RECORDED_STEPS):
            optimizer.zero_grad()
            inputs = torch.randn(BATCH, WIDTH)
            loss = nn.functional.mse_loss(model(inputs), inputs)
            torch.autograd.backward(loss)
            optimizer.step()
            recording.step()
    dist.destroy_process_group()
    if recording.path is None:
        raise RuntimeError(recording.reason)
    publish(recording.path, folder / f"rank{rank}.json.gz")


def _model() -> nn.Module:
    layers: list[nn.Module] = []
    for _ in range(3):
        layers += [nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)]
    return nn.Sequential(*layers)


if __name__ == "__main__":
    sys.exit(main())
