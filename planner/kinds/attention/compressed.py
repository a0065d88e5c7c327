"""Compressed sparse attention: a window of recent tokens, and entries that each stand for m tokens of the rest.

Shapes, one layer: H heads of d attend to one key of d that is also the value (multi-query); queries through rank r_q;
outputs in g groups of H d / g, each to rank r_o, then g r_o to the width; one sink per head. A compressor weighs m
tokens into one entry: two projections width x f d, a bias m x f d, a norm; f = 2 where neighbouring entries overlap
(each weighs 2 m tokens), otherwise 1. Three sorts of layer:

    no ratio            the window alone
    ratio m, indexer    the window and the k entries that the indexer scores highest (compressed sparse attention)
    ratio m             the window and every entry (heavily compressed attention)

The indexer has I heads of e, projected from the query latent, a projection width x I that weighs them, and a compressor
of its own to entries of e. Its scores are those of sparse_mla.py.
Cache of one sequence of L tokens: L/m entries and indexer keys, the last w tokens, and the compressors' running state:
f m rows of 2 f (d + e) values in FP32. What engines store of one token or entry:

    bf16, fp32    d values
    packed        d - rope values with one byte of scale or padding per 64, rope values in bf16
    indexer key   e values, in FP8 with e/128 scales of 4 B, or in MXFP4

so 584 B with FP8, 384 B with NVFP4 (one byte of padding per 128; one engine pads to 432 B), and for a key of 128 132 B
with FP8, 68 B with MXFP4 (which the report's own cache sizes assume).
Sharding: queries and outputs over TP by head and group, everything else whole on every rank. The cache is the same on
every TP rank; DCP may split entries and indexer keys, not the window nor the state.
Reference: DeepSeek-V4 technical report (deepseek-ai/DeepSeek-V4-Pro), sections 2.3.1 and 2.3.2; transformers at
01976081, models/deepseek_v4/modeling_deepseek_v4.py (weights, sorts of layer); vllm-project/vllm, models/deepseek_v4
(records, state); flashinfer pull request 4955 (NVFP4 record).
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from planner.algebra import Q, ceil_div, minimum
from planner.kinds.attention.gqa import mean_reach
from planner.kinds.attention.kind import AttentionKind, AttentionRecord, Cache, indivisible, tp_share
from planner.kinds.attention.sparse_mla import CANDIDATE, WHOLE_FORMATS, choose, key_bytes, padded
from planner.kinds.collectives.all_gather import all_gather
from planner.kinds.dense_product import dense_product
from planner.kinds.formats import FormatName
from planner.kinds.weights import Weight, bytes_of
from planner.quantities import Say
from planner.record import Count
from planner.roofline import operator

KEY_AND_VALUE = 2  # products with one key: its score, and itself as the value
VALUE_AND_GATE = 2  # what a compressor projects and keeps of a token
OVERLAP = 2  # series a compressor projects where neighbouring entries overlap
SCALED = {"nvfp4": 128}
"""Values of a packed record for each byte of scale or padding."""
USUALLY_SCALED = 64


class Compressed(AttentionRecord):
    """Sizes of a compressed attention layer.

    local_window: recent tokens kept as they are. ratio: tokens an entry stands for, null for none; overlap: entries
    overlap. index_heads, index_dim, index_topk: the indexer's I, e and k, null where every entry is attended.
    output_groups, output_rank: g and r_o. rope_format, index_format: how a packed record stores rope values, and an
    indexer key its own; scale_format: a record's scales, one byte each; score_format: an indexer key's scales and the
    scores; buffer_format: the compressors' running state.
    """

    kind: Literal["compressed"]
    heads: Count
    head_dim: Count
    rope_dim: Count
    q_rank: Count
    output_groups: Count
    output_rank: Count
    local_window: Count
    ratio: Count | None
    overlap: bool = False
    index_heads: Count | None = None
    index_dim: Count | None = None
    index_topk: Count | None = None
    sinks: bool = True
    rope_format: FormatName = "bf16"
    index_format: FormatName = "fp8"
    scale_format: FormatName = "fp8"
    score_format: FormatName = "fp32"
    buffer_format: FormatName = "fp32"

    @model_validator(mode="after")
    def whole(self) -> Compressed:
        """An indexer has all of its sizes, and entries to choose from."""
        given = [size is not None for size in (self.index_heads, self.index_dim, self.index_topk)]
        if any(given) and not (all(given) and self.ratio):
            raise ValueError("index_heads, index_dim and index_topk come together, and with a ratio")
        return self


def indexed(kind: Any) -> bool:
    """The layer chooses among its entries."""
    return kind.index_heads is not None


def series(kind: Any) -> int:
    """f: vectors a compressor projects for each of value and gate."""
    return OVERLAP if kind.overlap else 1


def compressor(kind: Any, prefix: str, dim: Q, width: Q) -> list[Weight]:
    """Value and gate projections, their bias by place, and the entry's norm."""
    wide, small = series(kind) * dim, "vector_value_bytes"
    names = (f"{prefix}compressor", f"{prefix}compressor_bias", f"{prefix}compressor_norm")
    return [
        Weight(names[0], VALUE_AND_GATE * width * wide, bytes_of(kind, names[0]), "copied"),
        Weight(names[1], kind.ratio * wide, bytes_of(kind, names[1], small), "copied", product=False),
        Weight(names[2], dim, bytes_of(kind, names[2], small), "copied", product=False),
    ]


