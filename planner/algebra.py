"""The few operations a formula needs beyond + - * /.

Floats in, a float out; arrays in, an array out; symbols in, a sympy node out (planner.nodes, loaded only then).
Ceilings are always ceil(a / b), never a * (1 / b): 525 / 75 must stay 7.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

Q = Any
"""A quantity: float, numpy array or sympy expression. Formulas do not care which."""


def reader(*values: Q) -> str:
    """'symbol' if any value is a sympy expression, else 'array' if any is a numpy array, else 'number'."""
    sympy, numpy = sys.modules.get("sympy"), sys.modules.get("numpy")
    if sympy and any(isinstance(v, sympy.Basic) for v in values):
        return "symbol"
    if numpy and any(isinstance(v, numpy.ndarray) for v in values):
        return "array"
    return "number"


def operation(name: str, number: Callable[..., Q], array: Callable[..., Q]) -> Callable[..., Q]:
    """One operation with its three readers; the symbolic one is the node of the same name."""

    def apply(*values: Q) -> Q:
        kind = reader(*values)
        if kind == "number":
            return number(*values)
        if kind == "array":
            return array(sys.modules["numpy"], *values)
        from planner.nodes import NODES

        return NODES[name](*values)

    apply.__name__ = name
    return apply


def _fold(function: Callable[[Q, Q], Q], values: tuple[Q, ...]) -> Q:
    result = values[0]
    for value in values[1:]:
        result = function(result, value)
    return result


def _soft15(np: Any, x: Q, y: Q) -> Q:
    return np.square(np.cbrt(x * np.sqrt(x) + y * np.sqrt(y)))


maximum = operation("maximum", lambda *v: max(v), lambda np, *v: _fold(np.maximum, v))
minimum = operation("minimum", lambda *v: min(v), lambda np, *v: _fold(np.minimum, v))
ceil_div = operation("ceil_div", lambda a, b: float(math.ceil(a / b)), lambda np, a, b: np.ceil(a / b))
whole = operation("whole", lambda a: float(math.floor(a)), lambda np, a: np.floor(a))
root = operation("root", math.sqrt, lambda np, a: np.sqrt(a))
log = operation("log", math.log, lambda np, a: np.log(a))
exp = operation("exp", math.exp, lambda np, a: np.exp(a))
log2_ceil = operation("log2_ceil", lambda a: float(math.ceil(math.log2(a))), lambda np, a: np.ceil(np.log2(a)))
soft15 = operation(
    "soft15",
    lambda x, y: math.cbrt(x * math.sqrt(x) + y * math.sqrt(y)) ** 2,
    _soft15,
)
soft2 = operation("soft2", lambda x, y: math.sqrt(x * x + y * y), lambda np, x, y: np.sqrt(x * x + y * y))

NORMS = ("1", "1.5", "2", "max")


def soft_max(norm: str, x: Q, y: Q) -> Q:
    """(x^p + y^p)^(1/p): how two limits of one kernel share its time.

    p = 1 adds them (one after the other), p = max overlaps them fully; 1.5 and 2 lie between. p is part of the
    kernel's form, not a number to vary.
    """
    if norm == "1":
        return x + y
    if norm == "1.5":
        return soft15(x, y)
    return soft2(x, y) if norm == "2" else maximum(x, y)


def distinct(total: Q, share: Q, draws: Q) -> Q:
    """Expected distinct items among `total` when each of `draws` picks hits a given one with probability `share`.

    total (1 - (1 - share)^draws): monotone in draws, at most total.
    """
    return total * (1 - (1 - share) ** draws)


def several(ranks: Q) -> Q:
    """0 on one rank, 1 on more: closed form, so that one formula serves every layout."""
    return minimum(ranks - 1, 1)
