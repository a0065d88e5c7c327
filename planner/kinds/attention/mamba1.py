"""Mamba: a selective state space per channel, scanned without matrix products.

    h_t = exp(dt_t A) h_(t-1) + dt_t B_t x_t,      y_t = C_t h_t + D x_t

Shapes, one layer: I inner channels with N states each; in-projection width x 2 I (x and its gate), a convolution of c
taps over x, a selection I x (R + 2 N) that gives the step of rank R, B and C, a step projection R x I with bias, A of
I x N, D and out-projection I x width; norms on step, B and C where the model has them. State: I x N plus (c - 1) past
values of every channel. It does not grow with the context.
Reference: A. Gu, T. Dao, Mamba, arXiv:2312.00752; norms on step, B and C: Jamba, arXiv:2403.19887; shapes: Jamba in
huggingface/transformers, modeling_jamba.py.
"""

from __future__ import annotations

from typing import Any, Literal

from planner.algebra import Q
from planner.kinds.attention.kind import AttentionKind, AttentionRecord, Cache, indivisible, tp_share
from planner.kinds.collectives.all_gather import all_gather
from planner.kinds.collectives.all_reduce import all_reduce
from planner.kinds.dense_product import dense_product
from planner.kinds.weights import Weight, bytes_of
from planner.quantities import Say
from planner.record import Count
from planner.roofline import operator

BRANCHES = 2  # x and its gate
SELECTED = 2  # B and C
STREAMED = 4  # x, step and gate in, output out
STEP_VALUES = 2048  # state values a compute unit decays in one token step: 16 exponentials a clock over 128 clocks


class Mamba1(AttentionRecord):
    """Sizes of a Mamba layer.

    inner: channels (expand times the width); state: states per channel; step_rank: rank of the step dt; conv_kernel:
    taps. conv_bias: on the convolution; bias: on in- and out-projection; norms: learned norms of step, B and C.
    """

    kind: Literal["mamba1"]
    inner: Count
    state: Count
    step_rank: Count
    conv_kernel: Count
    conv_bias: bool = True
    bias: bool = False
    norms: bool = True


def selection(mamba: Any) -> Q:
    """Values the selection gives per token: step in rank R, B and C."""
    return mamba.step_rank + SELECTED * mamba.state


def taps(mamba: Any) -> Q:
    """Convolution weights per channel: its taps and its bias."""
    return mamba.conv_kernel + (1 if mamba.conv_bias else 0)


def weights(mamba: Any, width: Q) -> list[Weight]:
    """The weight groups of one layer. All split over TP by channel; what has none (norms, output bias) is copied.

    state_vectors: A, D and the bias of the step, (N + 2) I.
    """
    groups = [
        Weight("input", BRANCHES * width * mamba.inner, bytes_of(mamba, "input"), "tp"),
        Weight("selection", mamba.inner * selection(mamba), bytes_of(mamba, "selection"), "tp"),
        Weight("step", mamba.step_rank * mamba.inner, bytes_of(mamba, "step"), "tp"),
        Weight("output", mamba.inner * width, bytes_of(mamba, "output"), "tp"),
    ]
    split = [
        ("convolution", mamba.inner * taps(mamba), True),
        ("state_vectors", mamba.inner * (mamba.state + 2), True),
        ("input_bias", BRANCHES * mamba.inner, mamba.bias),
    ]
    copied = [("norms", selection(mamba), mamba.norms), ("output_bias", width, mamba.bias)]
    for name, size, there in split:
        if there:
            groups.append(Weight(name, size, bytes_of(mamba, name, "vector_value_bytes"), "tp", product=False))
    for name, size, there in copied:
        if there:
            groups.append(Weight(name, size, bytes_of(mamba, name, "vector_value_bytes"), "copied", product=False))
    return groups


def sizes(say: Say, mamba: Any, on: Any) -> dict[str, Q]:
    """What one chip has of a layer, worked out once.

    rank_inner = I/TP; vector_bytes: I/TP activations of a token; matrix_bytes = I/TP N state values; taps_bytes =
    (c - 1) vectors; filter_bytes: the convolution weights; transition_bytes: A, D and the bias of the step;
    selected_bytes: step in rank R, B and C of a token.
    """
    inner = say("rank_inner", mamba.inner / on.layout.tp, "channels on one chip")
    vector = say("vector_bytes", inner * on.stack.activation_value_bytes, "one value of a token per channel")
    matrix = inner * mamba.state * on.ask.state_value_bytes
    filters = inner * taps(mamba) * bytes_of(mamba, "convolution", "vector_value_bytes")
    fixed = inner * (mamba.state + 2) * bytes_of(mamba, "state_vectors", "vector_value_bytes")
    selected = selection(mamba) * on.stack.activation_value_bytes
    return {
        "rank_inner": inner,
        "vector_bytes": vector,
        "matrix_bytes": say("matrix_bytes", matrix, "recurrent state of one sequence"),
        "taps_bytes": say("taps_bytes", (mamba.conv_kernel - 1) * vector, "convolution state of one sequence"),
        "filter_bytes": say("filter_bytes", filters, "convolution weights"),
        "transition_bytes": say("transition_bytes", fixed, "A, D and the bias of the step"),
        "selected_bytes": say("selected_bytes", selected, "step in its rank, B and C of one token"),
    }