def indexer(kind: Any, width: Q) -> list[Weight]:
    """Queries from the query latent, the projection that weighs heads, and a compressor of the indexer's own."""
    return [
        Weight("index_q", kind.q_rank * kind.index_heads * kind.index_dim, bytes_of(kind, "index_q"), "copied"),
        Weight("index_weights", width * kind.index_heads, bytes_of(kind, "index_weights"), "copied"),
        *compressor(kind, "index_", kind.index_dim, width),
    ]


def weights(kind: Any, width: Q) -> list[Weight]:
    """The weight groups of one layer: attention, compressor, indexer."""
    query, small = kind.heads * kind.head_dim, "vector_value_bytes"
    groups = [
        Weight("q_a", width * kind.q_rank, bytes_of(kind, "q_a"), "copied"),
        Weight("q_norm", kind.q_rank, bytes_of(kind, "q_norm", small), "copied", product=False),
        Weight("q_b", kind.q_rank * query, bytes_of(kind, "q_b"), "tp"),
        Weight("kv", width * kind.head_dim, bytes_of(kind, "kv"), "copied"),
        Weight("kv_norm", kind.head_dim, bytes_of(kind, "kv_norm", small), "copied", product=False),
        Weight("output_a", query * kind.output_rank, bytes_of(kind, "output_a"), "tp"),
        Weight("output_b", kind.output_groups * kind.output_rank * width, bytes_of(kind, "output_b"), "tp"),
    ]
    if kind.sinks:
        groups.append(Weight("sinks", kind.heads, bytes_of(kind, "sinks", small), "tp", product=False))
    if kind.ratio is not None:
        groups += compressor(kind, "", kind.head_dim, width)
    return groups + (indexer(kind, width) if indexed(kind) else [])


def record_bytes(kind: Any, on: Any) -> Q:
    """What the cache stores of one token of the window, or of one entry."""
    if on.ask.kv_format in WHOLE_FORMATS:
        return kind.head_dim * on.ask.kv_value_bytes
    scales = ceil_div(kind.head_dim, SCALED.get(on.ask.kv_format, USUALLY_SCALED)) * kind.scale_value_bytes
    return (kind.head_dim - kind.rope_dim) * on.ask.kv_value_bytes + scales + kind.rope_dim * kind.rope_value_bytes


def sizes(say: Say, kind: Any, on: Any) -> dict[str, Q]:
    """What one chip has of a layer.

    rank_heads = H/TP; row_heads = H/TP x DCP; record_bytes, key_bytes; row_bytes: what the compressors keep of one
    token, 2 f (d + e) values; entry_bytes: record and key of one entry.
    """
    heads = say("rank_heads", kind.heads / on.layout.tp, "heads on one chip")
    record = say("record_bytes", record_bytes(kind, on), "stored token of the window, or entry")
    found = {"rank_heads": heads, "record_bytes": record}
    if kind.ratio is None:
        return found
    key = say("key_bytes", key_bytes(kind, kind.score_value_bytes), "stored indexer key") if indexed(kind) else 0
    kept = VALUE_AND_GATE * series(kind) * (kind.head_dim + (kind.index_dim if indexed(kind) else 0))
    return found | {
        "row_heads": say("row_heads", heads * on.layout.dcp, "heads one rank attends to entries with in decode"),
        "key_bytes": key,
        "entry_bytes": say("entry_bytes", record + key, "cache of one entry"),
        "row_bytes": say("row_bytes", kept * kind.buffer_value_bytes, "compressor state of one token"),
    }


