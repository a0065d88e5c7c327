"""Block-sparse grouped-query attention: every query attends to the key blocks that an indexer scores highest.

Shapes, one layer: GQA as in gqa.py; the indexer has one query head of e for every key-value head and one key of e,
both projected from the hidden state, with a norm each. A block's score is the highest of its tokens'; a key-value head
attends to the `top_blocks` highest blocks of `block` tokens, the query's own among them:

    score(t, B) = max over j in B of  q(t, h) . k(j),      attended: min(L, top_blocks block) tokens

The cache holds keys and values of every token, and one indexer key beside them.
Sharding: the indexer's query heads go with the key-value heads, its key is whole on every rank.
Reference: vllm-project/vllm at 0443308a, models/minimax_m3 (nvidia/model.py, common/indexer.py): MiniMax-M3, whose
config has sparse_attention_config. Its first layers are plain GQA.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from planner.algebra import Q, ceil_div, minimum
from planner.kinds.attention import gqa
from planner.kinds.attention.kind import AttentionKind, Cache
from planner.kinds.attention.sparse_mla import at_key_rate
from planner.kinds.collectives.all_gather import all_gather
from planner.kinds.dense_product import dense_product
from planner.kinds.formats import FormatName
from planner.kinds.weights import Weight, bytes_of
from planner.quantities import Say
from planner.record import Count
from planner.roofline import operator

NORMS = 2  # of the indexer: its queries and its key


class BlockSparse(gqa.KeysAndValues):
    """Sizes of a block-sparse layer.

    index_heads, index_dim: the indexer's query heads and e. block: tokens of a block; top_blocks: blocks a query
    attends to, its own included. index_format: how the cache stores an indexer key.
    """

    kind: Literal["block_sparse"]
    index_heads: Count
    index_dim: Count
    block: Count
    top_blocks: Count
    index_format: FormatName = "bf16"

    @model_validator(mode="after")
    def paired(self) -> BlockSparse:
        """Every key-value head has its indexer head."""
        if self.index_heads != self.kv_heads:
            raise ValueError(f"index_heads {self.index_heads} must be the key-value heads, {self.kv_heads}")
        return self


def weights(sparse: Any, width: Q) -> list[Weight]:
    """The weight groups of one layer: GQA's, and the indexer's."""
    small = bytes_of(sparse, "index_norm", "vector_value_bytes")
    return [
        *gqa.weights(sparse, width),
        Weight("index_q", width * sparse.index_heads * sparse.index_dim, bytes_of(sparse, "index_q"), "kv"),
        Weight("index_k", width * sparse.index_dim, bytes_of(sparse, "index_k"), "copied"),
        Weight("index_norm", NORMS * sparse.index_dim, small, "copied", product=False),
    ]


def sizes(say: Say, sparse: Any, on: Any) -> dict[str, Q]:
    """What one chip has of a layer: GQA's sizes, and key_bytes of one token's indexer key."""
    key = say("key_bytes", sparse.index_dim * sparse.index_value_bytes, "stored indexer key of one token")
    return {**gqa.sizes(say, sparse, on), "key_bytes": key}


def cache(sparse: Any, on: Any) -> Cache:
    """Keys and values of every token, and its indexer key."""
    return Cache(growing=(sparse.token_bytes + sparse.key_bytes) / on.ranks.shards.count)


def budget(sparse: Any) -> Q:
    """Tokens a query attends to at most."""
    return sparse.top_blocks * sparse.block


def decode(say: Say, sparse: Any, load: Any, on: Any) -> Q:
    """One layer in a decode step.

    t = product(P, n) + index + floor + [ n S K/TP (d + v) k / (BW e_m c) (+)_p 2 (d + v) rows K/TP n S / (F e_c c) ]
        + gather,    S = min(L, top_blocks block),    rows = ceil(H/K DCP / m) m
    index = floor + [ b L e k_i / (BW e_m c) (+)_p 2 e ceil(K/TP DCP s / m) m b L / (F_i e_c c) ]

    b sequences of L cached tokens, n tokens, s of a sequence; c = DCP x CP token shards. Tokens of a sequence choose
    for themselves and share no read. Block scores are 1/`block` of the keys and are left out.
    Limits: the indexer is given what the decode attention's kernel reaches, by analogy, at F_i, the chip's rate in the
    key's format.
    """
    kernel, shards, madd = on.kernel.attention_decode, on.ranks.shards, on.constant.multiply_add_flops
    time = dense_product(say, "project", "attention and indexer projections", [*sparse.held.values()], load.tokens, on)
    keys = say("cached", load.sequences * load.context / shards.count, "cached keys one rank scores")
    heads = sparse.rank_kv * on.layout.dcp * load.tokens / load.sequences
    tile = ceil_div(heads, kernel.row_multiple) * kernel.row_multiple
    index = operator(
        say, "index", "indexer scores over the cached keys", at_key_rate(kernel, sparse, on), keys * sparse.key_bytes,
        madd * sparse.index_dim * tile * keys,
    )  # fmt: skip
    chosen = say("chosen", load.tokens * minimum(load.context, budget(sparse)) / shards.count, "tokens attended to")
    together = sparse.rank_heads / sparse.rank_kv * on.layout.dcp
    rows = ceil_div(together, kernel.row_multiple) * kernel.row_multiple
    pair = madd * (sparse.head_dim + sparse.value_dim) * sparse.rank_kv
    core = operator(
        say, "core", "scores and values over the chosen blocks", kernel, chosen * sparse.token_bytes,
        pair * rows * chosen,
    )  # fmt: skip
    wide = sparse.rank_heads * (sparse.head_dim + sparse.value_dim) + sparse.rank_kv * sparse.index_dim
    sent = load.tokens * wide * on.layout.dcp * on.stack.activation_value_bytes * shards.others
    gather = all_gather(say, "gather", "queries and partial outputs between cache shards", sent, shards, on, rounds=3)
    return say("layer_s", time + index + core + gather, "one block-sparse layer, decode")


def prefill(say: Say, sparse: Any, load: Any, on: Any) -> Q:
    """One layer over one prefill pass whose sequences already hold `past` tokens.

    t = product(P, n) + index + floor + [ bytes / (BW e_m) (+)_p 2 H (d + v) n S / (TP F e_c) ],
    S = mean over the pass of min(position, top_blocks block)
    index: e [ s (past + T_seq) k_i + n K/TP a ] bytes,   2 e K/TP n (past + T_seq/2) FLOP
    bytes = (d + v) a [ n H/TP + s (past + T_seq) K/TP ]

    Blocks that several queries choose are counted once.
    """
    kernel, madd = on.kernel.attention_prefill, on.constant.multiply_add_flops
    time = dense_product(say, "project", "attention and indexer projections", [*sparse.held.values()], load.tokens, on)
    own = load.tokens * on.layout.cp / load.sequences
    present = say("present", (load.past + own) * load.sequences, "tokens whose keys are read")
    activation, wide = on.stack.activation_value_bytes, sparse.head_dim + sparse.value_dim
    queries = load.tokens * sparse.rank_kv * sparse.index_dim
    index = operator(
        say, "index", "indexer scores over all that came before", at_key_rate(kernel, sparse, on),
        present * sparse.key_bytes + queries * activation, madd * queries * (load.past + own / 2),
    )  # fmt: skip
    seen = say("seen", gqa.mean_reach(load.past, own, budget(sparse)), "tokens a query attends to, mean over the pass")
    moved = wide * activation * (load.tokens * sparse.rank_heads + present * sparse.rank_kv)
    flops = madd * wide * sparse.rank_heads * load.tokens * seen
    core = operator(say, "core", "attention over the chosen blocks", kernel, moved, flops)
    ring = load.tokens * (sparse.token_bytes + sparse.key_bytes) * (on.layout.cp - 1)
    relay = all_gather(say, "relay", "new keys and values between context ranks", ring, on.ranks.cp, on)
    return say("layer_s", time + index + core + relay, "one block-sparse layer, one pass")


def working(sparse: Any, on: Any) -> Q:
    """GQA's, and the indexer's queries and key of one token."""
    return gqa.working(sparse, on) + (sparse.rank_kv + 1) * sparse.index_dim * on.stack.activation_value_bytes


def core_flops(sparse: Any, tokens: Q, on: Any) -> Q:
    """2 H (d + v) T S, and K e T^2 for the indexer (causal, half of the square)."""
    madd, seen = on.constant.multiply_add_flops, gqa.mean_reach(0, tokens, budget(sparse))
    score = madd / 2 * sparse.index_heads * sparse.index_dim * tokens**2
    return madd * sparse.heads * (sparse.head_dim + sparse.value_dim) * tokens * seen + score


def copies(sparse: BlockSparse, tp: int) -> int:
    """TP ranks that repeat a key-value head."""
    return tp // sparse.kv_heads if tp > sparse.kv_heads else 1


KIND = AttentionKind(
    record=BlockSparse, reference="vllm-project/vllm models/minimax_m3 (MiniMax-M3)", weights=weights,
    share=gqa.share, sizes=sizes, cache=cache, decode=decode, prefill=prefill, working=working,
    core_flops=core_flops, tp_problem=gqa.tp_problem, copies=copies,
)  # fmt: skip
