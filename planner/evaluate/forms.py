"""The sheet with its structural choices open: what a formula is under each format of the cache and each arrival.

A choice such as the format of the cache decides which formula holds. Options whose formulas give the same numbers, on
inputs scaled by an odd factor, share their sheet; the others are built and compared row by row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

from planner.evaluate.breakdown import operator_name, repeats
from planner.evaluate.case import Point
from planner.evaluate.estimate import run
from planner.evaluate.sheet import Book, build
from planner.kinds.formats import CHOICES
from planner.quantities import Quantity
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


def numbers(point: Point) -> tuple[tuple[str, float], ...]:
    """Every quantity of a point, to compare."""
    return tuple((name, row.value) for name, row in run(point)[0].rows.items())


def book_of(point: Point) -> Book:
    """The sheet of a point."""
    return build(point.shape, list(point.values), point.raw)


def forms_of(point: Point) -> Forms:
    """The open sheet. Raises ValueError where a choice changes which quantities there are."""
    base = book_of(point)
    changed: dict[str, Formula] = {}
    for choice, words in options_of(point).items():
        alike: dict[Any, list[str]] = {}
        for word in words:
            alike.setdefault(numbers(scaled(with_option(point, choice, word))), []).append(word)
        books = [base, *(book_of(with_option(point, choice, same[0])) for same in list(alike.values())[1:])]
        if any(list(book.rows) != list(base.rows) for book in books):
            raise ValueError(f"{choice} changes which quantities there are")
        for name, row in base.rows.items():
            forms = merged(books, list(alike.values()), name)
            if len(forms) > 1:
                if name in changed:
                    raise ValueError(f"{name} depends on two choices")
                changed[name] = Formula(row, choice, forms)
    formulas = {
        name: changed.get(name, Formula(row, None, (((), base.expression(name)),))) for name, row in base.rows.items()
    }
    return Forms(formulas, terms_of(base), base.inputs)


def merged(books: list[Book], words: list[list[str]], name: str) -> tuple[Form, ...]:
    """The distinct expressions of one quantity with the options each holds for."""
    found: dict[Any, list[str]] = {}
    for book, same in zip(books, words, strict=True):
        found.setdefault(book.expression(name), []).extend(same)
    return tuple((tuple(same), form) for form, same in found.items())


def terms_of(book: Book) -> list[Term]:
    """The breakdown in symbols."""
    import sympy

    chunks = sympy.Symbol("prompt_chunks", real=True)
    return [
        Term(item.phase, operator_name(item), item.sentence, item.time_s * repeats(item, book.on, chunks))
        for item in book.operators
        if item.phase in ("prefill", "decode")
    ]
