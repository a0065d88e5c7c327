"""A claim for a terminal: the reference case, how many cases hold, shares, what is not told, growth with length."""

from __future__ import annotations

import math
from typing import Any

from rich.markup import escape

from planner.evidence.claims import Claims
from planner.report.console import console, table
from planner.units import show_time

REFERENCE = "reference case (first choice of every assumption)"


def draw_claims(found: Claims) -> None:
    """Tables, then sentences."""
    out, claim = console(), found.claim
    out.print(f"[bold]{escape(claim['title'])}[/bold], {escape(claim['date'])}: {escape(claim['source'])}")
    for metric, stated in claim["claimed"].items():
        tolerance = f"{stated['ratio']:g} ± {stated['tolerance']:g}"
        out.print(f"claimed: {escape(stated['stated'])} ({metric} x {tolerance})", highlight=False)
    names = ", ".join(f"{name} {title}" for name, title in claim["changes"].items())
    out.print(f"by {escape(names)}; before: {escape(claim['baseline'])}")
    out.print(f"[bold]{escape(found.verdict)}[/bold]", highlight=False)
    for metric in claim["claimed"]:
        draw_case(found, metric, out)
    draw_counts(found, out)
    draw_shares(found, out)
    out.print()
    for sentence in found.notes:
        out.print(f"* {escape(sentence)}")
    if found.length is not None:
        draw_length(found.length, out)


def draw_case(found: Claims, metric: str, out: Any) -> None:
    """The reference case: each change alone, all, and the parts."""
    case, changes = found.cases[0], found.claim["changes"]
    if metric not in case:
        out.print(f"\n{metric}: the {REFERENCE} does not fit")
        return
    ratios, whole = case[metric], sum(case[metric]["shapley"].values())
    out.print(f"\n[bold]{metric}, {REFERENCE}[/bold]")
    grid = table()
    for name in ("change", "alone", "part", "share"):
        grid.add_column(name, justify="left" if name == "change" else "right")
    for name, title in changes.items():
        part = ratios["shapley"][name]
        grid.add_row(
            f"{name} {escape(title)}", f"x {ratios['alone'][name]:.3f}", f"x {math.exp(part):.3f}",
            f"{part / whole:.0%}".replace("%", " %") if whole else "-",
        )  # fmt: skip
    grid.add_row("all together", f"x {ratios['together']:.3f}", f"x {math.exp(whole):.3f}", "100 %")
    out.print(grid)


def draw_counts(found: Claims, out: Any) -> None:
    """How many cases hold, by choice."""
    holds, claim = found.holds, found.claim
    by_figure = ", ".join(f"{metric} in {count:,}" for metric, count in holds["by_figure"].items())
    out.print(f"\nholds in {holds['count']:,} of {holds['of']:,} cases that fit; apart: {by_figure}")
    grid = table()
    for name in ("assumption", "choice", "holds", "of"):
        grid.add_column(name, justify="right" if name in ("holds", "of") else "left")
    for axis, choices in holds["by_assumption"].items():
        title = claim["assumptions"][axis]
        for name, count in choices.items():
            grid.add_row(escape(title), escape(name), f"{count['holds']:,}", f"{count['of']:,}")
            title = ""
    out.print(grid)


def draw_shares(found: Claims, out: Any) -> None:
    """Shares of the log gain over the cases that hold."""
    if not found.holds["count"]:
        return
    out.print("\n[bold]share of the gain over the cases that hold: 10th percentile, median, 90th[/bold]")
    grid = table()
    grid.add_column("change")
    for metric in found.claim["claimed"]:
        grid.add_column(metric, justify="right")
    for name, title in found.claim["changes"].items():
        cells = []
        for metric in found.claim["claimed"]:
            band = found.shares[metric].get(name)
            cells.append("  ".join(f"{band[p] * 100:.0f} %" for p in ("p10", "p50", "p90")) if band else "-")
        grid.add_row(f"{name} {escape(title)}", *cells)
    out.print(grid)


def draw_length(length: dict[str, Any], out: Any) -> None:
    """Time of a prompt and of a step by length, with the exponent since the row above."""
    state = f"all changes made, {length['layout']}, one request a group"
    out.print(f"\n[bold]claimed: {escape(length['stated'])}[/bold]; {state}")
    grid = table()
    for name in ("tokens", "prompt", "exponent", "decode step", "exponent"):
        grid.add_column(name, justify="right")
    for row in length["rows"]:
        powers = ["" if row[k] is None else f"{row[k]:.2f}" for k in ("prompt_exponent", "step_exponent")]
        grid.add_row(
            f"{row['tokens']:,}", show_time(row["prompt_s"]), powers[0], show_time(row["step_s"]), powers[1]
        )  # fmt: skip
    out.print(grid)
