"""The other way round: the value of one input at which a target is just met.

    x* = the last value, coming from where the target is met, that still meets it

A scan over the input's legal range (where that has no end, a million times its value), evenly in its logarithm, finds
where the target turns; each round then cuts the bracket into 64 until a continuous value is known to 1e-12 and a count
exactly. Everything runs through the same formulas on arrays. Counts enter through ceilings and so metrics may dip:
around a count's answer every whole number of a window is tried and the furthest one that meets the target is taken. A
continuous metric that meets its target on several stretches has no one answer, and is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.errors import BadInput, Infeasible
from planner.evaluate import breakdown
from planner.evaluate.case import Point, check_load, placed
from planner.evaluate.curve import Curve
from planner.evaluate.estimate import SILENT, check_says, memory_of, run
from planner.evaluate.inputs import Case
from planner.evaluate.ranges import DRAWS
from planner.evaluate.results import Result
from planner.evaluate.targets import Target, target
from planner.evaluate.variables import ENDLESS, REACH, Variable, moved, variable
from planner.layout import Layout
from planner.quantities import Say
from planner.specs.hardware import System
from planner.specs.model import Model
from planner.specs.stack import Stack
from planner.specs.workload import Workload
from planner.units import show

SCAN, NEAR, NEAR_BY, CUTS = 480, 240, 100, 64
"""Values tried over the whole range, more within a factor of the present value, and per round."""
RTOL, FLAT, STILL, NEXT_TO = 1e-12, 1e-9, 1e-4, 0.01
"""A bracket this narrow is one value; a smaller relative change is rounding; a smaller one at an end of the range is
nothing; a limit this close to the best is next to it."""
WINDOW = 65_536
"""Whole numbers tried beyond a count's answer."""
FLOOR = "_floor_s"
"""Bounds of operators at peak rates, which a float run alone keeps."""


@dataclass(frozen=True)
class Solution(Result):
    """`planner solve`.

    variable: as asked, input: its dotted name. extreme: whether value is the smallest or the largest that meets the
    target. reached: the metric there; neighbour: the next whole number, which misses it. binding: the bound that takes
    most of the metric's work there, memory or the limit of the variable; operator: what takes most, and its share.
    fits: the requests in flight fit in memory there. present: the value now, null where none was given. words: values
    of the metric as people read them. reached_range: the 10th to 90th percentile of the metric there over draws of
    every other uncertain input; met_fraction: the share of them that meets the target; null for a bound. close: said
    where the limit is next to the best that any value gives.
    """

    model: str
    system: str
    stack: str
    layout: str
    variable: str
    input: str
    value: float
    unit: str
    extreme: str
    target: str
    metric: str
    metric_unit: str
    limit: float
    reached: float
    present: float | None
    present_reached: float | None
    neighbour: dict[str, float] | None
    binding: str
    operator: str
    operator_share_fraction: float
    fits: bool
    spec_range: list[float] | None
    reached_range: list[float] | None
    met_fraction: float | None
    expected_error: dict[str, Any]
    confidence_fraction: float | None
    close: str
    sentence: str
    words: dict[str, str]


def solve(
    model: str | Model,
    system: str | System,
    layout: str | Layout,
    workload: Workload,
    variable: str,
    target: str,
    *,
    stack: str | Stack | None = None,
    chips: int | None = None,
    confidence: float | None = None,
    given: bool = True,
) -> Solution:
    """The value of one input at which a target is just met. Raises BadInput leaves, Infeasible.

    confidence: the share of the draws of all other uncertain inputs in which it is to be met (None: at their central
    values). given: the workload's own value of the variable means something; else it only stands in.
    """
    case, found, _, point = placed(model, system, layout, workload, stack, chips)
    check_load(workload)
    answer = solved(case, str(found), workload, point, variable, target, confidence)
    if given:
        return answer
    return replace(answer, present=None, present_reached=None, words={**answer.words, "present": ""})


