"""Sparse multi-head latent attention: MLA whose every query attends to the k tokens that an indexer scores highest.

Shapes, one layer: MLA as in mla.py; the indexer has I heads of e. Its queries come from the query latent (r_q x I e),
its one key of e from the hidden state, with a norm; a projection width x I weighs the heads:

    score(t, j) = sum over heads h of  w(t, h) ReLU( q(t, h) . k(j) ),      attended: the k highest j <= t

Several layers may share one selection: then only the owner has an indexer, its weights and its keys.
Sharding: the indexer is whole on every TP rank. What the cache holds of one token and layer is what engines store:

    bf16, fp32    r_kv + rope values, and one indexer key
    packed        r_kv values with r_kv/128 scales of 4 B, rope values in bf16, and one indexer key
    indexer key   e values, in FP8 with e/128 scales of 4 B

so 656 B with FP8, 432 B with NVFP4 (whose block scales are in its 4.5 bits; the 16 B of scales stay as padding), and
132 B for a key of 128. Other NVFP4 layouts take 352 B (rope in FP8) to 432 B.
Reference: DeepSeek-V3.2-Exp technical report (deepseek-ai/DeepSeek-V3.2-Exp), section 2.1; vllm-project/vllm at
00859a52, models/deepseek_v32/attention.py (weights, which layers share); record layouts: vllm fp8_ds_mla, and
local-inference-lab/vllm pull request 82.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

from planner.algebra import Q, ceil_div, minimum
from planner.kinds.attention import mla
from planner.kinds.attention.gqa import mean_reach
from planner.kinds.attention.kind import AttentionKind, AttentionRecord, Cache, indivisible, tp_share
from planner.kinds.collectives.all_gather import all_gather
from planner.kinds.dense_product import dense_product
from planner.kinds.formats import FormatName
from planner.kinds.weights import Weight, bytes_of
from planner.quantities import Say
from planner.record import Count
from planner.roofline import operator

WHOLE_FORMATS = ("bf16", "fp32")
"""Cache formats that store every value of a latent alike, without scales."""
SCALED = 128  # values that share a scale, in a packed latent and in an indexer key
SCALED_KEYS = ("fp8", "int8")
"""Formats of an indexer key that have a scale beside the values."""
CANDIDATE = 2  # numbers of one candidate that cache shards exchange: its score and its place


class SparseMla(AttentionRecord):
    """Sizes of a sparse MLA layer.

    index_heads, index_dim: the indexer's I and e; index_topk: tokens a query attends to. owns_indexer: false where the
    layer uses the selection of an earlier one. rope_format, index_format: how a packed record stores the rope values
    and an indexer key stores its own; scale_format: their scales, and the scores.
    """

    kind: Literal["sparse_mla"]
    heads: Count
    q_rank: Count
    kv_rank: Count
    nope_dim: Count
    rope_dim: Count
    value_dim: Count
    index_heads: Count
    index_dim: Count
    index_topk: Count
    owns_indexer: bool = True
    output_gate: bool = False
    rope_format: FormatName = "bf16"
    index_format: FormatName = "fp8"
    scale_format: FormatName = "fp32"


def weights(sparse: Any, width: Q) -> list[Weight]:
    """The weight groups of one layer: MLA's, and the indexer's where the layer owns it, copied on every rank."""
    groups = mla.weights(sparse, width)
    if not sparse.owns_indexer:
        return groups
    size = 2 * sparse.index_dim  # the key's norm has a scale and an offset
    return [
        *groups,
        Weight("index_q", sparse.q_rank * sparse.index_heads * sparse.index_dim, bytes_of(sparse, "index_q"), "copied"),
        Weight("index_k", width * sparse.index_dim, bytes_of(sparse, "index_k"), "copied"),
        Weight("index_weights", width * sparse.index_heads, bytes_of(sparse, "index_weights"), "copied"),
        Weight("index_norm", size, bytes_of(sparse, "index_norm", "vector_value_bytes"), "copied", product=False),
    ]


def latent_bytes(sparse: Any, on: Any) -> Q:
    """What the cache stores of one token's latent."""
    if on.ask.kv_format in WHOLE_FORMATS:
        return (sparse.kv_rank + sparse.rope_dim) * on.ask.kv_value_bytes
    scales = ceil_div(sparse.kv_rank, SCALED) * sparse.scale_value_bytes
    return sparse.kv_rank * on.ask.kv_value_bytes + scales + sparse.rope_dim * sparse.rope_value_bytes


def key_bytes(kind: Any, scale_bytes: Q) -> Q:
    """What the cache stores of one indexer key."""
    scales = ceil_div(kind.index_dim, SCALED) if kind.index_format in SCALED_KEYS else 0
    return kind.index_dim * kind.index_value_bytes + scales * scale_bytes


