"""Of a run whose optimizer is sharded each new stage gathers its own parameters."""

from dataclasses import replace as with_fields
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from ingest.pipeline import IngestOptions, open_run
from ingest.vocab import CollectiveKind, TaskKind
from replay.graph.build import build
from whatif.description.infer import describe
from whatif.models.shape import Batch, Degrees, ModelShape
from whatif.synth.document import MachineSaid, Wanted
from whatif.synth.make import make
from whatif.transforms.base import Context
from whatif.transforms.machine import known
from whatif.transforms.relayout.parts import Ask
from whatif.transforms.relayout.rebuild import rebuilt

MODEL = ModelShape(layers=4, hidden=2048, heads=16, ffn=8192, vocab=32_000)
WHOLE = 4 * (12 * 2048**2 + 2 * 2048) + 2 * 32_000 * 2048 + 2048


def test_stages_gather_the_model_once_between_them(tmp_path: Path) -> None:
    """Before, and in two stages together: two bytes of each parameter."""
    wanted = Wanted(
        model=MODEL,
        machine=MachineSaid(gpu="H100", net_gb_per_s=50),
        degrees=Degrees(dp=4, zero=1),
        batch=Batch(samples=1, sequence=2048, micro_batches=2),
    )
    make(wanted, tmp_path)
    with open_run([tmp_path], options=IngestOptions(cache=False)) as run:
        graph = build(run.store).graph
    found = with_fields(describe(graph), shape=wanted.shape)
    target = replace(wanted.shape, degrees=Degrees(dp=4, zero=1, pp=2))
    made = rebuilt(graph, Ask(described=found, target=target, context=known(graph, Context())))
    for one, ranks in ((graph, 1), (made.graph, 2)):
        tasks, calls = one.tasks, one.collectives
        gathers = np.append(calls.kind == CollectiveKind.ALL_GATHER, False)[tasks.collective]
        at = np.flatnonzero(gathers & (tasks.kind == TaskKind.TRANSFER))
        assert len(set(tasks.rank[at].tolist())) == ranks
        gathered = int(calls.size_bytes[tasks.collective[at]].sum())
        assert gathered == pytest.approx(2 * WHOLE, rel=0.01)
