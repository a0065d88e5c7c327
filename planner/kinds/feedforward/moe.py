"""Mixture of experts: routed experts at the model's width or in a latent of fewer dims, beside shared experts.

Shapes, one layer: E experts of three (or two) matrices latent x inner, k per token; a router width x E with its bias;
down and up projections width x latent and a norm where there is a latent; shared experts of a fused width, at full
width.
Sharding: routed experts over EP x ETP, shared experts over attention TP, router and latent projections copied.
Reference: routed experts and shared experts: DeepSeekMoE, arXiv:2401.06066; latent experts: Kimi K3 config.json and
technical report, arXiv:2607.24653.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from planner.algebra import Q, ceil_div, log, maximum, minimum, several
from planner.kinds.collectives.all_reduce import all_reduce
from planner.kinds.collectives.all_to_all import all_to_all, copies, far_copies
from planner.kinds.dense_product import dense_product
from planner.kinds.feedforward.dense import matrices
from planner.kinds.feedforward.kind import FeedForwardKind, FeedForwardRecord, unsplit
from planner.kinds.feedforward.routing import routing
from planner.kinds.formats import FormatName
from planner.kinds.weights import Shares, Weight, bytes_of, shares
from planner.quantities import Say
from planner.record import Count
from planner.roofline import fixed, operator

LATENT = "latent experts, arXiv:2607.24653"


class Moe(FeedForwardRecord):
    """Sizes of an MoE layer.

    latent: null where experts work at full width. shared_inner: width of all shared experts together, null for none;
    shared_gate: a gate of one output beside them. gated: three matrices an expert, otherwise two. router_bias: a vector
    of corrections; expert_bias: on every expert matrix and the router.
    """

    kind: Literal["moe"]
    experts: Count
    top_k: Count
    inner: Count
    latent: Count | None
    shared_inner: Count | None
    router_bias: bool
    routed_format: FormatName
    gated: bool = True
    shared_gate: bool = False
    expert_bias: bool = False
    latent_norm: bool = True

    @model_validator(mode="after")
    def chooses(self) -> Moe:
        """A token picks among the experts there are."""
        if self.top_k > self.experts:
            raise ValueError(f"top_k {self.top_k} is more than the {self.experts} experts")
        return self


def expert_width(moe: Any, width: Q) -> Q:
    """The width experts read and write."""
    return width if moe.latent is None else moe.latent


def weights(moe: Any, width: Q) -> list[Weight]:
    """The weight groups of one layer."""
    wide, count = expert_width(moe, width), matrices(moe.gated)
    groups = [
        Weight("routed", moe.experts * count * wide * moe.inner, moe.routed_value_bytes, "ep", product=False,
               active=moe.top_k / moe.experts),
        Weight("router", width * moe.experts, bytes_of(moe, "router"), "copied"),
    ]  # fmt: skip
    if moe.router_bias:
        small = bytes_of(moe, "router_bias", "vector_value_bytes")
        groups.append(Weight("router_bias", moe.experts, small, "copied", product=False))
    if moe.expert_bias:
        small, each = bytes_of(moe, "expert_bias", "vector_value_bytes"), (count - 1) * moe.inner + wide
        active = moe.top_k / moe.experts
        groups.append(Weight("expert_bias", moe.experts * each, small, "ep", product=False, active=active))
        groups.append(Weight("router_offset", moe.experts, small, "copied", product=False))
    return groups + shared_weights(moe, width) + latent_weights(moe, width)


def shared_weights(moe: Any, width: Q) -> list[Weight]:
    """Shared experts at full width, and their gate."""
    if moe.shared_inner is None:
        return []
    size = matrices(moe.gated) * width * moe.shared_inner
    gate = [Weight("shared_gate", width, bytes_of(moe, "shared_gate"), "copied")] if moe.shared_gate else []
    return [Weight("shared", size, bytes_of(moe, "shared"), "tp"), *gate]


def latent_weights(moe: Any, width: Q) -> list[Weight]:
    """Projections into and out of the experts' latent, and the norm between."""
    if moe.latent is None:
        return []
    norm = Weight("latent_norm", moe.latent, bytes_of(moe, "latent_norm"), "copied", product=False)
    return [
        Weight("latent_down", width * moe.latent, bytes_of(moe, "latent_down"), "copied"),
        Weight("latent_up", moe.latent * width, bytes_of(moe, "latent_up"), "copied"),
        *([norm] if moe.latent_norm else []),
    ]


