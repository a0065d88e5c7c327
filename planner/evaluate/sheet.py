"""The formulas over symbols: an ordered sheet of named quantities.

Same functions, same names. Every input is a symbol of its dotted name with underscores; every quantity an expression
in inputs and earlier quantities, with its unit, a sentence and a reference. Explanation, LaTeX and the compiled
kernel read the sheet.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import sympy

from planner.evaluate.inputs import setting
from planner.model.deployment import deployment
from planner.model.structure import Structure
from planner.quantities import Operator, Quantity, Say


class Enough(Exception):
    """Every quantity that was wanted has been said."""


class Sheet(Say):
    """Keeps every named expression and hands back its symbol, so that the next formula is written in names.

    last: the quantity after which nothing more is wanted; none by default.
    """

    last: str | None = None

    def handle(self, name: str, value: Any) -> Any:
        if name == self.last:
            raise Enough
        return sympy.Symbol(name, real=True)


@dataclass(frozen=True)
class Book:
    """A finished sheet: quantities in order, and the symbol name of every input by its dotted name.

    operators: rows of the breakdown in symbols; on: the inputs as symbols.
    """

    rows: dict[str, Quantity]
    inputs: dict[str, str]
    operators: list[Operator] = field(default_factory=list)
    on: Any = None

    def expression(self, name: str) -> Any:
        """The formula of a quantity in terms of inputs and earlier quantities."""
        return sympy.sympify(self.rows[name].value)

    def closed_form(self, name: str, keep: frozenset[str] = frozenset()) -> Any:
        """The formula with every quantity not in `keep` substituted, down to inputs."""
        expression = self.expression(name)
        for other in reversed(self.rows):
            symbol = sympy.Symbol(other, real=True)
            if other not in keep and expression.has(symbol):
                expression = expression.xreplace({symbol: self.expression(other)})
        return expression

    def needs(self, names: tuple[str, ...]) -> list[str]:
        """The quantities the named ones depend on, in order, themselves included."""
        wanted: set[str] = set()
        todo = list(names)
        while todo:
            name = todo.pop()
            if name in self.rows and name not in wanted:
                wanted.add(name)
                todo += [str(s) for s in getattr(self.rows[name].value, "free_symbols", ())]
        return [name for name in self.rows if name in wanted]


def symbol_name(dotted: str) -> str:
    """'layout.stage0.kda' -> 'layout_stage0_kda'."""
    return dotted.replace(".", "_")


def build(shape: Structure, names: list[str], raw: dict[str, Any], last: str | None = None) -> Book:
    """The sheet of a structure whose inputs have these dotted names. Raises ValueError where two names collide.

    last: stop after this quantity.
    """
    inputs = {name: symbol_name(name) for name in names}
    if len(set(inputs.values())) != len(inputs):
        raise ValueError("two inputs share a symbol")
    symbols = {name: sympy.Symbol(symbol, real=True) for name, symbol in inputs.items()}
    sheet = Sheet()
    on = setting(shape, symbols, raw)
    sheet.last = last
    with suppress(Enough):
        deployment(sheet, shape, on)
    clash = set(inputs.values()) & set(sheet.rows)
    if clash:
        raise ValueError(f"{sorted(clash)[0]} is both an input and a quantity")
    return Book(sheet.rows, inputs, sheet.operators, on)
