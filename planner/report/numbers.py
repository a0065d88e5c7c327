"""Numbers as people read them in a table, with the range under the value."""

from __future__ import annotations

from planner.units import ROUNDS_TO_1E3, show, show_time


def span(pair: list[float] | None, unit: str) -> str:
    """'49.3 to 67.6' in the unit; empty where there is no range."""
    if pair is None:
        return ""
    low, high = (written(value, unit) for value in pair)
    return f"[dim]{joined(low, high)}[/dim]" if low != high else ""


def joined(low: str, high: str) -> str:
    """'1.91 s', '3.50 s' -> '1.91-3.50 s': a unit or sign both share is written once."""
    if low.startswith("$"):
        return f"{low}-{high[1:]}"
    number, _, unit = low.partition(" ")
    return f"{number}-{high}" if unit == high.partition(" ")[2] else f"{low}-{high}"


def written(value: float | None, unit: str) -> str:
    """One value: seconds, bytes, USD or a plain rate."""
    if value is None:
        return "-"
    if unit == "USD":
        return f"${value:,.2f}"
    if unit == "s":
        return show_time(value)
    if unit == "1/s":
        return f"{value:,.0f}" if value >= ROUNDS_TO_1E3 else f"{value:.3g}"
    return show(value, unit)


def ranged(value: float | None, pair: list[float] | None, unit: str) -> str:
    """The value with its range on the next line."""
    band = span(pair, unit) if value is not None else ""
    return written(value, unit) + (f"\n{band}" if band else "")


def share(fraction: float) -> str:
    """0.4231 -> '42 %'."""
    return f"{fraction * 100:.0f} %"


def main_bound(bounds: dict[str, float]) -> str:
    """The largest bound with its share."""
    name = max(bounds, key=lambda b: bounds[b])
    return f"{name}\n[dim]{share(bounds[name])}[/dim]"
