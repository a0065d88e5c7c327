"""A metric over the values of one input: at the central values of all others, or as surely as a share of draws has it.

at a confidence c      the c-quantile of the metric over the draws where it is to be small, the (1 - c)-quantile where
                       it is to be large: what at least a share c of the draws does not miss
"""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.evaluate.case import Point
from planner.evaluate.grid import evaluate
from planner.evaluate.inputs import setting
from planner.evaluate.ranges import DRAWS, PERCENTILES, draws
from planner.evaluate.targets import Target
from planner.evaluate.variables import Variable, moved
from planner.model.deployment import deployment
from planner.quantities import Numbers

BLOCK = 8_192
DRAWN_BLOCK = 1_000_000
"""Values worked out together, and values times draws."""


class Curve:
    """The metric over values of the variable; nan where the formulas have no value. sure: the confidence, if any."""

    def __init__(
        self, point: Point, moving: Variable, goal: Target, known: list[str], sure: float | None = None
    ) -> None:
        self.point, self.moving, self.goal, self.sure = point, moving, goal, sure
        self.rows = frozenset(goal.metric.rows(point, known))
        self.others = {name: leaf for name, leaf in point.leaves.items() if name != moving.name}
        self.drawn = {} if sure is None else draws(self.others)

    def __call__(self, values: Any) -> Any:
        """The metric at each value."""
        width = BLOCK if self.sure is None else max(1, DRAWN_BLOCK // DRAWS)
        parts = [self.block(values[i : i + width]) for i in range(0, len(values), width)]
        return np.concatenate(parts)

    def block(self, values: Any) -> Any:
        """The metric at a block of values."""
        at = moved(self.point, self.moving.name, values)
        with np.errstate(all="ignore"):
            if self.goal.bound:
                on, say = setting(at.shape, at.values, at.raw), Numbers()
                deployment(say, at.shape, on)
                found = self.goal.value(say, on, at)
            else:
                found = self.metric(at, self.drawn)
        if self.sure is None:
            return np.broadcast_to(np.asarray(found, dtype=float), values.shape)
        every = np.broadcast_to(np.asarray(found, dtype=float), (DRAWS, len(values)))
        if self.goal.sense == "<=":
            return np.quantile(every, self.sure, axis=0, method="higher")
        return np.quantile(every, 1 - self.sure, axis=0, method="lower")

    def metric(self, at: Point, drawn: dict[str, Any]) -> Any:
        """The metric of a point, some inputs of which are drawn."""
        return self.goal.metric.value(evaluate(at.shape, {**at.values, **drawn}, at.raw, self.rows), at)

    def doubt(self, value: float) -> tuple[list[float] | None, float | None]:
        """(10th and 90th percentile of the metric at a value, share of the draws that meet the target)."""
        if self.goal.bound:
            return None, None
        found = np.asarray(self.metric(moved(self.point, self.moving.name, value), draws(self.others)), dtype=float)
        drawn = np.broadcast_to(found.reshape(-1), DRAWS) if found.size == 1 else found.ravel()
        low, high = (float(v) for v in np.percentile(drawn, PERCENTILES))
        return [low, high], float(np.mean(self.goal.meets(drawn)))
