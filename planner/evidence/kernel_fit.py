"""What a kernel reaches, fitted to its latencies.

    minimise over p:  sum over rows of  rho( (t(p) - measured) / measured ),     rho(x) = 2 (sqrt(1 + (x/s)^2) - 1) s^2

t(p): the layer's own formula under the stack with the inputs p changed. The loss is that of least squares for small
residuals and grows as |x| for large ones: kernel selection leaves outliers. Each input stays within the bounds of its
record. One system is left out at a time to say how far the values carry; its rows' errors are those of the fit to the
rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.evidence.kernel_rows import KernelRow, entry
from planner.evidence.kernels import Floats, point, predictions, shape_of
from planner.record import Record

FITS = {
    "recurrent_decode": ("floor", "memory_fraction"),
    "recurrent_prefill": ("floor", "token_time", "streamed_vectors"),
    "experts": ("floor", "memory_fraction", "compute_fraction", "row_time"),
}
"""What is fitted of a kernel class where measurements/kernels/names.yaml does not say."""
SCALES = {"floor": 1e-5, "token_time": 1e-8, "streamed_vectors": 10.0, "expert_time": 1e-7, "row_time": 1e-9}
"""Sizes the search counts in; 1 where none is said."""
SOFT = 0.1
"""Relative residual from which a row counts as an outlier."""


class Fitted(Record):
    """One kernel under one stack: values with the least and most that leaving a system out gives, and errors.

    median, p90: of |predicted / measured - 1|; left_out_...: each system's rows under the fit to the others.
    """

    kernel: str
    stack: str
    systems: list[str]
    rows: int
    values: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    median: float
    p90: float
    left_out_median: float
    left_out_p90: float


def fit_kernels(rows: Sequence[KernelRow]) -> list[Fitted]:
    """One fit for each kernel of a stack, to the rows whose loads are known: recurrences and balanced experts."""
    groups: dict[tuple[str, str, str], list[KernelRow]] = {}
    for row in rows:
        if row.loads in ("", "balanced"):
            groups.setdefault((row.label, row.stack, row.kernel_class), []).append(row)
    return [fitted(own, inputs(own[0])) for _, own in sorted(groups.items())]


def inputs(row: KernelRow) -> list[str]:
    """The inputs a row's kernel is fitted by."""
    known = entry(row.kernel, row.dtype, row.family).get("fits", FITS[row.kernel_class])
    return [f"kernel.{row.kernel_class}.{name}" for name in known]


def fitted(rows: Sequence[KernelRow], names: Sequence[str]) -> Fitted:
    """The fit of one kernel, and its fits without one system each."""
    values = minimum(rows, names)
    off = errors(rows, names, values)
    without, apart = [values], []
    systems = sorted({row.system for row in rows})
    for system in systems if len(systems) > 1 else []:
        kept = [row for row in rows if row.system != system]
        without.append(minimum(kept, names))
        apart.append(errors([row for row in rows if row.system == system], names, without[-1]))
    left = np.concatenate(apart) if apart else off
    spread = np.array(without)
    return Fitted(
        kernel=rows[0].label, stack=rows[0].stack, systems=systems, rows=len(rows),
        values=named(names, values), low=named(names, spread.min(0)), high=named(names, spread.max(0)),
        median=float(np.median(off)), p90=float(np.quantile(off, 0.9)), left_out_median=float(np.median(left)),
        left_out_p90=float(np.quantile(left, 0.9)),
    )  # fmt: skip


def named(names: Sequence[str], values: Floats) -> dict[str, float]:
    """Values by input."""
    return dict(zip(names, map(float, values), strict=True))


def minimum(rows: Sequence[KernelRow], names: Sequence[str]) -> Floats:
    """The values with the least loss."""
    from scipy.optimize import least_squares

    measured = np.array([row.measured_s for row in rows])
    scale = np.array([SCALES.get(name.rpartition(".")[2], 1.0) for name in names])
    start = point(rows[0].stack, rows[0].system, *shape_of(rows[0])).values
    most = np.array([1.0 if name.endswith("_fraction") else np.inf for name in names])

    def residuals(x: Floats) -> Floats:
        return predictions(rows, dict(zip(names, x * scale, strict=True))) / measured - 1

    least = np.where(np.isinf(most), 0.0, 1e-3)
    first = np.clip([start[name] for name in names] / scale, least + 1e-3, most / scale - 1e-3)
    found = least_squares(residuals, first, bounds=(least, most / scale), loss="soft_l1", f_scale=SOFT, x_scale=1.0)
    return np.asarray(found.x * scale, dtype=float)


def errors(rows: Sequence[KernelRow], names: Sequence[str], values: Any) -> Floats:
    """|predicted / measured - 1| of rows under values."""
    measured = np.array([row.measured_s for row in rows])
    return np.abs(predictions(rows, dict(zip(names, values, strict=True))) / measured - 1)


__all__ = ["Fitted", "fit_kernels"]
