"""Every named quantity scales as the unit its name ends in: a number hidden in a formula would not."""

import math
import sys

import pytest
from deployments import DEPLOYMENTS, NAMES, Deployment

from planner.evaluate.case import Point
from planner.evaluate.estimate import run
from planner.quantities import unit_of

FACTORS = {"s": 3.0, "B": 7.0, "FLOP": 11.0, "USD": 13.0, "W": 17.0, "1": 1.0}
RTOL = 1e-9


def factor(unit: str, scaled: frozenset[str]) -> float:
    """What a quantity of this unit is multiplied by when these base units are scaled."""
    above, _, below = unit.partition("/")
    return (FACTORS[above] if above in scaled else 1.0) / (FACTORS[below] if below in scaled else 1.0)


def quantities(point: Point, scaled: frozenset[str] = frozenset()) -> dict[str, float]:
    """Every named quantity with all inputs in the scaled base units multiplied; layouts are pure numbers."""
    values = dict(point.values)
    for name, leaf in point.leaves.items():
        values[name] *= factor(leaf.unit, scaled)
    return {name: row.value for name, row in run(Point(point.shape, values, point.raw, point.leaves))[0].rows.items()}


@pytest.mark.parametrize("base", ["s", "B", "FLOP", "USD"])
@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=NAMES)
def test_quantities_scale_as_their_units(deployment: Deployment, base: str) -> None:
    """Scaling all inputs in one base unit scales every quantity by the power of it that its unit holds."""
    scale = frozenset({base})
    plain, scaled = quantities(deployment.point), quantities(deployment.point, scale)
    largest: dict[str, float] = {}
    for name, value in plain.items():
        largest[unit_of(name)] = max(largest.get(unit_of(name), 0.0), abs(value))
    wrong = {}
    for name, value in plain.items():
        times = factor(unit_of(name), scale)
        rounding = sys.float_info.epsilon * largest[unit_of(name)] * times  # of a difference that vanishes
        if not math.isclose(scaled[name], value * times, rel_tol=RTOL, abs_tol=rounding):
            wrong[name] = (value, scaled[name])
    assert wrong == {}


def test_every_input_has_a_known_unit() -> None:
    """An input of a unit this test does not scale would hide a literal."""
    for deployment in DEPLOYMENTS:
        for name, leaf in deployment.point.leaves.items():
            parts = leaf.unit.split("/")
            assert all(part in FACTORS for part in parts), f"{name}: {leaf.unit}"


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("rate_dense_stream_bytes_per_s", "B/s"),
        ("decode_kda_core_flops", "FLOP"),
        ("serving_cost_bill_usd_per_s", "USD/s"),
        ("serving_cost_output_usd", "USD"),
        ("serving_tokens_per_s", "1/s"),
        ("memory_requests", "1"),
        ("decode_step_s", "s"),
    ],
)
def test_a_name_says_its_unit(name: str, unit: str) -> None:
    """The longest suffix decides, so that a rate is never taken for a duration."""
    assert unit_of(name) == unit
