"""What is structural: which kinds and groups there are. Every number stays a quantity.

Two deployments of one structure share every formula, and so one sheet and one compiled kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.kinds.attention import ATTENTION
from planner.kinds.attention.kind import AttentionKind
from planner.kinds.feedforward import FEED_FORWARD
from planner.kinds.feedforward.kind import FeedForwardKind
from planner.kinds.residual import RESIDUAL
from planner.kinds.residual.kind import ResidualKind
from planner.specs.model import Model
from planner.specs.own_draft import attention_layers, feed_forward_layers
from planner.stages import FIRST, LAST, LAYER, MIXED


@dataclass(frozen=True)
class Structure:
    """Groups by name with their kinds; how many distinct heaviest stages; the switches of the workload.

    draft_attention, draft_feed_forward: the checkpoint's own draft layers where they draft.
    """

    attention: tuple[tuple[str, AttentionKind], ...]
    feed_forward: tuple[tuple[str, FeedForwardKind], ...]
    residual: ResidualKind
    stages: int
    arrivals: Literal["steady", "waves"]
    speculates: bool
    draft_attention: tuple[tuple[str, AttentionKind], ...]
    draft_feed_forward: tuple[tuple[str, FeedForwardKind], ...]
    vision: bool
    tied: bool
    crosses_domains: bool

    @property
    def layers(self) -> tuple[tuple[str, AttentionKind | FeedForwardKind], ...]:
        """All groups of layers with their kinds, draft layers included."""
        return (*self.attention, *self.feed_forward, *self.draft_attention, *self.draft_feed_forward)

    @property
    def groups(self) -> tuple[str, ...]:
        """Everything a stage can hold, in order."""
        return (*(n for n, _ in self.attention), *(n for n, _ in self.feed_forward), LAYER, MIXED, FIRST, LAST)


def structure(
    model: Model, stages: int, arrivals: Literal["steady", "waves"], speculates: bool, vision: bool, crosses: bool
) -> Structure:
    """The structure of a model under a workload's switches."""
    own = speculates and model.draft is None
    drafts, feeds = (attention_layers(model), feed_forward_layers(model)) if own else ({}, {})
    return Structure(
        attention=tuple((name, ATTENTION[group.kind]) for name, group in model.attention.items()),
        feed_forward=tuple((name, FEED_FORWARD[group.kind]) for name, group in model.feed_forward.items()),
        residual=RESIDUAL[model.residual.kind],
        stages=stages,
        arrivals=arrivals,
        speculates=speculates,
        draft_attention=tuple((name, ATTENTION[layer.kind]) for name, layer in drafts.items()),
        draft_feed_forward=tuple((name, FEED_FORWARD[layer.kind]) for name, layer in feeds.items()),
        vision=vision,
        tied=model.tied_embeddings,
        crosses_domains=crosses,
    )