def solved(
    case: Case, layout: str, workload: Workload, point: Point, asked: str, text: str, sure: float | None = None
) -> Solution:
    """The answer for a deployment that is looked up."""
    moving = variable(asked, case, workload, point)
    known = [name for name in run(point)[0].rows if not name.endswith(FLOOR)]
    goal = target(text, known)
    asked_of = goal.metric.rows(point, known)
    if moving.name == "ask.osl" and any(name in SILENT for name in asked_of):
        moving = replace(moving, low=max(moving.low, 2.0))
    else:
        check_says(asked_of, workload.osl)
    if goal.bound and sure is not None:
        raise BadInput("--confidence", "a bound is a matter of one deployment, not of draws", "leave it out")
    curve = Curve(point, moving, goal, known, sure)
    tried = samples(moving)
    values = curve(tried)
    check_depends(values, moving, goal)
    met = goal.meets(values)
    if not met.any():
        raise out_of_reach(case, point, moving, goal, tried, values, sure)
    if met.all():
        value, rising = unbounded_end(moving, goal, values)
        return answer(case, layout, workload, curve, value, rising, None, values)
    rising, good, bad = turn(tried, met, moving, goal)
    good, bad = narrowed(curve, good, bad, goal)
    if moving.whole:
        good, bad = furthest(curve, good, bad, goal)
    return answer(case, layout, workload, curve, good, rising, bad if moving.whole else None, values)


def samples(moving: Variable) -> Any:
    """Values over the legal range, evenly in the logarithm, closer around the present value, ends included."""
    size, low, high = moving.size, moving.least, moving.most
    near = np.geomspace(size / NEAR_BY, size * NEAR_BY, NEAR)
    far = np.geomspace(low or size / REACH, high, SCAN)
    every = np.clip(np.concatenate([[low, high], far, near]), low, high)
    return np.unique(np.rint(every) if moving.whole else every)


def check_depends(values: Any, moving: Variable, goal: Target) -> None:
    """The metric moves with the variable. Raises BadInput."""
    finite = values[np.isfinite(values)]
    if finite.size and np.ptp(finite) > FLAT * np.max(np.abs(finite)):
        return
    always = f": it is {goal.shown(float(finite[0]))} throughout" if finite.size else ""
    what = f"{goal.name} does not depend on {moving.name} in this deployment{always}"
    raise BadInput("--for", what, "`planner explain --sensitivities` lists what moves what")


def unbounded_end(moving: Variable, goal: Target, values: Any) -> tuple[float, bool]:
    """(the end of the legal range where the target is nearest, whether larger is better), all values meeting it."""
    better = values[-1] < values[0] if goal.sense == "<=" else values[-1] > values[0]
    end = moving.low if better else moving.high
    if end in ENDLESS or end == 0 or (moving.whole and better):
        raise BadInput("--target", f"{goal.text} is met at every value of {moving.name}", "give a tighter limit")
    return end, bool(better)


def turn(tried: Any, met: Any, moving: Variable, goal: Target) -> tuple[bool, float, float]:
    """(larger is better, a value that meets the target, the next that does not). Raises BadInput: several stretches."""
    turns = np.flatnonzero(met[1:] != met[:-1])
    if met[0] == met[-1] or (len(turns) > 1 and not moving.whole):
        if met[0] or len(turns) > 2:
            where = ", ".join(show(float(tried[i]), moving.leaf.unit) for i in turns[:4])
            what = f"{goal.text} is met on several stretches of {moving.name}, which turn near {where}"
            raise BadInput("--target", what, "vary another input, or look at the values between with `estimate`")
        return True, float(tried[turns[0] + 1]), float(tried[turns[0]])
    rising = bool(met[-1])
    i = int(turns[0]) if rising else int(turns[-1])
    return (True, float(tried[i + 1]), float(tried[i])) if rising else (False, float(tried[i]), float(tried[i + 1]))


