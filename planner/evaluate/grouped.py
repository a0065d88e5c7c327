"""Deployments of one structure priced together: their inputs as arrays over the rows, every formula run once.

Rows of one structure (the same kinds, stages, switches and structural values) differ in numbers alone. What no row
varies stays a scalar.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from planner.evaluate.case import Point
from planner.evaluate.grid import Arrays, evaluate

TEXTS = ("name", "title", "note", "source", "kernel", "library", "vendor", "fabric", "chip_family", "layers", "stack",
         "chip", "memory_policy", "basis", "servers")  # fmt: skip
"""Structural values no formula reads: two rows that differ in them alone share an evaluation."""


def structure_key(point: Point) -> tuple[Any, ...]:
    """What two rows must share to be evaluated together."""
    raw = tuple(sorted((name, str(value)) for name, value in point.raw.items() if name.rpartition(".")[2] not in TEXTS))
    return (point.shape, raw, tuple(sorted(point.values)))


@dataclass
class Group:
    """Rows of one structure. index: their places in the list; values: arrays over the rows, or scalars."""

    first: Point
    index: list[int]
    values: dict[str, Any]

    def run(self, changes: Mapping[str, Any], wanted: frozenset[str]) -> Arrays:
        """The wanted quantities of every row under changed inputs."""
        found = evaluate(self.first.shape, {**self.values, **changes}, self.first.raw, wanted)
        return {name: np.broadcast_to(value, len(self.index)) for name, value in found.items()}


def by_structure(points: Iterable[Point]) -> list[Group]:
    """Rows by structure; points that share one structure and one mapping of structural values are compared once."""
    found: dict[Any, list[tuple[int, Point]]] = {}
    known: dict[tuple[int, int], list[tuple[int, Point]]] = {}
    for position, point in enumerate(points):
        held = (id(point.raw), id(point.shape))
        if held not in known:
            known[held] = found.setdefault(structure_key(point), [])
        known[held].append((position, point))
    return [group_of(members) for members in found.values()]


def group_of(members: list[tuple[int, Point]]) -> Group:
    """Rows of one structure as arrays."""
    names = list(members[0][1].values)
    take = itemgetter(*names)
    columns = np.array([take(point.values) for _, point in members]).T
    scalar = (columns == columns[:, :1]).all(axis=1)
    values = {n: c[0].item() if one else c for n, c, one in zip(names, columns, scalar, strict=True)}
    return Group(members[0][1], [position for position, _ in members], values)
