"""The sheet as a list of steps that derivatives run along.

    dq / q = sum over what q is made of (dq/du u/q) (du / u)              smooth steps, dq/du by sympy
    largest-of: the derivative of the branch taken; on a tie the largest of the tied ones, in the direction asked
    ceil, floor: 0; on a whole number nan (a jump) where the argument moves over it, else 0
Parts with kinks are taken out of their formula as steps of their own.
"""

from __future__ import annotations

import math
from typing import Any

import sympy

from planner.evaluate.case import Point
from planner.evaluate.estimate import run
from planner.evaluate.sheet import build
from planner.nodes import CeilDiv, Least, Log2Ceil, Most, Node, Whole

KINKED: tuple[type[Node], ...] = (CeilDiv, Whole, Log2Ceil, Most, Least)
ON_A_KINK, STILL = 1e-12, 1e-9
"""Relative distance from a kink that is rounding; relative movement of a ceiling's argument that is none."""


def number(expression: Any, values: dict[str, float]) -> float:
    """The value of an expression on floats. 0 / 0, where two limits vanish together, and 0 log 0 count as 0."""
    if expression.is_Symbol:
        return values[expression.name]
    if expression.is_Number:
        return float(expression)
    given = [number(part, values) for part in expression.args]
    if expression.is_Add:
        return math.fsum(given)
    if expression.is_Mul:
        return 0.0 if 0.0 in given else math.prod(given)
    if expression.is_Pow:
        return math.inf if given[0] == 0 > given[1] else float(given[0] ** given[1])
    if isinstance(expression, Node):
        return expression.number(*given)
    if isinstance(expression, sympy.log):
        return math.log(given[0]) if given[0] > 0 else 0.0
    return math.exp(given[0])


def over(x: float, y: float) -> float:
    """x / y, 0 where both vanish."""
    return 0.0 if x == 0 == y else x / y


class Tape:
    """Steps from inputs to the wanted quantities, with values and derivatives at a point."""

    def __init__(self, point: Point, wanted: tuple[str, ...]) -> None:
        book = build(point.shape, list(point.values), point.raw)
        self.wanted = wanted
        self.symbols = book.inputs
        self.values: dict[str, float] = {book.inputs[name]: float(value) for name, value in point.values.items()}
        self.plain = {name: float(row.value) for name, row in run(point)[0].rows.items()}
        self.smooth: dict[str, Any] = {}
        self.order: list[tuple[str, type[Node] | None, tuple[str, ...]]] = []
        for name in book.needs(wanted):
            expression = self.hoisted(book.expression(name))
            self.add(name, None, expression)
        self.kinked = False
        self.partials = self.differentiated()

    def add(self, name: str, kind: type[Node] | None, expression: Any, uses: tuple[str, ...] = ()) -> str:
        """Enter a step; returns its name."""
        if kind is None:
            self.smooth[name] = expression
            uses = tuple(sorted(str(s) for s in expression.free_symbols))
        self.order.append((name, kind, uses))
        return name

    def hoisted(self, expression: Any) -> Any:
        """The expression with every part that has a kink replaced by the symbol of a step of its own."""
        if not expression.args or not expression.has(*KINKED):
            return expression
        args = [self.hoisted(part) for part in expression.args]
        kind = type(expression)
        if kind not in KINKED:
            return expression.func(*args)
        if kind is CeilDiv:
            args = [args[0] / args[1]]
        names = tuple(self.add(f"part_{len(self.order)}", None, part) for part in args)
        return sympy.Symbol(self.add(f"part_{len(self.order)}", kind, None, names), real=True)

    def differentiated(self) -> dict[str, dict[str, float]]:
        """Step -> what it is made of -> derivative, at the point; values of the steps on the way."""
        values = self.values
        found: dict[str, dict[str, float]] = {}
        for name, kind, uses in self.order:
            if kind is not None:
                values[name] = self.turned(kind, [values[use] for use in uses])
                continue
            expression = self.smooth[name]
            found[name] = {use: number(expression.diff(sympy.Symbol(use, real=True)), values) for use in uses}
            values[name] = self.plain[name] if name in self.plain else number(expression, values)
        return found

    def turned(self, kind: type[Node], given: list[float]) -> float:
        """The value of a kink; notes whether the point lies on it."""
        if kind in (Most, Least):
            value = max(given) if kind is Most else min(given)
            self.kinked |= len(tied(given, value)) > 1
            return value
        level = math.log2(given[0]) if kind is Log2Ceil else given[0]
        if on_whole(level):
            self.kinked = True
            return float(round(level))
        return float(math.floor(level) if kind is Whole else math.ceil(level))

    def tangents(self, name: str, sign: float) -> dict[str, float]:
        """d ln quantity along d ln input = sign, of every wanted quantity; nan where it jumps."""
        moves = {self.symbols[name]: sign * self.values[self.symbols[name]]}
        for step, kind, uses in self.order:
            moving = [use for use in uses if use in moves]
            if not moving:
                continue
            if kind is None:
                move = 0.0
                for use in moving:
                    slope = self.partials[step][use]
                    move += slope * moves[use] if slope else 0.0
            elif kind in (Most, Least):
                candidates = [moves.get(uses[i], 0.0) for i in tied([self.values[u] for u in uses], self.values[step])]
                move = max(candidates) if kind is Most else min(candidates)
                move = math.nan if any(map(math.isnan, candidates)) else move
            else:
                move = self.jump(kind, uses[0], moves[uses[0]])
            if move:
                moves[step] = move
        return {wanted: over(moves.get(wanted, 0.0), self.values[wanted]) for wanted in self.wanted}

    def jump(self, kind: type[Node], argument: str, move: float) -> float:
        """0 for a ceiling or floor between its steps; nan where the argument crosses one."""
        value = self.values[argument]
        level = math.log2(value) if kind is Log2Ceil else value
        if math.isnan(move):
            return move
        if not on_whole(level) or abs(move) <= STILL * abs(value):
            return 0.0
        return math.nan if (move < 0) == (kind is Whole) else 0.0


def on_whole(level: float) -> bool:
    """The argument of a ceiling is a whole number, rounding apart."""
    return abs(level - round(level)) <= ON_A_KINK * max(1.0, abs(level))


def tied(given: list[float], value: float) -> list[int]:
    """Which arguments are the largest or smallest, rounding apart."""
    return [i for i, one in enumerate(given) if abs(one - value) <= ON_A_KINK * abs(value)]
