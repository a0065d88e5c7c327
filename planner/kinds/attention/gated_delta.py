"""Gated DeltaNet: a matrix per value head, decayed by one number a token and corrected by the delta rule.

    S_t = a_t (I - b_t k_t k_t^T) S_(t-1) + b_t k_t v_t^T,      o_t = S_t^T q_t

Shapes, one layer: K key heads of dk give q and k, V value heads of dv give v, the output gate z and the output, V/K
value heads to a key head; decay a and learning rate b one number per value head; a short convolution of c taps over the
2 K dk + V dv channels of q, k and v; a gated norm of dv. State: V x dk x dv plus (c - 1) past values of every channel.
It does not grow with the context.
Reference: S. Yang, J. Kautz, A. Hatamizadeh, Gated Delta Networks, arXiv:2412.06464; shapes: Qwen3-Next and Qwen3.5 in
huggingface/transformers, modeling_qwen3_next.py and modeling_qwen3_5.py.
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

KEY_VECTORS = 2  # q and k
VALUE_VECTORS = 3  # v, gate in, output out
HEAD_NUMBERS = 2  # log of the decay and bias of its step, per value head


class GatedDelta(AttentionRecord):
    """Sizes of a gated delta layer.

    key_heads, key_dim: heads of q and k and their width; value_heads, value_dim: heads of v, gate and output and their
    width (value_heads a multiple of key_heads); conv_kernel: taps of the short convolution.
    """

    kind: Literal["gated_delta"]
    key_heads: Count
    value_heads: Count
    key_dim: Count
    value_dim: Count
    conv_kernel: Count


def channels(delta: Any) -> Q:
    """Channels of the convolution: q, k and v."""
    return KEY_VECTORS * delta.key_heads * delta.key_dim + delta.value_heads * delta.value_dim


def weights(delta: Any, width: Q) -> list[Weight]:
    """The weight groups of one layer.

    qkv: width x (2 K dk + V dv); output_gate width x V dv; decay and learning_rate width x V each; output V dv x width.
    All end or begin in heads and are split over TP; the norm of dv is copied.
    """
    inner = delta.value_heads * delta.value_dim
    small = "vector_value_bytes"
    filters = channels(delta) * delta.conv_kernel
    return [
        Weight("qkv", width * channels(delta), bytes_of(delta, "qkv"), "tp"),
        Weight("output_gate", width * inner, bytes_of(delta, "output_gate"), "tp"),
        Weight("decay", width * delta.value_heads, bytes_of(delta, "decay"), "tp"),
        Weight("learning_rate", width * delta.value_heads, bytes_of(delta, "learning_rate"), "tp"),
        Weight("output", inner * width, bytes_of(delta, "output"), "tp"),
        Weight("convolution", filters, bytes_of(delta, "convolution", small), "tp", product=False),
        Weight(
            "decay_vectors",
            HEAD_NUMBERS * delta.value_heads,
            bytes_of(delta, "decay_vectors", small),
            "tp",
            product=False,
        ),
        Weight("norm", delta.value_dim, bytes_of(delta, "norm", small), "copied", product=False),
    ]


def sizes(say: Say, delta: Any, on: Any) -> dict[str, Q]:
    """What one chip has of a layer, worked out once.

    rank_heads = V/TP; matrix_bytes = V/TP dk dv state values; channel_bytes: q, k and v of a token; taps_bytes =
    (c - 1) of these; token_bytes: q, k, v, gate and output of a token; filter_bytes: the convolution weights.
    """
    heads = say("rank_heads", delta.value_heads / on.layout.tp, "value heads on one chip")
    matrix = heads * delta.key_dim * delta.value_dim * on.ask.state_value_bytes
    activation = on.stack.activation_value_bytes
    wide = say("channel_bytes", channels(delta) / on.layout.tp * activation, "q, k and v of one token")
    beside = (VALUE_VECTORS - 1) * heads * delta.value_dim * activation
    filters = delta.conv_kernel * channels(delta) / on.layout.tp * bytes_of(delta, "convolution", "vector_value_bytes")
    return {
        "rank_heads": heads,
        "channel_bytes": wide,
        "token_bytes": say("token_bytes", wide + beside, "q, k, v, gate and output of one token"),
        "matrix_bytes": say("matrix_bytes", matrix, "recurrent state of one sequence"),
        "taps_bytes": say("taps_bytes", (delta.conv_kernel - 1) * wide, "convolution state of one sequence"),
        "filter_bytes": say("filter_bytes", filters, "convolution weights"),
    }


def cache(delta: Any, on: Any) -> Cache:
    """Nothing grows; the state is constant. TP splits it; DP, EP, DCP and CP do not."""
    return Cache(constant=delta.matrix_bytes + delta.taps_bytes)


def decode(say: Say, delta: Any, load: Any, on: Any) -> Q:
    """One layer in a decode step.

    t = product(P, n) + conv + floor (+)_q [ b (2 S) + n (2 K dk + 3 V dv)/TP a ] / (BW e_m)

    b sequences whose state S is read and written once, n tokens (n > b when drafts are verified), a bytes per
    activation; conv reads and writes the taps of b sequences and moves 2 n channels. The core does 7 dk dv FLOP per
    token and value head, under one FLOP a byte.
    Limits: a verified draft's states are kept apart by some engines, which writes n states and not b.
    """
    product = dense_product(say, "project", "gated delta projections", [*delta.held.values()], load.tokens, on)
    moved = 2 * (load.sequences * delta.taps_bytes + load.tokens * delta.channel_bytes) + delta.filter_bytes
    conv = operator(say, "conv", "short convolution", on.kernel.convolution, moved)
    core = operator(
        say, "core", "recurrent state read, updated and written", on.kernel.recurrent_decode,
        2 * load.sequences * delta.matrix_bytes + load.tokens * delta.token_bytes,
        recurrence_flops(delta, on) / on.layout.tp * load.tokens,
    )  # fmt: skip
    return say("layer_s", product + conv + core, "one gated delta layer, decode")


def recurrence_flops(delta: Any, on: Any) -> Q:
    """7 dk dv FLOP per value head and token: decay dk dv, read 2, correction and write 2, output 2."""
    madd = on.constant.multiply_add_flops
    return (3 * madd + madd / 2) * delta.value_heads * delta.key_dim * delta.value_dim


def chunk_flops(delta: Any, on: Any) -> Q:
    """Chunkwise form, per token, all heads: 6 dk dv + C (2 dk + dv) + C^2 FLOP a value head with chunks of C.

    The count of Kimi Linear's equation 13 (the same chunkwise form) with d^2 read as dk dv and 3 d as 2 dk + dv.
    """
    chunk = on.kernel.recurrent_prefill.chunk
    inside = chunk * (2 * delta.key_dim + delta.value_dim) + chunk * chunk
    half = on.constant.multiply_add_flops / 2
    return delta.value_heads * half * (6 * delta.key_dim * delta.value_dim + inside)


def prefill(say: Say, delta: Any, load: Any, on: Any) -> Q:
    """One layer over one prefill pass.

    t = product(P, n) + conv + core,    w = ceil(s V/TP / CU)
    core = floor + T_seq tau w + max(n V/TP v (dk + dv)/2 a / (BW e_m), n c / (TP F e_c))

    c the arithmetic of a token in its chunk, the largest as the kernel's norm says. T_seq the tokens of one
    sequence in this pass, tau the time of one dependent token step, s sequences, CU the chip's compute units (one
    value head each), v vectors streamed per token and head. With CP the chain is 1/CP as long and the ranks
    exchange a dk x dk transition and a dk x dv state per head. Limits: tau, v and C are the stack's for a delta
    rule with heads near 128; other widths are not scaled.
    """
    kernel = on.kernel.recurrent_prefill
    product = dense_product(say, "project", "gated delta projections", [*delta.held.values()], load.tokens, on)
    convolved = 2 * load.tokens * delta.channel_bytes + delta.filter_bytes
    conv = operator(say, "conv", "short convolution", on.kernel.convolution, convolved)
    waves = ceil_div(load.sequences * delta.rank_heads, on.chip.compute_units)
    vector = delta.rank_heads * (delta.key_dim + delta.value_dim) / 2 * on.stack.activation_value_bytes
    core = operator(
        say, "core", "chunkwise delta rule with its sequential scan", kernel,
        load.tokens * vector * kernel.streamed_vectors, chunk_flops(delta, on) * load.tokens / on.layout.tp,
        sequential=load.tokens / load.sequences * kernel.token_time * waves,
    )  # fmt: skip
    pair = delta.matrix_bytes * (1 + delta.key_dim / delta.value_dim) * load.sequences * (on.layout.cp - 1)
    relay = all_gather(say, "relay", "state passed between context ranks", pair, on.ranks.cp, on)
    return say("layer_s", product + conv + core + relay, "one gated delta layer, one pass")


def working(delta: Any, on: Any) -> Q:
    """q, k and v before and after the convolution, gate and output of one token."""
    return delta.channel_bytes + delta.token_bytes


def core_flops(delta: Any, tokens: Q, on: Any) -> Q:
    """Linear in the prompt."""
    return chunk_flops(delta, on) * tokens


def tp_problem(delta: GatedDelta, tp: int) -> str | None:
    """TP divides the key heads and the value heads: a value head stays with the key head it reads."""
    return indivisible(tp, delta.key_heads, "key heads") or indivisible(tp, delta.value_heads, "value heads")


KIND = AttentionKind(
    record=GatedDelta, reference="Gated Delta Networks, arXiv:2412.06464", weights=weights, sizes=sizes, cache=cache,
    decode=decode, prefill=prefill, working=working, core_flops=core_flops, share=tp_share, tp_problem=tp_problem,
    copies=lambda record, tp: 1,
)  # fmt: skip
