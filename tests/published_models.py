"""Transformers by the sizes that their makers published."""

from msgspec.structs import replace

from whatif.models.shape import ModelShape

LLAMA3 = {
    "8B": ModelShape(
        layers=32, hidden=4096, heads=32, kv_heads=8, ffn=14336, gated=True, vocab=128_256
    ),
    "70B": ModelShape(
        layers=80, hidden=8192, heads=64, kv_heads=8, ffn=28672, gated=True, vocab=128_256
    ),
    "405B": ModelShape(
        layers=126, hidden=16384, heads=128, kv_heads=8, ffn=53248, gated=True, vocab=128_256
    ),
}
DEEPSEEK_V3 = ModelShape(
    layers=61,
    hidden=7168,
    heads=128,
    head_dim=128,
    v_head_dim=128,
    rope_head_dim=64,
    q_lora=1536,
    kv_lora=512,
    ffn=18432,
    vocab=129_280,
    gated=True,
    experts=256,
    top_k=8,
    expert_ffn=2048,
    shared_experts=1,
    dense_layers=3,
)
DEEPSEEK_V2 = replace(
    DEEPSEEK_V3,
    layers=60,
    hidden=5120,
    ffn=12288,
    vocab=102_400,
    experts=160,
    top_k=6,
    expert_ffn=1536,
    shared_experts=2,
    dense_layers=1,
)
SIMUMAX = {
    "llama3_70b": LLAMA3["70B"],
    "llama3_405b": replace(LLAMA3["405B"], kv_heads=16),
    "deepseekv2": DEEPSEEK_V2,
    "deepseekv3": replace(DEEPSEEK_V3, dense_layers=1),
}
"""As `configs/models` of SimuMax has them (405b with 16 heads of keys); one dense layer of V3, as
the notes of its table say."""
