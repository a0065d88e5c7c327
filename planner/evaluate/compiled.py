"""A sheet as numpy source: one line per quantity under its own name, arrays dropped after their last use.

For large flat sweeps and draws. Our own printer: quotients stay quotients, so exact ceilings stay exact; sympy may
order factors of a product anew, so kernel and floats agree to rounding (1e-12), not to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import sympy
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from planner.evaluate.sheet import Book
from planner.nodes import Node

VARYING = ("ask.", "layout.")
BLOCK = 16_384
"""Rows evaluated together when the inputs are flat columns."""

HEAD = '''"""Generated from the planner's sheet of named quantities."""

from numpy import cbrt, ceil, exp, floor, log, log2, maximum, minimum, sqrt, square


def soft15(x, y):
    return square(cbrt(x * sqrt(x) + y * sqrt(y)))


def soft2(x, y):
    return sqrt(x * x + y * y)

'''


def joined(above: list[str], below: list[str]) -> str:
    """'a*b/(c*d)'."""
    top = "*".join(above) or "1"
    if not below:
        return top
    return f"{top}/{below[0]}" if len(below) == 1 else f"{top}/({'*'.join(below)})"


class NumpyPrinter(StrPrinter):
    """Expressions as numpy calls by name. scalars: names that hold one number over a whole sweep."""

    def __init__(self, scalars: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.scalars = scalars

    def _print_Function(self, expr: Any) -> str:
        if not isinstance(expr, Node):
            return f"{expr.func.__name__}({', '.join(map(self._print, expr.args))})"
        folds = expr.numpy_call in ("maximum({0}, {1})", "minimum({0}, {1})")
        if folds:
            text = self._print(expr.args[0])
            for argument in expr.args[1:]:
                text = expr.numpy_call.format(text, self._print(argument))
            return str(text)
        tight = expr.numpy_call.startswith("ceil({0}/")
        level = PRECEDENCE["Mul"]
        parts = [self.parenthesize(a, level, strict=True) if tight else self._print(a) for a in expr.args]
        if tight and not (expr.args[1].is_Symbol or expr.args[1].is_Number):
            parts[1] = f"({self._print(expr.args[1])})"
        return str(expr.numpy_call.format(*parts))

    def _print_Mul(self, expr: Any) -> str:
        """Factors that are scalars in a sweep first, in one bracket: numbers multiply numbers before any array."""
        parts: dict[str, list[str]] = {"fixed": [], "varying": [], "over_fixed": [], "over_varying": []}
        sign, factors = ("-", (-expr).as_ordered_factors()) if expr.could_extract_minus_sign() else ("", expr.args)
        for factor in factors:
            base, power = factor.as_base_exp()
            below = power.is_Rational and power < 0
            shown = base**-power if below else factor
            kind = "fixed" if {str(s) for s in shown.free_symbols} <= self.scalars else "varying"
            parts["over_" + kind if below else kind].append(self.parenthesize(shown, PRECEDENCE["Mul"], strict=False))
        top = joined(parts["fixed"], parts["over_fixed"])
        body = joined(parts["varying"], parts["over_varying"])
        if not parts["varying"] and not parts["over_varying"]:
            return sign + top
        return sign + (body if top == "1" else f"({top})*{body}" if body[0] != "1" else f"({top})/{body[2:]}")

    def _print_Pow(self, expr: Any, rational: bool = False) -> str:
        if expr.exp == sympy.S.Half:
            return f"sqrt({self._print(expr.base)})"
        if expr.exp == 2:
            return f"square({self._print(expr.base)})"
        return str(super()._print_Pow(expr, rational))

    def _print_Rational(self, expr: Any) -> str:
        return repr(float(expr))

    def _print_Float(self, expr: Any) -> str:
        return repr(float(expr))


def scalars(book: Book) -> frozenset[str]:
    """Inputs that come from specs, and quantities made of them alone: one number each, unless draws are an axis."""
    found = {symbol for name, symbol in book.inputs.items() if not name.startswith(VARYING)}
    for name, row in book.rows.items():
        if {str(s) for s in getattr(row.value, "free_symbols", ())} <= found:
            found.add(name)
    return frozenset(found)


def source(book: Book, outputs: tuple[str, ...], name: str = "kernel") -> str:
    """Text of a module with `kernel(inputs...)` returning the outputs; only what they need, in the sheet's order."""
    order = book.needs(outputs)
    uses = {q: sorted(str(s) for s in getattr(book.rows[q].value, "free_symbols", ())) for q in order}
    inputs = sorted({s for used in uses.values() for s in used} - set(order))
    last = {s: q for q in order for s in uses[q]}
    printer = NumpyPrinter(scalars(book))
    lines = []
    for q in order:
        lines.append(f"    {q} = {printer.doprint(sympy.sympify(book.rows[q].value))}")
        dead = [s for s in uses[q] if s in book.rows and last[s] == q and s not in outputs]
        if dead:
            lines.append(f"    del {', '.join(dead)}")
    body = "\n".join(lines)
    arguments = ",\n    ".join(inputs)
    returned = ", ".join(outputs)
    names = f"INPUTS = {tuple(inputs)!r}\nOUTPUTS = {outputs!r}\n"
    return f"{HEAD}\n{names}\n\ndef {name}(\n    {arguments},\n):\n{body}\n    return ({returned},)\n"


Kernel = Callable[..., tuple[Any, ...]]


def compile_kernel(book: Book, outputs: tuple[str, ...]) -> tuple[Kernel, tuple[str, ...]]:
    """(kernel, names of its inputs in order)."""
    space: dict[str, Any] = {}
    exec(compile(source(book, outputs), "<planner kernel>", "exec"), space)
    return space["kernel"], space["INPUTS"]


def arguments(book: Book, inputs: tuple[str, ...], values: Mapping[str, Any]) -> list[Any]:
    """The values of dotted names in the order a kernel takes them."""
    dotted = {symbol: name for name, symbol in book.inputs.items()}
    return [values[dotted[symbol]] for symbol in inputs]


def flat(kernel: Kernel, given: list[Any], rows: int, outputs: int) -> list[Any]:
    """The kernel over flat columns, in blocks that stay in cache. Scalars stay scalars."""
    found = [np.empty(rows) for _ in range(outputs)]
    with np.errstate(all="ignore"):
        for start in range(0, rows, BLOCK):
            part = slice(start, start + BLOCK)
            block = [v[part] if np.ndim(v) else v for v in given]
            for column, value in zip(found, kernel(*block), strict=True):
                column[part] = value
    return found
