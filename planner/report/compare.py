"""Deployments side by side, and break-evens, for a terminal."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from planner.evaluate.break_even import BreakEven
from planner.evaluate.compare import TOTALS, Comparison
from planner.report.console import console, table
from planner.report.numbers import share, written
from planner.units import show_time

LINES = {
    "serving.ttft_s": ("TTFT as served", "s"),
    "prefill.ttft_s": ("TTFT, one request, idle", "s"),
    "decode.tpot_s": ("TPOT as served", "s"),
    "decode.step_s": ("decode step alone", "s"),
    "serving.e2e_s": ("end to end", "s"),
    "serving.tok_s_per_chip": ("output tok/s per chip", "1/s"),
    "decode.tok_s_per_chip": ("decode tok/s per chip", "1/s"),
    "prefill.tok_s_per_chip": ("prompt tok/s per chip", "1/s"),
    "cost.usd_per_million_output_tokens": ("per million output tokens", "USD"),
    "memory.max_concurrency": ("requests that fit", "count"),
}
MOST_OPERATORS = 12
SMALL = 0.0005
"""A smaller share of the first's total is left to the last row."""


def draw_comparison(found: Comparison) -> None:
    """Headlines with ratios, then each phase's difference by operator."""
    out, job = console(), found.workload
    letters = [chr(ord("A") + i) for i in range(len(found.variants))]
    out.print(f"prompt {job['isl']:,} + output {job['osl']:,} tokens, {job['concurrency']:,} in flight")
    for letter, variant in zip(letters, found.variants, strict=True):
        weights = f", {variant.weights} weights" if variant.weights else ""
        weights += f", {variant.kv_dtype} cache" if "cache" in found.varied else ""
        what = f"{variant.model}{weights} on {variant.system}, {variant.stack}, {variant.layout}, {variant.chips} chips"
        out.print(f"{letter}  {escape(what)}" + ("" if variant.fits else "  [bold]does not fit[/bold]"))
    grid = table()
    grid.add_column("")
    for letter in letters:
        grid.add_column(letter, justify="right")
        if letter != letters[0]:
            grid.add_column("over A", justify="right")
    for key, (title, unit) in LINES.items():
        if all(key in variant.headlines for variant in found.variants):
            grid.add_row(title, *cells(found, key, unit))
    out.print()
    out.print(grid)
    for phase in TOTALS:
        draw_difference(found, phase, letters, out)
    errors = [f"{letter} {v.expected_error['basis']} {share(v.expected_error['median_fraction'])}"
              for letter, v in zip(letters, found.variants, strict=True)]  # fmt: skip
    out.print(f"[dim]median error of the model: {', '.join(errors)}[/dim]")


def cells(found: Comparison, key: str, unit: str) -> list[str]:
    """The value of each deployment, and from the second on its ratio."""
    made: list[str] = []
    for at, variant in enumerate(found.variants):
        value = variant.headlines[key]
        made.append(f"{value:,.0f}" if unit == "count" else written(value, unit))
        over = variant.ratios[key]
        made += ["-" if over is None else f"x {over:.2f}"] if at else []
    return made


def draw_difference(found: Comparison, phase: str, letters: list[str], out: Any) -> None:
    """Seconds each operator takes more than in A, the largest first; they add up to the difference of the totals."""
    first = found.variants[0].totals[phase]
    largest: dict[str, float] = {}
    for variant in found.variants[1:]:
        for name, change in variant.changed[phase].items():
            largest[name] = max(largest.get(name, 0.0), abs(change))
    names = [n for n in sorted(largest, key=lambda n: -largest[n]) if largest[n] > SMALL * first][:MOST_OPERATORS]
    what = "decode step" if phase == "decode" else "one prompt on an idle system"
    out.print(f"\n[bold]{what}: {show_time(first)} in A; more (+) or less (-) than in A[/bold]")
    grid = table()
    grid.add_column("operator")
    for letter in letters[1:]:
        grid.add_column(letter, justify="right")
    changes = [variant.changed[phase] for variant in found.variants[1:]]
    for name in names:
        grid.add_row(name, *(signed(change.get(name, 0.0)) for change in changes))
    rest = [sum(v for name, v in change.items() if name not in names) for change in changes]
    grid.add_row("all others", *(signed(value) for value in rest))
    grid.add_row("together", *(signed(sum(change.values())) for change in changes))
    out.print(grid)


def signed(seconds: float) -> str:
    """'+1.2 ms', '-40 us', '0'."""
    return "0" if abs(seconds) < 1e-12 else ("+" if seconds > 0 else "-") + show_time(abs(seconds))


def draw_break_even(found: BreakEven) -> None:
    """One crossing a line, with the ratio of costs at both ends."""
    out, job = console(), found.workload
    out.print(f"{escape(found.model)} on {escape(found.system)}, stack {escape(found.stack)}, {found.layout}")
    out.print(f"prompt {job['isl']:,} + output {job['osl']:,} tokens, {job['concurrency']:,} in flight where they do "
              "not vary")  # fmt: skip
    for crossing in found.crossings:
        left, right = (escape(side) for side in crossing.sides)
        out.print(f"\n[bold]{escape(crossing.title)}[/bold]")
        out.print(f"  {left} against {right}, by {crossing.x}")
        out.print(f"  break-even: {escape(crossing.sentence)}")
        ends = f"x {crossing.ratio_first:.3g} at {crossing.low:,}, x {crossing.ratio_last:.3g} at {crossing.high:,}"
        out.print(f"  cost of the second over the first: {ends}")
        if crossing.note:
            out.print(f"  [dim]{escape(crossing.note)}[/dim]")
