"""Dense feed-forward: gate, up and down matrices (or up and down), split over attention TP.

    P = 3 width inner (2 without a gate),    t = product(P, n) + all-reduce(n width)

Reference: N. Shazeer, GLU Variants Improve Transformer, arXiv:2002.05202.
"""

from __future__ import annotations

from typing import Any, Literal

from planner.algebra import Q
from planner.kinds.collectives.all_reduce import all_reduce
from planner.kinds.dense_product import dense_product
from planner.kinds.feedforward.kind import FeedForwardKind, FeedForwardRecord, unsplit
from planner.kinds.weights import Shares, Weight, bytes_of, shares
from planner.quantities import Say
from planner.record import Count


class Dense(FeedForwardRecord):
    """Sizes of a dense feed-forward layer. gated: gate, up and down; otherwise up and down. bias: on every matrix."""

    kind: Literal["dense"]
    inner: Count
    gated: bool = True
    bias: bool = False


def matrices(gated: bool) -> int:
    """Gate, up and down; or up and down."""
    return 3 if gated else 2


def weights(dense: Any, width: Q) -> list[Weight]:
    """Gate, up and down; or up and down."""
    count = matrices(dense.gated)
    groups = [Weight("matrices", count * width * dense.inner, bytes_of(dense, "matrices"), "tp")]
    if dense.bias:
        size = (count - 1) * dense.inner + width
        groups.append(Weight("bias", size, bytes_of(dense, "bias", "vector_value_bytes"), "copied", product=False))
    return groups


def share(dense: Any, on: Any) -> Shares:
    """Split over attention TP, copied over DP and CP."""
    return shares(on.layout.tp)


def sizes(say: Say, dense: Any, on: Any) -> dict[str, Q]:
    """Nothing beyond its weights."""
    return {}


def layer(say: Say, dense: Any, load: Any, on: Any) -> Q:
    """One layer: product and all-reduce."""
    product = dense_product(say, "matrices", "gate, up and down", [*dense.held.values()], load.tokens, on)
    size = load.tokens * on.model.width * on.stack.activation_value_bytes
    reduce = all_reduce(say, "reduce", "feed-forward output over TP", size, on.ranks.tp, on)
    return say("layer_s", product + reduce, "one dense feed-forward layer")


def working(dense: Any, load: Any, on: Any) -> Q:
    """Gate and up of every token: 2 n inner/TP values."""
    return 2 * load.tokens * dense.inner / on.layout.tp * on.stack.activation_value_bytes


def exchanged(dense: Any, load: Any, on: Any) -> Q:
    """Nothing travels but the all-reduce, which works in place."""
    return 0


def tp_problem(dense: Dense, tp: int) -> str | None:
    """TP splits the width, in whole blocks."""
    return unsplit(tp, dense.inner, dense.format)


KIND = FeedForwardKind(
    record=Dense,
    reference="arXiv:2002.05202",
    weights=weights,
    share=share,
    sizes=sizes,
    layer=layer,
    working=working,
    exchanged=exchanged,
    tp_problem=tp_problem,
)
