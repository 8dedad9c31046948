"""The rows of work of each part of a transformer, all directions together.

Products and FLOPs are those of arXiv:2104.04473 (2 m n k; backward twice, once for inputs and once
for weights), attention in one kernel that writes no scores (arXiv:2205.14135: backward 2.5 times
the forward), bytes each tensor once. Tensor parallelism divides the columns of the first product of
a block and the rows of the second; what it leaves whole (norms, sums) sequence parallelism divides
by tokens (arXiv:2205.05198); context parallelism divides tokens, queries meet the keys of all
(balanced under a causal mask, as zigzag rings are); routed experts lie on `ep` ranks and get
`top_k` copies of every token.
"""

from whatif.models.places import Pass, Place
from whatif.models.shape import RunShape
from whatif.models.transformer.dims import Dims
from whatif.models.transformer.parameters import held_by_layer
from whatif.models.transformer.work import Work, WorkKind, moved_work

ATTENTION_BACKWARD = 2.5
"""FLOPs of backward over those of forward: scores again, and four products for two."""
NORM_FORWARD, NORM_BACKWARD = 2, 3
"""Passes over whole rows: read and write; gradient and input in, gradient out."""
RESIDUAL_FORWARD, RESIDUAL_BACKWARD = 3, 3
"""Two in, one out; in backward the sum of two gradients."""
LOSS_SINGLES = 3
"""Passes over the logits in fp32, beside one in their own type: written wide, read for the
denominator, and written or read as probabilities."""
DROPPED_BYTES = 5
"""Of each score under dropout: read and written in 16 bits, and its mask."""
FUSED_LOSS_PASSES = 3
"""Read for the maximum and the sum, read again, written as gradients; backward about the same."""

Rows = list[Work]