def padded_inner(moe: Any, on: Any) -> Q:
    """Inner width one expert-TP rank holds: ceil(inner / ETP / m) m, m the kernel's multiple."""
    multiple = on.kernel.experts.width_multiple
    return ceil_div(moe.inner / on.layout.etp, multiple) * multiple


def share(moe: Any, on: Any) -> Shares:
    """Routed experts: (E + RED)/EP slots of E, each padded_inner of inner wide."""
    slots = (moe.experts + on.layout.red) / on.layout.ep
    return {**shares(on.layout.tp), "ep": slots * padded_inner(moe, on) / (moe.experts * moe.inner)}


def sizes(say: Say, moe: Any, on: Any) -> dict[str, Q]:
    """What one chip has of a layer, worked out once.

    slots = (E + RED)/EP experts; expert_bytes = 3 latent padded_inner w; row_bytes: input, inner and output of one
    assignment; copies: of one token that travel; apart: 1 where ranks bring different tokens.
    """
    wide = expert_width(moe, on.model.width)
    edge = wide * (on.stack.dispatch_value_bytes + on.stack.combine_value_bytes)
    inner = moe.inner / on.layout.etp
    middle = inner * (on.stack.activation_value_bytes + on.stack.dispatch_value_bytes)
    expert = matrices(moe.gated) * wide * moe.routed_value_bytes * padded_inner(moe, on)
    return {
        "slots": say("slots", (moe.experts + on.layout.red) / on.layout.ep, "experts on one rank, redundant ones too"),
        "expert_bytes": say("expert_bytes", expert, "weights of one expert on one rank"),
        "row_bytes": say("row_bytes", edge + middle, "activations of one assignment on one rank"),
        "rank_inner": say("rank_inner", inner, "inner width of one expert on one rank"),
        "copies": say("copies", copies(moe.top_k, on), "copies of one token that travel"),
        "apart": say("apart", held_apart(on), "1 where ranks bring different tokens to the experts"),
        "spread": say("spread", log(on.layout.ep), "log of the ranks: how far the slowest stands out"),
    }


def held_apart(on: Any) -> Q:
    """1 where ranks bring different tokens to the experts, which are then exchanged; 0 where each holds them all.

    Attention groups (DP or CP) always do. A stack that scatters tokens splits those of one group over its TP ranks as
    well, where experts are whole (ETP 1).
    """
    apart = several(on.layout.dp * on.layout.cp)
    if not on.stack.scatters_tokens:
        return apart
    return maximum(apart, several(on.layout.ep) * (1 - several(on.layout.etp)))


def layer(say: Say, moe: Any, load: Any, on: Any) -> Q:
    """One MoE layer over a pass.

    attention DP groups g > 1: tokens are split over TP before dispatch, so
        t = shared(n) + latent and router(n / TP) + dispatch + experts + combine + all-reduce(n width)
    g = 1: every rank already holds every token, so experts run in place and one sum follows,
        t = shared(n) + latent and router(n) + experts + all-reduce(n latent) + all-reduce(n width)

    The copied projections are read whole whatever TP is. Communication hidden behind computation is the stack's
    `overlap`: that fraction of the smaller of (dispatch + combine, computation) is taken off. Computation is the
    layer's own and the mean attention layer's: two interleaved batches take turns with both.
    Without a latent the experts' sum needs no exchange of its own: it joins the layer output's.
    """
    apart, wide = moe.apart, expert_width(moe, on.model.width)
    activation = on.stack.activation_value_bytes
    product_tokens = load.tokens + apart * (load.entering - load.tokens)
    shared = dense_product(say, "shared", "shared experts", [moe.held["tp"]], load.tokens, on)
    latent = say if moe.latent is None else say.citing(LATENT)
    whole = (
        "router, copied on every rank" if moe.latent is None else "router and latent projections, copied on every rank"
    )
    copied = dense_product(latent, "latent", whole, [moe.held["copied"]], product_tokens, on)
    routed = experts(say, moe, load, on)
    travelling = say("travelling", apart * load.entering * moe.copies, "copies sent by this chip's tokens")
    spread = None
    bulk = on.stack.spreads_far and on.stack.exchange == "send" and not load.drafts
    if bulk and on.crosses_domains:
        spread = say("spread_far", apart * load.entering * far_copies(moe.top_k, on), "copies that leave the domain")
    dispatch = all_to_all(
        say, "dispatch", "tokens to their experts", travelling, wide * on.stack.dispatch_value_bytes, apart, on, spread
    )
    combine = all_to_all(
        say, "combine", "expert outputs back", travelling, wide * on.stack.combine_value_bytes, apart, on, spread
    )
    reduce = all_reduce(
        say, "reduce", "layer output over the ranks that hold the same tokens",
        load.tokens * on.model.width * activation, load.same_tokens, on,
    )  # fmt: skip
    time = shared + copied + routed + dispatch + combine + reduce
    if moe.latent is not None:
        time = time + all_reduce(
            latent, "latent_reduce", "latent expert outputs where every rank holds every token",
            load.tokens * wide * activation, on.ranks.stage, on, when=1 - apart,
        )  # fmt: skip
    hidden = on.stack.overlap * minimum(dispatch + combine, routed + shared + copied + load.beside)
    time = time + fixed(say, "overlap", "communication hidden behind computation", -hidden, "assumed")
    return say("layer_s", time, "one MoE layer")


