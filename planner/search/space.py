"""The space a plan searches: layouts of every replica size as columns, and the batches to try."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.evaluate.case import shape_of
from planner.evaluate.grid import columns, evaluate, slots_needed
from planner.evaluate.inputs import Case, asked, leaves
from planner.layout import Layout, legal
from planner.model.deployment import capacity
from planner.model.structure import Structure
from planner.specs.model import Model
from planner.specs.workload import Workload

SMALL_SYSTEM = 16
IDLE_SHARE = 1 / 8
EVERY_BATCH = 16
BATCH_STEP = 1.08
LARGEST_BATCH = 10**6


@dataclass(frozen=True)
class Space:
    """The layouts of a search with everything the formulas need."""

    case: Case
    workload: Workload
    lent: int
    layouts: list[Layout]
    shape: Structure
    values: dict[str, Any]
    raw: dict[str, Any]


def candidates(model: Model, lent: int, refused: Counter[str]) -> list[Layout]:
    """Legal layouts of every replica size that leaves few enough of the chips idle."""
    found: list[Layout] = []
    for chips in range(1, lent + 1):
        if lent > SMALL_SYSTEM and lent % chips > lent * IDLE_SHARE:
            refused["idle_chips"] += 1
            continue
        found += legal(chips, model, refused)
    return found


def space_of(case: Case, workload: Workload, lent: int, layouts: list[Layout], each: list[int] | None = None) -> Space:
    """Columns of all layouts beside the scalars of specs and workload. each: chips lent to a layout, if not `lent`."""
    slots, chips = slots_needed(case.model, layouts), each or [lent] * len(layouts)
    numbers, raw = leaves(case, workload)
    numbers |= asked(workload, case.stack)
    values: dict[str, Any] = {name: leaf.value for name, leaf in numbers.items()}
    replicas = [given // layout.chips for given, layout in zip(chips, layouts, strict=True)]
    values |= columns(case.model, layouts, replicas, chips, slots)
    return Space(case, workload, lent, layouts, shape_of(case, workload, slots), values, raw)


def narrowed(space: Space, keep: Any) -> Space:
    """The same space with some of its layouts."""
    count = len(space.layouts)
    values = {n: v[keep] if np.ndim(v) and len(v) == count else v for n, v in space.values.items()}
    return Space(
        space.case, space.workload, space.lent, [space.layouts[i] for i in keep], space.shape, values, space.raw
    )


def most_requests(space: Space) -> Any:
    """Requests of full length an attention group of every layout can hold."""
    one = space.values["layout.dp"] * space.values["layout.replicas"]
    found = evaluate(
        space.shape, {**space.values, "ask.concurrency": one}, space.raw, frozenset({"memory_requests"}), capacity
    )
    return np.broadcast_to(found["memory_requests"], len(space.layouts))


def batches(most: int) -> Any:
    """Requests of a group to try: every one up to 16, then steps of 8 %, the last not below `most`."""
    most = min(most, LARGEST_BATCH)
    steps = int(np.ceil(np.log(max(most, EVERY_BATCH) / EVERY_BATCH) / np.log(BATCH_STEP)))
    above = np.round(EVERY_BATCH * BATCH_STEP ** np.arange(1, steps + 1))
    return np.unique(np.concatenate([np.arange(1, EVERY_BATCH + 1), above]))