def sizes(say: Say, sparse: Any, on: Any) -> dict[str, Q]:
    """What one chip has of a layer: rank_heads = H/TP; row_heads = H/TP x DCP; the latent's and the key's bytes."""
    heads = say("rank_heads", sparse.heads / on.layout.tp, "heads on one chip")
    found = {
        "rank_heads": heads,
        "row_heads": say("row_heads", heads * on.layout.dcp, "heads one rank attends with in decode"),
        "latent_bytes": say("latent_bytes", latent_bytes(sparse, on), "stored latent of one token"),
    }
    if sparse.owns_indexer:
        key = key_bytes(sparse, sparse.scale_value_bytes)
        found["key_bytes"] = say("key_bytes", key, "stored indexer key of one token")
    return found


def cache(sparse: Any, on: Any) -> Cache:
    """Latents grow with every token, and indexer keys where the layer owns them."""
    token = sparse.latent_bytes + (sparse.key_bytes if sparse.owns_indexer else 0)
    return Cache(growing=token / on.ranks.shards.count)


def at_key_rate(kernel: Any, kind: Any, on: Any) -> Any:
    """An attention kernel that computes at the rate of the indexer keys' format, where the chip has one."""
    rate = getattr(on.chip, f"{kind.index_format}_rate", None)
    if rate is None:
        return kernel
    format, reach = kind.index_format, rate * on.chip.sustained * kernel.compute_fraction
    own = {"compute_format": format, "peak_flops_per_s": {format: rate}, "reach_flops_per_s": {format: reach}}
    return SimpleNamespace(**{**vars(kernel), **own})


def choose(say: Say, kernel: Any, kind: Any, moved: Q, flops: Q, scores: Q, on: Any) -> Q:
    """Score all keys, then pick the highest: the products, and scores written and read once."""
    sentence = "indexer scores over the keys of all that came before"
    score = operator(say, "index", sentence, at_key_rate(kernel, kind, on), moved, flops)
    return score + operator(say, "select", "scores written, and read to pick the highest", on.kernel.stream, scores)


def padded(heads: Q, kernel: Any) -> Q:
    """Rows a kernel computes for these heads: ceil(heads / m) m."""
    return ceil_div(heads, kernel.row_multiple) * kernel.row_multiple


def decode(say: Say, sparse: Any, load: Any, on: Any) -> Q:
    """One layer in a decode step, absorbed form.

    t = product(P, n) + index + select + floor + [ n S z / (BW e_m c) (+)_p 2 (2 r_kv + rope) rows n S / (F e_c c) ]
        + gather,    S = min(L, k),    rows = ceil(H/TP DCP / m) m
    index  = floor + [ b L y / (BW e_m c) (+)_p 2 e ceil(I s / m) m b L / (F_i e_c c) ]
    select = floor + 2 x 4 B n L / (BW e_m c)

    b sequences of L cached tokens, n tokens, s of a sequence; z bytes of a latent, y of an indexer key; c = DCP x CP
    token shards; F_i the chip's rate in the key's format. Every token of a sequence selects for itself, so neither
    latents nor rows are shared between them. The indexer is computed alike on every TP rank; cache shards exchange
    their candidates beside queries and outputs.
    Limits: the indexer is given what the decode attention's kernel reaches, by analogy; latents are gathered one by one
    at that kernel's share of the bandwidth.
    """
    kernel, shards, madd = on.kernel.attention_decode, on.ranks.shards, on.constant.multiply_add_flops
    time = dense_product(say, "project", "MLA and indexer projections", [*sparse.held.values()], load.tokens, on)
    wide = 2 * sparse.kv_rank + sparse.rope_dim
    row = sparse.row_heads * wide * on.stack.activation_value_bytes
    if sparse.owns_indexer:
        keys = say("cached", load.sequences * load.context / shards.count, "cached keys one rank scores")
        tile = padded(sparse.index_heads * load.tokens / load.sequences, kernel)
        scores = 2 * sparse.scale_value_bytes * load.tokens * load.context / shards.count
        flops = madd * sparse.index_dim * tile * keys
        time = time + choose(say, kernel, sparse, keys * sparse.key_bytes, flops, scores, on)
        row = row + CANDIDATE * sparse.index_topk * sparse.scale_value_bytes
    seen = minimum(load.context, sparse.index_topk) / shards.count
    chosen = say("chosen", load.tokens * seen, "latents one rank attends to")
    flops = madd * wide * padded(sparse.row_heads, kernel) * chosen
    sentence = "absorbed scores and values over the chosen latents"
    core = operator(say, "core", sentence, kernel, chosen * sparse.latent_bytes, flops)
    told = "queries, candidates and partial outputs between cache shards"
    rounds = 3 if sparse.owns_indexer else 2
    gather = all_gather(say, "gather", told, load.tokens * row * shards.others, shards, on, rounds=rounds)
    return say("layer_s", time + core + gather, "one sparse MLA layer, decode")


