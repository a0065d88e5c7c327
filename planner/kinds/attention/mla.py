"""Multi-head latent attention: all heads share one cached latent per token.

Shapes, one layer: H heads; queries through rank r_q (or straight); keys and values through a latent of r_kv; nope, rope
and value dims per head. The cache holds r_kv + rope values per token, the same on every TP rank unless DCP splits it.
Reference: DeepSeek-V2, arXiv:2405.04434, section 2.1 and appendix B (absorbed form); output gate and NoPE: Kimi K3
config.json.
"""

from __future__ import annotations

from typing import Any, Literal

from planner.algebra import Q, several
from planner.kinds.attention.kind import AttentionKind, AttentionRecord
from planner.kinds.collectives.all_gather import all_gather
from planner.kinds.dense_product import dense_product
from planner.kinds.weights import Weight
from planner.quantities import Say
from planner.record import Count
from planner.roofline import operator


class Mla(AttentionRecord):
    """Sizes of an MLA layer. q_rank: null where queries are projected straight; output_gate: a full-width gate."""

    kind: Literal["mla"]
    heads: Count
    q_rank: Count | None
    kv_rank: Count
    nope_dim: Count
    rope_dim: Count
    value_dim: Count
    output_gate: bool


def weights(mla: Any, width: Q) -> list[Weight]:
    """The weight groups of one layer. Projections into a latent (q_a, kv_a) end in no head and are copied."""
    matrix, vector = mla.value_bytes, mla.vector_value_bytes
    query = mla.heads * (mla.nope_dim + mla.rope_dim)
    if mla.q_rank is None:
        queries = [Weight("q", width * query, matrix, "tp")]
    else:
        queries = [
            Weight("q_a", width * mla.q_rank, matrix, "copied"),
            Weight("q_norm", mla.q_rank, vector, "copied", product=False),
            Weight("q_b", mla.q_rank * query, matrix, "tp"),
        ]
    gate = [Weight("output_gate", width * mla.heads * mla.value_dim, matrix, "tp")] if mla.output_gate else []
    return [
        *queries,
        Weight("kv_a", width * (mla.kv_rank + mla.rope_dim), matrix, "copied"),
        Weight("kv_norm", mla.kv_rank, vector, "copied", product=False),
        Weight("kv_b", mla.kv_rank * mla.heads * (mla.nope_dim + mla.value_dim), matrix, "tp"),
        Weight("output", mla.heads * mla.value_dim * width, matrix, "tp"),
        *gate,
    ]


def latent_bytes(mla: Any, on: Any) -> Q:
    """One cached token, one layer, one copy: (r_kv + rope) values."""
    return (mla.kv_rank + mla.rope_dim) * on.ask.kv_value_bytes


def token_shards(on: Any) -> Q:
    """How many ways the cached tokens are split: DCP x CP. TP alone does not split a latent."""
    return on.layout.dcp * on.layout.cp


def cache(mla: Any, on: Any) -> tuple[Q, Q]:
    """Grows with every token; nothing constant."""
    return latent_bytes(mla, on) / token_shards(on), 0


def decode(say: Say, mla: Any, load: Any, on: Any) -> Q:
    """One layer in a decode step, absorbed form.

    t = product(P, n) + floor + [ b L (r_kv + rope) k / (BW e_m c) (+)_p 2 H (2 r_kv + rope) n L / (TP CP F e_c) ]
        + gather

    b sequences of L cached tokens, k bytes per cached value, c = DCP x CP token shards, n tokens. Every TP rank reads
    every latent for its own heads, so intensity falls with TP; DCP restores it and pays two exchanges per layer.
    The arithmetic runs at the kernel's compute format even where the cache is FP8 (dequantised in the kernel).
    """
    product = dense_product(say, "project", "MLA projections", [*mla.held.values()], load.tokens, on)
    read = load.sequences * load.context * latent_bytes(mla, on) / token_shards(on)
    pair = on.constant.multiply_add_flops * mla.heads * (2 * mla.kv_rank + mla.rope_dim)
    core = operator(
        say, "core", "absorbed scores and values over the cached latents", on.kernel.attention_decode,
        read, pair * load.tokens * load.context / (on.layout.tp * on.layout.cp),
    )  # fmt: skip
    ranks = token_shards(on)
    heads = mla.heads / on.layout.tp * on.layout.dcp
    values = load.tokens * heads * (2 * mla.kv_rank + mla.rope_dim) * on.stack.activation_value_bytes
    gather = all_gather(
        say, "gather", "queries and partial outputs between cache shards", values * (ranks - 1) / ranks, ranks, on,
        rounds=2,
    )  # fmt: skip
    return say("layer_s", product + core + several(ranks) * gather, "one MLA layer, decode")


def prefill(say: Say, mla: Any, load: Any, on: Any) -> Q:
    """One layer over one prefill pass whose sequences already hold `past` tokens, expanded form.

    t = product(P, n) + floor + [ bytes / (BW e_m) (+)_p (2 H (nope + rope + v) n (past + T_seq/2) + expand) / (TP F
    e_c) ] expand = 2 r_kv H (nope + v) past s: latents of earlier chunks are expanded again.

    n tokens on this chip, s sequences, T_seq = n CP / s tokens of one sequence in the pass. Over a whole prompt without
    chunks this is H (nope + rope + v) T^2 FLOP. With CP the ranks gather each other's new latents and share the
    arithmetic evenly (zigzag order assumed).
    """
    product = dense_product(say, "project", "MLA projections", [*mla.held.values()], load.tokens, on)
    own = load.tokens * on.layout.cp / load.sequences
    seen = say("seen", load.past + own / 2, "tokens each new token looks at, on average")
    madd = on.constant.multiply_add_flops
    scores = madd * mla.heads * (mla.nope_dim + mla.rope_dim + mla.value_dim) * load.tokens * seen
    expand = madd * mla.kv_rank * mla.heads * (mla.nope_dim + mla.value_dim) * load.past * load.sequences
    read = load.sequences * (load.past + own) * latent_bytes(mla, on)
    core = operator(
        say, "core", "expanded causal attention", on.kernel.attention_prefill, read, (scores + expand) / on.layout.tp
    )  # fmt: skip
    ring = load.tokens * (mla.kv_rank + mla.rope_dim) * on.stack.activation_value_bytes * (on.layout.cp - 1)
    relay = all_gather(say, "relay", "new latents between context ranks", ring, on.layout.cp, on)
    return say("layer_s", product + core + several(on.layout.cp) * relay, "one MLA layer, one pass")


def working(mla: Any, on: Any) -> Q:
    """Queries, expanded keys and values, gate and output of one token."""
    per_head = 2 * (mla.nope_dim + mla.rope_dim) + 3 * mla.value_dim
    return mla.heads / on.layout.tp * per_head * on.stack.activation_value_bytes


def core_flops(mla: Any, tokens: Q, on: Any) -> Q:
    """H (nope + rope + v) T^2: causal, so half of the square."""
    return on.constant.multiply_add_flops / 2 * mla.heads * (mla.nope_dim + mla.rope_dim + mla.value_dim) * tokens**2


KIND = AttentionKind(
    record=Mla, reference="DeepSeek-V2, arXiv:2405.04434, section 2.1 and appendix B", weights=weights, cache=cache,
    decode=decode, prefill=prefill, working=working, core_flops=core_flops, shared_cache=True,
)  # fmt: skip
