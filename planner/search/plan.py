"""Exhaustive search: every legal layout, every batch, priced by the same formulas as a single estimate.

1. All layouts of every replica size that keeps the lent chips at work (idle chips up to an eighth of them, any number
   on 16 chips or fewer); rules that refuse a shape are counted.
2. Memory alone for all of them: the most requests of full length each can hold.
3. All headline outputs on the mesh of batch x layout: every batch up to 16 requests of a group, steps of 8 % above, and
   the largest that fits, so that the memory bound is met exactly.
4. Constraints, ranking (the best batch of every layout), the front of tokens/s per chip against tokens/s per user.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from planner.errors import BadWorkload, UnknownName, nearest
from planner.evaluate.case import case_of, check_chips, check_workload, point_of
from planner.evaluate.estimate import HEADLINES, assemble
from planner.evaluate.grid import evaluate, evaluate_blocks
from planner.evaluate.influence import assumptions
from planner.evaluate.inputs import Case, asked, leaves
from planner.evaluate.ranges import basis, draws_of, ranges
from planner.evaluate.results import Plan
from planner.layout import head_refusal
from planner.model.deployment import capacity
from planner.quantities import unit_of
from planner.search.constraints import CONSTRAINTS, RULES, active
from planner.search.front import front
from planner.search.space import Space, batches, candidates, most_requests, narrowed, space_of
from planner.specs.hardware import System
from planner.specs.model import Model
from planner.specs.stack import Stack
from planner.specs.workload import Slo, Workload

Objective = Literal["throughput", "latency", "cost"]
RANKED: dict[Objective, tuple[str, float]] = {
    "throughput": ("serving_chip_tokens_per_s", -1.0),
    "latency": ("serving_e2e_s", 1.0),
    "cost": ("serving_cost_output_usd", 1.0),
}
"""Objective -> (quantity, sign that makes smaller better)."""
WANTED = frozenset({*HEADLINES.values(), *(constraint.quantity for constraint in CONSTRAINTS)})


def plan(
    model: str | Model,
    system: str | System,
    workload: Workload,
    *,
    slo: Slo | None = None,
    stack: str | Stack | None = None,
    chips: int | None = None,
    objective: Objective = "throughput",
    top: int = 10,
    draws: int | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> Plan:
    """The best layouts for a workload under targets, the front, and what ruled the rest out.

    workload.concurrency: None searches the batch too. draws: draws of the estimated specs behind the ranges. Raises
    BadInput leaves; a plan with no feasible point is an answer (`best` null, `nearest` filled).
    """
    begin = time.perf_counter()
    case = case_of(model, system, stack)
    lent = case.system.chips if chips is None else chips
    check_chips(case, lent, "asked for")
    if lent < 1 or top < 1:
        raise BadWorkload("chips" if lent < 1 else "top", "must be at least 1", "give a whole number from 1")
    check_workload(case, workload)
    if objective not in RANKED:
        raise UnknownName("objective", f"unknown objective {objective!r}", nearest(str(objective), RANKED))
    targets, count = slo or Slo(), draws_of(draws)
    refused: Counter[str] = Counter()
    progress("listing legal layouts")
    space = space_of(case, workload, lent, candidates(case.model, lent, refused))
    setup = time.perf_counter() - begin
    progress(f"pricing {len(space.layouts):,} layouts")
    most = most_requests(space)
    fitting = np.flatnonzero(most >= 1)
    refused["memory"] += len(space.layouts) - len(fitting)
    if not len(fitting):
        near = nearest_memory(space)
        return answer(case, objective, space, 0, 0, begin, setup, refused, nearest=near)
    held = narrowed(space, fitting)
    groups, distinct = batch_mesh(held, most[fitting], workload.concurrency)
    values = {**held.values, "ask.concurrency": groups}
    found = evaluate_blocks(held.shape, values, held.raw, WANTED, len(groups))
    allowed = constrained(found, distinct, targets, refused)
    counts = (int(distinct.sum()), int(allowed.sum()))
    if not allowed.any():
        near = nearest_point(held, groups, distinct, found, targets)
        return answer(case, objective, space, *counts, begin, setup, refused, nearest=near)
    progress("ranking")
    ranked = best_of_layouts(found, allowed, objective, targets, groups)[:top]
    line = front_rows(held, groups, found, allowed)
    seconds = time.perf_counter() - begin - setup
    chosen = estimates(held, groups, ranked, count)
    result = answer(case, objective, space, *counts, begin, setup, refused, chosen=chosen, line=line)
    return replace(result, seconds=seconds, notes=notes(targets, workload.concurrency, objective))


def notes(slo: Slo, concurrency: int | None, objective: Objective) -> list[str]:
    """What the ranking did that a reader may not expect."""
    if slo.rate_per_s is not None:
        return [
            f"each layout runs at the smallest batch that serves {slo.rate_per_s:g} requests/s, and is ranked there by "
            f"{objective}; the bill is spread over what it then serves"
        ]
    if slo.given():
        return ["targets are met at the central value of the specs; see the ranges for how safely"]
    if concurrency is not None or objective == "latency":
        return []
    return [
        "no target given: rows are the batches that yield most per chip, whatever a user waits; "
        "add --tpot 50ms or --ttft 2s, or read the front"
    ]


def batch_mesh(space: Space, most: Any, concurrency: int | None) -> tuple[Any, Any]:
    """(requests in flight, whether the point is a distinct one that fits), both batch x layout."""
    ways = space.values["layout.dp"] * space.values["layout.replicas"]
    if concurrency is not None:
        flight = np.full((1, len(ways)), float(concurrency))
        return flight, np.ones_like(flight, dtype=bool)
    steps = batches(int(most.max()))[:, None]
    group = np.minimum(steps, most[None, :])
    new = np.ones_like(group, dtype=bool)
    new[1:] = group[1:] > group[:-1]
    return group * ways, new


def constrained(found: dict[str, Any], distinct: Any, slo: Slo, refused: Counter[str]) -> Any:
    """Points that meet every constraint; each miss is counted by name."""
    allowed = distinct.copy()
    for constraint, limit in active(slo):
        missed = distinct & (constraint.missed(found[constraint.quantity], limit) > 0)
        refused[constraint.name] += int(missed.sum())
        allowed &= ~missed
    return allowed


def best_of_layouts(
    found: dict[str, Any], allowed: Any, objective: Objective, slo: Slo, flight: Any
) -> list[tuple[int, int]]:
    """(batch, layout) of every layout's best point, best layout first.

    Under a rate target a layout runs at the smallest load that reaches the rate: more in flight only waits. Ties go to
    the lower end-to-end time.
    """
    name, sign = RANKED[objective]
    runs = allowed
    if slo.rate_per_s is not None:
        runs = allowed & (flight == np.min(np.where(allowed, flight, np.inf), axis=0))
    score = np.where(runs, sign * found[name], np.inf)
    rows = np.argmin(score, axis=0)
    layouts = np.arange(score.shape[1])
    best = score[rows, layouts]
    order = np.lexsort((layouts, found["serving_e2e_s"][rows, layouts], best))
    return [(int(rows[i]), int(i)) for i in order if np.isfinite(best[i])]


def front_rows(space: Space, flight: Any, found: dict[str, Any], allowed: Any) -> list[dict[str, Any]]:
    """The front of tokens/s per chip against tokens/s per user."""
    rows, layouts = np.nonzero(allowed)
    picked = front(found["serving_chip_tokens_per_s"][rows, layouts], found["serving_user_tokens_per_s"][rows, layouts])
    keys = {
        "tok_s_per_chip": "serving_chip_tokens_per_s",
        "tok_s_per_user": "serving_user_tokens_per_s",
        "ttft_s": "serving_ttft_s",
        "tpot_s": "serving_tpot_s",
    }
    return [
        {
            "layout": str(space.layouts[layouts[i]]),
            "replicas": int(space.lent // space.layouts[layouts[i]].chips),
            "concurrency": int(flight[rows[i], layouts[i]]),
            **{key: float(found[name][rows[i], layouts[i]]) for key, name in keys.items()},
        }
        for i in picked
    ]


def estimates(space: Space, flight: Any, ranked: list[tuple[int, int]], count: int) -> list[Any]:
    """The full answer for each chosen point, ranges drawn for all of them at once."""
    numbers, _ = leaves(space.case, space.workload)
    numbers |= asked(space.workload, space.case.stack)
    picked = narrowed(space, [layout for _, layout in ranked])
    load = np.asarray([flight[row, layout] for row, layout in ranked])
    values = {**picked.values, "ask.concurrency": load}
    bands = ranges(picked.shape, values, picked.raw, numbers, HEADLINES, count)
    assumed = assumptions(picked.shape, values, picked.raw, numbers, HEADLINES)
    answers = []
    for i, layout in enumerate(picked.layouts):
        workload = space.workload.model_copy(update={"concurrency": int(load[i])})
        point = point_of(space.case, layout, workload, space.lent // layout.chips, space.lent)
        own = {key: [float(pair[0, i]), float(pair[1, i])] for key, pair in bands.items()}
        copies = space.lent // layout.chips
        answers.append(assemble(space.case, layout, workload, copies, space.lent, point, own, assumed[i], basis(count)))
    return answers


def nearest_memory(space: Space) -> dict[str, Any]:
    """The layout that misses the memory of one request by least."""
    one = space.values["layout.dp"] * space.values["layout.replicas"]
    found = evaluate(
        space.shape, {**space.values, "ask.concurrency": one}, space.raw, frozenset({"memory_slack_bytes"}), capacity
    )
    slack = np.broadcast_to(found["memory_slack_bytes"], len(space.layouts))
    best = int(np.argmax(slack))
    return miss(space, best, int(one[best]), "memory", float(slack[best]), 0.0)


def nearest_point(space: Space, flight: Any, distinct: Any, found: dict[str, Any], slo: Slo) -> dict[str, Any]:
    """The point whose worst shortfall is the smallest share of its limit."""
    worst = np.full(distinct.shape, -np.inf)
    scale = {"memory": space.case.chip.holds().value}
    for constraint, limit in active(slo):
        share = constraint.missed(found[constraint.quantity], limit) / scale.get(constraint.name, 1.0)
        worst = np.maximum(worst, share)
    row, layout = np.unravel_index(int(np.argmin(np.where(distinct, worst, np.inf))), worst.shape)
    misses = []
    for constraint, limit in active(slo):
        value = float(found[constraint.quantity][row, layout])
        share = float(constraint.missed(value, limit)) / scale.get(constraint.name, 1.0)
        if share > 0:
            misses.append((share, constraint.name, value, limit))
    _, name, value, limit = max(misses)
    return miss(space, int(layout), int(flight[row, layout]), name, value, limit)


def miss(space: Space, layout: int, concurrency: int, name: str, value: float, limit: float) -> dict[str, Any]:
    """One near miss as a row: where, which constraint, by how much."""
    (constraint,) = [c for c in CONSTRAINTS if c.name == name]
    return {
        "layout": str(space.layouts[layout]),
        "concurrency": concurrency,
        "constraint": name,
        "needed": limit,
        "available": value,
        "missed_by": abs(value - limit),
        "unit": unit_of(constraint.quantity),
        "sentence": constraint.sentence(value, limit),
    }


def largest_refused(rule: str, case: Case, lent: int) -> str:
    """For the heads rule, the largest TP it refused on these chips, in the rule's own words."""
    if rule != "heads":
        return ""
    refused = [problem for tp in range(lent, 0, -1) if (problem := head_refusal(tp, case.model))]
    return f"; {refused[0]}" if refused else ""


def answer(
    case: Case, objective: Objective, space: Space, evaluated: int, feasible: int, begin: float, setup: float,
    refused: Counter[str], *, chosen: list[Any] | None = None, line: list[dict[str, Any]] | None = None,
    nearest: dict[str, Any] | None = None,
) -> Plan:  # fmt: skip
    """The plan as a record."""
    rejected = {name: count for name, count in sorted(refused.items()) if count}
    return Plan(
        model=case.model.name,
        system=case.system.name,
        stack=case.stack.name,
        objective=objective,
        evaluated=evaluated,
        feasible=feasible,
        layouts=len(space.layouts),
        seconds=time.perf_counter() - begin - setup,
        setup_seconds=setup,
        best=chosen[0] if chosen else None,
        top=chosen or [],
        front=line or [],
        rejected=rejected,
        rejected_sentences={name: RULES[name] + largest_refused(name, case, space.lent) for name in rejected},
        nearest=nearest,
        notes=[],
    )
