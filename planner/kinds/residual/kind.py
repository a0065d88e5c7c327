"""What every residual kind provides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from planner.algebra import Q
from planner.kinds.formats import FormatName
from planner.kinds.weights import Weight
from planner.record import Record

NORMS_PER_LAYER = 2
SITES_PER_LAYER = 2  # before the attention and before the feed-forward


class ResidualRecord(Record):
    """Field every residual kind has."""

    vector_format: FormatName


@dataclass(frozen=True)
class ResidualKind:
    """The declaration that ends a kind's file.

    weights(kind, width)         vectors of one layer
    final_weights(kind, width)   vectors after the last layer
    mixing_values(kind, width)   values moved per token to mix the sources, all layers together
    live_sources(kind)           residual vectors alive at once, per token
    """

    record: type[ResidualRecord]
    reference: str
    weights: Callable[[Any, Q], list[Weight]]
    final_weights: Callable[[Any, Q], list[Weight]]
    mixing_values: Callable[[Any, Q], Q]
    live_sources: Callable[[Any], Q]
