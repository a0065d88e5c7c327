"""Pipeline stages: contiguous runs of layers, as even as whole layers allow, and what each stage holds.

A stage is counted by what it holds of each layer group; of two stages the one that holds no more of anything can
never be the slowest nor the fullest and is dropped. Few remain (4 for Kimi K3), so a formula takes the maximum over
them.
"""

from __future__ import annotations

from planner.specs.model import Model

LAYER, MIXED, FIRST, LAST, DRAFT = "layer", "mixed", "embedding", "head", "draft"
"""Groups beside the model's own: every layer, every layer with attention, the first stage, the last stage,
passes over draft layers.

A layer that has only attention or only a feed-forward counts as half a layer.
"""

NONE = "none"
"""The kind that stands for a sublayer that is not there."""

Counts = dict[str, float]


def groups(model: Model) -> list[str]:
    """Names of everything a stage can hold, in order."""
    return [*model.attention, *model.feed_forward, LAYER, MIXED, FIRST, LAST]


def count(kinds: list[tuple[str, str]], model: Model, first: bool, last: bool) -> Counts:
    """What a run of layers holds."""
    found: Counts = dict.fromkeys(groups(model), 0)
    for attention, feed_forward in kinds:
        found[attention] += 1
        found[feed_forward] += 1
        mixes = model.attention[attention].kind != NONE
        found[MIXED] += mixes
        found[LAYER] += (mixes + (model.feed_forward[feed_forward].kind != NONE)) / 2
    return {**found, FIRST: int(first), LAST: int(last)}


def whole_model(model: Model) -> Counts:
    """What all stages hold together."""
    return count(model.layer_kinds(), model, True, True)


def heaviest(model: Model, pp: int) -> list[Counts]:
    """The distinct stages of a pipeline of `pp` that no other stage dominates."""
    kinds = model.layer_kinds()
    size, extra = divmod(len(kinds), pp)
    found: list[Counts] = []
    start = 0
    for stage in range(pp):
        stop = start + size + (1 if stage < extra else 0)
        held = count(kinds[start:stop], model, stage == 0, stage == pp - 1)
        start = stop
        if held not in found:
            found.append(held)
    return [a for a in found if not any(a is not b and all(b[k] >= a[k] for k in a) for b in found)]
