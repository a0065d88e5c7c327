"""Predicted against measured: every figure of a table or of the shipped measurements, with what bounds the worst."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from planner.errors import BadFile
from planner.evaluate.results import Result
from planner.evidence.bounds import Bound, bounds
from planner.evidence.coverage import Coverage, coverages
from planner.evidence.fit import PARAMETERS, ROWS_PER_PARAMETER, Fit, Parameter, fit, scored, start_of, telling
from planner.evidence.measurement import METRICS, Measurement
from planner.evidence.predict import Ready, deployable, grouped, predictions
from planner.evidence.rows import read_table
from planner.evidence.scores import by_source, orders, spread
from planner.evidence.shipped import measurements, publications

WORST = 5
TTFT = "ttft_ms"
FEWEST_TO_ANCHOR = 4


@dataclass(frozen=True)
class Row(Result):
    """One figure: measured and predicted in the unit of its metric."""

    id: str
    source: str
    stack: str
    metric: str
    phase: str
    unit: str
    measured: float
    predicted: float
    ratio: float
    scored: bool
    basis: str
    bound: str
    floor_s: float


@dataclass(frozen=True)
class Summary(Result):
    """Errors of one source, metric and phase: of |ln(predicted/measured)|, with the bias and the order of layouts."""

    source: str
    metric: str
    phase: str
    n: int
    median_abs_log_ratio: float
    p90_abs_log_ratio: float
    bias_log_ratio: float
    kendall_tau: float | None


@dataclass(frozen=True)
class Overall(Result):
    """Errors averaged over sources, each with one voice; `what` says which rows and how they were predicted."""

    what: str
    n: int
    sources: int
    median_abs_log_ratio: float
    p90_abs_log_ratio: float


@dataclass(frozen=True)
class Validation(Result):
    """What `planner validate` answers."""

    table: str
    rows: list[Row]
    skipped: list[dict[str, str]]
    summary: list[Summary]
    overall: list[Overall]
    coverage: list[Coverage] | None
    mean_kendall_tau: float | None
    worst: list[Row]
    unexplained: list[dict[str, Any]]


def validate(path: str | Path | None = None, *, leave_out: bool = False, coverage: bool = False) -> Validation:
    """The shipped measurements, or a CSV table in their columns, against today's stacks.

    leave_out: also refit every fitted stack without each source in turn and predict that source. coverage: also how
    often ranges hold what was measured. Raises BadFile where no row can be used.
    """
    if path is None:
        rows, skipped, name = measurements(), dict[str, str](), "shipped measurements"
    else:
        table = read_table(Path(path))
        rows, skipped, name = table.rows, table.skipped, str(path)
    items, left = deployable(rows)
    skipped |= left
    groups = grouped(items)
    found = predictions(groups, len(items))
    limits = bounds(groups, len(items))
    good = [i for i, value in enumerate(found) if np.isfinite(value) and value > 0]
    for i in sorted(set(range(len(items))) - set(good)):
        row = items[i].row
        skipped[row.id] = f"memory holds no request, or {row.metric} means nothing in {row.phase}"
    if not good:
        raise BadFile(name, "no row can be used", next(iter(skipped.values()), "the table is empty"))
    answers = [answer(items[i], float(found[i]), limits[i]) for i in good]
    logs = {items[i].row.id: float(np.log(found[i] / items[i].row.measured)) for i in good}
    used = [(items[i].row, logs[items[i].row.id]) for i in good if scored(items[i])]
    taus = orders(used)
    overall = totals_of(used, "as shipped")
    if leave_out:
        kept = [items[i] for i in good if scored(items[i])]
        whole = fits(kept)
        overall += totals_of(without_each(kept, whole), "each source left out")
        overall += totals_of(anchored(kept, whole), "each source anchored on its row of least load")
    by_size = sorted((a for a in answers if a.scored), key=lambda a: -abs(np.log(a.ratio)))
    return Validation(
        table=name, rows=answers, skipped=[{"id": key, "reason": reason} for key, reason in skipped.items()],
        summary=summaries([(items[i].row, logs[items[i].row.id]) for i in good], taus), overall=overall,
        coverage=coverages(rows) if coverage else None,
        mean_kendall_tau=float(np.mean(list(taus.values()))) if taus else None, worst=by_size[:WORST],
        unexplained=unexplained() if path is None else [],
    )  # fmt: skip


def answer(item: Ready, predicted: float, bound: Bound) -> Row:
    """One figure as it is answered, in the unit of its metric."""
    row = item.row
    metric = METRICS[row.metric]
    return Row(
        id=row.id, source=row.source, stack=row.stack, metric=row.metric, phase=row.phase, unit=metric.unit,
        measured=row.value, predicted=predicted / metric.scale, ratio=predicted / row.measured, scored=scored(item),
        basis=item.basis, bound=bound.name, floor_s=bound.floor_s,
    )  # fmt: skip


def summaries(rows: Sequence[tuple[Measurement, float]], taus: Mapping[str, float]) -> list[Summary]:
    """By source, metric and phase."""
    parts: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row, log in rows:
        parts[row.source, row.metric, row.phase].append(log)
    found = []
    for (source, metric, phase), logs in sorted(parts.items()):
        median, p90, bias = spread(logs)
        found.append(Summary(source, metric, phase, len(logs), median, p90, bias, taus.get(source)))
    return found


def totals_of(rows: Sequence[tuple[Measurement, float]], how: str) -> list[Overall]:
    """Averages over sources: rates and times per token; Kimi K3 apart; first tokens of a request alone."""
    parts = {
        "TPOT, ITL and throughput": [r for r in rows if r[0].metric != TTFT],
        "the same, Kimi K3": [r for r in rows if r[0].metric != TTFT and r[0].model == "kimi-k3"],
        "TTFT of one request": [r for r in rows if r[0].metric == TTFT],
    }
    return [
        Overall(f"{what}, {how}", len(part), len({r.source for r, _ in part}), *by_source(part))
        for what, part in parts.items()
        if part
    ]


def fits(items: Sequence[Ready]) -> dict[str, Fit]:
    """Every stack with rows, fitted to them."""
    found = {}
    for name in sorted({item.row.stack for item in items}):
        mine = [item for item in items if item.row.stack == name]
        found[name] = fit(mine, start_of(mine), telling(mine))
    return found


def without_each(items: Sequence[Ready], whole: Mapping[str, Fit]) -> list[tuple[Measurement, float]]:
    """Every source predicted by stacks that never saw it.

    Its stack is refitted without it, or, where it has no other source, takes the median of what the other stacks found.
    """
    found: list[tuple[Measurement, float]] = []
    for name, own in whole.items():
        mine = [item for item in items if item.row.stack == name]
        others = [other.values for key, other in whole.items() if key != name]
        for source in sorted({item.row.source for item in mine}):
            rest = [item for item in mine if item.row.source != source]
            held = [item for item in mine if item.row.source == source]
            blind = middle(others)
            values = fit(rest, own.values, chosen(rest, own)).values if rest else blind
            predicted = predictions(grouped(held), len(held), {**blind, **values})
            found += [
                (item.row, float(np.log(p / item.row.measured)))
                for item, p in zip(held, predicted, strict=True)
                if np.isfinite(p)
            ]
    return found


def middle(fitted: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Median of every parameter over the stacks that have it."""
    known = [p.name for p in PARAMETERS if any(p.name in values for values in fitted)]
    return {name: float(np.median([values[name] for values in fitted if name in values])) for name in known}


