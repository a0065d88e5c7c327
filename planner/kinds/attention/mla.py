"""Multi-head latent attention: all heads share one cached latent per token.

Shapes, one layer: H heads; queries through rank r_q (or straight); keys and values through a latent of r_kv; nope, rope
and value dims per head. The cache holds r_kv + rope values per token, the same on every TP rank unless DCP splits it.
Reference: DeepSeek-V2, arXiv:2405.04434, section 2.1 and appendix B (absorbed form); output gate and NoPE: Kimi K3
config.json.
"""

from __future__ import annotations

from typing import Any, Literal

from planner.algebra import Q, ceil_div
from planner.kinds.attention.kind import AttentionKind, AttentionRecord, Cache, indivisible, tp_share
from planner.kinds.collectives.all_gather import all_gather
from planner.kinds.dense_product import dense_product
from planner.kinds.weights import Weight, bytes_of
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
    query = mla.heads * (mla.nope_dim + mla.rope_dim)
    if mla.q_rank is None:
        queries = [Weight("q", width * query, bytes_of(mla, "q"), "tp")]
    else:
        queries = [
            Weight("q_a", width * mla.q_rank, bytes_of(mla, "q_a"), "copied"),
            Weight("q_norm", mla.q_rank, bytes_of(mla, "q_norm", "vector_value_bytes"), "copied", product=False),
            Weight("q_b", mla.q_rank * query, bytes_of(mla, "q_b"), "tp"),
        ]
    gate = (
        [Weight("output_gate", width * mla.heads * mla.value_dim, bytes_of(mla, "output_gate"), "tp")]
        if mla.output_gate
        else []
    )
    return [
        *queries,
        Weight("kv_a", width * (mla.kv_rank + mla.rope_dim), bytes_of(mla, "kv_a"), "copied"),
        Weight("kv_norm", mla.kv_rank, bytes_of(mla, "kv_norm", "vector_value_bytes"), "copied", product=False),
        Weight("kv_b", mla.kv_rank * mla.heads * (mla.nope_dim + mla.value_dim), bytes_of(mla, "kv_b"), "tp"),
        Weight("output", mla.heads * mla.value_dim * width, bytes_of(mla, "output"), "tp"),
        *gate,
    ]


def sizes(say: Say, mla: Any, on: Any) -> dict[str, Q]:
    """What one chip has of a layer, worked out once.

    rank_heads = H/TP; latent_bytes = (r_kv + rope) cached values of one token, one copy; shards = DCP x CP ways the
    cached tokens are split (TP alone does not split a latent); row_heads = heads a rank attends with: H/TP x DCP.
    """
    latent = (mla.kv_rank + mla.rope_dim) * on.ask.kv_value_bytes
    heads = say("rank_heads", mla.heads / on.layout.tp, "heads on one chip")
    return {
        "rank_heads": heads,
        "latent_bytes": say("latent_bytes", latent, "cached values of one token"),
        "row_heads": say("row_heads", heads * on.layout.dcp, "heads one rank attends with in decode"),
    }


def cache(mla: Any, on: Any) -> Cache:
    """Grows with every token; nothing constant."""
    return Cache(growing=mla.latent_bytes / on.ranks.shards.count)


