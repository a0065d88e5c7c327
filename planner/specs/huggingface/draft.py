"""Draft layers in a checkpoint (multi-token prediction): counted exactly, apart from the model, by format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from planner.errors import BadSpec
from planner.kinds.attention import ATTENTION
from planner.kinds.feedforward import FEED_FORWARD
from planner.specs.huggingface.config import Config
from planner.specs.huggingface.network import Part
from planner.specs.library import describe
from planner.specs.model import named_formats

MATRICES = 2
"""A draft layer joins two vectors of the model's width: the hidden state and the next token's embedding."""


def counted(config: Config, parts: Iterable[Part], kinds: Any, width: int) -> dict[str, int]:
    """Parameters by format of attention or feed-forward parts, by the kinds' own weight groups. Raises BadSpec."""
    found: dict[str, int] = {}
    for part in parts:
        kind = kinds[part["kind"]]
        fields = {**part, "layers": "rest"}
        try:
            record = kind.record.model_validate(fields)
        except ValidationError as error:
            raise BadSpec(config.where, *describe(error, kind.record, fields)) from None
        for weight in kind.weights(named_formats(record), width):
            format = str(weight.value_bytes)
            found[format] = found.get(format, 0) + int(weight.parameters)
    return found


def draft_extras(
    config: Config,
    attention: list[Part],
    feed_forward: list[Part],
    others: list[tuple[int, str]],
    note: str,
    steps: int,
) -> dict[str, Part]:
    """Extras of part draft: layers by their parts, and other (parameters, format) such as norms and projections."""
    width = config.count("hidden_size")
    found = counted(config, attention, ATTENTION, width)
    for format, count in counted(config, feed_forward, FEED_FORWARD, width).items():
        found[format] = found.get(format, 0) + count
    for count, format in others:
        found[format] = found.get(format, 0) + count
    extras: dict[str, Part] = {
        f"draft_{format}": {"parameters": count, "format": format, "part": "draft", "note": note}
        for format, count in found.items()
        if count
    }
    for part in list(extras.values())[:1]:
        part["attention"] = [{**layer, "layers": "rest"} for layer in attention]
        part["feed_forward"] = [{**layer, "layers": "rest"} for layer in feed_forward]
        part["steps"] = steps
    return extras


def table_copies(config: Config, layers: int, format: str) -> dict[str, Part]:
    """Embedding and head stored again with every draft layer, and shared once loaded."""
    size = MATRICES * layers * config.count("vocab_size") * config.count("hidden_size")
    note = "the draft layers' copies of embedding and head: in the files, shared once loaded"
    return {"draft_tables": {"parameters": size, "format": format, "part": "padding", "note": note}}
