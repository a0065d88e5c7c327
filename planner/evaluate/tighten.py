"""Fewer array passes for the same numbers: rows that are equal become one, rows used once move into their user, parts
that rows share get a row of their own.

What stays keeps its name. Arguments of ceilings and floors are left as they were written, and a quotient is never
turned into a product with a reciprocal, so that exact divisions stay exact.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import sympy

from planner.nodes import CeilDiv, Joined15, Log2Ceil, Raised15, Soft15, Whole

Rows = dict[str, Any]
SHARED = "shared_"
"""Prefix of the rows made for parts that several rows have."""


def symbol(name: str) -> Any:
    """The symbol of a row."""
    return sympy.Symbol(name, real=True)


def tightened(rows: Rows, outputs: tuple[str, ...]) -> Rows:
    """The rows with equal ones merged, single-use ones moved into their user, and shared parts named."""
    kept = frozenset(outputs)
    found = merged(inlined(merged(halved(rows), kept), kept), kept)
    return merged(shared(found), kept)


def halved(rows: Rows) -> Rows:
    """Rows whose soft maxima are written as two halves, so that a limit that several have is raised once."""
    return {
        name: value.replace(Soft15, lambda x, y: Joined15(Raised15(x), Raised15(y))) if value.has(Soft15) else value
        for name, value in rows.items()
    }


def merged(rows: Rows, kept: frozenset[str]) -> Rows:
    """Rows without those equal to an earlier one."""
    alias: dict[Any, Any] = {}
    seen: dict[Any, Any] = {}
    found: Rows = {}
    for name, value in rows.items():
        expression = value.xreplace(alias) if alias else value
        if name not in kept and (expression in seen or expression.is_Symbol or expression.is_number):
            alias[symbol(name)] = seen.get(expression, expression)
            continue
        seen.setdefault(expression, symbol(name))
        found[name] = expression
    return found


def inlined(rows: Rows, kept: frozenset[str]) -> Rows:
    """Rows without those that one other row uses once outside ceilings and floors."""
    while True:
        uses: Counter[str] = Counter()
        guarded: set[str] = set()
        for expression in rows.values():
            for node in sympy.preorder_traversal(expression):
                if node.is_Symbol:
                    uses[str(node)] += 1
                if isinstance(node, (CeilDiv, Whole, Log2Ceil)):
                    guarded |= {str(s) for s in node.free_symbols}
        single = {name for name in rows if uses[name] == 1 and name not in kept and name not in guarded}
        if not single:
            return rows
        moved: dict[Any, Any] = {}
        found: Rows = {}
        for name, value in rows.items():
            expression = value.xreplace(moved) if moved else value
            if name in single:
                moved[symbol(name)] = expression
            else:
                found[name] = expression
        rows = found


def shared(rows: Rows) -> Rows:
    """Rows with parts that occur more than once named; reciprocals are put back where they came from."""
    fresh = sympy.numbered_symbols(SHARED, real=True)
    parts, reduced = sympy.cse(list(rows.values()), symbols=fresh, optimizations=[], order="none")
    back: dict[Any, Any] = {}
    named: Rows = {}
    for part, value in parts:
        expression = value.xreplace(back)
        if expression.is_Pow and expression.exp.is_negative:
            back[part] = expression
        else:
            named[str(part)] = expression
    whole = {**named, **{name: value.xreplace(back) for name, value in zip(rows, reduced, strict=True)}}
    return ordered(whole)


def ordered(rows: Rows) -> Rows:
    """Every row after the rows it uses."""
    found: Rows = {}

    def place(name: str) -> None:
        if name in found or name not in rows:
            return
        for used in sorted(str(s) for s in rows[name].free_symbols):
            place(used)
        found[name] = rows[name]

    for name in rows:
        place(name)
    return found
