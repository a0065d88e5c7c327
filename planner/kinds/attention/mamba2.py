"""Mamba-2: a matrix per head, decayed by one number a token, whose B and C are shared by a group of heads.

    S_t = exp(dt_t A) S_(t-1) + dt_t x_t B_t^T,      y_t = S_t C_t + D x_t

Shapes, one layer: H heads of d, inner = H d; G groups with B and C of N each; in-projection width x (2 inner + 2 G N +
H) for gate, x, B, C and step; a convolution of c taps over the inner + 2 G N channels of x, B and C; A, D and a bias of
the step per head; a gated norm of inner, group by group; out-projection inner x width. State: H x d x N plus (c - 1)
past values of every channel. It does not grow with the context.
Reference: T. Dao, A. Gu, Transformers are SSMs, arXiv:2405.21060; shapes: Nemotron-H in huggingface/transformers,
modeling_nemotron_h.py.
"""

from __future__ import annotations

from typing import Any, Literal

from planner.algebra import Q, ceil_div, several
from planner.kinds.attention.kind import AttentionKind, AttentionRecord, Cache, indivisible
from planner.kinds.collectives.all_gather import all_gather
from planner.kinds.collectives.all_reduce import all_reduce
from planner.kinds.dense_product import dense_product
from planner.kinds.weights import Shares, Weight, bytes_of
from planner.quantities import Say
from planner.record import Count
from planner.roofline import operator

BRANCHES = 2  # x and its gate
SELECTED = 2  # B and C
HEAD_NUMBERS = 3  # A, D and the bias of the step, per head
STREAMED = 3  # x and gate in, output out
STATE_PASSES = 4  # chunk states: written, read and written again by the running sum, read


class Mamba2(AttentionRecord):
    """Sizes of a Mamba-2 layer.

    heads, head_dim: inner is their product, whatever the config's expand says; state: N; groups: G, which divides the
    heads; conv_kernel: taps; chunk: tokens of one chunk of the prefill kernel. conv_bias: on the convolution; bias: on
    in- and out-projection.
    """

    kind: Literal["mamba2"]
    heads: Count
    head_dim: Count
    state: Count
    groups: Count
    conv_kernel: Count
    chunk: Count = 256
    conv_bias: bool = True
    bias: bool = False


def taps(mamba: Any) -> Q:
    """Convolution weights per channel: its taps and its bias."""
    return mamba.conv_kernel + (1 if mamba.conv_bias else 0)


def weights(mamba: Any, width: Q) -> list[Weight]:
    """The weight groups of one layer.

    The in-projection in two parts: `input` (gate, x and step: width x (2 inner + H)) is split over TP by head, `bc`
    (width x 2 G N) by group up to G ranks and then repeated; the convolution likewise.
    """
    inner, shared = mamba.heads * mamba.head_dim, SELECTED * mamba.groups * mamba.state
    groups = [
        Weight("input", width * (BRANCHES * inner + mamba.heads), bytes_of(mamba, "input"), "tp"),
        Weight("bc", width * shared, bytes_of(mamba, "bc"), "kv"),
        Weight("output", inner * width, bytes_of(mamba, "output"), "tp"),
    ]
    split = [
        ("convolution", inner * taps(mamba)),
        ("state_vectors", HEAD_NUMBERS * mamba.heads),
        ("norm", inner),
        *([("input_bias", BRANCHES * inner + mamba.heads)] if mamba.bias else []),
    ]
    by_group = [("bc_convolution", shared * taps(mamba)), *([("bc_bias", shared)] if mamba.bias else [])]
    for name, size in split:
        groups.append(Weight(name, size, bytes_of(mamba, name, "vector_value_bytes"), "tp", product=False))
    for name, size in by_group:
        groups.append(Weight(name, size, bytes_of(mamba, name, "vector_value_bytes"), "kv", product=False))
    if mamba.bias:
        small = bytes_of(mamba, "output_bias", "vector_value_bytes")
        groups.append(Weight("output_bias", width, small, "copied", product=False))
    return groups


