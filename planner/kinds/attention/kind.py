"""What every attention kind provides. A kind is one file: a record, formulas, a reference, and this declaration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from planner.algebra import Q, ceil_div, minimum
from planner.kinds.formats import FormatName
from planner.kinds.weights import Shares, Weight
from planner.quantities import Say
from planner.record import Record
from planner.roofline import is_zero


class AttentionRecord(Record):
    """Fields every attention kind has: which layers use it, and the formats of its weights.

    layers: 0-based, such as "3-91/4, 92" (from 3 to 91 by 4, and 92), or "rest".
    overrides: weight group -> format, where it differs from `format` or `vector_format`.
    """

    layers: str = Field(min_length=1)
    format: FormatName = Field(description="format of the matrices")
    vector_format: FormatName = Field(description="format of norms, convolutions, biases")
    overrides: dict[str, FormatName] = Field(default={}, description="weight group -> its own format")


@dataclass(frozen=True)
class Cache:
    """What one layer keeps on one chip for one sequence of L tokens: growing L + windowed min(L, window) + constant.

    growing, windowed: bytes per token; window: tokens; constant: bytes. That is the ideal footprint; what an engine
    takes for it in blocks is `reserved`.
    """

    growing: Q = 0
    windowed: Q = 0
    window: Q = 0
    constant: Q = 0

    def fixed(self, length: Q) -> Q:
        """The part that does not grow without limit, at this length: filled window and state."""
        if is_zero(self.windowed):
            return self.constant
        return self.windowed * minimum(length, self.window) + self.constant

    @property
    def token(self) -> Q:
        """Bytes of one token just kept."""
        return self.growing + self.windowed

    @property
    def keeps_tokens(self) -> bool:
        """Whether anything is kept by token."""
        return not (is_zero(self.growing) and is_zero(self.windowed))

    @property
    def keeps_state_alone(self) -> bool:
        """A recurrent state, and nothing by token."""
        return not self.keeps_tokens and not is_zero(self.constant)

    def reserved(self, length: Q, block: Q, batched: Q, page: Q | None) -> Q:
        """Taken in blocks of `block` tokens where a pass has up to `batched`, and in pages that hold any state.

        Growing in whole blocks; of a window what a pass sees and itself, window - 1 + batched, and a block more, since
        it need not begin with one; a state alone takes a page, where there are pages.
        """
        if self.keeps_state_alone:
            return self.constant if page is None else page
        taken = self.growing * ceil_div(length, block) * block + self.constant
        if is_zero(self.windowed):
            return taken
        blocks = ceil_div(minimum(self.window - 1 + batched, length), block) + 1
        return taken + self.windowed * blocks * block


@dataclass(frozen=True)
class AttentionKind:
    """The declaration that ends a kind's file.

    weights(kind, width)            the layer's weight groups
    share(kind, on)                 what one chip holds of each sharding
    sizes(say, kind, on)            what one chip has, worked out once: read as attributes of `kind` below
    cache(kind, on)                 what one layer keeps on one chip
    decode(say, kind, load, on)     time of one layer in a decode step
    prefill(say, kind, load, on)    time of one layer over one prefill pass
    working(kind, on)               activation bytes of one token in flight, on one chip
    core_flops(kind, tokens, on)    arithmetic of the core over a whole prompt, one layer, all ranks
    tp_problem(record, tp)          why attention TP cannot be this, or None
    present                         False for the kind that stands for no attention at all
    copies(record, tp)              ranks that would hold the same cache: DCP may split it among them over tokens
    """

    record: type[AttentionRecord]
    reference: str
    weights: Callable[[Any, Q], list[Weight]]
    share: Callable[[Any, Any], Shares]
    sizes: Callable[[Say, Any, Any], dict[str, Q]]
    cache: Callable[[Any, Any], Cache]
    decode: Callable[[Say, Any, Any, Any], Q]
    prefill: Callable[[Say, Any, Any, Any], Q]
    working: Callable[[Any, Any], Q]
    core_flops: Callable[[Any, Q, Any], Q]
    tp_problem: Callable[[Any, int], str | None]
    copies: Callable[[Any, int], int]
    present: bool = True


def indivisible(tp: int, count: int, what: str) -> str | None:
    """The sentence where TP does not divide a count."""
    return f"TP{tp} does not divide the {count} {what}" if count % tp else None


def tp_share(kind: Any, on: Any) -> Shares:
    """Split over attention TP, or copied."""
    return {"tp": 1 / on.layout.tp, "copied": 1}