def narrowed(curve: Curve, good: float, bad: float, goal: Target) -> tuple[float, float]:
    """The bracket cut until both ends are one value, or neighbours for a count. Raises BadInput where it is ragged."""
    whole = curve.moving.whole
    first = True
    while abs(good - bad) > (1 if whole else RTOL * max(abs(good), abs(bad))):
        even = np.geomspace if min(good, bad) > 0 else np.linspace
        cut = even(good, bad, CUTS + 1)
        cut[0], cut[-1] = good, bad
        if whole:
            cut = np.unique(np.rint(cut))
            cut = cut if good < bad else cut[::-1]
        values = curve(cut)
        met = goal.meets(values)
        turns = np.flatnonzero(met[1:] != met[:-1])
        if first and len(turns) > 1 and not whole:
            what = f"{goal.text} is met on several stretches of {curve.moving.name} near {good:g}"
            raise BadInput("--target", what, "vary another input, or look at the values between with `estimate`")
        i = int(turns[-1])
        if (cut[i], cut[i + 1]) == (good, bad):
            break
        good, bad, first = float(cut[i]), float(cut[i + 1]), False
    return good, bad


def furthest(curve: Curve, good: float, bad: float, goal: Target) -> tuple[float, float]:
    """The furthest whole number that meets the target, over a window beyond the one found, and its neighbour."""
    step = 1 if bad > good else -1
    while True:
        reach = WINDOW if curve.sure is None else WINDOW // DRAWS
        end = min(good + reach, curve.moving.most) if step > 0 else max(good - reach, curve.moving.least)
        beyond = np.arange(good + step, end + step, step)
        met = np.flatnonzero(goal.meets(curve(beyond))) if beyond.size else np.empty(0, dtype=int)
        if not met.size:
            return good, good + step
        good = float(beyond[met[-1]])


def out_of_reach(
    case: Case, point: Point, moving: Variable, goal: Target, tried: Any, values: Any, sure: float | None
) -> Infeasible:  # fmt: skip
    """Why no legal value meets the target: the nearest one, and what binds there."""
    signed = np.where(np.isfinite(values), values if goal.sense == "<=" else -values, np.inf)
    i = int(np.argmin(signed))
    nearest, best = float(tried[i]), goal.shown(float(values[i]))
    binding, operator, share = bound_there(case, point, moving, goal, nearest)
    extent = f"at {shown(nearest, moving)}"
    if (i == len(tried) - 1 and moving.high in ENDLESS) or (i == 0 and moving.low in ENDLESS):
        extent += ", where the search ends"
    for j, end, words in ((-1, moving.high, "however large it is"), (0, moving.low, "however small it is")):
        before = signed[j - 1 if j else 1]
        if (end in ENDLESS or end == 0) and max(abs(signed[j] - signed[i]), abs(signed[j] - before)) <= STILL * abs(
            signed[i]
        ):
            extent = words
    if nearest == moving.high and moving.why:
        extent += f", its limit ({moving.why})"
    what = f"{goal.text}{in_share(sure)} is out of reach of {moving.name}: the best is {best}, {extent}"
    because = f"{binding} binds there" + (
        f", the largest operator is {operator} ({share * 100:.0f} %)" if operator else ""
    )
    return Infeasible("--target", what, because)


def bound_there(case: Case, point: Point, moving: Variable, goal: Target, value: float) -> tuple[str, str, float]:
    """(bound that takes most of the metric's work, what takes most, its share) with the variable at a value."""
    say, on = priced(moved(point, moving.name, value), moving)
    q = {name: row.value for name, row in say.rows.items()}
    if goal.metric.work == "memory":
        held = memory_of(case, q, int(q_length(point, moving, value)), int(point.values["layout.lent"]))
        parts = {
            "weights": held.weights_bytes_per_chip,
            "requests": q["group"] * held.request_bytes_per_chip,
            "activations and buffers": held.activations_bytes_per_chip + held.buffers_bytes_per_chip,
            "runtime": held.runtime_bytes_per_chip,
        }
        most = max(parts, key=lambda name: parts[name])
        return "memory capacity", most, parts[most] / sum(parts.values())
    weights = {"decode": (1.0, 0.0), "prefill": (0.0, 1.0), "request": (q["serving_steps"], q["group"])}
    steps, prefills = weights[goal.metric.work]
    rows = breakdown.rows(say, on)
    found = breakdown.bounds(rows, steps, prefills)
    times = {f"{row['phase']} {row['operator']}": row["time_s"] * (steps if row["phase"] == "decode" else prefills)
             for row in rows}  # fmt: skip
    most = max(times, key=lambda name: times[name])
    return breakdown.bound_of(found), most, times[most] / sum(times.values())