def share(mamba: Any, on: Any) -> Shares:
    """Heads over TP; B and C over TP up to G ranks, then repeated: ceil(G/TP) / G."""
    return {"tp": 1 / on.layout.tp, "kv": ceil_div(mamba.groups, on.layout.tp) / mamba.groups, "copied": 1}


def sizes(say: Say, mamba: Any, on: Any) -> dict[str, Q]:
    """What one chip has of a layer, worked out once.

    rank_heads = H/TP; rank_groups = ceil(G/TP); vector_bytes: one H/TP d activation vector of a token; selected_bytes:
    its B and C; channel_bytes: x, B and C; taps_bytes = (c - 1) of these; matrix_bytes = H/TP d N state values;
    filter_bytes: the convolution weights.
    """
    heads = say("rank_heads", mamba.heads / on.layout.tp, "heads on one chip")
    groups = say("rank_groups", ceil_div(mamba.groups, on.layout.tp), "groups of B and C on one chip")
    activation = on.stack.activation_value_bytes
    vector = say("vector_bytes", heads * mamba.head_dim * activation, "one vector of a token's heads")
    selected = say("selected_bytes", SELECTED * groups * mamba.state * activation, "B and C of one token")
    wide = say("channel_bytes", vector + selected, "x, B and C of one token")
    matrix = heads * mamba.head_dim * mamba.state * on.ask.state_value_bytes
    filters = taps(mamba) * wide / activation * bytes_of(mamba, "convolution", "vector_value_bytes")
    return {
        "rank_heads": heads,
        "rank_groups": groups,
        "vector_bytes": vector,
        "selected_bytes": selected,
        "channel_bytes": wide,
        "matrix_bytes": say("matrix_bytes", matrix, "recurrent state of one sequence"),
        "taps_bytes": say("taps_bytes", (mamba.conv_kernel - 1) * wide, "convolution state of one sequence"),
        "filter_bytes": say("filter_bytes", filters, "convolution weights"),
    }


def cache(mamba: Any, on: Any) -> Cache:
    """Nothing grows; the state is constant. TP splits it; DP, EP, DCP and CP do not."""
    return Cache(constant=mamba.matrix_bytes + mamba.taps_bytes)


def normalised(say: Say, mamba: Any, load: Any, on: Any) -> Q:
    """Where TP is larger than G, ranks share a group's norm and sum one number per token; otherwise nothing."""
    split = several(ceil_div(on.layout.tp, mamba.groups))
    size = load.tokens * on.stack.activation_value_bytes
    sentence = "squares of a group's output over TP, for its norm"
    return all_reduce(say, "norm_reduce", sentence, size, on.ranks.tp, on, when=split)


def decode(say: Say, mamba: Any, load: Any, on: Any) -> Q:
    """One layer in a decode step.

    t = product(P, n) + conv + floor (+)_q [ b (2 S) + n (3 H/TP d + 2 G_r N) a ] / (BW e_m) + all-reduce(n), TP > G

    b sequences whose state S is read and written once, n tokens (n > b when drafts are verified), G_r = ceil(G/TP), a
    bytes per activation; conv reads and writes the taps of b sequences and moves 2 n channels. The core does 5 d N FLOP
    per token and head, under one FLOP a byte.
    Limits: the stack's recurrence was measured with square heads of 128; narrower heads are not scaled.
    """
    product = dense_product(say, "project", "Mamba-2 projections", [*mamba.held.values()], load.tokens, on)
    moved = 2 * (load.sequences * mamba.taps_bytes + load.tokens * mamba.channel_bytes) + mamba.filter_bytes
    conv = operator(say, "conv", "short convolution", on.kernel.convolution, moved)
    row = STREAMED * mamba.vector_bytes + mamba.selected_bytes
    core = operator(
        say, "core", "recurrent state read, updated and written", on.kernel.recurrent_decode,
        2 * load.sequences * mamba.matrix_bytes + load.tokens * row,
        recurrence_flops(mamba, on) / on.layout.tp * load.tokens,
    )  # fmt: skip
    return say("layer_s", product + conv + core + normalised(say, mamba, load, on), "one Mamba-2 layer, decode")


