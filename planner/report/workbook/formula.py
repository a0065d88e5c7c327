"""Expressions of the sheet as spreadsheet formulas, in functions that Excel 2016 and LibreOffice 7 both have.

Powers and signs are always in brackets: a spreadsheet reads -2^2 as 4 and 2^3^2 as 64. Quotients stay quotients, as in
the compiled kernel, so that ceilings of whole numbers stay exact. Rounding up is away from zero: what is rounded up
here is never negative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any

import sympy

from planner.errors import BadInput
from planner.nodes import CeilDiv, Joined15, Least, Log2Ceil, Most, Raised15, Root, Soft2, Soft15, Whole

LONGEST_FORMULA = 8192
DEEPEST_FORMULA = 64
DIGITS = 12
"""Of a logarithm: enough to tell neighbours apart, few enough that powers of two are whole."""
RELATIONS = {
    sympy.Eq: "=", sympy.Ne: "<>", sympy.StrictLessThan: "<", sympy.LessThan: "<=", sympy.StrictGreaterThan: ">",
    sympy.GreaterThan: ">=",
}  # fmt: skip
CALLS: dict[Any, str] = {
    Most: "MAX({0})",
    Least: "MIN({0})",
    sympy.Max: "MAX({0})",
    sympy.Min: "MIN({0})",
    sympy.And: "AND({0})",
    sympy.Or: "OR({0})",
    sympy.log: "LN({0})",
    sympy.exp: "EXP({0})",
    Root: "SQRT({0})",
    Whole: "INT({0})",
}
"""Functions of a list of arguments."""
FORMS: dict[Any, str] = {
    CeilDiv: "ROUNDUP({0}/{1},0)",
    Log2Ceil: f"ROUNDUP(ROUND(LN({{0}})/LN(2),{DIGITS}),0)",
    Soft15: "({0}^1.5+{1}^1.5)^(2/3)",
    Soft2: "SQRT({0}^2+{1}^2)",
    Raised15: "{0}^1.5",
    Joined15: "({0}+{1})^(2/3)",
}
"""Functions written out, every argument in brackets."""

Reference = Callable[[str], str]
"""Name of a symbol -> the cell or defined name that holds it."""


def formula(expression: Any, reference: Reference, where: str) -> str:
    """'=...' of an expression. Raises BadInput where a cell cannot hold it."""
    return fitting("=" + written(sympy.sympify(expression), reference), where)


def chosen(cell: str, forms: Iterable[tuple[tuple[str, ...], Any]], reference: Reference, where: str) -> str:
    """'=IF(...)': one expression by the word in a cell; the last one also stands for any other word."""
    parts = [(words, written(sympy.sympify(expression), reference)) for words, expression in forms]
    text = parts[-1][1]
    for words, form in reversed(parts[:-1]):
        text = f"IF({any_of(cell, words)},{form},{text})"
    return fitting("=" + text, where)


def any_of(cell: str, words: tuple[str, ...]) -> str:
    """The cell holds one of these words."""
    tests = [f"{cell}={quoted(word)}" for word in words]
    return tests[0] if len(tests) == 1 else f"OR({','.join(tests)})"


def quoted(text: str) -> str:
    """A text inside a formula."""
    return '"' + text.replace('"', '""') + '"'


def fitting(text: str, where: str) -> str:
    """The formula if a cell can hold it. Raises BadInput."""
    deepest = text.count("(")
    if deepest > DEEPEST_FORMULA:
        deepest = max(accumulate((letter == "(") - (letter == ")") for letter in text))
    for found, most, what in ((len(text), LONGEST_FORMULA, "characters"), (deepest, DEEPEST_FORMULA, "levels")):
        if found > most:
            do = "a spreadsheet cannot hold this model: use `planner explain`"
            raise BadInput(f"formula of {where}", f"has {found} {what}, and a cell holds {most}", do)
    return text


def written(expression: Any, reference: Reference) -> str:
    """An expression without the sign in front of a formula. Raises ValueError for what has no spreadsheet form."""
    kind = expression.func
    if expression.is_Symbol:
        return reference(expression.name)
    if expression.is_Number:
        return number(expression)
    if expression.is_Add:
        return total(expression, reference)
    if expression.is_Mul:
        return product(expression, reference)
    if expression.is_Pow:
        return power(expression, reference)
    if isinstance(expression, sympy.Piecewise):
        return piecewise(expression, reference)
    if kind in CALLS:
        return CALLS[kind].format(",".join(written(part, reference) for part in expression.args))
    if kind in FORMS:
        return FORMS[kind].format(*(bracketed(part, reference) for part in expression.args))
    if kind in RELATIONS:
        left, right = (bracketed(part, reference) for part in expression.args)
        return f"{left}{RELATIONS[kind]}{right}"
    raise ValueError(f"{kind.__name__} has no form in a spreadsheet")


def number(value: Any) -> str:
    """A number; a fraction or a negative one in brackets."""
    if value.is_Integer:
        text = str(int(value))
    elif value.is_Rational:
        return f"({value.p}/{value.q})"
    else:
        text = repr(float(value)).upper()
    return f"({text})" if text.startswith("-") else text


def bracketed(expression: Any, reference: Reference) -> str:
    """An operand: brackets around all but names and numbers."""
    text = written(expression, reference)
    return text if expression.is_Symbol or expression.is_Number else f"({text})"


def total(expression: Any, reference: Reference) -> str:
    """a+b-c, what is added first."""
    taken = [part for part in expression.args if part.could_extract_minus_sign()]
    added = [part for part in expression.args if part not in taken]
    text = "+".join(bracketed(part, reference) for part in added)
    for part in taken:
        text += "-" + bracketed(-part, reference)
    return text if added else "0" + text


def product(expression: Any, reference: Reference) -> str:
    """a*b/(c*d)."""
    above: list[str] = []
    below: list[str] = []
    for factor in expression.args:
        base, exponent = factor.as_base_exp()
        under = exponent.is_Rational and exponent < 0
        (below if under else above).append(bracketed(base**-exponent if under else factor, reference))
    return quotient("*".join(above) or "1", below)


def quotient(top: str, below: list[str]) -> str:
    """top/(c*d)."""
    if not below:
        return top
    return f"{top}/{below[0]}" if len(below) == 1 else f"{top}/({'*'.join(below)})"


def power(expression: Any, reference: Reference) -> str:
    """(a)^(b); a root as one, one over a as a quotient.

    With an exponent that may be large, EXP(b*LN(a)): where a power vanishes, LibreOffice gives an error and not 0.
    """
    base, exponent = expression.args
    if exponent.is_Rational and exponent < 0:
        return quotient("1", [bracketed(base**-exponent, reference)])
    if exponent == sympy.S.Half:
        return f"SQRT({written(base, reference)})"
    under, above = bracketed(base, reference), bracketed(exponent, reference)
    if exponent.is_number:
        return f"{under}^{above}"
    return f"IF({under}>0,EXP({above}*LN({under})),{under}^{above})"


def piecewise(expression: Any, reference: Reference) -> str:
    """IF(condition,a,IF(...)); the last branch stands alone if it always holds."""
    *branches, (value, condition) = expression.args
    text = written(value, reference)
    if condition is not sympy.true:
        branches, text = list(expression.args), "0/0"  # no branch holds: an error, not a number
    for value, condition in reversed(branches):
        text = f"IF({written(condition, reference)},{written(value, reference)},{text})"
    return text
