"""Named quantities: what a formula is given to name its intermediates.

A formula calls `say(name, value, sentence)` for every intermediate. On numbers (Numbers) the value comes back; on a
grid (Wanted) only the asked-for ones are kept; in a Sheet (planner.evaluate.sheet) the expression is recorded and its
symbol comes back. The suffix of a name is its unit. A duplicate name raises.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from planner.algebra import Q

SUFFIXES = {
    "_bytes_per_s": "B/s",
    "_flops_per_s": "FLOP/s",
    "_tokens_per_s": "1/s",
    "_requests_per_s": "1/s",
    "_usd_per_s": "USD/s",
    "_flops": "FLOP",
    "_bytes": "B",
    "_s": "s",
    "_usd": "USD",
}


@cache
def unit_of(name: str) -> str:
    """The unit a name ends in; no suffix is a plain count."""
    return next((unit for suffix, unit in SUFFIXES.items() if name.endswith(suffix)), "1")


@dataclass(frozen=True)
class Quantity:
    """One named intermediate."""

    name: str
    value: Q
    unit: str
    sentence: str
    reference: str


@dataclass(frozen=True)
class Operator:
    """What one operator costs: the row of a breakdown.

    `parts` are its time by bound, each alone at peak rate; `share` is the layer group whose count it repeats with.
    """

    phase: str
    group: str
    name: str
    sentence: str
    time_s: Q
    floor_s: Q
    flops: Q
    bytes: Q
    network_bytes: Q
    parts: dict[str, Q]
    basis: str


@dataclass
class Say:
    """Base: scopes and the book of rows. Subclasses decide what is kept and what comes back."""

    rows: dict[str, Quantity] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)
    prefix: str = ""
    phase: str = ""
    group: str = ""
    reference: str = ""
    keeps_floors = True

    def scope(self, name: str, reference: str = "", *, phase: str = "", group: str = "") -> Say:
        """The same book under a longer prefix; phase and group label the operators said below it."""
        inner = object.__new__(type(self))
        inner.__dict__.update(self.__dict__)
        inner.prefix = f"{self.prefix}{name}_"
        inner.reference = reference or self.reference
        inner.phase = phase or self.phase
        inner.group = group or self.group
        return inner

    def citing(self, reference: str) -> Say:
        """The same scope for what rests on one more reference."""
        inner = self.scope("", f"{self.reference}; {reference}")
        inner.prefix = self.prefix
        return inner

    def __call__(self, name: str, value: Q, sentence: str) -> Q:
        """Name a value; returns what the next formula should use in its place."""
        name = self.prefix + name
        if name in self.rows:
            raise ValueError(f"{name} is defined twice")
        self.rows[name] = Quantity(name, value, unit_of(name), sentence, self.reference)
        return self.handle(name, value)

    def handle(self, name: str, value: Q) -> Q:
        """What stands for the value from here on."""
        return value

    def operator(self, **row: Any) -> None:
        """Enter one operator in the breakdown."""
        self.operators.append(Operator(phase=self.phase, group=self.group, **row))


class Numbers(Say):
    """Keeps every named value: one point on floats."""


class Wanted(Say):
    """Keeps only the quantities named in `wanted`; the rest are freed as the formulas return."""

    wanted: frozenset[str] = frozenset()
    keeps_floors = False

    def __call__(self, name: str, value: Q, sentence: str) -> Q:
        name = self.prefix + name
        if name in self.wanted:
            self.rows[name] = Quantity(name, value, unit_of(name), sentence, self.reference)
        return value

    def operator(self, **row: Any) -> None:
        """A grid keeps no breakdown: one float run of a point gives it."""


def keeping(names: frozenset[str]) -> Wanted:
    """A Wanted that keeps these names."""
    book = Wanted()
    book.wanted = names
    return book
