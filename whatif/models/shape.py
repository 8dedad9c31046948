"""What a training or inference run computes and over how many ranks it is divided.

Plain values that people can write in YAML (`--describe run.yaml`, `replay synth model.yaml`) and
that every model of kernels, collectives, pipelines and memory reads. None = not known.
"""

from collections.abc import Mapping
from enum import StrEnum
from math import prod
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec import Struct, field

from ingest.errors import UsageError

MOST_DEGREE = 1_000_000
MOST_WIDTH = 100_000_000
"""Of a layer, and of tokens that a vocabulary knows."""
MOST_TOKENS = 1_000_000_000
"""Of a sample; and samples of a micro-batch."""
MOST_FACTOR = 1_000.0
"""Of samples, tokens and what experts get."""
UNSAID_SAMPLES, UNSAID_SEQUENCE = 1.0, 1_000_000
"""What a factor of samples and tokens multiplies where a run does not tell its own."""
SHARDS_OPTIMIZER, SHARDS_GRADIENTS, SHARDS_PARAMETERS = 1, 2, 3
"""From which stage of ZeRO on each is divided over the replicas."""


def check_factor(factor: float) -> None:
    """Refuse a factor of samples or tokens that nobody means.

    Raises:
        UsageError: it is below 1 / MOST_FACTOR or above MOST_FACTOR.
    """
    if not 1 / MOST_FACTOR <= factor <= MOST_FACTOR:
        raise UsageError(
            f"a factor of {factor:g}",
            hint=f"a number from {1 / MOST_FACTOR:g} to {MOST_FACTOR:,.0f}",
        )


def check_count(count: int, what: str) -> None:
    """Refuse a number (of ranks, stages, layers, micro-batches, steps) that no job has.

    Raises:
        UsageError: it is below 1 or above MOST_DEGREE.
    """
    if not 1 <= count <= MOST_DEGREE:
        raise UsageError(f"{count:,} {what}", hint=f"a number from 1 to {MOST_DEGREE:,}")


class OutOfBoundsError(UsageError, ValueError):
    """A number that no job and no machine has; in a file its place is told with it."""


Bounds = Mapping[str, tuple[float, float]]
"""Of each number of a struct: the least and the greatest that a job can have."""


def check_bounds(part: Struct, bounds: Bounds) -> None:
    """Refuse sizes that no job has, and what is no number.

    Raises:
        OutOfBoundsError: one is out of its bounds; names the field.
    """
    for name, (least, most) in bounds.items():
        value = getattr(part, name)
        if value is not None and not least <= value <= most:
            shown = f"{value:,}" if isinstance(value, int) else f"{value:g}"
            raise OutOfBoundsError(
                f"{name} of {shown}", hint=f"a number from {least:g} to {most:,.12g}"
            )


_S = TypeVar("_S", bound="ModelShape | Batch")


def as_found(part: type[_S], **fields: Any) -> _S:  # noqa: ANN401  (the fields of the part)
    """A part of a shape from what a trace shows; numbers that no job has are left unknown."""
    kept = {}
    for name, value in fields.items():
        least, most = BOUNDS[part].get(name, (0.0, 0.0))
        if name not in BOUNDS[part] or value is None or least <= value <= most:
            kept[name] = value
    return part(**kept)


class Schedule(StrEnum):
    """Order of the micro-batches of a pipeline stage."""

    NONE = "none"
    """One stage: forward and backward of each micro-batch in turn."""
    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    INTERLEAVED = "interleaved"
    """1F1B over several chunks of layers per stage (virtual stages)."""
    ZERO_BUBBLE = "zero_bubble"
    """ZB-H1: backward split in input and weight gradients, the latter fill the bubble."""
    DUALPIPE = "dualpipe"
    """Both directions at once; each rank holds two stages."""


class Recompute(StrEnum):
    """Activations that backward computes again."""

    NONE = "none"
    SELECTIVE = "selective"
    """The core of attention (scores, softmax, dropout), as in arXiv:2205.05198."""
    FULL = "full"
    """All of a layer from its input."""


