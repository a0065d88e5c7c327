"""Where two costs cross: sign changes of their difference on a doubling grid, each then halved to the last whole step.

Between two grid points of one sign no crossing is looked for; the grid is fine enough (PER_DOUBLING points) that one is
missed only where the difference touches zero and turns back within 9 % of x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.evaluate.results import Result

PER_DOUBLING = 8
SAME = 1e-12
"""A difference below this share of the larger cost is none."""
Cost = Callable[[list[int]], list[float]]
"""Costs at several x at once."""


@dataclass(frozen=True)
class Crossing(Result):
    """One side against another over x. crossings: the first x at which the other side is cheaper, with who wins there.

    wins_first, wins_last: the cheaper side at either end of the range, or 'equal'. ratio_first, ratio_last: cost of the
    second side over the first's. fits: requests that fit on either side, in x, where x is a load.
    """

    title: str
    x: str
    sides: tuple[str, str]
    low: int
    high: int
    wins_first: str
    wins_last: str
    ratio_first: float
    ratio_last: float
    crossings: list[dict[str, float | str]]
    note: str = ""
    fits: tuple[int, int] | None = None

    @property
    def sentence(self) -> str:
        """The answer in words."""
        if not self.crossings:
            winner = self.wins_first if self.wins_first != "equal" else self.wins_last
            if winner == "equal":
                return f"none: equal from {self.low:,} to {self.high:,}"
            return f"none from {self.low:,} to {self.high:,}: {winner} wins"
        return "; ".join(f"from {int(c['at']):,} on {c['wins']}{self.beyond(float(c['at']))}" for c in self.crossings)

    def beyond(self, at: float) -> str:
        """' (beyond memory: 73 fit)' where a crossing cannot be reached on both sides."""
        if self.fits is None or at <= min(self.fits):
            return ""
        return f" (out of reach: {min(self.fits):,} fit)"


def grid(low: int, high: int) -> list[int]:
    """Whole numbers from low to high, PER_DOUBLING to a doubling."""
    found, factor, value = [low], 2 ** (1 / PER_DOUBLING), float(low)
    while found[-1] < high:
        value *= factor
        found.append(min(max(int(value), found[-1] + 1), high))
        value = max(value, found[-1])
    return found


def sign(first: float, second: float) -> int:
    """-1 where the first is cheaper, 1 where the second is, 0 where they are the same."""
    if abs(second - first) <= SAME * max(abs(first), abs(second)):
        return 0
    return -1 if first < second else 1


def crossing(
    title: str,
    x: str,
    sides: tuple[str, str],
    costs: tuple[Cost, Cost],
    low: int,
    high: int,
    note: str = "",
    fits: tuple[int, int] | None = None,
) -> Crossing:
    """Every crossing of two costs over whole x in [low, high], exact to 1."""
    names = {-1: sides[0], 1: sides[1], 0: "equal"}

    def at(values: list[int]) -> list[int]:
        return [sign(one, other) for one, other in zip(costs[0](values), costs[1](values), strict=True)]

    points = grid(low, high)
    signs = at(points)
    found: list[dict[str, float | str]] = []
    for left, right, before, after in zip(points, points[1:], signs, signs[1:], strict=False):
        while after != before:
            below, above, then = left, right, after
            while above - below > 1:
                middle = (below + above) // 2
                (now,) = at([middle])
                below, above, then = (middle, above, then) if now == before else (below, middle, now)
            found.append({"at": float(above), "wins": names[then]})
            left, before = above, then
    ends = [other / one for one, other in zip(costs[0]([low, high]), costs[1]([low, high]), strict=True)]
    return Crossing(title, x, sides, low, high, names[signs[0]], names[signs[-1]], ends[0], ends[1], found, note, fits)
