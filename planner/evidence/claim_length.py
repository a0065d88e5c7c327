"""Whether cost grows with length as a claim states: one prompt and one decode step, doubling up to the longest.

    exponent = ln(t2 / t1) / ln(L2 / L1)         between neighbours: 0 constant, 1 in proportion, 2 quadratic

With all changes made, at the first choice of every assumption, one request in each attention group.
"""

from __future__ import annotations

import math
from typing import Any

from planner.errors import BadInput, BadSpec
from planner.evaluate.case import case_of, check_workload, point_of
from planner.evaluate.grid import evaluate
from planner.evidence.claim_file import QUESTION, SOFTWARE, Patch, Workshop
from planner.layout import Layout

SHORTEST = 8192
PARTS = {"prompt_s": "prefill_idle_s", "step_s": "decode_step_s"}


def lengths(shop: Workshop) -> dict[str, Any] | None:
    """Times, exponents, and up to which length each stays within what is stated; None where nothing is."""
    import numpy as np

    stated = shop.claim.length
    if stated is None:
        return None
    first = [(a, next(iter(axis.choices.items()))) for a, axis in shop.claim.axes(SOFTWARE).items() if not axis.before]
    laid: list[tuple[str, Patch]] = [(f"assumptions.{axis}.choices.{name}", choice) for axis, (name, choice) in first]
    laid += [(f"changes.{name}", change) for name, change in shop.claim.changes.items()]
    case = case_of(shop.model_of(laid), shop.system, shop.stack_of(laid))
    chosen = [next(iter(axis.choices.values())) for axis in shop.claim.axes(QUESTION).values()]
    layout = Layout.parse(next(choice.layout for choice in chosen if choice.layout), case.model)
    base = shop.workload().model_copy(update={"osl": 1, "concurrency": layout.dp})
    try:
        check_workload(case, base.model_copy(update={"isl": stated.longest - 1}))
    except BadInput as error:
        raise BadSpec(str(shop.path), f"length: {error.what}", error.do) from None
    point = point_of(case, layout, base)
    context = [SHORTEST]
    while context[-1] * 2 <= stated.longest:
        context.append(context[-1] * 2)
    values = {**point.values, "ask.isl": np.array(context, dtype=float) - 1, "ask.length": np.array(context, float)}
    found = evaluate(point.shape, values, point.raw, frozenset(PARTS.values()))
    times = {part: np.broadcast_to(found[name], len(context)) for part, name in PARTS.items()}
    rows: list[dict[str, Any]] = []
    for at, length in enumerate(context):
        row: dict[str, Any] = {"tokens": length}
        for part, time in times.items():
            row[part] = float(time[at])
            row[part.replace("_s", "_exponent")] = None if at == 0 else math.log2(time[at] / time[at - 1])
        rows.append(row)
    reached = {part: within(rows, part.replace("_s", "_exponent"), stated.exponent) for part in PARTS}
    return {"layout": str(layout), **stated.model_dump(), "rows": rows, "within": reached}


def within(rows: list[dict[str, Any]], key: str, most: float) -> int:
    """The longest length up to which no exponent exceeds what is stated."""
    reached = int(rows[0]["tokens"])
    for row in rows[1:]:
        if row[key] > most:
            break
        reached = row["tokens"]
    return reached
