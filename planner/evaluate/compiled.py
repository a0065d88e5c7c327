"""A sheet as numpy source: its quantities under their own names, arrays dropped after their last use.

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

from planner.evaluate.grid import warm_heap
from planner.evaluate.sheet import Book
from planner.evaluate.tighten import tightened
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


def raised15(x):
    return x * sqrt(x)


def joined15(x, y):
    return square(cbrt(x + y))

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
        varying = {str(s) for s in expr.exp.free_symbols} - self.scalars
        if varying and {str(s) for s in expr.base.free_symbols} <= self.scalars:
            return f"exp(log({self._print(expr.base)})*{self.parenthesize(expr.exp, PRECEDENCE['Mul'])})"
        if expr.exp == sympy.S.Half:
            return f"sqrt({self._print(expr.base)})"
        if expr.exp == 2:
            return f"square({self._print(expr.base)})"
        return str(super()._print_Pow(expr, rational))

    def _print_Rational(self, expr: Any) -> str:
        return repr(float(expr))

    def _print_Float(self, expr: Any) -> str:
        return repr(float(expr))


def scalars(book: Book, rows: Mapping[str, Any]) -> frozenset[str]:
    """Inputs that come from specs, and rows made of them alone: one number each, unless draws are an axis."""
    found = {symbol for name, symbol in book.inputs.items() if not name.startswith(VARYING)}
    for name, expression in rows.items():
        if {str(s) for s in expression.free_symbols} <= found:
            found.add(name)
    return frozenset(found)


def parts(book: Book, outputs: tuple[str, ...], tight: bool, notes: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """(symbols of the inputs that the outputs need, lines of the kernel's body). notes: a comment below a quantity."""
    rows = {name: sympy.sympify(book.rows[name].value) for name in book.needs(outputs)}
    if tight:
        rows = tightened(rows, outputs)
    uses = {name: sorted(str(s) for s in expression.free_symbols) for name, expression in rows.items()}
    inputs = sorted({s for used in uses.values() for s in used} - set(rows))
    last = {s: name for name in rows for s in uses[name]}
    printer = NumpyPrinter(scalars(book, rows))
    lines = []
    for name, expression in rows.items():
        lines.append(f"    {name} = {printer.doprint(expression)}")
        if name in notes:
            lines.append(f"    # {notes[name]}")
        dead = [s for s in uses[name] if s in rows and last[s] == name and s not in outputs]
        if dead:
            lines.append(f"    del {', '.join(dead)}")
    return inputs, lines


def source(book: Book, outputs: tuple[str, ...], *, tight: bool = True, notes: Mapping[str, str] | None = None) -> str:
    """Text of a module with `kernel(inputs...)` returning the outputs; only what they need, in the sheet's order.

    tight: fewer array passes, at the cost of the names that only one other quantity uses (planner.evaluate.tighten);
    otherwise every quantity keeps its own line. notes: quantity -> the comment below its line.
    """
    inputs, lines = parts(book, outputs, tight, notes or {})
    body = "\n".join(lines)
    arguments = ",\n    ".join(inputs)
    returned = ", ".join(outputs)
    names = f"INPUTS = {tuple(inputs)!r}\nOUTPUTS = {outputs!r}\n"
    return f"{HEAD}\n{names}\n\ndef kernel(\n    {arguments},\n):\n{body}\n    return ({returned},)\n"


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
    warm_heap()
    found = [np.empty(rows) for _ in range(outputs)]
    with np.errstate(all="ignore"):
        for start in range(0, rows, BLOCK):
            part = slice(start, start + BLOCK)
            block = [v[part] if np.ndim(v) else v for v in given]
            for column, value in zip(found, kernel(*block), strict=True):
                column[part] = value
    return found