class ContextKind(StrEnum):
    """How context parallelism exchanges keys and values."""

    RING = "ring"
    """Keys and values go round, block by block, beside attention."""
    ALL_TO_ALL = "all_to_all"
    """Heads against sequence before and after attention (Ulysses)."""


class ModelShape(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A transformer as far as it is known; of other models only `layers` and `parameters`."""

    name: str = ""
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    """None: as `heads`."""
    head_dim: int | None = None
    """None: hidden / heads."""
    ffn: int | None = None
    """Inner width of the feed-forward; of experts see `expert_ffn`."""
    gated: bool = False
    """Two products up instead of one (SwiGLU)."""
    vocab: int | None = None
    tied: bool = False
    """Embedding and head share their weights."""
    bias: bool = False
    causal: bool = True
    dropout: bool = False
    experts: int | None = None
    """Routed experts of a layer; None: dense."""
    top_k: int = 1
    expert_ffn: int | None = None
    shared_experts: int = 0
    dense_layers: int = 0
    """First layers without experts."""
    q_lora: int | None = None
    """Rank of the compressed queries (multi-head latent attention); None: none."""
    kv_lora: int | None = None
    rope_head_dim: int | None = None
    v_head_dim: int | None = None
    parameters: int | None = None
    """In all; None: by the formula of the shape."""

    def __post_init__(self) -> None:
        """Refuse what no job has."""
        check_bounds(self, BOUNDS[ModelShape])


class Degrees(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Over how many ranks each axis divides the work. World size = tp x cp x pp x dp."""

    tp: int = 1
    sp: bool = False
    """Sequence parallel: what tensor parallelism leaves whole is divided along the sequence."""
    cp: int = 1
    cp_kind: ContextKind = ContextKind.RING
    pp: int = 1
    virtual_stages: int = 1
    """Chunks of layers per stage (interleaved)."""
    dp: int = 1
    """Replicas, those that share state among them."""
    zero: int = 0
    """0: all state on every replica; 1: optimizer, 2: and gradients, 3: and parameters sharded (as
    FSDP)."""
    shard: int | None = None
    """Replicas that share state, where not all do (hybrid shards); None: all `dp`."""
    ep: int = 1
    """Ranks over which experts lie, out of dp x cp (x tp)."""
    etp: int | None = None
    """Tensor parallelism inside experts; None: 1 where ep > 1, else tp."""

    def __post_init__(self) -> None:
        """Refuse what no job has."""
        check_bounds(self, BOUNDS[Degrees])
        if self.zero not in range(4):
            raise OutOfBoundsError(f"ZeRO stage {self.zero}", hint="0, 1, 2 or 3")

    @property
    def world(self) -> int:
        """Ranks of the job."""
        return prod((self.tp, self.cp, self.pp, self.dp))

    @property
    def shards(self) -> int:
        """Ranks over which sharded state is divided: the replicas, and context ranks with them."""
        if self.zero == 0:
            return 1
        return (self.shard or self.dp) * self.cp


class Batch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one step of one replica computes."""

    micro_batches: int = 1
    """Of a replica in a step (gradient accumulation, or through the pipeline)."""
    samples: float | None = None
    """Of a micro-batch."""
    sequence: int | None = None
    """Tokens of a sample, over all context ranks."""

    def __post_init__(self) -> None:
        """Refuse what no job has."""
        check_bounds(self, BOUNDS[Batch])


class Elements(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Bytes of one element; the defaults are mixed precision as Megatron-LM does it."""

    parameter: float = 2
    gradient: float = 4
    reduced: float | None = None
    """Of gradients while they are reduced; None: as `gradient`."""
    optimizer: float = 12
    """Per parameter: master copy and two moments in fp32."""
    activation: float = 2
    product: str = "bf16"
    """Type of matrix products: fp32, tf32, fp16, bf16, fp8."""

    def __post_init__(self) -> None:
        """Refuse what no job has."""
        check_bounds(self, BOUNDS[Elements])


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How the step is run, beside its degrees."""

    schedule: Schedule = Schedule.NONE
    recompute: Recompute = Recompute.NONE
    recompute_layers: int | None = None
    """Of a stage; None: all."""
    offload: bool = False
    """Optimizer state and its work lie on the host (ZeRO-Offload)."""
    sync_every: int = 1
    """Steps between two exchanges of replicas (local SGD); 1: every step."""
    capacity: float | None = None
    """Tokens of an expert at most, in those of a balanced one; None: no limit."""
    imbalance: float = 1.0
    """Tokens of the fullest rank of experts over the mean."""
    bucket_bytes: float | None = None
    overlap_grads: bool = True
    overlap_params: bool = True
    async_tp: bool = False
    distributed_optimizer: bool = False
    scores_written: bool = False
    """Attention writes its scores and reads them again, as before flash attention."""
    fused_accumulation: bool = False
    """Products of weight gradients add to those of earlier micro-batches themselves (Megatron-LM's
    gradient accumulation fusion); else a kernel of its own does."""
    attention_frac: float | None = None
    """Share of the matrix peak that attention's kernels reach; None: as usual on the device."""
    fused_loss: bool = False
    """The loss in one kernel each way, without single-precision logits."""
    fused_attention: bool = True
    """Attention in one kernel that keeps no scores (arXiv:2205.14135)."""
    logit_bytes: float | None = None
    """Of one logit at the loss; None: what cross_entropy in fp32 needs. 4: compiled, 2: in one
    kernel that writes the gradient where the logits were."""
    selective_ops: bool = False
    """Selective recomputation as torchtitan has it per operator: the outputs of attention and of
    every second product are kept, all else is computed again."""

    def __post_init__(self) -> None:
        """Refuse what no job has."""
        check_bounds(self, BOUNDS[Options])


class RunShape(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """All of it."""

    model: ModelShape = field(default_factory=ModelShape)
    degrees: Degrees = field(default_factory=Degrees)
    batch: Batch = field(default_factory=Batch)
    elements: Elements = field(default_factory=Elements)
    options: Options = field(default_factory=Options)


_COUNT, _WIDTH, _BYTES = (1, MOST_DEGREE), (1, MOST_WIDTH), (1 / 8, 64)
BOUNDS: Mapping[type[Struct], Bounds] = MappingProxyType(
    {
        ModelShape: {
            **dict.fromkeys(("layers", "heads", "kv_heads", "head_dim", "experts"), _COUNT),
            **dict.fromkeys(("q_lora", "kv_lora", "rope_head_dim", "v_head_dim"), _COUNT),
            **dict.fromkeys(("hidden", "ffn", "vocab", "expert_ffn"), _WIDTH),
            "top_k": _COUNT,
            "shared_experts": (0, MOST_DEGREE),
            "dense_layers": (0, MOST_DEGREE),
            "parameters": (1, 1e18),
        },
        Degrees: dict.fromkeys(
            ("tp", "cp", "pp", "dp", "shard", "ep", "etp", "virtual_stages"), _COUNT
        ),
        Batch: {
            "micro_batches": _COUNT,
            "samples": (1 / MOST_TOKENS, MOST_TOKENS),
            "sequence": (1, MOST_TOKENS),
        },
        Elements: {
            **dict.fromkeys(("parameter", "gradient", "reduced", "activation"), _BYTES),
            "optimizer": (0, 256),
        },
        Options: {
            "recompute_layers": (0, MOST_DEGREE),
            "sync_every": _COUNT,
            "capacity": (1e-3, MOST_DEGREE),
            "imbalance": (1, MOST_DEGREE),
            "bucket_bytes": (1, 1e15),
            "attention_frac": (1e-3, 1),
            "logit_bytes": _BYTES,
        },
    }
)
"""Numbers that a person may write; wide, so that what-ifs about what was found stay inside."""