def decode(say: Say, mla: Any, load: Any, on: Any) -> Q:
    """One layer in a decode step, absorbed form.

    t = product(P, n) + floor + [ b L (r_kv + rope) k / (BW e_m c) (+)_p 2 (2 r_kv + rope) rows b L / (F e_c c) ]
        + gather,    rows = ceil(H/TP DCP s / m) m

    b sequences of L cached tokens, k bytes per cached value, c = DCP x CP token shards, s tokens of a sequence. A rank
    attends with H/TP x DCP heads of s tokens at once; the kernel pads these rows to its tile of m, so few heads per
    rank waste arithmetic. Every TP rank reads every latent for its own heads, so intensity falls with TP; DCP restores
    it and pays two exchanges per layer. The arithmetic runs at the kernel's compute format even where the cache is FP8
    (dequantised in the kernel).
    """
    kernel, shards = on.kernel.attention_decode, on.ranks.shards
    product = dense_product(say, "project", "MLA projections", [*mla.held.values()], load.tokens, on)
    cached = say("cached", load.sequences * load.context / shards.count, "cached tokens one rank reads")
    rows = ceil_div(mla.row_heads * load.tokens / load.sequences, kernel.row_multiple) * kernel.row_multiple
    pair = on.constant.multiply_add_flops * (2 * mla.kv_rank + mla.rope_dim)
    sentence = "absorbed scores and values over the cached latents"
    core = operator(say, "core", sentence, kernel, cached * mla.latent_bytes, pair * rows * cached)
    wide = (2 * mla.kv_rank + mla.rope_dim) * on.stack.activation_value_bytes
    sent = load.tokens * mla.row_heads * wide * shards.others
    gather = all_gather(say, "gather", "queries and partial outputs between cache shards", sent, shards, on, rounds=2)
    return say("layer_s", product + core + gather, "one MLA layer, decode")


def prefill(say: Say, mla: Any, load: Any, on: Any) -> Q:
    """One layer over one prefill pass whose sequences already hold `past` tokens, expanded form.

    t = product(P, n) + floor + [ bytes / (BW e_m) (+)_p (2 H w n (past + T_seq/2) + expand) / (TP F e_c) ],
    w = nope + rope + v,   bytes = H/TP w a (n + s (past + T_seq)),   expand = 2 r_kv H (nope + v) past s

    n tokens on this chip, s sequences, T_seq = n CP / s tokens of one sequence in the pass; queries and outputs, keys
    and values move once; latents of earlier chunks are expanded again. Over a whole prompt without chunks this is
    H w T^2 FLOP. With CP the ranks gather each other's new latents and share the arithmetic evenly (zigzag assumed).
    """
    kernel, madd = on.kernel.attention_prefill, on.constant.multiply_add_flops
    product = dense_product(say, "project", "MLA projections", [*mla.held.values()], load.tokens, on)
    own = load.tokens * on.layout.cp / load.sequences
    wide = mla.nope_dim + mla.rope_dim + mla.value_dim
    present = say("present", (load.past + own) * load.sequences, "tokens whose keys and values are read")
    scores = madd * wide * load.tokens * (load.past + own / 2)
    expand = madd * mla.kv_rank * (mla.nope_dim + mla.value_dim) * load.past * load.sequences
    moved = wide * on.stack.activation_value_bytes * mla.rank_heads * (load.tokens + present)
    core = operator(say, "core", "expanded causal attention", kernel, moved, mla.rank_heads * (scores + expand))
    ring = load.tokens * (mla.kv_rank + mla.rope_dim) * on.stack.activation_value_bytes * (on.layout.cp - 1)
    relay = all_gather(say, "relay", "new latents between context ranks", ring, on.ranks.cp, on)
    return say("layer_s", product + core + relay, "one MLA layer, one pass")


def working(mla: Any, on: Any) -> Q:
    """Queries, expanded keys and values, gate and output of one token."""
    per_head = 2 * (mla.nope_dim + mla.rope_dim) + 3 * mla.value_dim
    return per_head * on.stack.activation_value_bytes * mla.rank_heads


def core_flops(mla: Any, tokens: Q, on: Any) -> Q:
    """H (nope + rope + v) T^2: causal, so half of the square."""
    return on.constant.multiply_add_flops / 2 * mla.heads * (mla.nope_dim + mla.rope_dim + mla.value_dim) * tokens**2


def tp_problem(mla: Mla, tp: int) -> str | None:
    """TP divides the heads."""
    return indivisible(tp, mla.heads, "heads")


KIND = AttentionKind(
    record=Mla, reference="DeepSeek-V2, arXiv:2405.04434, section 2.1 and appendix B", weights=weights,
    sizes=sizes, cache=cache, decode=decode, prefill=prefill, working=working, core_flops=core_flops,
    share=tp_share, tp_problem=tp_problem, copies=lambda record, tp: tp,
)  # fmt: skip
