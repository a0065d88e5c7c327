"""Ranges: the estimated specs drawn together through the same formulas, draws being one more axis.

Each uncertain leaf lies between its low and high with its median at the value. The model's own error is one of them,
`stack.model_error`, which multiplies every time. Leaves of one `with_group` move together: they share the draw's
position, so that a fast chip is fast in every format; a group written with a minus moves against it. Draws are
stratified and shuffled with a fixed seed, so two runs give the same bytes. What is reported is the 10th to the 90th
percentile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.errors import BadInput
from planner.evaluate.grid import evaluate
from planner.evaluate.inputs import Leaf
from planner.model.structure import Structure

DRAWS = 512
SEED = 890
PERCENTILES = (10, 90)
FEWEST, MOST = 10, 100_000
"""Draws that give a percentile at all, and more than anybody needs."""
BLOCK = 1_000_000
"""Values of a quantity worked out together."""


def basis(count: int = DRAWS) -> str:
    """How ranges were drawn."""
    low, high = PERCENTILES
    return f"{low}th to {high}th percentile of {count} draws of the estimated specs and of the model's own error"


def draws_of(asked: int | None) -> int:
    """The draws asked for, or the usual number. Raises BadInput."""
    if asked is not None and not FEWEST <= asked <= MOST:
        raise BadInput(
            "--draws", f"{asked:,} is not within {FEWEST} to {MOST:,}", f"{DRAWS} is usual, 10,000 is smooth"
        )
    return DRAWS if asked is None else asked


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
    shape: Structure, values: dict[str, Any], raw: dict[str, Any], leaves: dict[str, Leaf], wanted: dict[str, str],
    count: int = DRAWS,
) -> dict[str, Any]:  # fmt: skip
    """[low, high] arrays of every wanted quantity, key -> (2, points); the value itself always lies within."""
    names = frozenset(wanted.values())
    central = evaluate(shape, values, raw, names)
    every, width = draws(leaves, count), max(1, BLOCK // max(np.size(v) for v in values.values()))
    parts = []
    for start in range(0, count, width):
        block = {name: column[start : start + width] for name, column in every.items()}
        parts.append(evaluate(shape, {**values, **block}, raw, names))
    result = {}
    for key, name in wanted.items():
        whole = [np.atleast_2d(part[name]) for part in parts]
        result[key] = band(whole[0] if len(whole) == 1 else np.concatenate(whole), central[name])
    return result


def band(drawn: Any, central: Any) -> Any:
    """[low, high] of draws on the first axis, widened to the central value."""
    low, high = np.percentile(drawn, PERCENTILES, axis=0)
    return np.asarray([np.minimum(low, central), np.maximum(high, central)])
