"""What a model is, before any layout: parameters, bytes, cache and state, from the same weight groups as everything
else.

Needs neither numpy nor sympy: listing and showing specs stays cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from planner.evaluate.inputs import of_record
from planner.kinds.attention import ATTENTION
from planner.kinds.feedforward import FEED_FORWARD
from planner.kinds.formats import value_bytes
from planner.kinds.residual import RESIDUAL
from planner.kinds.weights import Weight, active_parameters, parameters, stored_bytes
from planner.quantities import Numbers
from planner.specs.model import Model
from planner.stages import LAYER, whole_model


@dataclass(frozen=True)
class Totals:
    """Parameters and bytes of a model as shipped.

    params_by_group: by layer group, all layers together. active: head counted, input embedding not.
    products: parameters of the dense products of one token, head left out, routed experts at top-k of all.
    """

    params_by_group: dict[str, int]
    total_params: int
    active_params: int
    text_bytes: float
    vision_bytes: float
    draft_bytes: float
    draft_params: int
    extra_params: int


def numbers(record: Any) -> Any:
    """A record's numbers as a namespace of whole numbers and bytes."""
    leaves, raw = of_record(record, "")
    plain = {name: int(leaf.value) if leaf.value == int(leaf.value) else leaf.value for name, leaf in leaves.items()}
    return SimpleNamespace(**raw, **plain)


def groups(model: Model) -> dict[str, tuple[float, list[Weight]]]:
    """(layers, weight groups of one layer) by layer group; tables and residual vectors included."""
    counts = whole_model(model)
    found: dict[str, tuple[float, list[Weight]]] = {}
    for name, attention in model.attention.items():
        found[name] = (counts[name], ATTENTION[attention.kind].weights(numbers(attention), model.width))
    for name, feed in model.feed_forward.items():
        found[name] = (counts[name], FEED_FORWARD[feed.kind].weights(numbers(feed), model.width))
    residual, kind = numbers(model.residual), RESIDUAL[model.residual.kind]
    per_layer = kind.weights(residual, model.width)
    final = kind.final_weights(residual, model.width)
    table = Weight("table", model.vocabulary * model.width, value_bytes(model.table_format), "tp", active=0)
    found["residual"] = (counts[LAYER], per_layer)
    found["residual_final"] = (1, final)
    found["embedding"] = (1, [table])
    if not model.tied_embeddings:
        found["head"] = (1, [Weight("table", table.parameters, table.value_bytes, "tp")])
    return found


def totals(model: Model) -> Totals:
    """The sums over all groups."""
    by_group = {name: round(count * parameters(weights)) for name, (count, weights) in groups(model).items()}
    by_group["residual"] += by_group.pop("residual_final")
    text = sum(count * stored_bytes(weights) for count, weights in groups(model).values())
    active = sum(count * active_parameters(weights) for count, weights in groups(model).values())
    if model.tied_embeddings:
        active += by_group["embedding"]
    parts = {part: [e for e in model.extras.values() if e.part == part] for part in ("vision", "draft", "padding")}
    stored = {part: sum(e.parameters * value_bytes(e.format) for e in extras) for part, extras in parts.items()}
    return Totals(
        params_by_group=by_group,
        total_params=sum(by_group.values()),
        active_params=round(active),
        text_bytes=text + stored["padding"],
        vision_bytes=stored["vision"],
        draft_bytes=stored["draft"],
        draft_params=sum(e.parameters for e in parts["draft"]),
        extra_params=sum(e.parameters for e in model.extras.values()),
    )


@dataclass(frozen=True)
class CacheSizes:
    """One sequence, all layers, one copy: bytes per token, per token while windows fill, constant (windows full).

    draft_per_token: bytes per token of the draft layers' own cache; None where the record gives no attention of theirs.
    """

    per_token: float
    per_token_in_window: float
    constant: float
    draft_per_token: float | None


def cache_sizes(model: Model, kv_format: str, state_format: str) -> CacheSizes:
    """What a sequence keeps at these formats."""
    on = SimpleNamespace(
        layout=SimpleNamespace(tp=1, dp=1, cp=1, dcp=1),
        ranks=SimpleNamespace(shards=SimpleNamespace(count=1)),
        ask=SimpleNamespace(
            kv_format=kv_format,
            kv_value_bytes=value_bytes(kv_format),
            state_value_bytes=value_bytes(state_format),
        ),
        stack=SimpleNamespace(activation_value_bytes=value_bytes("bf16")),
        model=SimpleNamespace(width=model.width),
    )
    counts = whole_model(model)
    growing = windowed = constant = 0.0
    for name, attention in model.attention.items():
        kind, group = ATTENTION[attention.kind], numbers(attention)
        group.__dict__.update(kind.sizes(Numbers(prefix=name), group, on))
        kept = kind.cache(group, on)
        growing += counts[name] * kept.growing
        windowed += counts[name] * kept.windowed
        constant += counts[name] * (kept.windowed * kept.window + kept.constant)
    drafted: list[float] = []
    for layer in (layer for extra in model.extras.values() for layer in extra.attention):
        kind, group = ATTENTION[layer.kind], numbers(layer)
        group.__dict__.update(kind.sizes(Numbers(prefix="draft"), group, on))
        drafted.append(kind.cache(group, on).growing)
    return CacheSizes(growing, windowed, constant, sum(drafted) if drafted else None)