def recurrence_flops(mamba: Any, on: Any) -> Q:
    """5 d N FLOP per head and token: decay d N, write 2 d N, output 2 d N."""
    madd = on.constant.multiply_add_flops
    return (2 * madd + madd / 2) * mamba.heads * mamba.head_dim * mamba.state


def chunk_flops(mamba: Any, heads: Q, groups: Q, on: Any) -> Q:
    """Chunkwise form, per token: 4 d N + C d FLOP a head and C N a group with chunks of C.

    Across chunks the state is read and written, 2 d N each; inside one, half the square of scores (once a group) and of
    values (every head).
    """
    head = 4 * mamba.head_dim * mamba.state + mamba.chunk * mamba.head_dim
    return on.constant.multiply_add_flops / 2 * (heads * head + groups * mamba.chunk * mamba.state)


def prefill(say: Say, mamba: Any, load: Any, on: Any) -> Q:
    """One layer over one prefill pass.

    t = product(P, n) + conv + floor + [ n ((3 H/TP d + 2 G_r N) a + 4 S/C) / (BW e_m) (+)_p n f / (F e_c) ] + chain
        + all-reduce(n), TP > G
    f = H/TP (4 d N + C d) + G_r C N,    chain = ceil(T_seq / C) c tau w,    w = ceil(s H/TP / CU)

    C the chunk, S the state of a sequence, T_seq the tokens of one sequence in this pass, s sequences, CU the chip's
    compute units (one head each). A chunk needs no triangular system, so only the running sum of chunk states is in
    sequence: one step per chunk, taken to last as long as a chunk of the stack's scan, c tau. With CP the chain is
    1/CP as long and the ranks exchange their states (a decay is one number).
    Limits: c tau belongs to a delta rule and is the nearest figure there is.
    """
    kernel = on.kernel.recurrent_prefill
    product = dense_product(say, "project", "Mamba-2 projections", [*mamba.held.values()], load.tokens, on)
    convolved = 2 * load.tokens * mamba.channel_bytes + mamba.filter_bytes
    conv = operator(say, "conv", "short convolution", on.kernel.convolution, convolved)
    waves = ceil_div(load.sequences * mamba.rank_heads, on.chip.compute_units)
    moved = STREAMED * mamba.vector_bytes + mamba.selected_bytes + STATE_PASSES * mamba.matrix_bytes / mamba.chunk
    chunks = ceil_div(load.tokens / load.sequences, mamba.chunk)
    core = operator(
        say, "core", "chunkwise state space with its running sum", kernel,
        load.tokens * moved, chunk_flops(mamba, mamba.rank_heads, mamba.rank_groups, on) * load.tokens,
        sequential=chunks * kernel.chunk * kernel.token_time * waves,
    )  # fmt: skip
    states = mamba.matrix_bytes * load.sequences * (on.layout.cp - 1)
    relay = all_gather(say, "relay", "state passed between context ranks", states, on.ranks.cp, on)
    reduce = normalised(say, mamba, load, on)
    return say("layer_s", product + conv + core + relay + reduce, "one Mamba-2 layer, one pass")


def working(mamba: Any, on: Any) -> Q:
    """x, B and C before and after the convolution, gate and output of one token, and its share of the chunk states."""
    return 2 * mamba.channel_bytes + 2 * mamba.vector_bytes + mamba.matrix_bytes / mamba.chunk


def core_flops(mamba: Any, tokens: Q, on: Any) -> Q:
    """Linear in the prompt."""
    return chunk_flops(mamba, mamba.heads, mamba.groups, on) * tokens


def tp_problem(mamba: Mamba2, tp: int) -> str | None:
    """TP divides the heads, and either divides the groups or is a multiple of them."""
    uneven = mamba.groups % tp and tp % mamba.groups
    return indivisible(tp, mamba.heads, "heads") or (
        f"TP{tp} neither divides nor is a multiple of the {mamba.groups} groups" if uneven else None
    )


KIND = AttentionKind(
    record=Mamba2, reference="Transformers are SSMs, arXiv:2405.21060", weights=weights, share=share, sizes=sizes,
    cache=cache, decode=decode, prefill=prefill, working=working, core_flops=core_flops, tp_problem=tp_problem,
    copies=lambda record, tp: 1,
)  # fmt: skip