def cache(kind: Any, on: Any) -> Cache:
    """Entries grow by one every `ratio` tokens; the window fills; the compressors' state is constant."""
    if kind.ratio is None:
        return Cache(windowed=kind.record_bytes, window=kind.local_window)
    return Cache(
        growing=kind.entry_bytes / kind.ratio / on.ranks.shards.count,
        windowed=kind.record_bytes,
        window=kind.local_window,
        constant=series(kind) * kind.ratio * kind.row_bytes,
    )


def decode(say: Say, kind: Any, load: Any, on: Any) -> Q:
    """One layer in a decode step.

    t = product(P, n) + compress + index + select + core + gather
    core = floor + [ (b W + E/c) z / (BW e_m) (+)_p 4 d n (rows_w W + rows S/c) / (F e_c) ]
    W = min(L, w),   S = min(L/m, k) or L/m,   E = n S where tokens choose, otherwise b S
    index = floor + [ b L/m y / (BW e_m c) (+)_p 2 e ceil(I s / mu) mu b L/m / (F_i e_c c) ]
    select = floor + 2 x 4 B n L/m / (BW e_m c),   compress = floor + n (f + 1) state row / (BW e_m)

    b sequences of L tokens, n tokens, s of a sequence; z bytes of a record, y of a key; c = DCP x CP shards of the
    entries; rows: heads padded to the kernel's tile mu, DCP times as many over the entries. A compressor writes one row
    a token and reads f m rows every m tokens.
    Limits: the indexer is given what the decode attention's kernel reaches, by analogy, at F_i, the chip's rate in the
    key's format.
    """
    kernel, madd = on.kernel.attention_decode, on.constant.multiply_add_flops
    time = dense_product(say, "project", "attention projections", [*kind.held.values()], load.tokens, on)
    near = minimum(load.context, kind.local_window)
    pair = madd * KEY_AND_VALUE * kind.head_dim
    moved = load.sequences * near * kind.record_bytes
    flops = pair * load.tokens * near * padded(kind.rank_heads, kernel)
    sentence = "scores and values over window and entries"
    if kind.ratio is None:
        core = operator(say, "core", sentence, kernel, moved, flops)
        return say("layer_s", time + core, "one windowed layer, decode")
    shards = on.ranks.shards
    entries = say("entries", load.context / kind.ratio / shards.count, "entries of a sequence on one rank")
    state = load.tokens * (series(kind) + 1) * kind.row_bytes
    time = time + operator(say, "compress", "compressor state written and read", on.kernel.stream, state)
    row, seen, readers = kind.row_heads * KEY_AND_VALUE * kind.head_dim, entries, load.sequences
    row = row * on.stack.activation_value_bytes
    if indexed(kind):
        tile = padded(kind.index_heads * load.tokens / load.sequences, kernel)
        keys = load.sequences * entries
        scores = 2 * kind.score_value_bytes * load.tokens * entries
        time = time + choose(say, kernel, kind, keys * kind.key_bytes, madd * kind.index_dim * tile * keys, scores, on)
        seen = minimum(load.context / kind.ratio, kind.index_topk) / shards.count
        row, readers = row + CANDIDATE * kind.index_topk * kind.score_value_bytes, load.tokens
    chosen = say("chosen", load.tokens * seen, "query and entry pairs on one rank, per head")
    moved = moved + readers * seen * kind.record_bytes
    core = operator(say, "core", sentence, kernel, moved, flops + pair * chosen * padded(kind.row_heads, kernel))
    told, rounds = "queries and partial outputs between cache shards", 3 if indexed(kind) else 2
    gather = all_gather(say, "gather", told, load.tokens * row * shards.others, shards, on, rounds=rounds)
    return say("layer_s", time + core + gather, "one compressed layer, decode")


