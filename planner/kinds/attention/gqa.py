"""Grouped-query attention, full or over a sliding window: H query heads share K key-value heads.

Shapes, one layer: queries H x d, keys K x d, values K x v; multi-query is K = 1, multi-head K = H. A window w keeps
only the last w tokens. Where TP is larger than K the key-value heads are repeated, and DCP may split the repeats over
tokens.
Limits: attention in chunks of w tokens (Llama 4) is taken for a window of w; a query sees its own chunk alone, so half
of that on average.
Reference: J. Ainslie et al., GQA, arXiv:2305.13245; sliding window: Mistral 7B, arXiv:2310.06825; sinks: gpt-oss model
card, arXiv:2508.10925; one projection for keys and values: transformers, models/gemma4 (attention_k_eq_v).
"""

from __future__ import annotations

from typing import Any, Literal

from planner.algebra import Q, ceil_div, minimum
from planner.kinds.attention.kind import AttentionKind, AttentionRecord, Cache, indivisible
from planner.kinds.collectives.all_gather import all_gather
from planner.kinds.dense_product import dense_product
from planner.kinds.weights import Shares, Weight, bytes_of
from planner.quantities import Say
from planner.record import Count
from planner.roofline import operator


class KeysAndValues(AttentionRecord):
    """Sizes of any layer whose cache holds keys and values by head.

    shares_keys: no value projection, values are the projected keys before norm and rotation; the cache holds both all
    the same, since keys are rotated. output_gate: "elementwise" widens the query projection by H v, "headwise" by H.
    qk_norm: "head" one vector of d for queries and one for keys, "full" of H d and K d (null too for norms without
    weights). bias: on q, k and v; output_bias: on o. sinks: one number per head.
    """

    heads: Count
    kv_heads: Count
    head_dim: Count
    value_dim: Count
    shares_keys: bool = False
    output_gate: Literal["elementwise", "headwise"] | None = None
    qk_norm: Literal["head", "full"] | None = None
    bias: bool = False
    output_bias: bool = False
    sinks: bool = False


class Gqa(KeysAndValues):
    """Sizes of a GQA layer. window: tokens kept, null for all."""

    kind: Literal["gqa"]
    window: Count | None = None


def weights(gqa: Any, width: Q) -> list[Weight]:
    """The weight groups of one layer: q, k, v, o, gate; norms, biases, sinks."""
    query, key, value = gqa.heads * gqa.head_dim, gqa.kv_heads * gqa.head_dim, gqa.kv_heads * gqa.value_dim
    out = gqa.heads * gqa.value_dim
    groups = [
        Weight("q", width * query, bytes_of(gqa, "q"), "tp"),
        Weight("k", width * key, bytes_of(gqa, "k"), "kv"),
        Weight("output", out * width, bytes_of(gqa, "output"), "tp"),
    ]
    if not gqa.shares_keys:
        groups.append(Weight("v", width * value, bytes_of(gqa, "v"), "kv"))
    if gqa.output_gate is not None:
        gate = width * (out if gqa.output_gate == "elementwise" else gqa.heads)
        groups.append(Weight("output_gate", gate, bytes_of(gqa, "output_gate"), "tp"))
    vectors = [
        ("qk_norm", 2 * gqa.head_dim if gqa.qk_norm == "head" else query + key, gqa.qk_norm is not None),
        ("bias", query + key + (0 if gqa.shares_keys else value), gqa.bias),
        ("output_bias", width, gqa.output_bias),
        ("sinks", gqa.heads, gqa.sinks),
    ]
    return groups + [
        Weight(name, size, bytes_of(gqa, name, "vector_value_bytes"), "copied", product=False)
        for name, size, there in vectors
        if there
    ]


def share(gqa: Any, on: Any) -> Shares:
    """Queries and output over TP; keys and values over TP up to K ranks, then repeated: ceil(K/TP) / K."""
    return {"tp": 1 / on.layout.tp, "kv": ceil_div(gqa.kv_heads, on.layout.tp) / gqa.kv_heads, "copied": 1}


def sizes(say: Say, gqa: Any, on: Any) -> dict[str, Q]:
    """What one chip has of a layer: rank_kv = ceil(K/TP) key-value heads, token_bytes of their cache for one token."""
    heads = say("rank_kv_heads", ceil_div(gqa.kv_heads, on.layout.tp), "key-value heads on one chip")
    token = heads * (gqa.head_dim + gqa.value_dim) * on.ask.kv_value_bytes
    return {
        "rank_kv": heads,
        "rank_heads": say("rank_heads", gqa.heads / on.layout.tp, "query heads on one chip"),
        "token_bytes": say("token_bytes", token, "cache of one token, before token shards"),
    }


def cache(gqa: Any, on: Any) -> Cache:
    """Keys and values of every token, split over the token shards, or of the last `window`, which is not split."""
    if gqa.window is not None:
        return Cache(windowed=gqa.token_bytes, window=gqa.window)
    return Cache(growing=gqa.token_bytes / on.ranks.shards.count)


def looked_at(gqa: Any, context: Q) -> Q:
    """Tokens a query sees: all of the context, or the window."""
    return context if gqa.window is None else minimum(context, gqa.window)


