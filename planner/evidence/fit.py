"""Stack parameters from measured figures: least squares on logarithms, every source with the same voice.

    minimise  sum over sources s, and apart for their TTFT, of  mean over rows of rho(ln(predicted / measured))
              + sum over parameters of w^2 (ln x - ln x0)^2 / sigma^2

rho(r) = 2 c^2 (sqrt(1 + (r/c)^2) - 1): quadratic near 0, linear beyond c, so that a row which nothing explains does
not pull. x0, sigma: the starting value and how far it may be from the truth; w is small, and settles what no row tells.
Ranges: the sources are drawn again with replacement many times, each time with one Newton step from the optimum.
A parameter that the rows move less than the prior does is not identified by them.
Reference: P. Huber, Robust Statistics, 1981; B. Efron, Bootstrap methods, Annals of Statistics 7(1), 1979.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.evidence.predict import Ready, grouped, predictions

Vector = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Parameter:
    """One fitted input of a stack. start: where a stack says 0; spread: sigma, in logarithms; most: a hard limit."""

    name: str
    unit: str
    start: float
    spread: float
    most: float = float("inf")


PARAMETERS = (
    Parameter("stack.layer_time", "us", 40e-6, 0.8),
    Parameter("kernel.experts.floor", "us", 15e-6, 0.8),
    Parameter("kernel.experts.narrow_floor", "us", 15e-6, 0.8),
    Parameter("stack.prefill_factor", "1", 1.2, 0.3),
    Parameter("stack.first_token_time", "ms", 15e-3, 1.0),
)
"""What is fitted for every stack: fixed time of a layer, of its experts' kernels, of those that take
4-bit weights as they are, of a prefill, of a first token."""
FIRST_TOKEN = "stack.first_token_time"
"""Never the only parameter of rows of which any is no TTFT: it moves nothing else."""
BEND = 0.08
"""c of rho: a tenth is the noise of repeated measurements."""
WEIGHT = 0.05
"""w of the prior."""
RESAMPLES = 400
ROWS_PER_PARAMETER = 10
LONGEST, TOLERANCE, STEP = 30, 1e-3, 1e-3
FARTHEST = 3.0
"""A row further than a factor of 20 says no more than that."""


@dataclass(frozen=True)
class Fit:
    """The optimum: values by name with low and high; residuals ln(predicted / measured) of the rows in order."""

    values: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    identified: dict[str, bool]
    residuals: Vector


def scored(item: Ready) -> bool:
    """Whether a row is fitted and scored: grade A or B, an end-to-end figure; TTFT only where one request is alone."""
    row = item.row
    if row.grade == "C" or row.metric in ("dispatch_us", "combine_us"):
        return False
    return row.metric != "ttft_ms" or row.requests in (None, 1)


def voices(items: Sequence[Ready]) -> Vector:
    """Square root of the weight of each row: its source's rows of a kind share one vote."""
    kinds = [(item.row.source, item.row.metric == "ttft_ms") for item in items]
    count = Counter(kinds)
    return np.array([count[kind] ** -0.5 for kind in kinds])


def bent(residuals: Vector) -> Vector:
    """Signed square root of rho."""
    return np.sign(residuals) * BEND * np.sqrt(2 * (np.sqrt(1 + (residuals / BEND) ** 2) - 1))


