"""No feed-forward: a layer that is only attention or a state space. It holds nothing and takes no time.

    P = 0,    t = 0

Reference: Nemotron-H, arXiv:2504.03624, section 2 (one mixer a layer); feed-forwards left out by search: Puzzle,
arXiv:2411.19146.
"""

from __future__ import annotations

from typing import Any, Literal

from planner.algebra import Q
from planner.kinds.feedforward.kind import FeedForwardKind, FeedForwardRecord
from planner.kinds.formats import FormatName
from planner.kinds.weights import Shares, Weight
from planner.quantities import Say


class NoFeedForward(FeedForwardRecord):
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


def layer(say: Say, none: Any, load: Any, on: Any) -> Q:
    """No time and no all-reduce: structurally absent."""
    return 0


def working(none: Any, load: Any, on: Any) -> Q:
    """Nothing."""
    return 0


def exchanged(none: Any, load: Any, on: Any) -> Q:
    """Nothing."""
    return 0


KIND = FeedForwardKind(
    record=NoFeedForward, reference="Nemotron-H, arXiv:2504.03624; Puzzle, arXiv:2411.19146", weights=weights,
    share=share, sizes=sizes, layer=layer, working=working, exchanged=exchanged, tp_problem=lambda record, tp: None,
    present=False,
)  # fmt: skip
