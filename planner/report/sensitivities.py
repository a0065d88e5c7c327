"""What moves an answer, for a terminal: elasticities by strength, bars of the estimated inputs, the one to measure."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from planner.evaluate.explain import Explanation
from planner.report.console import console, table
from planner.report.numbers import written

HEADINGS = {"ttft": "TTFT", "tpot": "TPOT", "tok_s_per_chip": "tok/s/chip", "usd": "$/M out"}
UNITS = {"ttft": "s", "tpot": "s", "tok_s_per_chip": "1/s", "usd": "USD"}
ROWS, BARS, HALF = 24, 8, 24
"""Inputs in the table; bars of a headline; characters of the longer side of a bar."""
LEAST = 5e-4
"""A smaller elasticity shows as 0.00."""


def draw_sensitivities(found: Explanation) -> None:
    """Elasticities, the strongest input first; below and above where the point lies on a kink."""
    out = console()
    size = {name: max((abs(v) for v in row.values() if v is not None), default=0.0)
            for name, row in found.elasticities.items()}  # fmt: skip
    order = sorted(size, key=lambda name: (-size[name], name))
    sides = {(row["input"], row["quantity"]): row for row in found.kinks}
    out.print("\n[bold]Elasticities[/bold]: a 1 % larger input changes TTFT, TPOT, throughput, cost by so many percent")
    grid = table()
    grid.add_column("input")
    for heading in HEADINGS.values():
        grid.add_column(heading, justify="right")
    shown = [name for name in order[:ROWS] if size[name] >= LEAST]
    for name in shown:
        grid.add_row(name, *(elasticity(found.elasticities[name][key], sides.get((name, key))) for key in HEADINGS))
    out.print(grid)
    weaker = sum(1 for name in order if size[name] > 0) - len(shown)
    kinked = any((name, key) in sides for name in shown for key in HEADINGS)
    if kinked:
        out.print(
            "[dim]a | b: a ceiling or a largest-of turns exactly here; a as the input shrinks, b as it grows[/dim]"
        )
    out.print(f"[dim]and {weaker} weaker ones; --json lists every input[/dim]")
    changes = ", ".join(f"{HEADINGS[key]} {change * 100:+.1f} %" for key, change in found.one_more["effect"].items())
    out.print(f"one more request in every attention group, {found.one_more['requests']:,} in all: {changes}")


def elasticity(value: float | None, kink: dict[str, Any] | None) -> str:
    """'+0.46', or both sides of a kink."""
    if kink is not None:
        return " | ".join("jump" if side is None else signed(side) for side in (kink["below"], kink["above"]))
    return "-" if value is None else signed(value)


def signed(value: float) -> str:
    """'+0.46'; '0' for none."""
    return "0" if value == 0 else f"{value:+.2f}"


def draw_tornado(found: Explanation) -> None:
    """Bars of every headline, and the sentence on what to measure."""
    out = console()
    for key, rows in found.tornado.items():
        if not rows:
            out.print(f"\n[bold]{HEADINGS[key]}[/bold]: no estimated input moves it")
            continue
        unit = UNITS[key]
        value = escape(written(rows[0]["value"], unit))
        apart = "each estimate alone at its low and high end, a group's together"
        out.print(f"\n[bold]{HEADINGS[key]} {value}[/bold]: {apart}")
        picture = bars(rows[:BARS], unit)
        out.print("\n".join(picture), markup=False, soft_wrap=True)
        if len(rows) > BARS:
            out.print(f"[dim]and {len(rows) - BARS} weaker ones[/dim]")
        if key not in found.narrow_most:
            out.print(f"[dim]no single measurement narrows the range of {HEADINGS[key]} by one percent[/dim]")
        else:
            best = found.narrow_most[key]
            low, high = (written(v, unit) for v in best["range"])
            less, more = (written(v, unit) for v in best["narrowed"])
            out.print(f"{escape(best['sentence'])}: from {low} - {high} to {less} - {more}.", soft_wrap=False)
            own = best["chip"]
            if own and own["input"] != best["input"]:
                out.print(
                    f"[dim]of the chip's own figures: {escape(own['sentence'][0].lower() + own['sentence'][1:])}[/dim]"
                )
    if any(rows for rows in found.tornado.values()):
        out.print(
            "\n[dim]stack.model_error is what the formulas themselves may be off: figures measured on such a "
            "deployment, given to `planner calibrate`, narrow it. The first input of a group moves most.[/dim]"
        )


def bars(rows: list[dict[str, Any]], unit: str) -> list[str]:
    """One line per input: name, value at the low end, the bar around the present value, value at the high end."""
    longest = max(max(abs(e) for e in row["effect"]) for row in rows)
    names = [
        row["input"] + ("" if row["inputs"] == [row["input"]] else f" (group of {len(row['inputs'])})") for row in rows
    ]
    width = max(map(len, names))
    found = []
    for name, row in zip(names, rows, strict=True):
        least, most = min(0.0, *row["effect"]), max(0.0, *row["effect"])
        left = "█" * round(-least / longest * HALF)
        right = "█" * round(most / longest * HALF)
        low, high = row["effect"]
        found.append(f"{name:<{width}}  {left:>{HALF}}|{right:<{HALF}}  {low * 100:+.1f}, {high * 100:+.1f} %")
    return found
