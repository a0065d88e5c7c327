"""Kernel latencies beside what the formulas of their layer say.

Every row is priced by the same function that prices the kernel inside a step (kda.decode_core, kda.prefill_core,
moe.grouped_products), on its system's chip with its stack; rows that share both are priced at once on arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from planner.evaluate.case import Point, case_of, point_of
from planner.evaluate.inputs import setting
from planner.evidence.kernel_rows import MODEL, KernelRow, Skipped, is_kernel_table, read_kernels
from planner.kinds.attention import kda
from planner.kinds.feedforward import moe
from planner.layout import Layout
from planner.model.deployment import grouped, reached, sized
from planner.quantities import keeping
from planner.record import Record
from planner.specs.library import load_model
from planner.specs.model import Model
from planner.specs.workload import Workload

Floats = np.ndarray[Any, np.dtype[np.float64]]
Key = tuple[Any, ...]


class Priced(KernelRow):
    """A row with its prediction."""

    predicted_s: float

    @property
    def ratio(self) -> float:
        """Predicted over measured."""
        return self.predicted_s / self.measured_s


class KernelError(Record):
    """Errors of one kernel on one system: of |predicted / measured - 1|, of |ln|, and the median ratio less 1."""

    system: str
    kernel: str
    phase: str
    loads: str
    stack: str
    rows: int
    median: float
    p90: float
    log_median: float
    log_p90: float
    bias: float


class KernelReport(Record):
    """A table of kernels against the formulas. reasons: rows left out by why, the most first."""

    table: str
    rows: list[Priced]
    skipped: list[Skipped]
    reasons: dict[str, int]
    summary: list[KernelError]


def validate_kernels(path: Path) -> KernelReport:
    """Price every row of a table and sum up the errors. Raises BadFile."""
    rows, skipped = read_kernels(path)
    priced = [Priced(**row.model_dump(), predicted_s=float(t)) for row, t in zip(rows, predictions(rows), strict=True)]
    reasons = Counter(row.reason for row in skipped)
    return KernelReport(
        table=path.name, rows=priced, skipped=skipped, reasons=dict(reasons.most_common()), summary=summarise(priced)
    )  # fmt: skip


def summarise(rows: Sequence[Priced]) -> list[KernelError]:
    """Errors by kernel, phase, loads and system."""
    groups: dict[Key, list[Priced]] = {}
    for row in rows:
        groups.setdefault((row.label, row.phase, row.loads, row.system, row.stack), []).append(row)
    return [errors(key, groups[key]) for key in sorted(groups)]


def errors(key: Key, rows: Sequence[Priced]) -> KernelError:
    """Errors of rows of one key."""
    kernel, phase, loads, system, stack = key
    ratio = np.array([row.ratio for row in rows])
    off, log = np.abs(ratio - 1), np.abs(np.log(ratio))
    return KernelError(
        system=system, kernel=kernel, phase=phase, loads=loads, stack=stack, rows=len(rows),
        median=float(np.median(off)), p90=float(np.quantile(off, 0.9)), log_median=float(np.median(log)),
        log_p90=float(np.quantile(log, 0.9)), bias=float(np.median(ratio) - 1),
    )  # fmt: skip


def predictions(rows: Sequence[KernelRow], changes: Mapping[str, Any] | None = None) -> Floats:
    """Predicted seconds of every row. changes: stack inputs by dotted name (kernel.experts.floor)."""
    found = np.empty(len(rows))
    groups: dict[Key, list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault((row.stack, row.system, row.kernel_class, *shape_of(row)), []).append(index)
    for same in groups.values():
        own = [rows[i] for i in same]
        found[same] = priced_together(own, point(own[0].stack, own[0].system, *shape_of(own[0])), changes or {})
    return found


def shape_of(row: KernelRow) -> tuple[int, int, int, int]:
    """Sizes of a row's experts; zeros for a recurrence."""
    return row.width, row.inner, row.top_k, row.experts


@cache
def point(stack: str, system: str, width: int, inner: int, top_k: int, experts: int) -> Point:
    """The model with a row's sizes on its chip under its stack; the layout is replaced by the rows' own."""
    model = model_of(width, inner, top_k, experts) if experts else load_model(MODEL)
    case = case_of(model, system, stack)
    return point_of(case, Layout.parse("TP1", model), Workload(isl=1, osl=1, concurrency=1))


def model_of(width: int, inner: int, top_k: int, experts: int) -> Model:
    """The model with routed experts of other sizes."""
    model = load_model(MODEL)
    sizes = {"latent": width, "inner": inner, "top_k": top_k, "experts": experts}
    feeds = {
        name: feed.model_copy(update=sizes) if feed.kind == "moe" else feed for name, feed in model.feed_forward.items()
    }
    return model.model_copy(update={"feed_forward": feeds})


def priced_together(rows: Sequence[KernelRow], base: Point, changes: Mapping[str, Any]) -> Floats:
    """Rows of one kernel class, system, stack and shape."""
    column = {name: np.array([float(getattr(row, name)) for row in rows]) for name in COLUMNS}
    own = {name: value for name, value in changes.items() if name in base.values}
    layout = {f"layout.{name}": column[name] for name in ("tp", "ep", "etp")}
    say = keeping(frozenset())
    on = setting(base.shape, {**base.values, **layout, **own}, base.raw)
    on = sized(say.scope("chip"), base.shape, grouped(say.scope("ranks"), reached(say.scope("rate"), on)))
    load: Any = SimpleNamespace(sequences=column["sequences"], tokens=column["tokens"])
    if rows[0].op == "experts":
        group = on.groups["moe"]
        found = moe.grouped_products(say, group, load.tokens, column["assigned"], column["active"], on)
    else:
        core = kda.prefill_core if rows[0].phase == "prefill" else kda.decode_core
        found = core(say, on.groups["kda"], load, on)
    return np.broadcast_to(np.asarray(found, dtype=float), len(rows))


COLUMNS = ("tp", "ep", "etp", "sequences", "tokens", "assigned", "active")

__all__ = ["KernelReport", "is_kernel_table", "predictions", "summarise", "validate_kernels"]
