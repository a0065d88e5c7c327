"""Pictures in the terminal, in Braille: the front, the roofline; memory as bars."""

from __future__ import annotations

import math
from typing import Any

import plotille

WIDTH, HEIGHT = 70, 16
MARGIN = 16
"""Columns a figure takes beside its canvas."""


def _figure(x_label: str, y_label: str, width: int) -> Any:
    figure = plotille.Figure()
    figure.width, figure.height = max(20, min(WIDTH, width - MARGIN)), HEIGHT
    figure.x_label, figure.y_label = x_label, y_label
    figure.color_mode = "names"
    figure.with_colors = False
    return figure


def _log_ticks(figure: Any) -> None:
    def tick(value: Any, chars: int, *_: Any, left: bool = False, **__: Any) -> str:
        text = f"{10 ** float(value):.3g}"
        return text.ljust(chars) if left else text.rjust(chars)

    figure.register_label_formatter(float, tick)


def front(points: list[dict[str, Any]], width: int) -> str:
    """tokens/s per chip against tokens/s per user, both axes logarithmic."""
    figure = _figure("tokens/s per user", "tokens/s per chip", width)
    _log_ticks(figure)
    xs = [math.log10(p["tok_s_per_user"]) for p in points]
    ys = [math.log10(p["tok_s_per_chip"]) for p in points]
    _limits(figure, xs, ys)
    figure.plot(xs, ys)
    return str(figure.show(legend=False))


def _limits(figure: Any, xs: list[float], ys: list[float]) -> None:
    for values, setter in ((xs, figure.set_x_limits), (ys, figure.set_y_limits)):
        room = max(0.05, 0.05 * (max(values) - min(values)))
        setter(min_=min(values) - room, max_=max(values) + room)


def roofline(rows: list[dict[str, Any]], bandwidth: float, peak: float, width: int) -> str:
    """Operators under the roof: FLOP/s reached against FLOP per byte, both logarithmic."""
    placed = [(r["flops"] / r["bytes"], r["flops"] / r["time_s"]) for r in rows if r["bytes"] > 0 and r["flops"] > 0]
    figure = _figure("FLOP per byte", "FLOP/s", width)
    _log_ticks(figure)
    xs = [math.log10(x) for x, _ in placed]
    ys = [math.log10(y) for _, y in placed]
    left, right = min([*xs, 0.0]), max([*xs, math.log10(peak / bandwidth) + 1])
    steps = [left + (right - left) * i / 60 for i in range(61)]
    roof = [math.log10(min(bandwidth * 10**x, peak)) for x in steps]
    _limits(figure, [left, right], [*ys, *roof])
    figure.plot(steps, roof)
    figure.scatter(xs, ys, marker="o")
    return str(figure.show(legend=False))


def scatter(points: list[tuple[float, float]], x_label: str, y_label: str, width: int) -> str:
    """Points over the line of agreement, both axes logarithmic and alike."""
    figure = _figure(x_label, y_label, width)
    _log_ticks(figure)
    xs = [math.log10(x) for x, _ in points]
    ys = [math.log10(y) for _, y in points]
    _limits(figure, [*xs, *ys], [*xs, *ys])
    figure.plot([min(*xs, *ys), max(*xs, *ys)], [min(*xs, *ys), max(*xs, *ys)])
    figure.scatter(xs, ys, marker=".")
    return str(figure.show(legend=False))


def bar(parts: list[tuple[str, float]], capacity: float, width: int = 60) -> list[str]:
    """One bar of parts of a capacity, and a line naming them."""
    signs = "█▓▒░▚▞"
    cells: list[str] = []
    names: list[str] = []
    filled = 0.0
    for sign, (name, size) in zip(signs, parts, strict=False):
        start, filled = round(filled / capacity * width), filled + max(size, 0.0)
        cells.append(sign * (round(min(filled / capacity, 1) * width) - start))
        names.append(f"{sign} {name} {size / 1e9:.1f} GB")
    used = "".join(cells)
    return [f"|{used:·<{width}}| {capacity / 1e9:.0f} GB", "  ".join(names)]
