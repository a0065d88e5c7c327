"""Lightning attention: linear attention with a fixed decay per head, computed in blocks.

    S_t = e^(-s) S_(t-1) + k_t v_t^T,      o_t = S_t^T q_t

Shapes, one layer: H heads of d; q, k, v, output gate and output H d wide; a norm over all H d of the output, which the
sigmoid gate then multiplies. The slope s is fixed by head and layer and no parameter; there is no convolution. State:
H x d x d, which does not grow with the context.
Reference: Z. Qin et al., Lightning Attention-2, arXiv:2401.04658; MiniMax-01, arXiv:2501.08313, section 2.2; shapes:
MiniMax in huggingface/transformers, modeling_minimax.py.
"""

from __future__ import annotations

from typing import Any, Literal

from planner.algebra import Q, ceil_div
from planner.kinds.attention.kind import AttentionKind, AttentionRecord, Cache, indivisible, tp_share
from planner.kinds.collectives.all_gather import all_gather
from planner.kinds.collectives.all_reduce import all_reduce
from planner.kinds.dense_product import dense_product
from planner.kinds.weights import Weight, bytes_of
from planner.quantities import Say
from planner.record import Count
from planner.roofline import operator

PROJECTED = 3  # q, k and v
STREAMED = 4  # q, k, v in, output out
STATE_PASSES = 4  # block states: written, read and written again by the running sum, read


class Lightning(AttentionRecord):
    """Sizes of a lightning layer. chunk: tokens of one block of the prefill kernel."""

    kind: Literal["lightning"]
    heads: Count
    head_dim: Count
    chunk: Count = 256


def weights(light: Any, width: Q) -> list[Weight]:
    """The weight groups of one layer: qkv 3 width x H d, output_gate width x H d, output H d x width, norm H d."""
    inner = light.heads * light.head_dim
    return [
        Weight("qkv", PROJECTED * width * inner, bytes_of(light, "qkv"), "tp"),
        Weight("output_gate", width * inner, bytes_of(light, "output_gate"), "tp"),
        Weight("output", inner * width, bytes_of(light, "output"), "tp"),
        Weight("norm", inner, bytes_of(light, "norm", "vector_value_bytes"), "tp", product=False),
    ]


def sizes(say: Say, light: Any, on: Any) -> dict[str, Q]:
    """What one chip has of a layer, worked out once.

    rank_heads = H/TP; vector_bytes: one H/TP d activation vector of a token; matrix_bytes = H/TP d^2 state values.
    """
    heads = say("rank_heads", light.heads / on.layout.tp, "heads on one chip")
    vector = heads * light.head_dim * on.stack.activation_value_bytes
    matrix = heads * light.head_dim * light.head_dim * on.ask.state_value_bytes
    return {
        "rank_heads": heads,
        "vector_bytes": say("vector_bytes", vector, "one vector of a token's heads"),
        "matrix_bytes": say("matrix_bytes", matrix, "recurrent state of one sequence"),
    }


def cache(light: Any, on: Any) -> Cache:
    """Nothing grows; the state is constant. TP splits it; DP, EP, DCP and CP do not."""
    return Cache(constant=light.matrix_bytes)


def normalised(say: Say, load: Any, on: Any) -> Q:
    """The norm spans all heads, so TP ranks sum one number per token: little more than the start-up of a collective."""
    size = load.tokens * on.stack.activation_value_bytes
    return all_reduce(say, "norm_reduce", "squares of the output over TP, for its norm", size, on.ranks.tp, on)


