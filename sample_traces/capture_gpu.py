"""Records a small transformer training step on one GPU: bf16, three steps, shapes, sync events.

    python sample_traces/capture_gpu.py -o DIR

Needs PyTorch and a GPU; says so and ends with code 3 where there is none. The trace is small
enough to keep (< 3 MB).
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from published import publish
from torch import nn

from replay.capture import capture

LAYERS = 4
WIDTH = 1_024
HEADS = 16
TOKENS = 1_024
BATCH = 8
VOCABULARY = 32_000
WARM_UP_STEPS = 5
RECORDED_STEPS = 3
NO_GPU = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, record, and write `single_gpu.json.gz`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the trace")
    folder = parser.parse_args(arguments).output
    if not torch.cuda.is_available():
        sys.stderr.write("error: PyTorch sees no GPU here, so there is nothing to record\n")
        return NO_GPU
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        publish(_record(Path(scratch)), folder / "single_gpu.json.gz")
    return 0


def _decoder() -> nn.ModuleDict:
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
    )
    return nn.ModuleDict(
        {
            "embedding": nn.Embedding(VOCABULARY, WIDTH),
            "layers": nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False),
            "head": nn.Linear(WIDTH, VOCABULARY, bias=False),
        }
    )


def _record(scratch: Path) -> Path:
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = _decoder().to(device, torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    mask = nn.Transformer.generate_square_subsequent_mask(TOKENS, device, torch.bfloat16)
    with capture(scratch, skip=0, warmup=WARM_UP_STEPS, steps=RECORDED_STEPS) as recording:
        for _ in range(WARM_UP_STEPS + RECORDED_STEPS):
            tokens = torch.randint(VOCABULARY, (BATCH, TOKENS + 1)).pin_memory()
            tokens = tokens.to(device, non_blocking=True)
            optimizer.zero_grad()
            hidden = model["layers"](model["embedding"](tokens[:, :-1]), mask=mask, is_causal=True)
            logits = model["head"](hidden)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            torch.autograd.backward(loss)
            optimizer.step()
            loss.item()
            recording.step()
    if recording.path is None:
        raise RuntimeError(recording.reason)
    return recording.path


if __name__ == "__main__":
    sys.exit(main())
