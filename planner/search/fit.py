"""Does it fit: memory of one layout or of the one that holds the most requests, and the fewest chips that hold any."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from planner.errors import BadWorkload
from planner.evaluate.case import (
    Point,
    case_of,
    check_chips,
    check_draft,
    check_vision,
    longest_context,
    notes_on,
    point_of,
    shape_of,
)
from planner.evaluate.estimate import layout_of, memory_of, memory_violations, worst_stage
from planner.evaluate.influence import assumptions
from planner.evaluate.inputs import Case
from planner.evaluate.results import Fit, Memory, Server
from planner.evaluate.totals import totals
from planner.layout import Layout, legal
from planner.search.padding import named, padding
from planner.search.space import candidates, most_requests, space_of
from planner.specs.hardware import System
from planner.specs.model import Model
from planner.specs.stack import Stack
from planner.specs.workload import Workload
from planner.stages import distinct

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
    workload: formats, chunk, memory fraction and drafts; its lengths do not matter. Raises BadInput leaves.
    """
    case = case_of(model, system, stack)
    length = max_len if max_len is not None else case.model.max_context
    if not 1 <= length <= case.model.max_context:
        what = f"{length} tokens is not within 1 to {longest_context(case.model)}"
        raise BadWorkload("max-len", what, f"use 1 to {case.model.max_context}")
    if concurrency is not None and concurrency < 1:
        raise BadWorkload("concurrency", f"{concurrency} is below 1", "give a whole number from 1")
    base = workload or Workload(isl=1, osl=1)
    check_vision(case, base)
    one = base.model_copy(
        update={"isl": max(length - 1, 1), "osl": min(1, length - 1) or 1, "concurrency": concurrency or 1}
    )
    check_draft(case.model, base)
    found = Layout.parse(layout, case.model) if isinstance(layout, str) else layout
    if found is None:
        found, replicas, lent = roomiest(case, one, length)
    else:
        replicas, lent = 1, found.chips
    check_chips(case, found.chips, "the layout takes")
    placed = every_stage(case, found, one, replicas, lent, length)
    q, on = named(placed)
    most = int(q["memory_max_concurrency"])
    if concurrency is None and most > 0:
        placed = every_stage(case, found, one.model_copy(update={"concurrency": most}), replicas, lent, length)
        q, on = named(placed)
    memory = memory_of(case, q, length, lent, by="requests")
    worst = worst_stage(q, "requests")
    stages = stages_of(case, found, replicas, q)
    fewest, smallest = min_chips(case, one, length)
    point = point_of(case, found, one, replicas, lent, length)
    return Fit(
        **memory.__dict__,
        model=case.model.name,
        system=case.system.name,
        stack=case.stack.name,
        layout=layout_of(found, replicas, lent),
        concurrency=concurrency,
        memory_fraction=placed.values["ask.memory_fraction"],
        draft_tokens=one.draft_tokens,
        reserved_fits=memory.reserved_max_concurrency >= (concurrency or 1),
        worst_stage=stages[worst]["stage"],
        stages=stages,
        server=server_of(case, memory, lent),
        padding=padding(placed, worst, q, on),
        min_chips=fewest,
        min_chips_layout=smallest,
        max_length=longest(case, found, one, replicas, lent),
        notes=notes_on(case.model, one),
        violations=memory_violations(q, memory),
        assumptions=assumptions(point.shape, point.values, point.raw, point.leaves, MEMORY_HEADLINES)[0],
    )


MEMORY_HEADLINES = {
    "memory.max_concurrency": "memory_max_concurrency",
    "memory.other_bytes": "memory_other_bytes",
    "memory.usable_bytes": "memory_usable_bytes",
}


def every_stage(case: Case, layout: Layout, workload: Workload, replicas: int, lent: int, length: int) -> Point:
    """A deployment with all its distinct stages, those too that another dominates."""
    point = point_of(case, layout, workload, replicas, lent, length)
    stages = distinct(case.model, layout.pp)
    values = {name: value for name, value in point.values.items() if not name.startswith("layout.stage")}
    for i, stage in enumerate(stages):
        values |= {f"layout.stage{i}.{group}": float(count) for group, count in stage.held.items()}
    return replace(point, shape=shape_of(case, workload, len(stages)), values=values)


def stages_of(case: Case, layout: Layout, replicas: int, q: dict[str, Any]) -> list[dict[str, Any]]:
    """Every distinct stage: its place, layers, and what one chip of it holds."""
    return [
        {
            "stage": stage.index,
            "alike": stage.alike,
            "layers": f"{stage.layers.start}-{stage.layers.stop - 1}",
            "weights_bytes_per_chip": q[f"memory_stage{i}_weights_bytes"],
            "kv_bytes_per_token_per_chip": q[f"memory_stage{i}_token_bytes"],
            "state_bytes_per_sequence_per_chip": q[f"memory_stage{i}_state_bytes"],
            "request_bytes_per_chip": q[f"memory_stage{i}_request_bytes"],
            "max_concurrency": max(int(q[f"memory_stage{i}_requests"]), 0) * layout.dp * replicas,
        }
        for i, stage in enumerate(distinct(case.model, layout.pp))
    ]


def server_of(case: Case, memory: Memory, lent: int) -> Server:
    """One server's memory, every chip counted as the fullest stage's."""
    chips = min(case.system.chips_per_server, lent)
    other = memory.activations_bytes_per_chip + memory.buffers_bytes_per_chip + memory.runtime_bytes_per_chip
    requests = memory.used_bytes_per_chip - memory.weights_bytes_per_chip - other
    each = (
        memory.capacity_bytes_per_chip,
        memory.usable_bytes_per_chip,
        memory.weights_bytes_per_chip,
        requests,
        other,
        memory.used_bytes_per_chip,
    )
    return Server(chips, math.ceil(lent / chips), *(chips * size for size in each))


def quantities(case: Case, layout: Layout, workload: Workload, replicas: int, lent: int, length: int) -> dict[str, Any]:
    """The named quantities of memory alone."""
    return named(point_of(case, layout, workload, replicas, lent, length))[0]


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


def min_chips(case: Case, workload: Workload, length: int) -> tuple[int, str] | tuple[None, None]:
    """(the fewest chips on which some legal layout holds one request of this length, the layout).

    Of several layouts the roomiest without context ranks and redundant experts, if there is one. The search ends after
    MOST_SHAPES: sizes that no model has make for layouts without end.
    """
    fraction = workload.memory_fraction or case.stack.memory_fraction.value
    usable = case.chip.holds().value * (1 if case.stack.memory_meaning == "free" else fraction)
    start = max(1, math.ceil(totals(case.model).text_bytes / usable))
    if start > MOST_CHIPS:
        return None, None
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
        most = most_requests(space)
        if np.any(most >= 1):
            held = most * space.values["layout.dp"]
            plain = [layout.cp == 1 and layout.red == 0 for layout in layouts]
            best = max(range(len(layouts)), key=lambda i: (held[i] >= 1 and plain[i], held[i], layouts[i].tp))
            return chips, str(layouts[best])
    return None, None