def decode(say: Say, light: Any, load: Any, on: Any) -> Q:
    """One layer in a decode step.

    t = product(P, n) + floor (+)_q [ b (2 S) + n H/TP 4 d a ] / (BW e_m) + all-reduce(n)

    b sequences whose state S is read and written once, n tokens (n > b when drafts are verified), a bytes per
    activation. The core does 5 d^2 FLOP per token and head, under one FLOP a byte.
    Limits: the stack's recurrence was measured on a gated one, so its floor is an upper bound here.
    """
    product = dense_product(say, "project", "lightning projections", [*light.held.values()], load.tokens, on)
    core = operator(
        say, "core", "recurrent state read, updated and written", on.kernel.recurrent_decode,
        2 * load.sequences * light.matrix_bytes + load.tokens * STREAMED * light.vector_bytes,
        recurrence_flops(light, on) / on.layout.tp * load.tokens,
    )  # fmt: skip
    return say("layer_s", product + core + normalised(say, load, on), "one lightning layer, decode")


def recurrence_flops(light: Any, on: Any) -> Q:
    """5 d^2 FLOP per head and token: decay d^2, write 2 d^2, output 2 d^2."""
    madd = on.constant.multiply_add_flops
    return (2 * madd + madd / 2) * light.heads * light.head_dim * light.head_dim


def chunk_flops(light: Any, on: Any) -> Q:
    """Block form, per token, all heads: 4 d^2 + 2 C d FLOP a head with blocks of C.

    Across blocks the state is read and written, 2 d^2 each; inside one, scores and values of half the square, C d each.
    """
    d, half = light.head_dim, on.constant.multiply_add_flops / 2
    return light.heads * half * (4 * d * d + 2 * light.chunk * d)


def prefill(say: Say, light: Any, load: Any, on: Any) -> Q:
    """One layer over one prefill pass.

    t = product(P, n) + floor + [ n (4 H/TP d a + 4 S/C) / (BW e_m) (+)_p n H/TP (4 d^2 + 2 C d) / (F e_c) ] + chain
        + all-reduce(n),      chain = ceil(T_seq / C) c tau w,    w = ceil(s H/TP / CU)

    C the block, S the state of a sequence, T_seq the tokens of one sequence in this pass, s sequences, CU the chip's
    compute units (one head each). A block needs no triangular system, so only the running sum of block states is in
    sequence: one step per block, taken to last as long as a chunk of the stack's scan, c tau. With CP the chain is
    1/CP as long and the ranks exchange their states (a decay is one number).
    Limits: c tau belongs to a delta rule and is the nearest figure there is.
    """
    kernel = on.kernel.recurrent_prefill
    product = dense_product(say, "project", "lightning projections", [*light.held.values()], load.tokens, on)
    waves = ceil_div(load.sequences * light.rank_heads, on.chip.compute_units)
    moved = STREAMED * light.vector_bytes + STATE_PASSES * light.matrix_bytes / light.chunk
    blocks = ceil_div(load.tokens / load.sequences, light.chunk)
    core = operator(
        say, "core", "blockwise linear attention with its running sum", kernel,
        load.tokens * moved, chunk_flops(light, on) * load.tokens / on.layout.tp,
        sequential=blocks * kernel.chunk * kernel.token_time * waves,
    )  # fmt: skip
    states = light.matrix_bytes * load.sequences * (on.layout.cp - 1)
    relay = all_gather(say, "relay", "state passed between context ranks", states, on.ranks.cp, on)
    return say("layer_s", product + core + relay + normalised(say, load, on), "one lightning layer, one pass")


def working(light: Any, on: Any) -> Q:
    """q, k, v, gate and output of one token, and its share of the block states."""
    return (STREAMED + 1) * light.vector_bytes + light.matrix_bytes / light.chunk


def core_flops(light: Any, tokens: Q, on: Any) -> Q:
    """Linear in the prompt."""
    return chunk_flops(light, on) * tokens


def tp_problem(light: Lightning, tp: int) -> str | None:
    """TP divides the heads."""
    return indivisible(tp, light.heads, "heads")


KIND = AttentionKind(
    record=Lightning, reference="arXiv:2401.04658; MiniMax-01, arXiv:2501.08313, section 2.2", weights=weights,
    sizes=sizes, cache=cache, decode=decode, prefill=prefill, working=working, core_flops=core_flops, share=tp_share,
    tp_problem=tp_problem, copies=lambda record, tp: 1,
)  # fmt: skip
