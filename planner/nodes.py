"""The sympy nodes behind planner.algebra: nothing here is evaluated or rearranged by sympy.

Each node says how it is written for people (LaTeX, unicode) and in numpy, and evaluates exactly on plain numbers.
"""

from __future__ import annotations

import math
from typing import Any

import sympy
from sympy.printing.precedence import PRECEDENCE


class Node(sympy.Function):
    """A function that stays as it is built; `doit()` or numbers alone evaluate it."""

    numpy_call = ""
    latex_form = ""
    latex_encloses = False  # the form itself brackets its argument

    def _latex(self, printer: Any, exp: Any = None) -> str:
        text = self.latex_text(printer)
        return f"{{{text}}}^{{{exp}}}" if exp is not None else text

    def latex_text(self, printer: Any) -> str:
        """The node without an exponent; an argument of several terms or factors keeps its brackets."""
        level = 0 if self.latex_encloses else PRECEDENCE["Pow"]
        return self.latex_form.format(*(bracketed(printer.parenthesize(a, level), a) for a in self.args))

    def number(self, *values: float) -> float:
        """The node's value on floats."""
        raise NotImplementedError

    def fdiff(self, argindex: int = 1) -> Any:
        """The derivative by one argument, where it is smooth; ceilings and largest-of have kinks and give none."""
        raise ValueError(f"{type(self).__name__} has kinks")

    def _eval_evalf(self, prec: int) -> Any:
        numbers = [a.evalf(prec) for a in self.args]
        if all(n.is_Float or n.is_Integer for n in numbers):
            return sympy.Float(self.number(*map(float, numbers)), precision=prec)
        return self.func(*numbers)


def bracketed(text: str, argument: Any) -> str:
    """A number with a power of ten in brackets, so that a power may follow."""
    return rf"\left({text}\right)" if argument.is_Float and "^" in text else text


class CeilDiv(Node):
    """ceil(a / b), kept as a quotient so that exact divisions stay exact."""

    nargs = 2
    numpy_call = "ceil({0}/{1})"
    latex_form = r"\left\lceil {0} / {1} \right\rceil"

    def number(self, *v: float) -> float:
        return float(math.ceil(v[0] / v[1]))


class Whole(Node):
    """floor(a)."""

    nargs = 1
    numpy_call = "floor({0})"
    latex_form = r"\left\lfloor {0} \right\rfloor"
    latex_encloses = True

    def number(self, *v: float) -> float:
        return float(math.floor(v[0]))


class Log2Ceil(Node):
    """ceil(log2 a), exact at powers of two."""

    nargs = 1
    numpy_call = "ceil(log2({0}))"
    latex_form = r"\left\lceil \log_2 {0} \right\rceil"

    def number(self, *v: float) -> float:
        return float(math.ceil(math.log2(v[0])))


class Soft15(Node):
    """(x^1.5 + y^1.5)^(2/3)."""

    nargs = 2
    numpy_call = "soft15({0}, {1})"
    latex_form = r"\left( {0}^{{3/2}} + {1}^{{3/2}} \right)^{{2/3}}"

    def number(self, *v: float) -> float:
        return float(math.cbrt(v[0] ** 1.5 + v[1] ** 1.5) ** 2)

    def fdiff(self, argindex: int = 1) -> Any:
        return Root(self.args[argindex - 1] / self)  # (2/3) (...)^(-1/3) (3/2) x^(1/2)


class Raised15(Node):
    """x^1.5: half of a Soft15, so that a limit common to several of them is raised once."""

    nargs = 1
    numpy_call = "raised15({0})"
    latex_form = r"{0}^{{3/2}}"

    def number(self, *v: float) -> float:
        return v[0] * math.sqrt(v[0])


class Joined15(Node):
    """(a + b)^(2/3): the other half of a Soft15."""

    nargs = 2
    numpy_call = "joined15({0}, {1})"
    latex_form = r"\left( {0} + {1} \right)^{{2/3}}"

    def number(self, *v: float) -> float:
        return float(math.cbrt(v[0] + v[1]) ** 2)


class Soft2(Node):
    """sqrt(x^2 + y^2)."""

    nargs = 2
    numpy_call = "soft2({0}, {1})"
    latex_form = r"\sqrt{{ {0}^2 + {1}^2 }}"

    def number(self, *v: float) -> float:
        return math.hypot(v[0], v[1])

    def fdiff(self, argindex: int = 1) -> Any:
        return self.args[argindex - 1] / self


class Root(Node):
    """sqrt(a), kept whole: sympy would split products under it."""

    nargs = 1
    numpy_call = "sqrt({0})"
    latex_form = r"\sqrt{{ {0} }}"
    latex_encloses = True

    def number(self, *v: float) -> float:
        return math.sqrt(v[0])

    def fdiff(self, argindex: int = 1) -> Any:
        return 1 / (2 * self)


class Most(Node):
    """max, built unevaluated."""

    numpy_call = "maximum({0}, {1})"

    def latex_text(self, printer: Any) -> str:
        return r"\max\left(" + ", ".join(printer._print(a) for a in self.args) + r"\right)"

    def number(self, *v: float) -> float:
        return max(v)


class Least(Node):
    """min, built unevaluated."""

    numpy_call = "minimum({0}, {1})"

    def latex_text(self, printer: Any) -> str:
        return r"\min\left(" + ", ".join(printer._print(a) for a in self.args) + r"\right)"

    def number(self, *v: float) -> float:
        return min(v)


NODES: dict[str, Any] = {
    "maximum": Most,
    "minimum": Least,
    "ceil_div": CeilDiv,
    "whole": Whole,
    "log2_ceil": Log2Ceil,
    "soft15": Soft15,
    "soft2": Soft2,
    "root": Root,
    "log": sympy.log,
    "exp": sympy.exp,
}
