"""What every feed-forward kind provides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from planner.algebra import Q
from planner.kinds.formats import FORMATS, FormatName, splits
from planner.kinds.weights import Shares, Weight
from planner.quantities import Say
from planner.record import Record


class FeedForwardRecord(Record):
    """Fields every feed-forward kind has."""

    layers: str = Field(min_length=1)
    format: FormatName = Field(description="format of the matrices")
    vector_format: FormatName = Field(description="format of norms and biases")
    overrides: dict[str, FormatName] = Field(default={}, description="weight group -> its own format")


def unsplit(tp: int, width: int, format: str) -> str | None:
    """The sentence where TP does not split a width in whole blocks of its format."""
    if splits(width, tp, format):
        return None
    block = FORMATS[format].block
    return f"TP{tp} does not split the width {width}" + (f" in blocks of {block}" if block > 1 else "")


@dataclass(frozen=True)
class FeedForwardKind:
    """The declaration that ends a kind's file.

    weights(kind, width)         the layer's weight groups
    share(kind, on)              what one chip holds of each sharding
    sizes(say, kind, on)         what one chip has, worked out once: read as attributes of `kind` below
    layer(say, kind, load, on)   time of one layer over a pass, decode or prefill
    working(kind, load, on)      activation bytes on one chip while the layer runs a pass
    present                      False for the kind that stands for no feed-forward at all
    tp_problem(record, tp)       why attention TP cannot be this, or None
    exchanged(kind, load, on)    bytes of buffers for the exchange between ranks in a pass; 0 where there is none
    """

    record: type[FeedForwardRecord]
    reference: str
    weights: Callable[[Any, Q], list[Weight]]
    share: Callable[[Any, Any], Shares]
    sizes: Callable[[Say, Any, Any], dict[str, Q]]
    layer: Callable[[Say, Any, Any, Any], Q]
    working: Callable[[Any, Any, Any], Q]
    exchanged: Callable[[Any, Any, Any], Q]
    tp_problem: Callable[[Any, int], str | None]
    present: bool = True