def cache(mamba: Any, on: Any) -> Cache:
    """Nothing grows; the state is constant. TP splits it by channel; DP, EP, DCP and CP do not."""
    return Cache(constant=mamba.matrix_bytes + mamba.taps_bytes)


def selected(say: Say, mamba: Any, load: Any, on: Any) -> Q:
    """Each TP rank sees its channels only, so step, B and C are sums over ranks: n (R + 2 N) values."""
    size = load.tokens * mamba.selected_bytes
    return all_reduce(say, "selection_reduce", "step, B and C over TP", size, on.ranks.tp, on)


def decode(say: Say, mamba: Any, load: Any, on: Any) -> Q:
    """One layer in a decode step.

    t = product(P, n) + conv + floor (+)_q [ b (2 S) + A + n (4 I/TP + R + 2 N) a ] / (BW e_m) + all-reduce(n (R + 2 N))

    b sequences whose state S is read and written once, A the layer's transition, n tokens (n > b when drafts are
    verified), a bytes per activation; conv reads and writes the taps of b sequences and moves 2 n vectors. The core
    does 7 FLOP per state value and token.
    Limits: the products before, between and after the scan share one floor.
    """
    product = dense_product(say, "project", "Mamba projections", [*mamba.held.values()], load.tokens, on)
    moved = 2 * (load.sequences * mamba.taps_bytes + load.tokens * mamba.vector_bytes) + mamba.filter_bytes
    conv = operator(say, "conv", "short convolution", on.kernel.convolution, moved)
    row = STREAMED * mamba.vector_bytes + mamba.selected_bytes
    core = operator(
        say, "core", "recurrent state read, updated and written", on.kernel.recurrent_decode,
        2 * load.sequences * mamba.matrix_bytes + mamba.transition_bytes + load.tokens * row,
        recurrence_flops(mamba, on) / on.layout.tp * load.tokens,
    )  # fmt: skip
    return say("layer_s", product + conv + core + selected(say, mamba, load, on), "one Mamba layer, decode")


def recurrence_flops(mamba: Any, on: Any) -> Q:
    """7 FLOP per state value and token: step times A and its exponential 2, decay 1, write 2, output 2."""
    madd = on.constant.multiply_add_flops
    return (3 * madd + madd / 2) * mamba.inner * mamba.state


def prefill(say: Say, mamba: Any, load: Any, on: Any) -> Q:
    """One layer over one prefill pass.

    t = product(P, n) + conv + floor + [ n (4 I/TP + R + 2 N) a + 2 s S + A ] / (BW e_m) + n I/TP N tau / (CU m)
        + all-reduce(n (R + 2 N))

    s sequences of state S. The scan has no matrix form: every state value of every token takes an exponential, and a
    compute unit does m = 2048 of them (128 channels of 16 states) in about one token step tau of the stack's scan. It
    is parallel over tokens as well as channels, so there is no chain. With CP the ranks exchange a transition and a
    state per state value.
    Limits: m is counted from vector units of 16 exponentials a clock and not measured; the 7 FLOP a value are not
    charged beside it.
    """
    kernel = on.kernel.recurrent_prefill
    product = dense_product(say, "project", "Mamba projections", [*mamba.held.values()], load.tokens, on)
    convolved = 2 * load.tokens * mamba.vector_bytes + mamba.filter_bytes
    conv = operator(say, "conv", "short convolution", on.kernel.convolution, convolved)
    row = STREAMED * mamba.vector_bytes + mamba.selected_bytes
    steps = load.tokens * mamba.rank_inner * mamba.state / (on.chip.compute_units * STEP_VALUES)
    core = operator(
        say, "core", "selective scan", kernel,
        load.tokens * row + 2 * load.sequences * mamba.matrix_bytes + mamba.transition_bytes,
        extra=steps * kernel.token_time,
    )  # fmt: skip
    pair = 2 * mamba.matrix_bytes * load.sequences * (on.layout.cp - 1)
    relay = all_gather(say, "relay", "state passed between context ranks", pair, on.ranks.cp, on)
    reduce = selected(say, mamba, load, on)
    return say("layer_s", product + conv + core + relay + reduce, "one Mamba layer, one pass")


def working(mamba: Any, on: Any) -> Q:
    """x before and after the convolution, gate, step and output of one token; step in its rank, B and C."""
    return (STREAMED + 1) * mamba.vector_bytes + mamba.selected_bytes


def core_flops(mamba: Any, tokens: Q, on: Any) -> Q:
    """Linear in the prompt."""
    return recurrence_flops(mamba, on) * tokens


def tp_problem(mamba: Mamba1, tp: int) -> str | None:
    """TP divides the channels."""
    return indivisible(tp, mamba.inner, "channels")


KIND = AttentionKind(
    record=Mamba1, reference="Mamba, arXiv:2312.00752; norms: Jamba, arXiv:2403.19887", weights=weights, sizes=sizes,
    cache=cache, decode=decode, prefill=prefill, working=working, core_flops=core_flops, share=tp_share,
    tp_problem=tp_problem, copies=lambda record, tp: 1,
)  # fmt: skip
