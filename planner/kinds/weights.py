"""Weight groups: every matrix of a layer says once how it is sharded; memory and bytes read use the same words.

tp      split over the attention tensor-parallel ranks          held = parameters / TP
ep      split over expert-parallel ranks and expert TP          held = said by the kind (padding, redundant experts)
kv      split over TP up to the KV heads, then repeated         held = parameters ceil(KV/TP) / KV
copied  whole on every rank                                     held = parameters
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from planner.algebra import Q
from planner.kinds.formats import FormatName
from planner.quantities import Say

Sharding = Literal["tp", "ep", "kv", "copied"]


@dataclass(frozen=True)
class Weight:
    """One weight group of one layer: its parameters before sharding and the bytes of one value.

    product: it enters the layer's dense product, so that it is read whole, with 2 FLOP per parameter and token.
    active: the share of it that one token uses (1, or top-k over experts).
    """

    name: str
    parameters: Q
    value_bytes: Q
    sharding: Sharding
    product: bool = True
    active: Q = 1


def bytes_of(kind: Any, name: str, plain: str = "value_bytes") -> Q:
    """Bytes of one value of a weight group: its override, else the kind's plain format."""
    own = f"{name}_value_bytes"
    return getattr(kind, own) if hasattr(kind, own) else getattr(kind, plain)


Shares = dict[str, Q]
"""What one chip holds of each sharding: {'tp': 1 / TP, 'copied': 1, 'ep': ...}."""


def shares(layout_tp: Q) -> Shares:
    """The shares of what is not an expert."""
    return {"tp": 1 / layout_tp, "copied": 1}


def parameters(weights: Iterable[Weight]) -> Q:
    """Parameters of a layer, all ranks, one copy."""
    return sum(w.parameters for w in weights)


def active_parameters(weights: Iterable[Weight]) -> Q:
    """Parameters one token uses."""
    return sum(w.parameters * w.active for w in weights)


def stored_bytes(weights: Iterable[Weight]) -> Q:
    """Bytes of a layer as shipped, one copy."""
    return sum(w.parameters * w.value_bytes for w in weights)


@dataclass(frozen=True)
class Held:
    """What one chip holds of one layer under one sharding: product parameters, their bytes, all bytes.

    computed: the product parameters by the format their arithmetic runs in.
    """

    parameters: Q
    computed: dict[str, Q]
    read_bytes: Q
    all_bytes: Q


PLAIN: FormatName = "bf16"
"""What products compute in where the stack names nothing narrower for their format."""


def format_of(kind: Any, name: str) -> str:
    """Stored format of a weight group: its own, else the kind's plain one."""
    return getattr(kind, f"{name}_format", None) or kind.format


def held(say: Say, weights: Iterable[Weight], share: Shares, kind: Any, on: Any) -> dict[str, Held]:
    """What one chip holds, by sharding: the layer's sum times the share. Decode, prefill and memory all read this."""
    found: dict[str, Held] = {}
    for sharding, part in share.items():
        mine = [w for w in weights if w.sharding == sharding]
        products = [w for w in mine if w.product]
        count = sum(w.parameters for w in products) * part
        read = sum(w.parameters * w.value_bytes for w in products) * part
        stored = sum(w.parameters * w.value_bytes for w in mine) * part
        whole = say(f"{sharding}_params", count, f"parameters of the dense products on one chip, {sharding}")
        found[sharding] = Held(
            whole,
            computed(say, products, part, whole, sharding, kind, on),
            say(f"{sharding}_read_bytes", read, f"bytes of the dense products on one chip, {sharding}"),
            say(f"{sharding}_bytes", stored, f"all weights on one chip, {sharding}"),
        )
    return found


def computed(
    say: Say, products: list[Weight], part: Q, whole: Q, sharding: str, kind: Any, on: Any
) -> dict[str, Q]:  # fmt: skip
    """Product parameters on one chip by the format they compute in; one format takes the whole as it is."""
    runs = [getattr(on.stack.computes, format_of(kind, w.name), PLAIN) for w in products]
    formats = sorted(set(runs))
    if len(formats) <= 1:
        return dict.fromkeys(formats, whole)
    return {
        format: say(
            f"{sharding}_{format}_params",
            sum(w.parameters for w, own in zip(products, runs, strict=True) if own == format) * part,
            f"of them, computed in {format}",
        )
        for format in formats
    }


def all_bytes(groups: dict[str, Held]) -> Q:
    """Bytes of a layer on one chip."""
    return sum(group.all_bytes for group in groups.values())