def mean_reach(past: Q, own: Q, most: Q) -> Q:
    """Mean of min(t, most) over the positions t from `past` to `past + own`: what a query of a pass sees on average.

    a = min(past, most),  b = min(past + own, most):    most - (b - a)/own (most - (a + b)/2)
    """
    first, last = minimum(past, most), minimum(past + own, most)
    return most - (last - first) / own * (most - (first + last) / 2)


def reach(gqa: Any, past: Q, own: Q) -> Q:
    """Tokens a query of a pass sees on average: half of its own pass and all before, or the window."""
    return past + own / 2 if gqa.window is None else mean_reach(past, own, gqa.window)


def decode(say: Say, gqa: Any, load: Any, on: Any) -> Q:
    """One layer in a decode step.

    t = product(P, n) + floor + [ b l K/TP (d + v) k / (BW e_m c) (+)_p 2 (d + v) rows K/TP b l / (F e_c c) ] + gather
    rows = ceil(H/K s / m) m,    l = min(L, window)

    b sequences of L cached tokens, k bytes per cached value, c = DCP x CP token shards (1 with a window), s tokens of a
    sequence. The H/K queries of a key-value head and the s tokens of a sequence form the rows of one tile, padded to m.
    """
    kernel, shards = on.kernel.attention_decode, on.ranks.shards
    product = dense_product(say, "project", "attention projections", [*gqa.held.values()], load.tokens, on)
    whole = gqa.window is not None
    ways, gathered = (1, 1) if whole else (shards.count, on.layout.dcp)
    seen = say("cached", load.sequences * looked_at(gqa, load.context) / ways, "cached tokens one rank reads")
    together = gqa.rank_heads / gqa.rank_kv * gathered * load.tokens / load.sequences
    rows = ceil_div(together, kernel.row_multiple) * kernel.row_multiple
    pair = on.constant.multiply_add_flops * (gqa.head_dim + gqa.value_dim) * gqa.rank_kv
    core = operator(say, "core", "scores and values over the cache", kernel, seen * gqa.token_bytes, pair * rows * seen)
    if whole:
        return say("layer_s", product + core, "one attention layer over a window, decode")
    wide = (gqa.head_dim + gqa.value_dim) * on.stack.activation_value_bytes
    sent = load.tokens * gqa.rank_heads * on.layout.dcp * wide * shards.others
    gather = all_gather(say, "gather", "queries and partial outputs between cache shards", sent, shards, on, rounds=2)
    return say("layer_s", product + core + gather, "one attention layer, decode")


def prefill(say: Say, gqa: Any, load: Any, on: Any) -> Q:
    """One layer over one prefill pass whose sequences already hold `past` tokens.

    t = product(P, n) + floor + [ bytes / (BW e_m) (+)_p 2 H (d + v) n seen / (TP F e_c) ],
    seen = past + T_seq/2, with a window the mean of min(position, window)
    bytes = a [ n H/TP (d + v) + s (min(past, window) + T_seq) K/TP (d + v) ]
    """
    kernel = on.kernel.attention_prefill
    product = dense_product(say, "project", "attention projections", [*gqa.held.values()], load.tokens, on)
    own = load.tokens * on.layout.cp / load.sequences
    wide = gqa.head_dim + gqa.value_dim
    seen = reach(gqa, load.past, own)
    present = (looked_at(gqa, load.past) + own) * load.sequences
    moved = wide * on.stack.activation_value_bytes * (load.tokens * gqa.rank_heads + present * gqa.rank_kv)
    flops = on.constant.multiply_add_flops * wide * gqa.rank_heads * load.tokens * seen
    core = operator(say, "core", "causal attention", kernel, moved, flops)
    ring = load.tokens * gqa.token_bytes * (on.layout.cp - 1)
    relay = all_gather(say, "relay", "new keys and values between context ranks", ring, on.ranks.cp, on)
    return say("layer_s", product + core + relay, "one attention layer, one pass")


def working(gqa: Any, on: Any) -> Q:
    """Queries, keys, values, gate and output of one token."""
    per_query = gqa.head_dim + 2 * gqa.value_dim
    return (per_query * gqa.rank_heads + (gqa.head_dim + gqa.value_dim) * gqa.rank_kv) * on.stack.activation_value_bytes


def core_flops(gqa: Any, tokens: Q, on: Any) -> Q:
    """2 H (d + v) T seen: half of the prompt (causal), or the mean of min(position, window)."""
    pair = on.constant.multiply_add_flops * gqa.heads * (gqa.head_dim + gqa.value_dim)
    return pair * tokens * reach(gqa, 0, tokens)


def tp_problem(gqa: Gqa, tp: int) -> str | None:
    """TP divides the query heads, and either divides the key-value heads or is a multiple of them."""
    uneven = gqa.kv_heads % tp and tp % gqa.kv_heads
    return indivisible(tp, gqa.heads, "heads") or (
        f"TP{tp} neither divides nor is a multiple of the {gqa.kv_heads} key-value heads" if uneven else None
    )


def copies(gqa: Gqa, tp: int) -> int:
    """TP ranks that repeat a key-value head; a window is not worth splitting."""
    return tp // gqa.kv_heads if gqa.window is None and tp > gqa.kv_heads else 1


KIND = AttentionKind(
    record=Gqa, reference="arXiv:2305.13245; window: arXiv:2310.06825", weights=weights, share=share, sizes=sizes,
    cache=cache, decode=decode, prefill=prefill, working=working, core_flops=core_flops, tp_problem=tp_problem,
    copies=copies,
)  # fmt: skip
