"""A model's checkpoint in another precision: the same network, its matrices stored in other formats.

Norms, convolutions and biases, tables, routers and everything an engine keeps in 16 bits stay as they are.
"""

from __future__ import annotations

from typing import Any

from planner.errors import BadSpec, UnknownName, nearest
from planner.kinds.feedforward.moe import Moe
from planner.specs.model import Model

KEPT = ("router", "shared_gate")
"""Weight groups that every quantised checkpoint keeps in 16 bits."""
LATENT_ATTENTION = ("mla", "sparse_mla", "compressed")
EXPERTS = {f"{format}-experts": format for format in ("mxfp4", "nvfp4", "int4", "fp8", "bf16")}
WHOLE = {name: name for name in ("bf16", "fp8", "fp8_block", "int8", "int4", "nvfp4")}
MIXED = {"w4a8": ("int8", "int4")}
PRECISIONS = (*WHOLE, *EXPERTS, *MIXED)
"""What a checkpoint may be asked to be."""


def in_precision(model: Model, name: str | None) -> Model:
    """The model stored that way; None is as shipped. Raises UnknownName, BadSpec.

    fp8, int8, bf16 ...: every matrix. nvfp4: every matrix but those of latent attention, which such checkpoints keep.
    nvfp4-experts ...: routed experts alone. w4a8: int4 experts, int8 elsewhere.
    """
    if name is None:
        return model
    if name not in PRECISIONS:
        raise UnknownName("weights", f"unknown precision {name!r}", nearest(name, PRECISIONS))
    if name in EXPERTS and not any(isinstance(feed, Moe) for feed in model.feed_forward.values()):
        raise BadSpec(
            "weights", f"{model.name} has no experts to store as {name}", "name a precision of the whole model"
        )
    if name in EXPERTS:
        return rebuilt(model, None, EXPERTS[name])
    rest, experts = MIXED.get(name, (name, name))
    return rebuilt(model, rest, experts)


def rebuilt(model: Model, rest: str | None, experts: str) -> Model:
    """The model with its routed experts in one format and, unless None, every other matrix in another."""
    changes: dict[str, Any] = {"attention": {}, "feed_forward": {}}
    for name, layer in model.attention.items():
        kept = rest is None or (rest == "nvfp4" and layer.kind in LATENT_ATTENTION)
        changes["attention"][name] = layer if kept else plain(layer, rest)
    for name, feed in model.feed_forward.items():
        found = feed if rest is None else plain(feed, rest)
        if isinstance(feed, Moe):
            found = found.model_copy(update={"routed_format": experts})
        changes["feed_forward"][name] = found
    return model.model_copy(update=changes)


def plain(layer: Any, format: str | None) -> Any:
    """A layer with all its matrices in one format, but for what is kept in 16 bits."""
    known = {"router"} if isinstance(layer, Moe) else set()
    known |= {"shared_gate"} if getattr(layer, "shared_gate", False) else set()
    overrides = {group: own for group, own in layer.overrides.items() if own in ("bf16", "fp32")}
    overrides |= {group: "bf16" for group in KEPT if group in known and group not in overrides}
    return layer.model_copy(update={"format": format, "overrides": overrides})
