"""What every attention kind provides. A kind is one file: a record, formulas, a reference, and this declaration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from planner.algebra import Q
from planner.kinds.formats import FormatName
from planner.kinds.weights import Weight
from planner.quantities import Say
from planner.record import Record


class AttentionRecord(Record):
    """Fields every attention kind has: which layers use it, and the formats of its weights.

    layers: 0-based, such as "3-91/4, 92" (from 3 to 91 by 4, and 92), or "rest".
    """

    layers: str = Field(min_length=1)
    format: FormatName = Field(description="format of the matrices")
    vector_format: FormatName = Field(description="format of norms, convolutions, biases")


@dataclass(frozen=True)
class AttentionKind:
    """The declaration that ends a kind's file.

    weights(kind, width)            the layer's weight groups
    sizes(say, kind, on)            what one chip has, worked out once: read as attributes of `kind` below
    cache(kind, on)                 bytes on this chip, one layer: (per cached token, per sequence whatever its length)
    decode(say, kind, load, on)     time of one layer in a decode step
    prefill(say, kind, load, on)    time of one layer over one prefill pass
    working(kind, on)               activation bytes of one token in flight, on one chip
    core_flops(kind, tokens, on)    arithmetic of the core over a whole prompt, one layer, all ranks
    shared_cache                    True: every TP rank would hold the same cache, so DCP may split it over tokens
    """

    record: type[AttentionRecord]
    reference: str
    weights: Callable[[Any, Q], list[Weight]]
    sizes: Callable[[Say, Any, Any], dict[str, Q]]
    cache: Callable[[Any, Any], tuple[Q, Q]]
    decode: Callable[[Say, Any, Any, Any], Q]
    prefill: Callable[[Say, Any, Any, Any], Q]
    working: Callable[[Any, Any], Q]
    core_flops: Callable[[Any, Q, Any], Q]
    shared_cache: bool