def prefill(say: Say, kind: Any, load: Any, on: Any) -> Q:
    """One layer over one prefill pass whose sequences already hold `past` tokens.

    t = product(P, n) + compress + index + select + floor + [ bytes / (BW e_m) (+)_p 4 d rows n (W + S) / (F e_c) ]
    W = mean over the pass of min(position, w),   S = mean of min(position/m, k), or (past + T_seq/2)/m
    index: s (past + T_seq)/m y + n I e bytes,   2 I e n (past + T_seq/2)/m FLOP at the rate of the key's format
    bytes = 2 d a n H/TP + z s [ min(past, w) + T_seq + (past + T_seq)/m ]

    Heads are padded to the tile of the decode kernel. Entries that several queries choose are counted once.
    """
    kernel, madd, wide = on.kernel.attention_prefill, on.constant.multiply_add_flops, kind.head_dim
    time = dense_product(say, "project", "attention projections", [*kind.held.values()], load.tokens, on)
    own = load.tokens * on.layout.cp / load.sequences
    seen = mean_reach(load.past, own, kind.local_window)
    records = load.sequences * (minimum(load.past, kind.local_window) + own)
    token = kind.record_bytes
    if kind.ratio is not None:
        middle = say("entries", (load.past + own / 2) / kind.ratio, "entries before a query, mean over the pass")
        present = load.sequences * (load.past + own) / kind.ratio
        token = token + kind.entry_bytes / kind.ratio
        state = VALUE_AND_GATE * load.tokens * kind.row_bytes
        time = time + operator(say, "compress", "compressor inputs written and read", on.kernel.stream, state)
        far = middle
        if indexed(kind):
            pairs, heads = load.tokens * middle, kind.index_heads * kind.index_dim
            keys = present * kind.key_bytes + load.tokens * heads * kind.index_value_bytes
            time = time + choose(say, kernel, kind, keys, madd * heads * pairs, 2 * kind.score_value_bytes * pairs, on)
            far = mean_reach(load.past / kind.ratio, own / kind.ratio, kind.index_topk)
        seen, records = seen + far, records + present
    seen = say("seen", seen, "tokens and entries a query attends to, mean over the pass")
    ends = KEY_AND_VALUE * load.tokens * kind.rank_heads * wide * on.stack.activation_value_bytes
    flops = madd * KEY_AND_VALUE * wide * padded(kind.rank_heads, on.kernel.attention_decode) * load.tokens * seen
    sentence = "attention over window and entries"
    core = operator(say, "core", sentence, kernel, ends + records * kind.record_bytes, flops)
    ring = load.tokens * token * (on.layout.cp - 1)
    relay = all_gather(say, "relay", "new records between context ranks", ring, on.ranks.cp, on)
    return say("layer_s", time + core + relay, "one compressed layer, one pass")


def working(kind: Any, on: Any) -> Q:
    """Queries, outputs and their groups, compressor inputs and indexer queries of one token.

    Scores of a pass are computed in pieces of the engine's choice and are left to its workspace.
    """
    groups = kind.output_groups * kind.output_rank / on.layout.tp
    heads = (2 * kind.head_dim * kind.rank_heads + groups) * on.stack.activation_value_bytes
    index = kind.index_heads * kind.index_dim * kind.index_value_bytes if indexed(kind) else 0
    return heads + (0 if kind.ratio is None else kind.row_bytes) + index


def core_flops(kind: Any, tokens: Q, on: Any) -> Q:
    """4 H d T (W + S), and I e T^2 / m for an indexer (causal, half of the square)."""
    madd, seen = on.constant.multiply_add_flops, mean_reach(0, tokens, kind.local_window)
    score: Q = 0
    if indexed(kind):
        seen = seen + mean_reach(0, tokens / kind.ratio, kind.index_topk)
        score = madd / 2 * kind.index_heads * kind.index_dim * tokens**2 / kind.ratio
    elif kind.ratio is not None:
        seen = seen + tokens / 2 / kind.ratio
    return madd * KEY_AND_VALUE * kind.heads * kind.head_dim * tokens * seen + score


def tp_problem(kind: Compressed, tp: int) -> str | None:
    """TP divides the heads and the output groups."""
    return indivisible(tp, kind.heads, "heads") or indivisible(tp, kind.output_groups, "output groups")


def copies(kind: Compressed, tp: int) -> int:
    """Every TP rank holds the same entries; a window alone is not worth splitting."""
    return 1 if kind.ratio is None else tp


KIND = AttentionKind(
    record=Compressed, reference="DeepSeek-V4 technical report, sections 2.3.1 and 2.3.2",
    weights=weights, share=tp_share, sizes=sizes, cache=cache, decode=decode, prefill=prefill, working=working,
    core_flops=core_flops, tp_problem=tp_problem, copies=copies,
)  # fmt: skip
