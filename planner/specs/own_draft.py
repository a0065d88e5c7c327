"""A checkpoint's own draft layers (multi-token prediction), where the model names no separate draft.

Extras of part draft count all their parameters; `attention` and `feed_forward` say of what kinds the layers are. What
is in no layer joins the hidden state and the token's embedding: projections, norms, a head of their own.
"""

from __future__ import annotations

from planner.kinds.attention import ATTENTION, Attention
from planner.kinds.feedforward import FEED_FORWARD, FeedForward
from planner.kinds.formats import value_bytes
from planner.specs.model import DRAFTED, Extra, Model, named_formats


def stored(model: Model) -> list[Extra]:
    """The extras that hold draft layers; none where a separate draft is named or nothing says of what kind they are."""
    drafts = [extra for extra in model.extras.values() if extra.part == "draft"]
    return drafts if model.draft is None and any(extra.attention for extra in drafts) else []


def attention_layers(model: Model) -> dict[str, Attention]:
    """Attention of the draft layers by the name of its group."""
    layers = [layer for extra in stored(model) for layer in extra.attention]
    return {f"{DRAFTED}attention{i}": layer for i, layer in enumerate(layers)}


def feed_forward_layers(model: Model) -> dict[str, FeedForward]:
    """Feed-forwards of the draft layers by the name of their group."""
    layers = [layer for extra in stored(model) for layer in extra.feed_forward]
    return {f"{DRAFTED}feed_forward{i}": layer for i, layer in enumerate(layers)}


def steps(model: Model) -> int:
    """Draft steps that have layers of their own."""
    return max(extra.steps for extra in stored(model))


def joined(model: Model) -> tuple[int, float]:
    """(parameters, bytes) of what is in no layer."""
    extras = stored(model)
    count, size = sum(e.parameters for e in extras), sum(e.parameters * value_bytes(e.format) for e in extras)
    weights = [
        weight
        for kinds, layers in ((ATTENTION, attention_layers(model)), (FEED_FORWARD, feed_forward_layers(model)))
        for layer in layers.values()
        for weight in kinds[layer.kind].weights(named_formats(layer), model.width)
    ]
    inside = sum(int(weight.parameters) for weight in weights)
    return count - inside, size - sum(weight.parameters * value_bytes(str(weight.value_bytes)) for weight in weights)
