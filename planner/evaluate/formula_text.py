"""Formulas for people: unicode for the terminal, LaTeX for a page. Names stay the quantities' own."""

from __future__ import annotations

from typing import Any

import sympy
from sympy.printing.latex import LatexPrinter
from sympy.printing.precedence import PRECEDENCE

from planner.evaluate.compiled import NumpyPrinter


class NameLatex(LatexPrinter):
    """LaTeX with whole names upright, not split at underscores."""

    def _print_Symbol(self, expr: Any, style: str = "plain") -> str:
        return r"\mathrm{" + str(expr.name).replace("_", r"\_") + "}"


SIGNS = (
    ("maximum(", "max("), ("minimum(", "min("), ("sqrt(", "√("), ("**", "^"), ("*", "·"),
)  # fmt: skip
"""What stands in code -> what people read; a power before a product."""


def latex(name: str, expression: Any) -> str:
    """'name = expression' in LaTeX."""
    printer = NameLatex({"mul_symbol": "dot"})
    return f"{printer.doprint(sympy.Symbol(name))} = {printer.doprint(expression)}"


class ShortNumbers(NumpyPrinter):
    """Six digits of a number are enough to read."""

    def _print_Pow(self, expr: Any, rational: bool = False) -> str:
        if expr.exp == 2:
            return f"{self.parenthesize(expr.base, PRECEDENCE['Pow'])}**2"
        return super()._print_Pow(expr, rational)

    def _print_Float(self, expr: Any) -> str:
        return f"{float(expr):.6g}"


def unicode(expression: Any) -> str:
    """One line: max, min, ceilings and roots in signs people read, numbers to six digits."""
    text = ShortNumbers().doprint(expression)
    for code, sign in SIGNS:
        text = text.replace(code, sign)
    return str(text)
