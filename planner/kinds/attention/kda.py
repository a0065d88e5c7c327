"""Kimi Delta Attention: a state of fixed size per sequence in place of a cache that grows.

Shapes, one layer: H heads of d; q, k, v, output gate and output H d wide; a short convolution of c taps on q, k and v;
a decay gate through rank r; a learning rate per head. State: H x d x d plus (c - 1) past values of q, k and v.
Reference: Kimi Linear technical report (MoonshotAI/Kimi-Linear, tech_report.pdf), equations 13 and 14; kernel times:
ai-dynamo/aiconfigurator at 095f58a5, systems/data/*/kda.
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

CONVOLVED = 3  # q, k and v
STREAMED = 5  # q, k, v, gate in, output out: the vectors a decode step moves beside the state


class Kda(AttentionRecord):
    """Sizes of a KDA layer. output_gate_rank: null for a full-rank output gate."""

    kind: Literal["kda"]
    heads: Count
    head_dim: Count
    conv_kernel: Count
    decay_rank: Count
    output_gate_rank: Count | None


def weights(kda: Any, width: Q) -> list[Weight]:
    """The weight groups of one layer.

    q, k, v, o and a full-rank output gate: width x H d each; decay width x r, r x H d; learning rate width x H.
    What ends in heads is split over TP; the first matrix of a low-rank gate ends in r and is copied.
    """
    inner = kda.heads * kda.head_dim
    if kda.output_gate_rank is None:
        gate = [Weight("output_gate", width * inner, bytes_of(kda, "output_gate"), "tp")]
    else:
        gate = [
            Weight("output_gate_in", width * kda.output_gate_rank, bytes_of(kda, "output_gate_in"), "copied"),
            Weight("output_gate_out", kda.output_gate_rank * inner, bytes_of(kda, "output_gate_out"), "tp"),
        ]
    return [
        Weight("qkv", CONVOLVED * width * inner, bytes_of(kda, "qkv"), "tp"),
        Weight("output", inner * width, bytes_of(kda, "output"), "tp"),
        *gate,
        Weight("decay_in", width * kda.decay_rank, bytes_of(kda, "decay_in"), "copied"),
        Weight("decay_out", kda.decay_rank * inner, bytes_of(kda, "decay_out"), "tp"),
        Weight("learning_rate", width * kda.heads, bytes_of(kda, "learning_rate"), "tp"),
        Weight(
            "convolution",
            CONVOLVED * inner * kda.conv_kernel,
            bytes_of(kda, "convolution", "vector_value_bytes"),
            "tp",
            product=False,
        ),
        Weight(
            "decay_vectors",
            kda.heads + inner,
            bytes_of(kda, "decay_vectors", "vector_value_bytes"),
            "tp",
            product=False,
        ),
        Weight("norm", kda.head_dim, bytes_of(kda, "norm", "vector_value_bytes"), "copied", product=False),
    ]


def sizes(say: Say, kda: Any, on: Any) -> dict[str, Q]:
    """What one chip has of a layer, worked out once.

    rank_heads = H/TP; matrix_bytes = H/TP d^2 state values; taps_bytes = 3 (c - 1) H/TP d values of convolution state;
    vector_bytes: one H/TP d activation vector of a token; filter_bytes: the convolution weights.
    """
    heads = say("rank_heads", kda.heads / on.layout.tp, "heads on one chip")
    matrix = heads * kda.head_dim * kda.head_dim * on.ask.state_value_bytes
    vector = say(
        "vector_bytes", heads * kda.head_dim * on.stack.activation_value_bytes, "one vector of a token's heads"
    )
    filters = CONVOLVED * kda.conv_kernel * kda.head_dim * kda.vector_value_bytes * heads
    return {
        "rank_heads": heads,
        "vector_bytes": vector,
        "matrix_bytes": say("matrix_bytes", matrix, "recurrent state of one sequence"),
        "taps_bytes": say(
            "taps_bytes", CONVOLVED * (kda.conv_kernel - 1) * vector, "convolution state of one sequence"
        ),
        "filter_bytes": say("filter_bytes", filters, "convolution weights"),
    }


def cache(kda: Any, on: Any) -> Cache:
    """Nothing grows; the state is constant. TP splits it; DP, EP, DCP and CP do not."""
    return Cache(constant=kda.matrix_bytes + kda.taps_bytes)


def decode(say: Say, kda: Any, load: Any, on: Any) -> Q:
    """One layer in a decode step.

    t = product(P, n) + conv + floor (+)_2 [ b (2 S) + n H/TP 5 d a ] / (BW e_m)

    b sequences whose state S is read and written once, n tokens (n > b when drafts are verified), a bytes per
    activation. The core does 7 d^2 FLOP per token and head, far below any ridge.
    Limits: up to about four full states may sit in a large last-level cache and run faster (seen on H100).
    """
    product = dense_product(say, "project", "KDA projections", [*kda.held.values()], load.tokens, on)
    moved = load.sequences * 2 * kda.taps_bytes + kda.filter_bytes
    conv = operator(say, "conv", "short convolution", on.kernel.convolution, moved)
    core = decode_core(say, kda, load, on)
    return say("layer_s", product + conv + core, "one KDA layer, decode")


def decode_core(say: Say, kda: Any, load: Any, on: Any) -> Q:
    """The recurrence alone, as kernel tables time it: floor (+)_2 [ b (2 S) + n H/TP 5 d a ] / (BW e_m)."""
    return operator(
        say, "core", "recurrent state read, updated and written", on.kernel.recurrent_decode,
        load.sequences * (2 * kda.matrix_bytes) + load.tokens * (STREAMED * kda.vector_bytes),
        recurrence_flops(kda, on) / on.layout.tp * load.tokens,
    )  # fmt: skip


def recurrence_flops(kda: Any, on: Any) -> Q:
    """7 d^2 FLOP per head and token: decay d^2, read 2 d^2, correction and write 2 d^2, output 2 d^2."""
    per_head = (3 * on.constant.multiply_add_flops + on.constant.multiply_add_flops / 2) * kda.head_dim * kda.head_dim
    return kda.heads * per_head


def chunk_flops(kda: Any, on: Any) -> Q:
    """Chunkwise form, per token, all heads: 6 d^2 + 3 C d + C^2 FLOP a head with chunks of C (equation 13)."""
    d, chunk = kda.head_dim, on.kernel.recurrent_prefill.chunk
    half = on.constant.multiply_add_flops / 2
    return kda.heads * half * (6 * d * d + 3 * chunk * d + chunk * chunk)


def prefill(say: Say, kda: Any, load: Any, on: Any) -> Q:
    """One layer over one prefill pass.

    t = product(P, n) + conv + core,    core = floor + T_seq tau w + max(n H/TP v d a / (BW e_m), n c / (TP F e_c))

    w = ceil(s H/TP / CU) waves, c the arithmetic of a token in its chunk, the largest as the kernel's norm says.
    T_seq the tokens of one sequence in this pass, tau the time of one dependent token step, s sequences, CU the
    chip's compute units (one head each), v vectors streamed per token and head. The chain is why eight times fewer
    heads save only about 30 %. With CP the chain is 1/CP as long and the ranks exchange one pair of d x d matrices
    per head.
    """
    product = dense_product(say, "project", "KDA projections", [*kda.held.values()], load.tokens, on)
    convolved = 2 * CONVOLVED * load.tokens * kda.vector_bytes + kda.filter_bytes
    conv = operator(say, "conv", "short convolution", on.kernel.convolution, convolved)
    core = prefill_core(say, kda, load, on)
    pair = 2 * kda.matrix_bytes * load.sequences * (on.layout.cp - 1)
    relay = all_gather(say, "relay", "state passed between context ranks", pair, on.ranks.cp, on)
    return say("layer_s", product + conv + core + relay, "one KDA layer, one pass")


def prefill_core(say: Say, kda: Any, load: Any, on: Any) -> Q:
    """The chunkwise form alone, as kernel tables time it: the core of `prefill`."""
    kernel = on.kernel.recurrent_prefill
    waves = ceil_div(load.sequences * kda.rank_heads, on.chip.compute_units)
    return operator(
        say, "core", "chunkwise delta rule with its sequential scan", kernel,
        load.tokens * kda.vector_bytes * kernel.streamed_vectors, chunk_flops(kda, on) * load.tokens / on.layout.tp,
        sequential=load.tokens / load.sequences * kernel.token_time * waves,
    )  # fmt: skip


def working(kda: Any, on: Any) -> Q:
    """q, k, v, gate, decay and output of one token: 6 H/TP d values."""
    return 6 * kda.vector_bytes


def core_flops(kda: Any, tokens: Q, on: Any) -> Q:
    """Linear in the prompt."""
    return chunk_flops(kda, on) * tokens


def tp_problem(kda: Kda, tp: int) -> str | None:
    """TP divides the heads."""
    return indivisible(tp, kda.heads, "heads")


KIND = AttentionKind(
    record=Kda, reference="Kimi Linear technical report, eqs 13-14", weights=weights, sizes=sizes, cache=cache,
    decode=decode,
    prefill=prefill, working=working, core_flops=core_flops, share=tp_share, tp_problem=tp_problem,
    copies=lambda record, tp: 1,
)  # fmt: skip
