"""Layers as a list -> groups of equal layers -> Model.

A family gives one attention record and one feed-forward record per layer, as plain dicts without `layers`. Equal dicts
form a group; groups are named by kind, numbered where a kind occurs more than once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from planner.errors import BadSpec, shown
from planner.specs.huggingface.config import Config, noted
from planner.specs.huggingface.rope import context_of
from planner.specs.library import describe
from planner.specs.model import Model

Part = dict[str, Any]
LONG_RANGE = 20  # letters of a list of layers above which it is written as "rest"


@dataclass
class Network:
    """What a family reads: per layer (attention, feed-forward), the rest of the model, what was assumed on the way.

    tied: what the architecture takes where the config leaves the key out.
    """

    layers: list[tuple[Part, Part]]
    table_format: str
    residual: Part = field(default_factory=lambda: {"kind": "plain", "vector_format": "bf16"})
    extras: dict[str, Part] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    width: int | None = None
    tied: bool = False
    cache_format: str | None = None


def model_of(config: Config, network: Network, name: str, source: str) -> Model:
    """The record. Raises BadSpec where the parts do not make one."""
    longest, scaled = context_of(config)
    data: Part = {
        "name": name,
        "title": name,
        "source": source,
        "layers": len(network.layers),
        "width": network.width or config.count("hidden_size", "d_model", "n_embd"),
        "vocabulary": config.count("vocab_size"),
        "max_context": longest,
        "context_note": scaled,
        "tied_embeddings": tied(config, network.tied),
        "table_format": network.table_format,
        "attention": grouped("attention", [attention for attention, _ in network.layers]),
        "feed_forward": grouped("feed_forward", [feed for _, feed in network.layers]),
        "residual": network.residual,
        "cache_format": network.cache_format,
        "extras": network.extras,
    }
    data["note"] = " ".join([*network.notes, *noted(config)])
    try:
        return Model.model_validate(data)
    except ValidationError as error:
        raise BadSpec(config.where, *describe(error, Model, data)) from None


def tied(config: Config, default: bool) -> bool:
    """Whether the head is the embedding; the outer config decides where both say."""
    value = config.root.get("tie_word_embeddings")
    value = config.data.get("tie_word_embeddings") if value is None else value
    if value is None:
        return default
    if not isinstance(value, bool):
        raise config.wrong("tie_word_embeddings", f"{shown(value)} is not true or false")
    return value


def grouped(kind: str, parts: list[Part]) -> dict[str, Part]:
    """Groups of equal parts with the layers each covers."""
    found: dict[str, tuple[Part, list[int]]] = {}
    for index, part in enumerate(parts):
        key = json.dumps(part, sort_keys=True)
        found.setdefault(key, (part, []))[1].append(index)
    names = named([part for part, _ in found.values()], kind)
    texts = [ranges(indices) for _, indices in found.values()]
    longest = max(texts, key=len)
    if len(texts) > 1 and len(longest) > LONG_RANGE:
        texts[texts.index(longest)] = "rest"
    each = zip(names, (part for part, _ in found.values()), texts, strict=True)
    return {name: {**part, "layers": text} for name, part, text in each}


def named(parts: list[Part], kind: str) -> list[str]:
    """A name per group: its kind ('sliding' for a window, 'no_...' for none), numbered where it would repeat."""
    plain = []
    for part in parts:
        name = str(part["kind"])
        if part.get("window") is not None:
            name = "sliding"
        if name == "none":
            name = f"no_{kind}"
        plain.append(name)
    counted: dict[str, int] = {}
    found = []
    for name in plain:
        counted[name] = counted.get(name, 0) + 1
        found.append(f"{name}_{counted[name]}" if plain.count(name) > 1 else name)
    return found


def ranges(indices: Iterable[int]) -> str:
    """Layer indices in short: [0, 1, 2, 5, 9, 13] -> '0-2, 5-13/4'. A step is used only for three layers or more."""
    left = sorted(indices)
    parts = []
    start = 0
    while start < len(left):
        step = left[start + 1] - left[start] if start + 1 < len(left) else 1
        stop = start
        while stop + 1 < len(left) and left[stop + 1] - left[stop] == step:
            stop += 1
        if step > 1 and stop - start < 2:
            stop = start
        run = str(left[start]) if stop == start else f"{left[start]}-{left[stop]}"
        parts.append(run + (f"/{step}" if step > 1 and stop > start else ""))
        start = stop + 1
    return ", ".join(parts)