def in_share(sure: float | None) -> str:
    """' in 90 % of the draws', or nothing."""
    return "" if sure is None else f" in {sure * 100:g} % of the draws"


def close_to_best(goal: Target, tried: Any, sure: float | None) -> str:
    """'within 0.2 % of the best any value gives, 19.96 ms', where the limit is next to it; else nothing."""
    best = float(np.nanmin(tried) if goal.sense == "<=" else np.nanmax(tried))
    if goal.bound or sure is not None or not goal.limit or abs(best / goal.limit - 1) > NEXT_TO:
        return ""
    return f"within {abs(best / goal.limit - 1) * 100:.2g} % of the best any value gives, {goal.shown(best)}"


def priced(point: Point, moving: Variable) -> tuple[Say, Any]:
    """A float run. Raises BadInput where the formulas have no value."""
    try:
        return run(point)
    except (ArithmeticError, ValueError):
        what = f"the formulas have no value at {shown(float(point.values[moving.name]), moving)}"
        raise BadInput(f"--for {moving.name}", what, "ask for another target") from None


def q_length(point: Point, moving: Variable, value: float) -> float:
    """Tokens a request may reach with the variable at a value."""
    return float(moved(point, moving.name, value).values["ask.length"])


def shown(value: float, moving: Variable) -> str:
    """A value of the variable for people."""
    return f"{value:,.0f}" if moving.whole else show(value, moving.leaf.unit)


def answer(
    case: Case, layout: str, workload: Workload, curve: Curve, value: float, rising: bool, missed: float | None,
    tried: Any,
) -> Solution:  # fmt: skip
    """The solution with the metric, the bound and the neighbour worked out on floats. tried: the metric all along."""
    point, moving, goal = curve.point, curve.moving, curve.goal

    def at(x: float) -> tuple[float, bool]:
        moved_point = moved(point, moving.name, x)
        say, on = priced(moved_point, moving)
        return float(goal.value(say, on, moved_point)), bool(say.rows["memory_slack_bytes"].value >= 0)

    reached, fits = at(value)
    present, _ = at(moving.leaf.value)
    binding, operator, share = bound_there(case, point, moving, goal, value)
    neighbour = None
    if missed is not None and moving.low <= missed <= moving.high:
        neighbour = {"value": missed, "reached": at(missed)[0]}
    elif missed is None and value in (moving.low, moving.high):
        binding = f"limit of {moving.name}" + (f": {moving.why}" if moving.why else "")
    extreme = "smallest" if rising else "largest"
    leaf = moving.leaf
    between, held = curve.doubt(value)
    return Solution(
        model=case.model.name, system=case.system.name, stack=case.stack.name, layout=layout,
        variable=moving.asked, input=moving.name, value=int(value) if moving.whole else value, unit=leaf.unit,
        extreme=extreme, target=goal.text, metric=goal.metric.sentence, metric_unit=goal.metric.unit, limit=goal.limit,
        reached=reached, present=leaf.value, present_reached=present, neighbour=neighbour, binding=binding,
        operator=operator, operator_share_fraction=share, fits=fits,
        spec_range=[leaf.low, leaf.high] if leaf.uncertain else None,
        reached_range=between, met_fraction=held, expected_error=case.stack.expected_error.model_dump(),
        confidence_fraction=curve.sure, close=close_to_best(goal, tried, curve.sure),
        sentence=f"{moving.name} = {shown(value, moving)} is the {extreme} that meets {goal.text}"
        + in_share(curve.sure),
        words={"reached": goal.shown(reached), "present": goal.shown(present),
               "between": " to ".join(goal.shown(end) for end in between) if between else "",
               "neighbour": goal.shown(neighbour["reached"]) if neighbour else ""},
    )  # fmt: skip