def chosen(rest: Sequence[Ready], own: Fit) -> tuple[Parameter, ...]:
    """What the rows that are left may fit, of what all of them did."""
    return tuple(p for p in PARAMETERS if p.name in own.values)[: max(1, len(rest) // ROWS_PER_PARAMETER)]


def anchored(items: Sequence[Ready], whole: Mapping[str, Fit]) -> list[tuple[Measurement, float]]:
    """Every source of at least four rows predicted from one: the median of other stacks, fitted to that row alone."""
    found: list[tuple[Measurement, float]] = []
    for name in whole:
        others = [other.values for key, other in whole.items() if key != name]
        blind = middle(others)
        mine = [item for item in items if item.row.stack == name and item.row.metric != TTFT]
        for source in sorted({item.row.source for item in mine}):
            held = sorted((i for i in mine if i.row.source == source), key=lambda i: (i.row.requests or 1e9, i.row.id))
            if len(held) < FEWEST_TO_ANCHOR:
                continue
            anchor = fit(held[:1], blind, PARAMETERS[:1]).values
            predicted = predictions(grouped(held[1:]), len(held) - 1, {**blind, **anchor})
            found += [
                (item.row, float(np.log(p / item.row.measured)))
                for item, p in zip(held[1:], predicted, strict=True)
                if np.isfinite(p)
            ]
    return found


def unexplained() -> list[dict[str, Any]]:
    """Shipped figures that no structure explains, by reason."""
    return [
        {"source": publication.source, "reason": reason, "ids": ids}
        for publication in publications()
        for reason, ids in publication.unexplained.items()
    ]
