"""The sheet with its structural choices open: what a formula is under each format of the cache and each arrival.

A choice such as the format of the cache decides which formula holds. Each option is run on floats, going on after every
row with the numbers of the first one: rows that differ are those whose own formula does. Their expressions are then
read from a sheet of that option. The inputs are scaled by an odd factor, so that formulas do not agree by chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from planner.evaluate.breakdown import operator_name, repeats
from planner.evaluate.case import Point
from planner.evaluate.estimate import run
from planner.evaluate.inputs import setting
from planner.evaluate.sheet import Book, build
from planner.kinds.formats import CHOICES
from planner.model.deployment import deployment
from planner.quantities import Numbers, Quantity
from planner.specs.workload import Arrivals

KV_FORMAT, ARRIVALS = "ask.kv_format", "ask.arrivals"
UNSCALED = ("ask.", "layout.", "count.", "constant.", "model.layers", "residual.layers")
SCALE = 0.73
"""No ratio of sizes in a formula, so that formulas that agree by chance on the inputs differ on scaled ones."""

Form = tuple[tuple[str, ...], Any]


@dataclass(frozen=True)
class Formula:
    """One quantity and its expressions by option; `choice` is None, and there is one, where no choice changes it."""

    quantity: Quantity
    choice: str | None
    forms: tuple[Form, ...]

    @property
    def uses(self) -> frozenset[str]:
        """Symbols of all its expressions."""
        return frozenset(str(s) for _, form in self.forms for s in getattr(form, "free_symbols", ()))


@dataclass(frozen=True)
class Term:
    """One operator of the breakdown: its runs times its time, in symbols."""

    phase: str
    name: str
    sentence: str
    time_s: Any

    @property
    def uses(self) -> frozenset[str]:
        """Symbols of its expression."""
        return frozenset(str(s) for s in self.time_s.free_symbols)


@dataclass(frozen=True)
class Forms:
    """Every quantity in the sheet's order, the operators, and the symbol of every input."""

    formulas: dict[str, Formula]
    terms: list[Term]
    inputs: dict[str, str]


def options_of(point: Point) -> dict[str, tuple[str, ...]]:
    """Choice -> its options, the one of this point first."""
    offered = {KV_FORMAT: CHOICES, ARRIVALS: get_args(Arrivals)}
    now = {KV_FORMAT: point.raw[KV_FORMAT], ARRIVALS: point.shape.arrivals}
    return {name: tuple(sorted(every, key=lambda word: word != now[name])) for name, every in offered.items()}


def with_option(point: Point, choice: str, word: str) -> Point:
    """The point under another option; its numbers stay."""
    if choice == ARRIVALS:
        return replace(point, shape=replace(point.shape, arrivals=word))  # type: ignore[arg-type]
    return replace(point, raw={**point.raw, choice: word})


def scaled(point: Point) -> Point:
    """The point with the numbers of its specs scaled down."""
    values = {n: v if n.startswith(UNSCALED) else v * SCALE for n, v in point.values.items()}
    return replace(point, values=values)


class Pinned(Numbers):
    """Goes on with the values of another run, so that a row differs only where its own formula does."""

    others: Mapping[str, float]

    def handle(self, name: str, value: Any) -> Any:
        return self.others.get(name, value)


def differing(point: Point, others: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """The quantities of a point whose own formula gives another number, with it. Raises ValueError if others exist."""
    say = Pinned()
    say.others = others
    deployment(say, point.shape, setting(point.shape, point.values, point.raw))
    if list(say.rows) != list(others):
        raise ValueError("a choice changes which quantities there are")
    return tuple((name, row.value) for name, row in say.rows.items() if row.value != others[name])


def forms_of(point: Point) -> Forms:
    """The open sheet. Raises ValueError where a choice changes which quantities there are.

    Formats are compared by the numbers their formulas give, arrivals by the formulas: a wait that a load saturates, or
    that nobody has, is the same number by either.
    """
    names = list(point.values)
    base = build(point.shape, names, point.raw)
    small = scaled(point)
    known = {name: row.value for name, row in run(small)[0].rows.items()}
    formulas = {name: Formula(row, None, (((), base.expression(name)),)) for name, row in base.rows.items()}
    for choice, words in options_of(point).items():
        if choice == ARRIVALS:
            alike, books = [words[0]], [([word], book_with(point, choice, word)) for word in words[1:]]
            changed = {
                name for _, book in books for name in base.rows if base.expression(name) != book.expression(name)
            }
        else:
            ways: dict[tuple[tuple[str, float], ...], list[str]] = {(): [words[0]]}
            for word in words[1:]:
                ways.setdefault(differing(with_option(small, choice, word), known), []).append(word)
            alike, changed = ways[()], {name for rows in ways for name, _ in rows}
            books = [(same, book_with(point, choice, same[0], rows[-1][0])) for rows, same in ways.items() if rows]
        for name in changed:
            if formulas[name].choice is not None:
                raise ValueError(f"{name} depends on two choices")
            forms = [(alike, base.expression(name))]
            forms += [(same, book.expression(name) if name in book.rows else forms[0][1]) for same, book in books]
            formulas[name] = Formula(base.rows[name], choice, merged(forms))
    return Forms(formulas, terms_of(base), base.inputs)


def book_with(point: Point, choice: str, word: str, last: str | None = None) -> Book:
    """The sheet under another option, whole or as far as a quantity."""
    other = with_option(point, choice, word)
    return build(other.shape, list(other.values), other.raw, last=last)


def merged(forms: Iterable[tuple[list[str], Any]]) -> tuple[Form, ...]:
    """The distinct expressions of one quantity with the options each holds for."""
    found: dict[Any, list[str]] = {}
    for words, form in forms:
        found.setdefault(form, []).extend(words)
    return tuple((tuple(words), form) for form, words in found.items())


def terms_of(book: Book) -> list[Term]:
    """The breakdown in symbols."""
    import sympy

    chunks = sympy.Symbol("prompt_chunks", real=True)
    return [
        Term(item.phase, operator_name(item), item.sentence, item.time_s * repeats(item, book.on, chunks))
        for item in book.operators
        if item.phase in ("prefill", "decode")
    ]
