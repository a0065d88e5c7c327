"""What bounds a figure, and how fast its deployment could be at all: its operators at peak rates, nothing added.

    floor = sum over operators of runs x max(bytes / BW, FLOP / F, network bytes / B)

over one decode step (per token gained) or over one prompt. No figure, measured or predicted, may be below it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.evaluate.inputs import setting
from planner.evidence.predict import Figures
from planner.model.deployment import deployment
from planner.quantities import Numbers


@dataclass(frozen=True)
class Bound:
    """The kind of time that is longest, and the least time of a step or a prompt, s."""

    name: str
    floor_s: float


def bounds(groups: Sequence[Figures], count: int) -> list[Bound]:
    """The bound of every row."""
    found = [Bound("", 0.0)] * count
    for group in groups:
        parts, floor = spent(group, "decode"), floors(group, "decode")
        prompt, least = spent(group, "prefill"), floors(group, "prefill")
        for i, (position, item) in enumerate(zip(group.index, group.items, strict=True)):
            whole, low = (prompt, least) if item.row.phase == "prefill" else (parts, floor)
            name = max(whole, key=lambda key: float(whole[key][i]))
            found[position] = Bound(name, float(low[i]) / (1 if item.row.phase == "prefill" else item.row.accepted))
    return found


def book(group: Figures) -> tuple[Numbers, Any]:
    """All operators of a group's rows on arrays."""
    if group.said is None:
        first, load = group.items[0].point, group.load
        on = setting(first.shape, {**group.values, "ask.concurrency": load}, first.raw)
        say = Numbers()
        with np.errstate(all="ignore"):
            deployment(say, first.shape, on)
        group.said = say, on
    return group.said


def spent(group: Figures, phase: str) -> dict[str, np.ndarray[Any, Any]]:
    """Time of a phase by what bounds each operator alone, per row."""
    say, on = book(group)
    size = len(group.items)
    total: dict[str, np.ndarray[Any, Any]] = defaultdict(lambda: np.zeros(size))
    for operator in say.operators:
        if operator.phase == phase:
            names = list(operator.parts)
            each = np.array([np.broadcast_to(operator.parts[name], size) for name in names])
            longest = np.argmax(each, axis=0)
            time = np.broadcast_to(operator.time_s * runs(operator, on, say), size)
            for i, name in enumerate(names):
                total[name] += np.where(longest == i, np.maximum(time, 0), 0)
    return total


def floors(group: Figures, phase: str) -> np.ndarray[Any, Any]:
    """The least time of a phase, per row."""
    say, on = book(group)
    found = np.zeros(len(group.items))
    for operator in say.operators:
        if operator.phase == phase and operator.name not in HIDEABLE:
            found = found + operator.floor_s * runs(operator, on, say)
    return found


HIDEABLE = ("dispatch", "combine")
"""Exchanges that may run behind computation: no part of a bound."""


def runs(operator: Any, on: Any, say: Numbers) -> Any:
    """Runs of an operator in its phase."""
    chunks = say.rows["prompt_chunks"].value
    if operator.group == "once":
        return 1.0
    passes = chunks if operator.phase == "prefill" else 1.0
    return (on.layout.pp if operator.group == "hop" else on.count[operator.group]) * passes
