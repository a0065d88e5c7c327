"""How strongly each input moves an answer at a point: elasticities, d ln quantity / d ln input.

Exact: the sheet's formulas are differentiated by sympy, each by what it is made of, and joined by the chain rule, so
that nothing is estimated by small steps. A doubling of an input whose elasticity is -0.5 divides the quantity by about
the square root of two.
Ceilings, floors, largest-of and smallest-of have kinks. Away from one its derivative is that of the branch taken (0 for
a ceiling). Where the point lies on one, both sides are worked out apart: `below` as the input shrinks, `above` as it
grows, null where the quantity jumps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from planner.evaluate.case import Point
from planner.evaluate.estimate import SILENT
from planner.evaluate.grid import evaluate
from planner.evaluate.variables import movable

QUANTITIES = {
    "ttft": "serving_ttft_s",
    "tpot": "serving_tpot_s",
    "tok_s_per_chip": "serving_chip_tokens_per_s",
    "usd": "serving_cost_output_usd",
}
"""Key of the JSON -> the quantity behind it."""
STILL = 1e-9
"""A smaller elasticity, or difference of the two sides of a kink, is rounding."""


@dataclass(frozen=True)
class Elasticities:
    """Input -> key -> elasticity (null on a jump with no smooth side), and the inputs on whose kink the point lies."""

    values: dict[str, dict[str, float | None]]
    kinks: list[dict[str, Any]]


def asked_quantities(point: Point) -> dict[str, str]:
    """The headline quantities that mean something here: one output token has no time between tokens."""
    return {key: name for key, name in QUANTITIES.items() if name not in SILENT or point.values["ask.osl"] > 1}


def elasticities(point: Point) -> Elasticities:
    """Elasticities of the headline quantities in every input of specs and workload."""
    from planner.evaluate.tape import Tape

    tape = Tape(point, tuple(QUANTITIES.values()))
    said = asked_quantities(point)
    found: dict[str, dict[str, float | None]] = {}
    kinks = []
    for name in movable(point.leaves):
        above = tape.tangents(name, 1.0)
        below = tape.tangents(name, -1.0) if tape.kinked else above
        found[name] = {}
        for key, quantity in QUANTITIES.items():
            up, down = (None if math.isnan(side[quantity]) else side[quantity] for side in (above, below))
            down = None if down is None else (0.0 - down if tape.kinked else down)
            both = [side for side in (down, up) if side is not None]
            found[name][key] = None if key not in said or not both else sum(both) / len(both) + 0.0
            apart = len(both) < 2 or abs(both[0] - both[1]) > STILL * max(abs(both[0]), abs(both[1]), STILL)
            if apart and key in said:
                kinks.append({"input": name, "quantity": key, "below": down, "above": up})
    return Elasticities(found, kinks)


def strongest(values: dict[str, dict[str, float | None]]) -> list[str]:
    """Inputs that move anything, the largest elasticity first."""
    size = {name: max((abs(v) for v in row.values() if v is not None), default=0.0) for name, row in values.items()}
    return sorted((name for name in size if size[name] > STILL), key=lambda name: (-size[name], name))


def one_more(point: Point) -> dict[str, Any]:
    """What one more request in every attention group does: how many requests that are, and key -> relative change.

    The load enters through the requests of the fullest group, a whole number: between two of them the elasticity says
    how little one request more costs while there is room, and at the next it jumps. This is a whole step.
    """
    requests = point.values["layout.dp"] * point.values["layout.replicas"]
    said = asked_quantities(point)
    names = frozenset(said.values())
    now = evaluate(point.shape, point.values, point.raw, names)
    load = point.values["ask.concurrency"] + requests
    then = evaluate(point.shape, {**point.values, "ask.concurrency": load}, point.raw, names)
    effect = {key: float(then[name]) / float(now[name]) - 1 for key, name in said.items()}
    return {"requests": int(requests), "effect": effect}
