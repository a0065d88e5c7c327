"""How far predictions are from measurements, in logarithms.

    error = |ln(predicted / measured)|,   bias = median of ln(predicted / measured)

A mean over source groups gives every publication one voice. Order: Kendall's tau-b over the pairs of one job measured
in several layouts. Reference: M. Kendall, A new measure of rank correlation, Biometrika 30, 1938.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations

import numpy as np

from planner.evidence.measurement import METRICS, Measurement

Scored = tuple[Measurement, float]
"""A figure and ln(predicted / measured)."""


def spread(logs: Sequence[float]) -> tuple[float, float, float]:
    """(median, 90th percentile of the error, bias)."""
    values = np.asarray(logs, dtype=float)
    return (
        float(np.median(np.abs(values))), float(np.quantile(np.abs(values), 0.9)), float(np.median(values)),
    )  # fmt: skip


def by_source(rows: Iterable[Scored]) -> tuple[float, float]:
    """(median, 90th percentile) of the error in each source, averaged over the sources."""
    found: dict[str, list[float]] = defaultdict(list)
    for row, log in rows:
        found[row.source].append(log)
    each = [spread(logs)[:2] for logs in found.values()]
    return float(np.mean([m for m, _ in each])), float(np.mean([p for _, p in each]))


def tau(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Kendall's tau-b of (measured, predicted); None where nothing differs."""
    agree = disagree = tied_left = tied_right = 0
    for (a, x), (b, y) in combinations(pairs, 2):
        left, right = np.sign(a - b), np.sign(x - y)
        agree += int(left * right > 0)
        disagree += int(left * right < 0)
        tied_left += int(left == 0)
        tied_right += int(right == 0)
    total = len(pairs) * (len(pairs) - 1) // 2
    scale = ((total - tied_left) * (total - tied_right)) ** 0.5
    return (agree - disagree) / scale if scale else None


def job(row: Measurement) -> Hashable:
    """What two rows must share to be layouts of one job; figures per chip compare whatever the number of chips is."""
    load = (row.requests, row.tokens, row.most)
    return (row.source, row.model, row.weights, row.kv_format, row.system, row.stack, row.phase, row.isl, row.osl, load,
            row.drafts, row.accepted, row.metric)  # fmt: skip


def layout_key(row: Measurement) -> Hashable:
    """The layout as far as a row states it."""
    return (row.chips, row.tp, row.dp, row.ep, row.pp, row.dcp)


def orders(rows: Iterable[Scored]) -> dict[str, float]:
    """Mean tau of each source over its jobs of at least two layouts, weighted by pairs."""
    jobs: dict[Hashable, dict[Hashable, tuple[float, float]]] = defaultdict(dict)
    source: dict[Hashable, str] = {}
    for row, log in rows:
        better = METRICS[row.metric].faster
        jobs[job(row)][layout_key(row)] = (better * row.measured, better * row.measured * float(np.exp(log)))
        source[job(row)] = row.source
    sums: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for key, layouts in jobs.items():
        found = tau(list(layouts.values())) if len(layouts) > 1 else None
        if found is not None:
            sums[source[key]].append((found, len(layouts) * (len(layouts) - 1) // 2))
    return {name: sum(t * n for t, n in each) / sum(n for _, n in each) for name, each in sums.items()}
