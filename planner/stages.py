"""Pipeline stages: contiguous runs of layers, as even as whole layers allow, and what each stage holds.

A stage is counted by what it holds of each layer group; of two stages the one that holds no more of anything can
never be the slowest nor the fullest and is dropped. Few remain (4 for Kimi K3), so a formula takes the maximum over
them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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


@dataclass(frozen=True)
class Stage:
    """The first of the stages that hold the same: its place, its layers, what it holds, how many are like it."""

    index: int
    layers: range
    held: Counts
    alike: int


def distinct(model: Model, pp: int) -> list[Stage]:
    """The distinct stages of a pipeline of `pp`, in order."""
    kinds = model.layer_kinds()
    size, extra = divmod(len(kinds), pp)
    found: list[Stage] = []
    start = 0
    for index in range(pp):
        layers = range(start, start + size + (1 if index < extra else 0))
        held = count(kinds[layers.start : layers.stop], model, index == 0, index == pp - 1)
        start = layers.stop
        same = next((place for place, stage in enumerate(found) if stage.held == held), None)
        if same is None:
            found.append(Stage(index, layers, held, 1))
        else:
            found[same] = replace(found[same], alike=found[same].alike + 1)
    return found


def heaviest(model: Model, pp: int) -> list[Counts]:
    """What the distinct stages hold that no other stage dominates."""
    found = [stage.held for stage in distinct(model, pp)]
    return [a for a in found if not any(a is not b and all(b[k] >= a[k] for k in a) for b in found)]
