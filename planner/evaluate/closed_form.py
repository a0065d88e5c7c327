"""A quantity as one formula in a few inputs: everything that does not depend on them is worked out to its number.

Quantities are taken in the sheet's order. One that no kept input reaches stands as its value; any other has the forms
of those it is made of put in their places. Nothing is rounded or approximated: at any values of the kept inputs the
form is the quantity itself, as long as the rest stays what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sympy

from planner.errors import BadInput, UnknownName, nearest
from planner.evaluate.inputs import LENGTHS, full_length
from planner.evaluate.sheet import Book
from planner.evaluate.variables import FRIENDLY
from planner.nodes import Least, Most, Node

GROUPS = {"all": ("",), "specs": ("chip.", "system.", "stack.", "kernel.", "link.")}
"""Words for many inputs -> how their names begin."""
WHOLE = 2.0**53
"""Floats below it are exact as whole numbers."""


def kept(
    asked: Iterable[str], called: Callable[[str], str], read: Iterable[str], known: Iterable[str]
) -> frozenset[str]:
    """The inputs asked for by name, by what people call them (`called` tells the name) or by group, of those `read`.

    Raises UnknownName for what is not among the `known`, BadInput for what is and does not enter.
    """
    found: set[str] = set()
    read, known = set(read), list(known)
    for word in asked:
        name = called(word.strip())
        if name in GROUPS:
            own = {input for input in read if input.startswith(GROUPS[name])}
            if not own:
                raise BadInput("--closed-form", f"no input of {name} enters this quantity", "name others, or all")
            found |= own
        elif name in read:
            found.add(name)
        elif name in known:
            raise BadInput("--closed-form", f"{name} does not enter this quantity", "leave it out")
        elif not name:
            raise BadInput("--closed-form", "names no input", "write specs, all, or inputs with ',' between")
        else:
            raise UnknownName("--closed-form", f"unknown input {name!r}", nearest(name, [*GROUPS, *FRIENDLY, *known]))
    return frozenset(found)


def closed_form(book: Book, name: str, values: Mapping[str, Any], rows: Mapping[str, Any], keep: frozenset[str]) -> Any:
    """The formula of `name` in the inputs `keep`; values of the other inputs and of all quantities are given.

    A request reaches ISL + OSL tokens: where either is kept, so is what their sum is in.
    """
    symbols = {dotted: sympy.Symbol(symbol, real=True) for dotted, symbol in book.inputs.items()}
    forms = {symbol: number(values[dotted]) for dotted, symbol in symbols.items() if dotted not in keep}
    reached = {symbols[dotted] for dotted in keep}
    if LENGTHS & keep and values["ask.length"] == values["ask.isl"] + values["ask.osl"] and "ask.length" not in keep:
        length = symbols["ask.length"]
        forms[length] = full_length(*(forms.get(symbols[part], symbols[part]) for part in sorted(LENGTHS)))
        reached.add(length)
    for row in book.needs((name,)):
        expression, symbol = book.expression(row), sympy.Symbol(row, real=True)
        if expression.free_symbols & reached:
            reached.add(symbol)
            forms[symbol] = put(expression, forms)
        else:
            forms[symbol] = number(rows[row])
    return forms[sympy.Symbol(name, real=True)]


def put(expression: Any, forms: Mapping[Any, Any]) -> Any:
    """The expression with forms for its symbols; nodes of numbers alone are worked out, a largest of the same is it.

    Only the expression itself is walked: what is put in has been through here already.
    """
    if not expression.args:
        return forms.get(expression, expression)
    parts = [put(part, forms) for part in expression.args]
    if isinstance(expression, Node) and all(part.is_number for part in parts):
        return number(expression.func.number(expression, *map(float, parts)))
    if isinstance(expression, (Most, Least)) and len(set(parts)) == 1:
        return parts[0]
    return expression.func(*parts)


def number(value: Any) -> Any:
    """A float as sympy keeps it best: whole numbers whole, so that 1 x is x."""
    value = float(value)
    return sympy.Integer(int(value)) if value.is_integer() and abs(value) < WHOLE else sympy.Float(value)