def prefill(say: Say, sparse: Any, load: Any, on: Any) -> Q:
    """One layer over one prefill pass whose sequences already hold `past` tokens, absorbed form.

    t = product(P, n) + index + select + floor + [ bytes / (BW e_m) (+)_p 2 (2 r_kv + rope) rows n S / (F e_c) ],
    S = mean over the pass of min(position, k),   rows = ceil(H/TP / m) m
    index:  s (past + T_seq) y + n I e bytes,   2 I e n (past + T_seq/2) FLOP at the rate of the key's format
    bytes = n H/TP (2 r_kv + rope) a + s (past + T_seq) z

    The indexer scores all that came before, whole on every TP rank; only attention is limited to k tokens. Keys differ
    by query, so the latents are attended as they are stored: 2 (2 r_kv + rope) FLOP a pair and head, against
    2 (nope + rope + v) where latents are expanded. Heads are padded to the tile m of the decode kernel.
    Limits: latents that several queries of a pass select are counted once (they sit in the last-level cache); engines
    that expand latents for prompts shorter than k tokens are faster there.
    """
    kernel, madd = on.kernel.attention_prefill, on.constant.multiply_add_flops
    time = dense_product(say, "project", "MLA and indexer projections", [*sparse.held.values()], load.tokens, on)
    own = load.tokens * on.layout.cp / load.sequences
    present = say("present", (load.past + own) * load.sequences, "tokens whose latents are read")
    token = sparse.latent_bytes
    if sparse.owns_indexer:
        pairs = say("pairs", load.tokens * (load.past + own / 2), "query and key pairs the indexer scores")
        wide = sparse.index_heads * sparse.index_dim
        moved = present * sparse.key_bytes + load.tokens * wide * sparse.index_value_bytes
        scores = 2 * sparse.scale_value_bytes * pairs
        time = time + choose(say, kernel, sparse, moved, madd * wide * pairs, scores, on)
        token = token + sparse.key_bytes
    wide = 2 * sparse.kv_rank + sparse.rope_dim
    seen = say("seen", mean_reach(load.past, own, sparse.index_topk), "tokens a query attends to, mean over the pass")
    moved = load.tokens * sparse.rank_heads * wide * on.stack.activation_value_bytes + present * sparse.latent_bytes
    flops = madd * wide * padded(sparse.rank_heads, on.kernel.attention_decode) * load.tokens * seen
    core = operator(say, "core", "absorbed attention over the chosen latents", kernel, moved, flops)
    ring = load.tokens * token * (on.layout.cp - 1)
    relay = all_gather(say, "relay", "new latents and keys between context ranks", ring, on.ranks.cp, on)
    return say("layer_s", time + core + relay, "one sparse MLA layer, one pass")


def working(sparse: Any, on: Any) -> Q:
    """Queries before and after absorption, outputs before and after, and indexer queries of one token.

    Scores of a pass are computed in pieces of the engine's choice and are left to its workspace.
    """
    per_head = sparse.nope_dim + 2 * sparse.rope_dim + 2 * sparse.kv_rank + sparse.value_dim
    index = sparse.index_heads * sparse.index_dim * sparse.index_value_bytes if sparse.owns_indexer else 0
    return per_head * on.stack.activation_value_bytes * sparse.rank_heads + index


def core_flops(sparse: Any, tokens: Q, on: Any) -> Q:
    """2 H (2 r_kv + rope) T S, and I e T^2 for an own indexer (causal, half of the square)."""
    madd, seen = on.constant.multiply_add_flops, mean_reach(0, tokens, sparse.index_topk)
    attended = madd * sparse.heads * (2 * sparse.kv_rank + sparse.rope_dim) * tokens * seen
    return attended + (madd / 2 * sparse.index_heads * sparse.index_dim * tokens**2 if sparse.owns_indexer else 0)


def tp_problem(sparse: SparseMla, tp: int) -> str | None:
    """TP divides the heads; the indexer's are not split."""
    return indivisible(tp, sparse.heads, "heads")


KIND = AttentionKind(
    record=SparseMla, reference="DeepSeek-V3.2-Exp technical report, section 2.1", weights=weights, share=tp_share,
    sizes=sizes, cache=cache, decode=decode, prefill=prefill, working=working, core_flops=core_flops,
    tp_problem=tp_problem, copies=lambda record, tp: tp,
)  # fmt: skip
