"""The best layout alone, without ranges and breakdown, and the fewest chips on which there is one.

The steps are those of `plan`. More chips are not always better (whole replicas must fill them), so the fewest are found
by trying every number from one on, not by halving. Chips that no replica fills change neither memory nor times, so at
the fewest none is idle and only layouts that fill the chips are tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from planner.errors import Infeasible
from planner.evaluate.case import case_of, check_chips, check_workload
from planner.evaluate.grid import evaluate_blocks
from planner.evaluate.inputs import Case
from planner.layout import Layout, divisors, legal
from planner.search.plan import (
    WANTED,
    Objective,
    batch_mesh,
    best_of_layouts,
    constrained,
    nearest_memory,
    nearest_point,
)
from planner.search.space import Space, candidates, most_requests, narrowed, space_of
from planner.specs.workload import Slo, Workload

TOGETHER = 4_096
"""Layouts after which a search of few chips looks whether it has found one."""


class Best(NamedTuple):
    """The best layout on so many chips, and the requests in flight it is best at."""

    layout: Layout
    concurrency: int
    chips: int


def best_in(space: Space, slo: Slo, objective: Objective, refused: Counter[str]) -> Best | str:
    """The best point of a space on the fewest chips lent in it that have any, or what the nearest one misses."""
    most = most_requests(space)
    fitting = np.flatnonzero(most >= 1)
    if not len(fitting):
        return str(nearest_memory(space)["sentence"])
    held = narrowed(space, fitting)
    flight, distinct = batch_mesh(held, most[fitting], space.workload.concurrency)
    values = {**held.values, "ask.concurrency": flight}
    found = evaluate_blocks(held.shape, values, held.raw, WANTED, len(flight))
    allowed = constrained(found, distinct, slo, refused)
    if not allowed.any():
        return str(nearest_point(held, flight, distinct, found, slo)["sentence"])
    lent = held.values["layout.lent"]
    fewest = lent[allowed.any(axis=0)].min()
    row, layout = best_of_layouts(found, allowed & (lent == fewest), objective, slo, flight)[0]
    return Best(held.layouts[layout], int(flight[row, layout]), int(fewest))


def checked(model: str, system: str, stack: str | None, workload: Workload, chips: int | None) -> tuple[Case, int]:
    """(case, chips) of a question. Raises BadInput leaves."""
    case = case_of(model, system, stack)
    lent = case.system.chips if chips is None else chips
    check_chips(case, lent, "asked for")
    check_workload(case, workload)
    return case, lent


def best_layout(
    model: str, system: str, workload: Workload, slo: Slo, *, stack: str | None = None, chips: int | None = None,
    objective: Objective = "throughput",
) -> Best:  # fmt: skip
    """The layout that `plan` ranks first. Raises BadInput leaves, Infeasible."""
    case, lent = checked(model, system, stack, workload, chips)
    refused: Counter[str] = Counter()
    space = space_of(case, workload, lent, candidates(case.model, lent, refused))
    found = best_in(space, slo, objective, refused)
    if isinstance(found, str):
        raise Infeasible(f"{case.model.name} on {case.system.name}", f"no layout on {lent} chips: {found}")
    return found


def fewest_chips(model: str, system: str, workload: Workload, slo: Slo, *, stack: str | None = None) -> Best:
    """The fewest chips of the system on which some layout holds the load and meets the targets, and the layout.

    Raises BadInput leaves, Infeasible where not even all of them do.
    """
    case, lent = checked(model, system, stack, workload, None)
    refused: Counter[str] = Counter()
    found: Best | str = ""
    for space in filled(case, workload, lent, refused):
        found = best_in(space, slo, "throughput", refused)
        if isinstance(found, Best):
            return found
    raise Infeasible(f"{case.model.name} on {case.system.name}", f"no layout on up to {lent} chips: {found}")


def filled(case: Case, workload: Workload, lent: int, refused: Counter[str]) -> Iterator[Space]:
    """Layouts whose replicas fill the chips lent, for every number of chips in turn, many numbers at once."""
    known: dict[int, list[Layout]] = {}
    layouts: list[Layout] = []
    each: list[int] = []
    begun = 1
    for chips in range(1, lent + 1):
        known[chips] = list(legal(chips, case.model, refused))
        for size in divisors(chips):
            layouts += known[size]
            each += [chips] * len(known[size])
        if layouts and (chips == lent or chips >= 2 * begun or len(layouts) > TOGETHER):
            yield space_of(case, workload, lent, layouts, each)
            layouts, each, begun = [], [], chips
