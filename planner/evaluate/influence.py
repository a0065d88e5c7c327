"""Which estimated inputs an answer used, and how far each alone moves it.

Every uncertain leaf is set to its low and to its high while the others keep their value: one more axis through the same
formulas. A leaf that moves no headline was not used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.evaluate.grid import evaluate
from planner.evaluate.inputs import Leaf
from planner.model.structure import Structure

LEAST, DIGITS = 1e-9, 12
"""A smaller relative change is rounding; digits kept of a change."""


def swung(leaves: dict[str, Leaf]) -> tuple[list[str], dict[str, Any]]:
    """(names of the uncertain leaves, their values with one leaf swung per row: low and high in turn)."""
    names = [name for name in sorted(leaves) if leaves[name].uncertain]
    values: dict[str, Any] = {}
    for i, name in enumerate(names):
        column = np.full((2 * len(names), 1), leaves[name].value)
        column[2 * i], column[2 * i + 1] = leaves[name].low, leaves[name].high
        values[name] = column
    return names, values


def assumptions(
    shape: Structure, values: dict[str, Any], raw: dict[str, Any], leaves: dict[str, Leaf], wanted: dict[str, str]
) -> list[list[dict[str, Any]]]:
    """Per point, the estimates used: name, value, range, source, and `effect`, headline -> change at low and at high.

    A change is relative: 0.1 means 10 % more. Rows come with the strongest effect first.
    """
    names, columns = swung(leaves)
    keep = frozenset(wanted.values())
    swings = evaluate(shape, {**values, **columns}, raw, keep)
    central = evaluate(shape, values, raw, keep)
    points = max(np.size(v) for v in central.values())
    change = {}
    for key, name in wanted.items():
        base = np.broadcast_to(central[name], (points,))
        moved = np.broadcast_to(swings[name], (2 * len(names), points))
        change[key] = np.round(np.where(base == 0, 0.0, moved / np.where(base == 0, 1, base) - 1), DIGITS)
    return [used(leaves, names, {key: table[:, point] for key, table in change.items()}) for point in range(points)]


def used(leaves: dict[str, Leaf], names: list[str], change: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of one point."""
    rows = []
    for i, name in enumerate(names):
        effect = {key: [float(column[2 * i]), float(column[2 * i + 1])] for key, column in change.items()}
        effect = {key: pair for key, pair in effect.items() if max(map(abs, pair)) > LEAST}
        if not effect:
            continue
        leaf = leaves[name]
        rows.append({
            "name": name, "value": leaf.value, "low": leaf.low, "high": leaf.high, "unit": leaf.unit,
            "status": leaf.status, "source": leaf.source, "effect": effect,
        })  # fmt: skip
    return sorted(rows, key=lambda row: (-strength(row), row["name"]))


def strength(row: dict[str, Any]) -> float:
    """The largest change of any headline."""
    return max(max(map(abs, pair)) for pair in row["effect"].values())
