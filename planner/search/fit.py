"""Does it fit: memory of one layout or of the one that holds the most requests, and the fewest chips that hold any."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from planner.errors import BadWorkload
from planner.evaluate.case import case_of, check_chips, check_vision, point_of
from planner.evaluate.estimate import layout_of, memory_of, memory_violations
from planner.evaluate.influence import assumptions
from planner.evaluate.inputs import Case, setting
from planner.evaluate.results import Fit
from planner.evaluate.totals import totals
from planner.layout import Layout, legal
from planner.model.deployment import capacity
from planner.quantities import Numbers
from planner.search.space import candidates, most_requests, space_of
from planner.specs.hardware import System
from planner.specs.model import Model
from planner.specs.stack import Stack
from planner.specs.workload import Workload

EVERY_COUNT, COARSE, FURTHER, MOST_CHIPS = 64, 8, 4, 8192
"""`min_chips` tries every count from the lower bound on, then multiples of eight up to four times as many."""
MOST_SHAPES = 50_000
"""Shapes of layouts `min_chips` looks at, a second or two; shipped models need under 500."""


def fit(
    model: str | Model,
    system: str | System,
    *,
    layout: str | Layout | None = None,
    stack: str | Stack | None = None,
    max_len: int | None = None,
    concurrency: int | None = None,
    workload: Workload | None = None,
) -> Fit:
    """Memory per chip and of the pool, the largest concurrency at `max_len` tokens a request, the fewest chips.

    layout: None takes the legal layout on all chips that holds the most requests. max_len: None takes the model's
    context.
    workload: formats, chunk and memory fraction; its lengths do not matter. Raises BadInput leaves.
    """
    case = case_of(model, system, stack)
    length = max_len if max_len is not None else case.model.max_context
    if not 1 <= length <= case.model.max_context:
        what = f"{length} tokens is not within 1 to the {case.model.max_context} of {case.model.name}"
        raise BadWorkload("max-len", what, f"use 1 to {case.model.max_context}")
    if concurrency is not None and concurrency < 1:
        raise BadWorkload("concurrency", f"{concurrency} is below 1", "give a whole number from 1")
    base = workload or Workload(isl=1, osl=1)
    check_vision(case, base)
    one = base.model_copy(
        update={"isl": max(length - 1, 1), "osl": min(1, length - 1) or 1, "concurrency": concurrency or 1}
    )
    found = Layout.parse(layout, case.model) if isinstance(layout, str) else layout
    if found is None:
        found, replicas, lent = roomiest(case, one, length)
    else:
        replicas, lent = 1, found.chips
    check_chips(case, found.chips, "the layout takes")
    q = quantities(case, found, one, replicas, lent, length)
    most = int(q["memory_max_concurrency"])
    if concurrency is None and most > 0:
        q = quantities(case, found, one.model_copy(update={"concurrency": most}), replicas, lent, length)
    memory = memory_of(case, q, length, lent, by="requests")
    point = point_of(case, found, one, replicas, lent, length)
    return Fit(
        **memory.__dict__,
        model=case.model.name,
        system=case.system.name,
        stack=case.stack.name,
        layout=layout_of(found, replicas, lent),
        concurrency=concurrency,
        min_chips=min_chips(case, one, length),
        max_length=longest(case, found, one, replicas, lent),
        violations=memory_violations(q, memory),
        assumptions=assumptions(point.shape, point.values, point.raw, point.leaves, MEMORY_HEADLINES)[0],
    )


MEMORY_HEADLINES = {
    "memory.max_concurrency": "memory_max_concurrency",
    "memory.other_bytes": "memory_other_bytes",
    "memory.usable_bytes": "memory_usable_bytes",
}


def quantities(case: Case, layout: Layout, workload: Workload, replicas: int, lent: int, length: int) -> dict[str, Any]:
    """The named quantities of memory alone."""
    point = point_of(case, layout, workload, replicas, lent, length)
    say = Numbers()
    capacity(say, point.shape, setting(point.shape, point.values, point.raw))
    return {name: quantity.value for name, quantity in say.rows.items()}


def longest(case: Case, layout: Layout, workload: Workload, replicas: int, lent: int) -> int | None:
    """The most tokens each request may reach with this many in flight (one without a load); None where none fits."""
    low, high = 0, case.model.max_context
    while low < high:
        middle = (low + high + 1) // 2
        fits = quantities(case, layout, workload, replicas, lent, middle)["memory_slack_bytes"] >= 0
        low, high = (middle, high) if fits else (low, middle - 1)
    return low or None


def roomiest(case: Case, workload: Workload, length: int) -> tuple[Layout, int, int]:
    """(layout, replicas, chips lent) that hold the most requests on the whole system; ties go to the higher TP."""
    lent = case.system.chips
    space = space_of(case, workload, lent, candidates(case.model, lent, Counter()))
    space.values["ask.length"] = float(length)
    most = most_requests(space) * space.values["layout.dp"] * space.values["layout.replicas"]
    best = max(range(len(most)), key=lambda i: (most[i], -space.layouts[i].dcp, space.layouts[i].tp))
    return space.layouts[best], lent // space.layouts[best].chips, lent


def min_chips(case: Case, workload: Workload, length: int) -> int | None:
    """The fewest chips on which some legal layout holds one request of this length; None when none is found.

    The search ends after MOST_SHAPES: sizes that no model has make for layouts without end.
    """
    usable = case.chip.holds().value * (workload.memory_fraction or case.stack.memory_fraction.value)
    start = max(1, math.ceil(totals(case.model).text_bytes / usable))
    if start > MOST_CHIPS:
        return None
    every = range(start, start + EVERY_COUNT)
    coarse = range((every.stop + COARSE - 1) // COARSE * COARSE, min(every.stop * FURTHER, MOST_CHIPS), COARSE)
    refused: Counter[str] = Counter()
    found = 0
    for chips in (*every, *coarse):
        if found + refused.total() > MOST_SHAPES:
            break
        layouts = list(legal(chips, case.model, refused))
        found += len(layouts)
        if not layouts:
            continue
        space = space_of(case, workload, chips, layouts)
        space.values["ask.length"] = float(length)
        if np.any(most_requests(space) >= 1):
            return chips
    return None
