"""Ranges: the estimated specs drawn together through the same formulas, draws being one more axis.

Each uncertain leaf lies between its low and high with its median at the value. Leaves of one `with_group` move
together: they share the draw's position, so that a fast chip is fast in every format; a group written with a minus
moves against it. Draws are stratified and shuffled with a fixed seed, so two runs give the same bytes. What is reported
is the 10th to the 90th percentile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.evaluate.grid import evaluate
from planner.evaluate.inputs import Leaf
from planner.model.structure import Structure

DRAWS = 512
SEED = 890
PERCENTILES = (10, 90)
BASIS = (
    f"{PERCENTILES[0]}th to {PERCENTILES[1]}th percentile of {DRAWS} draws of the estimated specs; "
    "the model's own error apart"
)


def spread(position: Any, leaf: Leaf) -> Any:
    """The value at a position in 0..1: half of the mass on each side, each side triangular with its peak at the value.

    x = value - (value - low) (1 - sqrt(2 p))          p < 1/2
    x = value + (high - value) (1 - sqrt(2 (1 - p)))   otherwise
    """
    below = leaf.value - (leaf.value - leaf.low) * (1 - np.sqrt(2 * np.minimum(position, 0.5)))
    above = (leaf.high - leaf.value) * (1 - np.sqrt(2 * (1 - np.maximum(position, 0.5))))
    return below + above


def draws(leaves: dict[str, Leaf], count: int = DRAWS) -> dict[str, Any]:
    """`count` values of every uncertain leaf, shape (count, 1)."""
    generator = np.random.default_rng(SEED)
    groups: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for name in sorted(leaves):
        leaf = leaves[name]
        if not leaf.uncertain:
            continue
        key = leaf.with_group.removeprefix("-") or name
        if key not in groups:
            groups[key] = (generator.permutation(count) + 0.5) / count
        position = 1 - groups[key] if leaf.with_group.startswith("-") else groups[key]
        found[name] = spread(position, leaf)[:, None]
    return found


def ranges(
    shape: Structure, values: dict[str, Any], raw: dict[str, Any], leaves: dict[str, Leaf], wanted: dict[str, str]
) -> dict[str, Any]:
    """[low, high] arrays of every wanted quantity, key -> (2, points); the value itself always lies within."""
    names = frozenset(wanted.values())
    drawn = evaluate(shape, {**values, **draws(leaves)}, raw, names)
    central = evaluate(shape, values, raw, names)
    result = {}
    for key, name in wanted.items():
        low, high = np.percentile(np.atleast_2d(drawn[name]), PERCENTILES, axis=0)
        result[key] = np.asarray([np.minimum(low, central[name]), np.maximum(high, central[name])])
    return result