class Maker:
    """Makes the rows of one shape, all directions together."""

    def __init__(self, shape: RunShape, dims: Dims, *, has_experts: bool) -> None:
        self._shape, self._dims, self._has_experts = shape, dims, has_experts
        self._act = shape.elements.activation

    def embedding(self) -> Rows:
        """Rows of the table picked and written; in backward added up into its gradient."""
        d, each = self._dims, self._shape.elements
        rows = d.tokens * d.hidden
        return [
            moved_work(Place.EMBEDDING, Pass.FORWARD, rows * (each.parameter + each.activation)),
            moved_work(
                Place.EMBEDDING, Pass.BACKWARD_WEIGHT, rows * (each.activation + 2 * each.gradient)
            ),
        ]

    def head(self) -> Rows:
        """Final norm, logits and loss."""
        d = self._dims
        logits = d.tokens * d.vocab
        loss = logits * (self._act + LOSS_SINGLES * 4)
        if self._shape.options.fused_loss:
            loss = logits * self._act * FUSED_LOSS_PASSES
        return [
            *self._whole_rows(Place.NORM, NORM_FORWARD, NORM_BACKWARD, 1),
            *self._product(Place.LOGITS, d.tokens, d.vocab, d.hidden),
            moved_work(Place.LOSS, Pass.FORWARD, loss, LOSS_SINGLES),
            moved_work(Place.LOSS, Pass.BACKWARD_INPUT, loss, LOSS_SINGLES),
        ]

    def layer(self) -> Rows:
        """One block: attention, and a feed-forward or experts."""
        inner = self._experts() if self._has_experts else self._feed_forward(self._dims.ffn)
        return [
            *self._whole_rows(Place.NORM, NORM_FORWARD, NORM_BACKWARD, 2),
            *self._queries_keys_values(),
            *self._core(),
            *self._product(
                Place.PROJECTION,
                self._dims.tokens,
                self._dims.hidden,
                self._dims.heads * self._dims.v_head_dim,
            ),
            *self._whole_rows(Place.RESIDUAL, RESIDUAL_FORWARD, RESIDUAL_BACKWARD, 2),
            *inner,
            *self._accumulated(),
        ]

    def _whole_rows(self, place: Place, forward: float, backward: float, count: int) -> Rows:
        """Passes over what tensor parallelism leaves whole."""
        size = self._dims.whole_tokens * self._dims.hidden * self._act * count
        return [
            moved_work(place, Pass.FORWARD, forward * size, count),
            moved_work(place, Pass.BACKWARD_INPUT, backward * size, count),
        ]

    def _product(self, place: Place, m: float, n: float, k: float, batch: float = 1.0) -> Rows:
        """Forward, and backward to its inputs (m k n) and to its weights (n k m)."""
        return [
            self._one(place, Pass.FORWARD, (m, n, k), batch, self._act),
            self._one(place, Pass.BACKWARD_INPUT, (m, k, n), batch, self._act),
            self._one(place, Pass.BACKWARD_WEIGHT, (n, k, m), batch, self._shape.elements.gradient),
        ]

    def _one(
        self,
        place: Place,
        direction: Pass,
        sizes: tuple[float, float, float],
        batch: float,
        out_bytes: float,
    ) -> Work:
        m, n, k = sizes
        operands = (m * k + k * n) * self._act
        return Work(
            place=place,
            direction=direction,
            kind=WorkKind.PRODUCT,
            flops=2 * m * n * k * batch,
            bytes=(operands + m * n * out_bytes) * batch,
            m=m,
            n=n,
            k=k,
            batch=batch,
        )

    def _queries_keys_values(self) -> Rows:
        model, d = self._shape.model, self._dims
        if model.kv_lora is None:
            wide = d.heads * d.head_dim + d.kv_heads * (d.head_dim + d.v_head_dim)
            return self._product(Place.QKV, d.tokens, wide, d.hidden)
        rope = model.rope_head_dim or 0
        queries = d.heads * d.head_dim
        # Products into the compressed rows stay whole on every tensor rank.
        rows = self._product(Place.QKV, d.whole_tokens, model.kv_lora + rope, d.hidden)
        rows += self._product(
            Place.QKV, d.tokens, d.heads * (d.head_dim - rope + d.v_head_dim), model.kv_lora
        )
        if model.q_lora is None:
            return rows + self._product(Place.QKV, d.tokens, queries, d.hidden)
        rows += self._product(Place.QKV, d.whole_tokens, model.q_lora, d.hidden)
        return rows + self._product(Place.QKV, d.tokens, queries, model.q_lora)

    def _core(self) -> Rows:
        """Scores, softmax and context.

        Rows are turned by position in models with gates: Llama, Qwen, DeepSeek and their kin do.
        """
        d, causal = self._dims, self._shape.model.causal
        width = (d.head_dim + d.v_head_dim) / 2
        flops = 4 * d.samples * d.heads * d.queries * d.keys * width * (0.5 if causal else 1.0)
        queries = d.tokens * d.heads * (d.head_dim + d.v_head_dim)
        keys = d.samples * d.keys * d.kv_heads * (d.head_dim + d.v_head_dim)
        moved = (queries + keys) * self._act
        turned = d.tokens * (d.heads + d.kv_heads) * d.head_dim * 2 * self._act
        if self._shape.options.scores_written:
            return self._written_scores(causal=causal)
        rows: Rows = []
        for direction, times in (
            (Pass.FORWARD, 1.0),
            (Pass.BACKWARD_INPUT, ATTENTION_BACKWARD),
        ):
            if self._shape.model.gated:
                rows.append(moved_work(Place.ATTENTION, direction, turned))
            rows.append(
                Work(
                    place=Place.ATTENTION,
                    direction=direction,
                    kind=WorkKind.ATTENTION,
                    flops=flops * times,
                    bytes=moved * (1.0 if direction is Pass.FORWARD else 2.0),
                    m=d.queries,
                    n=d.keys,
                    k=width,
                    batch=d.samples * d.heads,
                    causal=causal,
                )
            )
        return rows

    def _written_scores(self, *, causal: bool) -> Rows:
        """Two batched products with softmax and dropout between them.

        A mask leaves no product out, and of a causal softmax half is read (Megatron-LM's fused
        kernels, arXiv:2104.04473).
        """
        d = self._dims
        heads = d.samples * d.heads
        scores = heads * d.queries * d.keys
        dropped = DROPPED_BYTES * scores if self._shape.model.dropout else 0.0
        read = 0.5 if causal else 1.0
        forward = scores * self._act * (1 + read)
        backward = scores * self._act * (1 + 2 * read)

        def product(direction: Pass, m: float, n: float, k: float) -> Work:
            return self._one(Place.ATTENTION, direction, (m, n, k), heads, self._act)

        return [
            product(Pass.FORWARD, d.queries, d.keys, d.head_dim),
            moved_work(Place.ATTENTION, Pass.FORWARD, forward + dropped),
            product(Pass.FORWARD, d.queries, d.v_head_dim, d.keys),
            product(Pass.BACKWARD_INPUT, d.keys, d.head_dim, d.queries),
            product(Pass.BACKWARD_INPUT, d.queries, d.head_dim, d.keys),
            moved_work(Place.ATTENTION, Pass.BACKWARD_INPUT, backward + dropped),
            product(Pass.BACKWARD_INPUT, d.keys, d.v_head_dim, d.queries),
            product(Pass.BACKWARD_INPUT, d.queries, d.keys, d.v_head_dim),
        ]

    def _feed_forward(self, inner: float) -> Rows:
        d = self._dims
        return [
            *self._product(Place.UP, d.tokens, d.ups * inner, d.hidden),
            *self._activation(Place.ACTIVATION, d.tokens * inner),
            *self._product(Place.DOWN, d.tokens, d.hidden, inner),
        ]

    def _activation(self, place: Place, inner: float) -> Rows:
        """Up rows in, one out; in backward the same and the gradients of all."""
        ups = self._dims.ups
        return [
            moved_work(place, Pass.FORWARD, inner * (ups + 1) * self._act),
            moved_work(place, Pass.BACKWARD_INPUT, inner * (2 * ups + 1) * self._act),
        ]

    def _experts(self) -> Rows:
        d, experts = self._dims, self._shape.model.experts or 1
        rows_each = d.routed / d.local_experts
        permuted = 2 * d.local_routed * d.hidden * self._act
        arrived = 2 * d.routed * d.hidden * self._act
        rows = [
            *self._product(Place.ROUTER, d.whole_tokens, experts, d.hidden),
            *self._both(Place.DISPATCH, permuted + arrived),
            *self._product(
                Place.EXPERT, rows_each, d.ups * d.expert_ffn, d.hidden, d.local_experts
            ),
            *self._activation(Place.EXPERT, d.routed * d.expert_ffn),
            *self._product(Place.EXPERT, rows_each, d.hidden, d.expert_ffn, d.local_experts),
            *self._both(Place.COMBINE, permuted + arrived),
        ]
        return rows + (self._feed_forward(d.shared_ffn) if d.shared_ffn else [])

    def _both(self, place: Place, size: float) -> Rows:
        return [
            moved_work(place, Pass.FORWARD, size, 2),
            moved_work(place, Pass.BACKWARD_INPUT, size, 2),
        ]

    def _accumulated(self) -> Rows:
        """Gradients of this micro-batch added to those before it."""
        fused = self._shape.options.fused_accumulation
        if fused or self._shape.batch.micro_batches == 1:
            return []
        held = held_by_layer(self._shape, has_experts=self._has_experts)
        return [
            moved_work(
                Place.GRADIENT, Pass.BACKWARD_WEIGHT, held * self._shape.elements.gradient * 2
            )
        ]