def experts(say: Say, moe: Any, load: Any, on: Any) -> Q:
    """Routed experts on the slowest rank of a domain that routes uniformly (routing.py), see grouped_products."""
    assigned, active = routing(say, moe, load.domain_tokens, on)
    return grouped_products(say, moe, load.domain_tokens, assigned, active, on)


def grouped_products(say: Say, moe: Any, tokens: Q, assigned: Q, active: Q, on: Any) -> Q:
    """Products of the experts one rank holds, for the assignments and distinct experts it meets.

    t = floor (+)_q { [D w + A a] / (BW e_m) (+)_p 6 wide inner A / (ETP F e_c) } + d D + x (k N - A)

    D distinct experts of w bytes (padded share of three matrices), A assignments of a activation bytes, d the time a
    kernel spends on each expert beside its bytes, x the time that a kernel given the whole domain's rows spends on each
    that is not its own: with one attention group, otherwise the exchange has sorted them. The kernel's form adds stream
    and arithmetic.
    Limits: a kernel's tile padding and selection are not modelled; published times are not monotonic in tokens.
    """
    kernel, wide = on.kernel.experts, expert_width(moe, on.model.width)
    flops = on.constant.multiply_add_flops * matrices(moe.gated) * wide * moe.rank_inner * assigned
    others = (1 - moe.apart) * maximum(tokens * moe.top_k - assigned, 0)
    return operator(
        say, "experts", "routed experts on the slowest rank", kernel,
        active * moe.expert_bytes + assigned * moe.row_bytes, flops,
        extra=kernel.row_time * others + kernel.expert_time * active,
    )  # fmt: skip


def working(moe: Any, load: Any, on: Any) -> Q:
    """Rows of the mean rank: N k i / EP x (input, gate and up, output)."""
    rows = on.ask.routing_skew * moe.top_k * load.domain_tokens / on.layout.ep
    wide = expert_width(moe, on.model.width)
    edge = wide * (on.stack.dispatch_value_bytes + on.stack.combine_value_bytes)
    return rows * (edge + 2 * on.stack.activation_value_bytes * moe.rank_inner)


def exchanged(moe: Any, load: Any, on: Any) -> Q:
    """k rows out and k rows back of the tokens that enter here, times the stack's buffers, at the experts' width.

    Where all ranks gather all tokens: k rows of every one of them, once, N k width a.
    """
    row = moe.top_k * expert_width(moe, on.model.width)
    if on.stack.exchange == "gather":
        return load.domain_tokens * row * on.stack.activation_value_bytes
    edge = on.stack.dispatch_value_bytes + on.stack.combine_value_bytes
    return on.stack.exchange_buffers * load.entering * row * edge


def tp_problem(moe: Moe, tp: int) -> str | None:
    """TP splits the shared experts, which stay with attention TP wherever the routed ones go."""
    return unsplit(tp, moe.shared_inner, moe.overrides.get("shared", moe.format)) if moe.shared_inner else None


KIND = FeedForwardKind(
    record=Moe, reference="DeepSeekMoE, arXiv:2401.06066", weights=weights, share=share,
    sizes=sizes, layer=layer, working=working, exchanged=exchanged, tp_problem=tp_problem,
)  # fmt: skip
