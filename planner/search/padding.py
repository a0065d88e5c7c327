"""What padding adds to a chip's weights: the same formulas, with the multiples of kernels and tables taken as 1.

Experts are cut to a multiple of the width their kernel takes; a rank's rows of embedding and head to a multiple of the
stack's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.evaluate.case import Point
from planner.evaluate.inputs import setting
from planner.kinds.feedforward.moe import padded_inner
from planner.model.deployment import capacity
from planner.quantities import Numbers

EXPERTS, TABLES = "kernel.experts.width_multiple", "stack.vocabulary_multiple"
LEAST = 0.5  # of a byte: below it nothing was padded


def named(point: Point, **changes: Any) -> tuple[dict[str, Any], Any]:
    """(the quantities of memory, the inputs) of a point, with inputs laid over it."""
    on = setting(point.shape, {**point.values, **changes}, point.raw)
    say = Numbers()
    on, *_ = capacity(say, point.shape, on)
    return {name: quantity.value for name, quantity in say.rows.items()}, on


def padding(point: Point, stage: int, q: dict[str, Any], on: Any) -> list[dict[str, Any]]:
    """What is padded, from how much to how much, and the bytes it adds to a chip of a stage."""
    weights = f"memory_stage{stage}_weights_bytes"

    def added(multiple: str) -> float:
        return float(q[weights] - named(point, **{multiple: 1.0})[0][weights])

    found = []
    for what, widths, multiple in (("experts", experts, EXPERTS), ("vocabulary", tables, TABLES)):
        pairs = [pair for pair in widths(point, q, on) if pair[1] > pair[0]]
        extra = added(multiple) if pairs else 0.0
        if extra > LEAST:
            found.append({"what": what, "from": pairs[0][0], "to": pairs[0][1], "bytes_per_chip": extra})
    return found


Widths = Callable[[Point, dict[str, Any], Any], list[tuple[int, int]]]


def experts(point: Point, q: dict[str, Any], on: Any) -> list[tuple[int, int]]:
    """(inner width of an expert, width as its ranks hold it) of every group of experts."""
    groups = [on.groups[name] for name, _ in point.shape.feed_forward]
    found = [
        (int(moe.inner), round(padded_inner(moe, on) * on.layout.etp)) for moe in groups if hasattr(moe, "experts")
    ]
    return sorted(set(found))


def tables(point: Point, q: dict[str, Any], on: Any) -> list[tuple[int, int]]:
    """(rows of the vocabulary, rows that the ranks of a stage hold)."""
    rows = int(on.model.vocabulary)
    return [(rows, round(q["chip_table_share"] * rows * on.layout.tp))]
