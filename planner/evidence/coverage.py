"""How often a range holds what was measured, with the engine taken as one nobody has measured.

    covered = share of figures with  low <= measured <= high          width = median of high / low
low and high are the 10th and 90th percentile of the figure over draws of every uncertain input of its stack, the
model's own error among them: the same draws through the same formulas as the ranges of an estimate. A draw in which
memory holds no request has no figure and is left out; so is a figure that most draws leave out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.evaluate.ranges import PERCENTILES, draws
from planner.evaluate.results import Result
from planner.evidence.fit import scored
from planner.evidence.measurement import Measurement
from planner.evidence.names import chip_of, table
from planner.evidence.predict import Figures, deployable, grouped, predicted

DRAWS = 256
"""Draws behind each figure: enough for the 10th and 90th percentile of some hundred figures."""
ENGINES = {"unknown": "an engine never measured", "unfitted": "the same, from kernels and a study of K3 alone"}
"""Table of planner.evidence.names -> which stack it takes for a family of chips."""


@dataclass(frozen=True)
class Coverage(Result):
    """`what` the stack was taken to be; by_source: figures and covered share of each publication."""

    what: str
    n: int
    covered_fraction: float
    median_width: float
    sources_covered_fraction: float
    by_source: dict[str, dict[str, float]]


def coverages(rows: Iterable[Measurement]) -> list[Coverage]:
    """Of the scored figures, with the stack of an unknown engine, and with one that was never fitted."""
    rows = list(rows)
    known = table()
    found = [coverage(rows, {**known["unknown"], **known[key]}, what) for key, what in ENGINES.items()]
    return [one for one in found if one is not None]


def coverage(rows: Sequence[Measurement], stacks: Mapping[str, str], what: str) -> Coverage | None:
    """Of the scored figures, each with the stack its chip family has in `stacks`; None where no figure is scored."""
    unknown = [row.model_copy(update={"stack": stacks[chip_of(row.system)[1]]}) for row in rows]
    items = [item for item in deployable(unknown)[0] if scored(item)]
    held: dict[str, list[bool]] = defaultdict(list)
    widths: list[float] = []
    for group in grouped(items):
        drawn = drawn_figures(group)
        for item, values in zip(group.items, drawn.T, strict=True):
            known = values[np.isfinite(values)]
            if 2 * len(known) < DRAWS:
                continue
            low, high = np.percentile(known, PERCENTILES)
            held[item.row.source].append(bool(low <= item.row.measured <= high))
            widths.append(float(high / low))
    every = [hit for hits in held.values() for hit in hits]
    if not every:
        return None
    return Coverage(
        what, len(every), float(np.mean(every)), float(np.median(widths)),
        float(np.mean([np.mean(hits) for hits in held.values()])),
        {source: {"n": len(hits), "covered_fraction": float(np.mean(hits))} for source, hits in sorted(held.items())},
    )  # fmt: skip


def drawn_figures(group: Figures) -> np.ndarray[Any, Any]:
    """The predicted figure of every row of a group in every draw, (draws, rows)."""
    each = [draws(item.point.leaves, DRAWS) for item in group.items]
    values = {name: np.tile(value, DRAWS) if np.ndim(value) else value for name, value in group.values.items()}
    for name in {name for drawn in each for name in drawn}:
        columns = [
            drawn[name][:, 0] if name in drawn else np.full(DRAWS, item.point.values[name])
            for drawn, item in zip(each, group.items, strict=True)
        ]
        values[name] = np.stack(columns, axis=1).ravel()
    items = group.items * DRAWS
    repeated = Figures(group.first, list(range(len(items))), values, items)
    return predicted(repeated, {}).reshape(DRAWS, len(group.items))
