"""A quantity as one formula in a few inputs: everything that does not depend on them is worked out to its number.

Quantities are taken in the sheet's order. One that no kept input reaches stands as its value; any other has the forms
of those it is made of put in their places. Nothing is rounded or approximated: at any values of the kept inputs the
form is the quantity itself, as long as the rest stays what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sympy

from planner.errors import BadInput, UnknownName, nearest
from planner.evaluate.sheet import Book
from planner.nodes import Least, Most, Node

GROUPS = {"all": ("",), "specs": ("chip.", "system.", "stack.", "kernel.", "link.")}
"""Words for many inputs -> how their names begin."""
WHOLE = 2.0**53
"""Floats below it are exact as whole numbers."""


def kept(asked: Iterable[str], names: Mapping[str, str], read: Iterable[str], known: Iterable[str]) -> frozenset[str]:
    """The inputs asked for by name, friendly name (`names`) or group, of those that are `read`.

    Raises UnknownName for what is not among the `known`, BadInput for what is and does not enter.
    """
    found: set[str] = set()
    read, known = set(read), list(known)
    for word in asked:
        name = names.get(word.strip().lower().replace("-", "_"), word.strip())
        if name in GROUPS:
            found |= {input for input in read if input.startswith(GROUPS[name])}
        elif name in read:
            found.add(name)
        elif name in known:
            raise BadInput("--closed-form", f"{name} does not enter this quantity", "leave it out")
        elif not name:
            raise BadInput("--closed-form", "names no input", "write specs, all, or inputs with ',' between")
        else:
            raise UnknownName("--closed-form", f"unknown input {name!r}", nearest(name, [*GROUPS, *names, *known]))
    return frozenset(found)


def closed_form(book: Book, name: str, values: Mapping[str, Any], rows: Mapping[str, Any], keep: frozenset[str]) -> Any:
    """The formula of `name` in the inputs `keep`; values of the other inputs and of all quantities are given."""
    forms = {
        sympy.Symbol(symbol, real=True): number(values[dotted])
        for dotted, symbol in book.inputs.items()
        if dotted not in keep
    }
    free = {sympy.Symbol(book.inputs[dotted], real=True) for dotted in keep}
    reached = set(free)
    for row in book.needs((name,)):
        expression, symbol = book.expression(row), sympy.Symbol(row, real=True)
        if expression.free_symbols & reached:
            reached.add(symbol)
            forms[symbol] = settled(expression.xreplace(forms))
        else:
            forms[symbol] = number(rows[row])
    return forms[sympy.Symbol(name, real=True)]


def settled(expression: Any) -> Any:
    """The expression with every node of numbers alone worked out, and a largest or smallest of the same twice once."""
    found = expression.replace(
        lambda part: isinstance(part, Node) and all(a.is_number for a in part.args),
        lambda part: number(part.number(*map(float, part.args))),
    )
    return found.replace(
        lambda part: isinstance(part, (Most, Least)) and len(set(part.args)) == 1, lambda part: part.args[0]
    )


def number(value: Any) -> Any:
    """A float as sympy keeps it best: whole numbers whole, so that 1 x is x."""
    value = float(value)
    return sympy.Integer(int(value)) if value.is_integer() and abs(value) < WHOLE else sympy.Float(value)
