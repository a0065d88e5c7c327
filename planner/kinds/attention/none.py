"""No attention: a layer that is only a feed-forward. It holds nothing, keeps nothing and takes no time.

    P = 0,    t = 0

Reference: Nemotron-H, arXiv:2504.03624, section 2 (one mixer a layer); attention left out by search: Puzzle,
arXiv:2411.19146.
"""

from __future__ import annotations

from typing import Any, Literal

from planner.algebra import Q
from planner.kinds.attention.kind import AttentionKind, AttentionRecord, Cache
from planner.kinds.formats import FormatName
from planner.kinds.weights import Shares, Weight
from planner.quantities import Say


class NoAttention(AttentionRecord):
    """No sizes; the formats of a record have nothing to apply to and may be left out."""

    kind: Literal["none"]
    format: FormatName = "bf16"
    vector_format: FormatName = "bf16"


def weights(none: Any, width: Q) -> list[Weight]:
    """None."""
    return []


def share(none: Any, on: Any) -> Shares:
    """Nothing is split."""
    return {}


def sizes(say: Say, none: Any, on: Any) -> dict[str, Q]:
    """Nothing."""
    return {}


def cache(none: Any, on: Any) -> Cache:
    """Nothing."""
    return Cache()


def layer(say: Say, none: Any, load: Any, on: Any) -> Q:
    """No time, in decode and in prefill: structurally absent."""
    return 0


def working(none: Any, on: Any) -> Q:
    """Nothing."""
    return 0


def core_flops(none: Any, tokens: Q, on: Any) -> Q:
    """Nothing."""
    return 0


KIND = AttentionKind(
    record=NoAttention, reference="Nemotron-H, arXiv:2504.03624; Puzzle, arXiv:2411.19146", weights=weights,
    share=share, sizes=sizes, cache=cache, decode=layer, prefill=layer, working=working, core_flops=core_flops,
    tp_problem=lambda record, tp: None, copies=lambda record, tp: 1,
    present=False,
)  # fmt: skip
