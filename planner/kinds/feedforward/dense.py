"""Dense feed-forward: gate, up and down matrices, split over attention TP.

    P = 3 width inner,    t = product(P, n) + all-reduce(n width)

Reference: N. Shazeer, GLU Variants Improve Transformer, arXiv:2002.05202.
"""

from __future__ import annotations

from typing import Any, Literal

from planner.algebra import Q
from planner.kinds.collectives.all_reduce import all_reduce
from planner.kinds.dense_product import dense_product
from planner.kinds.feedforward.kind import FeedForwardKind, FeedForwardRecord
from planner.kinds.weights import Shares, Weight, shares
from planner.quantities import Say
from planner.record import Count

MATRICES = 3  # gate, up, down


class Dense(FeedForwardRecord):
    """Sizes of a dense feed-forward layer."""

    kind: Literal["dense"]
    inner: Count


def weights(dense: Any, width: Q) -> list[Weight]:
    """Gate, up and down."""
    return [Weight("matrices", MATRICES * width * dense.inner, dense.value_bytes, "tp")]


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


def exchanged(dense: Any, on: Any) -> Q:
    """Nothing travels but the all-reduce, which works in place."""
    return 0


KIND = FeedForwardKind(
    record=Dense,
    reference="arXiv:2002.05202",
    weights=weights,
    share=share,
    sizes=sizes,
    layer=layer,
    working=working,
    exchanged=exchanged,
)
