"""A network as a record: groups of layers by attention kind and by feed-forward kind, residual, tables, formats."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, Literal

from pydantic import Field, model_validator

from planner.errors import nearest
from planner.kinds.attention import ATTENTION, Attention
from planner.kinds.feedforward import FEED_FORWARD, FeedForward
from planner.kinds.formats import FormatName
from planner.kinds.residual import Residual
from planner.record import Count, Record

GROUP = re.compile(r"^[a-z][a-z0-9_]{0,39}$", re.ASCII)
RESERVED = frozenset({
    "model", "chip", "system", "stack", "kernel", "link", "layout", "ask", "constant", "count", "residual", "draft",
    "basis", "layer", "mixed", "embedding", "head", "hop", "once", "prompt", "group", "rate", "ranks", "memory",
    "prefill", "saturated", "decode", "serving",
})  # fmt: skip
"""Names that quantities and inputs begin with, which a group of layers may not take."""
DRAFTED = "draft_"
"""What the names of a checkpoint's own draft layers begin with."""
MOST_LAYERS = 2000
"""Far above any network, and few enough that every way to cut them into stages is soon tried."""
RANGE = re.compile(r"^(\d{1,5})(?:-(\d{1,5})(?:/(\d{1,5}))?)?$", re.ASCII)


class Extra(Record):
    """Parameters stored beside the text model's layers.

    part: vision (towers and projectors, held by the first stage when vision is served), draft (MTP and other draft
    layers, counted apart), padding (in the files, never loaded; counted with the text's bytes, not its parameters).
    """

    parameters: Count
    format: FormatName
    part: Literal["vision", "draft", "padding"]
    note: str = ""
    attention: list[Attention] = Field(
        default=[], description="attention of each draft layer, whose cache drafting adds"
    )
    feed_forward: list[FeedForward] = Field(default=[], description="feed-forward of each draft layer")
    steps: Count = Field(default=1, description="draft steps whose layers these are: a pass runs those of one")


class Published(Record):
    """What the maker states, to hold the derived figures against."""

    total_params: float
    active_params: float
    active_convention: str
    source: str


class Draft(Record):
    """A draft model for speculative decoding: read whole once per verify step."""

    title: str
    parameters: Count
    layers: Count
    format: FormatName
    source: str


class Model(Record):
    """One network. Layer indices are 0-based; attention groups partition the layers, and so do feed-forward groups."""

    name: str = Field(min_length=1)
    title: str
    source: str = Field(min_length=1)
    note: str = ""
    layers: Count
    width: Count
    vocabulary: Count
    max_context: Count
    context_note: str = Field(default="", description="how the longest context comes about, such as by a scaling")
    tied_embeddings: bool
    table_format: FormatName = Field(description="format of embedding and head")
    cache_format: FormatName | None = Field(default=None, description="format the checkpoint asks its cache to have")
    attention: dict[str, Attention] = Field(min_length=1)
    feed_forward: dict[str, FeedForward] = Field(min_length=1)
    residual: Residual
    extras: dict[str, Extra] = Field(default={}, description="vision towers, projectors, padding in the checkpoint")
    draft: Draft | None = None
    published: Published | None = None

    @model_validator(mode="after")
    def partition(self) -> Model:
        """Each layer has one attention and one feed-forward."""
        for part, groups in (("attention", self.attention), ("feed_forward", self.feed_forward)):
            assign(part, {name: group.layers for name, group in groups.items()}, self.layers)
        for name in (*self.attention, *self.feed_forward):
            if not GROUP.match(name) or name in RESERVED or name.startswith(DRAFTED):
                raise ValueError(
                    f"{name!r} cannot name a group of layers: use small letters, digits and _, and no reserved word"
                )
        both = set(self.attention) & set(self.feed_forward)
        if both:
            raise ValueError(f"{sorted(both)[0]} names both an attention and a feed-forward group")
        mixed = getattr(self.residual, "layers", self.layers)
        if mixed != self.layers:
            raise ValueError(f"residual.layers is {mixed}, and the model has {self.layers}")
        return self

    @model_validator(mode="after")
    def overridden(self) -> Model:
        """Every override names a weight group its layer has."""
        layers: list[tuple[str, Any, Any]] = [
            *((f"attention.{name}", ATTENTION, layer) for name, layer in self.attention.items()),
            *((f"feed_forward.{name}", FEED_FORWARD, layer) for name, layer in self.feed_forward.items()),
            *(
                (f"extras.{n}.attention", ATTENTION, layer)
                for n, extra in self.extras.items()
                for layer in extra.attention
            ),
            *(
                (f"extras.{n}.feed_forward", FEED_FORWARD, layer)
                for n, extra in self.extras.items()
                for layer in extra.feed_forward
            ),
        ]
        for where, kinds, layer in layers:
            known = [weight.name for weight in kinds[layer.kind].weights(named_formats(layer), self.width)]
            for group in layer.overrides:
                if group not in known:
                    raise ValueError(f"{where}.overrides: no weight group {group!r} ({nearest(group, known)})")
        return self

    def layer_kinds(self) -> list[tuple[str, str]]:
        """(attention group, feed-forward group) of every layer in order."""
        attention = assign("attention", {n: g.layers for n, g in self.attention.items()}, self.layers)
        feed_forward = assign("feed_forward", {n: g.layers for n, g in self.feed_forward.items()}, self.layers)
        return list(zip(attention, feed_forward, strict=True))


def named_formats(record: Any) -> Any:
    """A record's fields, its formats by name where formulas ask for bytes: weights only carry them along."""
    fields = {name: getattr(record, name) for name in type(record).model_fields}
    bytes_of = {
        name.removesuffix("format") + "value_bytes": value for name, value in fields.items() if name.endswith("format")
    }
    overrides = {f"{group}_value_bytes": format for group, format in fields["overrides"].items()}
    return SimpleNamespace(**fields, **{**bytes_of, **overrides})


def indices(text: str, count: int) -> list[int]:
    """'3-91/4, 92' -> [3, 7, ..., 91, 92]."""
    found: list[int] = []
    for part in text.split(","):
        match = RANGE.match(part.strip())
        if match is None:
            raise ValueError(f"layers: {part.strip()!r} is not an index, a range 'a-b' or a stepped range 'a-b/s'")
        start, stop, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if stop < start or step < 1 or stop >= count:
            raise ValueError(f"layers: {part.strip()!r} is not within 0-{count - 1}")
        found += range(start, stop + 1, step)
    return found


def assign(part: str, groups: dict[str, str], count: int) -> list[str]:
    """The group of every layer; at most one group says 'rest'."""
    if count > MOST_LAYERS:
        raise ValueError(f"layers: {count} is more than the {MOST_LAYERS} this planner reads")
    owner: list[str | None] = [None] * count
    rest = [name for name, text in groups.items() if text.strip() == "rest"]
    if len(rest) > 1:
        raise ValueError(f"{part}: {rest[0]} and {rest[1]} both take the rest of the layers")
    for name, text in groups.items():
        if name in rest:
            continue
        for index in indices(text, count):
            if owner[index] is not None:
                raise ValueError(f"{part}: layer {index} is in {owner[index]} and in {name}")
            owner[index] = name
    named = [name if name is not None else (rest[0] if rest else "") for name in owner]
    if "" in named:
        raise ValueError(f"{part}: layer {named.index('')} is in no group")
    unused = set(groups) - set(named)
    if unused:
        raise ValueError(f"{part}: {sorted(unused)[0]} has no layer")
    return named