def fit(items: Sequence[Ready], start: Mapping[str, float], parameters: Sequence[Parameter] = PARAMETERS) -> Fit:
    """The parameters that fit these rows, all of one stack; `start` has the stack's own values by name."""
    from scipy.optimize import least_squares

    groups, measured, voice = grouped(items), np.array([item.row.measured for item in items]), voices(items)
    first = np.log([start.get(p.name) or p.start for p in parameters])
    centre = np.log([p.start for p in parameters])
    spread = np.array([p.spread for p in parameters])

    def residual(x: Vector) -> Vector:
        found = np.log(predictions(groups, len(items), changes(x, parameters)) / measured)
        return np.clip(np.nan_to_num(found, nan=0.0), -FARTHEST, FARTHEST)

    def cost(x: Vector) -> Vector:
        return np.concatenate([voice * bent(residual(x)), WEIGHT * (x - centre) / spread])

    best = least_squares(cost, first, diff_step=STEP, max_nfev=LONGEST, xtol=TOLERANCE, ftol=TOLERANCE)
    low, high = resampled(best.x, best.fun, best.jac, items, parameters)
    told = np.diag(best.jac[: len(items)].T @ best.jac[: len(items)])
    prior = (WEIGHT / spread) ** 2
    return Fit(
        {p.name: min(float(np.exp(v)), p.most) for p, v in zip(parameters, best.x, strict=True)},
        low, high, {p.name: bool(t > q) for p, t, q in zip(parameters, told, prior, strict=True)}, residual(best.x),
    )  # fmt: skip


def start_of(items: Sequence[Ready]) -> dict[str, float]:
    """Values of the parameters in the stack these rows name, of those that enter any of them."""
    found: dict[str, float] = {}
    for item in items:
        found |= {p.name: item.point.values[p.name] for p in PARAMETERS if p.name in item.point.values}
    return found


def telling(items: Sequence[Ready], start: Mapping[str, float] | None = None) -> tuple[Parameter, ...]:
    """The parameters these rows may fit: one for every ten of them and at least one, those they move most first."""
    at = start or start_of(items)
    groups, voice = grouped(items), voices(items)
    known = [p for p in PARAMETERS if p.name in start_of(items)]
    x = np.log([at.get(p.name) or p.start for p in known])
    spread = np.array([p.spread for p in known])

    def logs(shift: Vector) -> Vector:
        return np.nan_to_num(np.log(predictions(groups, len(items), changes(x + shift, known))))

    base = logs(np.zeros(len(x)))
    moved = [float(np.sum((voice * (logs(STEP * row) - base)) ** 2)) for row in np.diag(spread)]
    count = max(1, len(items) // ROWS_PER_PARAMETER)
    if count == 1 and any(item.row.metric != "ttft_ms" for item in items):
        moved = [0.0 if p.name == FIRST_TOKEN else each for p, each in zip(known, moved, strict=True)]
    best = sorted(range(len(x)), key=lambda i: -moved[i])[:count]
    return tuple(known[i] for i in sorted(best))


def changes(x: Vector, parameters: Sequence[Parameter]) -> dict[str, float]:
    """Parameter values by name from their logarithms."""
    return {p.name: min(float(np.exp(value)), p.most) for p, value in zip(parameters, x, strict=True)}


def resampled(
    x: Vector, cost: Vector, jacobian: Any, items: Sequence[Ready], parameters: Sequence[Parameter]
) -> tuple[dict[str, float], dict[str, float]]:
    """10th and 90th percentile of each parameter over draws of whole sources; with one source, of its rows."""
    draw = np.random.default_rng(0)
    sources = sorted({item.row.source for item in items})
    keys = [item.row.source for item in items] if len(sources) > 1 else list(range(len(items)))
    names = sorted(set(keys), key=str)
    member = np.array([names.index(key) for key in keys])
    prior = slice(len(items), None)
    found = []
    for _ in range(RESAMPLES):
        times = np.bincount(draw.integers(0, len(names), len(names)), minlength=len(names))[member].astype(float)
        rows = jacobian[: len(items)] * times[:, None]
        matrix = rows.T @ jacobian[: len(items)] + jacobian[prior].T @ jacobian[prior]
        slope = rows.T @ cost[: len(items)] + jacobian[prior].T @ cost[prior]
        found.append(x - np.clip(np.linalg.solve(matrix, slope), -1.0, 1.0))
    low, high = np.exp(np.quantile(np.array(found), (0.1, 0.9), axis=0))
    low, high = np.minimum(low, np.exp(x)), np.maximum(high, np.exp(x))
    names_of = [p.name for p in parameters]
    return dict(zip(names_of, map(float, low), strict=True)), dict(zip(names_of, map(float, high), strict=True))
