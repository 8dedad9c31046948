"""Names that frameworks and models write, and what they tell of a run."""

import re

from replay.graph.arrays import TaskGraph

TRAINING = re.compile(r"backward|autograd::engine|optimizer\.step|zero_grad", re.IGNORECASE)
INFERENCE = re.compile(
    r"vllm|sglang|lightllm|tensorrt.?llm|paged_?attention|kv_?cache|prefill|splitkv"
    r"|(forward|attention|flash)_?decod|FlashAttnFwdCombine",
    re.IGNORECASE,
)
"""Serving engines, and kernels that only serving has: paged caches, attention split along keys."""
EXPERTS = re.compile(r"(?<![a-z])moe(?![a-z])|expert|token_dispatch|grouped_mm|topk_gating", re.I)
TABLES = re.compile(r"embedding_?bag|fbgemm|torchrec|split_embedding|permute_pooled", re.IGNORECASE)
FULLY_SHARDED = re.compile(r"FSDP::|fully_?sharded|fsdp", re.IGNORECASE)


def mention(graph: TaskGraph, words: re.Pattern[str]) -> str | None:
    """The first name of the run, of those that its tasks bear, with one of the words."""
    return next((name for name in graph.names if words.search(name)), None)


def told(name: str, longest: int = 60) -> str:
    """A name in a sentence: in backticks, cut where it is long."""
    return f"`{name if len(name) <= longest else name[: longest - 1] + '…'}`"
