"""What an uncertain input alone does to an answer, and which one measurement would narrow it most.

A source of uncertainty is one estimated input, or all inputs of one `with_group`, which move together. Each is set to
its low and to its high end while the others keep their value. Then each is fixed at its value while the others are
drawn as for the ranges: the one that leaves the narrowest 10th to 90th percentile is the one to measure.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.evaluate.case import Point
from planner.evaluate.elasticity import asked_quantities
from planner.evaluate.grid import evaluate
from planner.evaluate.influence import swung
from planner.evaluate.inputs import Leaf
from planner.evaluate.ranges import DRAWS, PERCENTILES, band, draws

TITLES = {"ttft": "TTFT", "tpot": "TPOT", "tok_s_per_chip": "tokens/s per chip", "usd": "USD per million output tokens"}
OWN_ERROR = "stack.model_error"
LEAST, DIGITS, NAMED, WORTH = 1e-9, 12, 3, 0.01
"""A smaller relative change is rounding; digits kept of one; members of a group a sentence names; a smaller narrowing
is not worth a measurement."""


def sources(leaves: dict[str, Leaf]) -> dict[str, list[str]]:
    """Source of uncertainty -> the inputs that move with it: a group's name with its members, or one input."""
    found: dict[str, list[str]] = {}
    for name in sorted(leaves):
        if leaves[name].uncertain:
            found.setdefault(leaves[name].with_group.removeprefix("-") or name, []).append(name)
    return {names[0] if len(names) == 1 else key: names for key, names in found.items()}


def ordered(names: list[str], alone: dict[str, float]) -> list[str]:
    """Members of a group, the one that moves most by itself first."""
    return sorted(names, key=lambda name: (-alone[name], name))


def called(source: str, names: list[str]) -> str:
    """An input by its name; a group with its first members."""
    if names == [source]:
        return source
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"the group {source} ({', '.join(names[:NAMED])}{more})"


def ends(leaf: Leaf) -> tuple[float, float]:
    """The leaf at the low and at the high end of its source; a member with a minus moves against it."""
    return (leaf.high, leaf.low) if leaf.with_group.startswith("-") else (leaf.low, leaf.high)


def tornado(point: Point) -> dict[str, list[dict[str, Any]]]:
    """Per headline the sources that move it, the strongest first: inputs, the headline at both ends, relative change.

    low, high: the headline with the source at its low and at its high end; effect: the same over its value, less 1.
    """
    found, leaves = sources(point.leaves), point.leaves
    alone = strengths(point, asked_quantities(point))
    columns: dict[str, Any] = {}
    for i, names in enumerate(found.values()):
        for name in names:
            column = np.full((2 * len(found), 1), leaves[name].value)
            column[2 * i], column[2 * i + 1] = ends(leaves[name])
            columns[name] = column
    wanted = asked_quantities(point)
    names_of = frozenset(wanted.values())
    swung = evaluate(point.shape, {**point.values, **columns}, point.raw, names_of)
    central = evaluate(point.shape, point.values, point.raw, names_of)
    answer: dict[str, list[dict[str, Any]]] = {}
    for key, name in wanted.items():
        base = float(central[name])
        values = np.broadcast_to(np.asarray(swung[name]), (2 * len(found), 1))[:, 0]
        rows = []
        for i, (source, names) in enumerate(found.items()):
            low, high = float(values[2 * i]), float(values[2 * i + 1])
            effect = [round(end / base - 1, DIGITS) + 0.0 for end in (low, high)]
            if max(map(abs, effect)) > LEAST:
                row = {
                    "input": source,
                    "inputs": ordered(names, alone[key]),
                    "value": base,
                    "low": low,
                    "high": high,
                    "effect": effect,
                }
                rows.append(row)
        answer[key] = sorted(rows, key=lambda row: (-abs(row["high"] - row["low"]), row["input"]))
    return answer


def strengths(point: Point, wanted: dict[str, str]) -> dict[str, dict[str, float]]:
    """Headline -> uncertain input -> how far it alone moves the headline between its ends, relative to its value."""
    names, columns = swung(point.leaves)
    keep = frozenset(wanted.values())
    found = evaluate(point.shape, {**point.values, **columns}, point.raw, keep)
    central = evaluate(point.shape, point.values, point.raw, keep)
    answer = {}
    for key, quantity in wanted.items():
        pairs = np.broadcast_to(np.asarray(found[quantity]), (2 * len(names), 1)).reshape(len(names), 2)
        moves = np.abs(pairs[:, 1] - pairs[:, 0]) / abs(float(central[quantity]))
        answer[key] = {name: float(move) for name, move in zip(names, moves, strict=True)}
    return answer


def narrow_most(point: Point, count: int = DRAWS) -> dict[str, dict[str, Any]]:
    """Per headline the source whose fixing narrows the 10th to 90th percentile most, before and after, in words.

    `chip` says the same of the sources that are the chip's own figures. The model's own error stays in every range: no
    one input is measured to remove it.
    """
    found, drawn, wanted = sources(point.leaves), draws(point.leaves, count), asked_quantities(point)
    keep = frozenset(wanted.values())
    central = evaluate(point.shape, point.values, point.raw, keep)
    whole = widths(evaluate(point.shape, {**point.values, **drawn}, point.raw, keep), central, wanted)
    left: dict[str, dict[str, list[float]]] = {}
    for source, names in found.items():
        if source != OWN_ERROR:
            fixed = {name: column for name, column in drawn.items() if name not in names}
            left[source] = widths(evaluate(point.shape, {**point.values, **fixed}, point.raw, keep), central, wanted)
    alone = strengths(point, wanted)
    of_chip = [source for source in left if any(name.startswith("chip.") for name in found[source])]
    answer = {}
    for key in wanted:
        members = {source: ordered(names, alone[key]) for source, names in found.items()}
        best = narrowest(key, whole[key], left, members, list(left))
        if best:
            answer[key] = {**best, "chip": narrowest(key, whole[key], left, members, of_chip)}
    return answer


def narrowest(
    key: str, whole: list[float], left: dict[str, dict[str, list[float]]], found: dict[str, list[str]], among: list[str]
) -> dict[str, Any] | None:
    """The source of some that leaves the narrowest range of a headline; None where none narrows it."""
    before = whole[1] - whole[0]
    source = min(among, key=lambda name: left[name][key][1] - left[name][key][0], default=None)
    if source is None or before <= LEAST * abs(whole[1]):
        return None
    pair = left[source][key]
    shrinks = 1 - (pair[1] - pair[0]) / before
    if shrinks < WORTH:
        return None
    return {
        "input": source, "inputs": found[source], "range": whole, "narrowed": pair, "shrinks_fraction": shrinks,
        "sentence": f"Measuring {called(source, found[source])} would narrow {TITLES[key]} most: its "
        f"{PERCENTILES[0]}th to {PERCENTILES[1]}th percentile would shrink by {shrinks * 100:.0f} %",
    }  # fmt: skip


def widths(drawn: dict[str, Any], central: dict[str, Any], wanted: dict[str, str]) -> dict[str, list[float]]:
    """[low, high] of every headline."""
    return {
        key: [float(v) for v in np.ravel(band(np.ravel(drawn[name]), float(central[name])))]
        for key, name in wanted.items()
    }
