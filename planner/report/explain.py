"""Explanations for a terminal: operators, roofline, growth, named quantities and their formulas."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from planner.evaluate.explain import Explanation
from planner.report import plot
from planner.report.console import console, table
from planner.report.numbers import share
from planner.report.sensitivities import draw_sensitivities, draw_tornado
from planner.report.table import draw_operators
from planner.units import show, show_time


def draw_explanation(found: Explanation, latex: bool = False, specs: bool = False) -> None:
    """What was asked: one quantity (of it only the specs, with `specs`), growth, or the whole step."""
    out = console()
    out.print(f"[bold]{found.model_name} on {found.system}[/bold], {found.layout}, {found.concurrency:,} in flight")
    if not found.fits:
        out.print(f"[bold]does not fit:[/bold] {found.max_concurrency:,} requests do")
    if found.quantity:
        if found.closed_form is not None:
            draw_closed_form(found, latex)
        elif specs:
            draw_quantity(str(found.quantity), found.quantities[str(found.quantity)])
        else:
            draw_quantities(found, latex)
        draw_used(found)
        return
    if found.growth:
        draw_growth(found)
        return
    if found.elasticities or found.tornado:
        if found.elasticities:
            draw_sensitivities(found)
        if found.tornado:
            draw_tornado(found)
        return
    draw_operators(found.breakdown)
    bounds = ", ".join(f"{name} {share(value)}" for name, value in found.bounds.items())
    out.print(f"\na request's time on the chips, by bound: {bounds}")
    roofs = found.roofline
    out.print("\n[bold]Operators under the BF16 roof, decode and prefill[/bold]")
    picture = plot.roofline(
        found.breakdown, roofs["memory_bandwidth_bytes_per_s"], roofs["bf16_flops_per_s"], out.width
    )
    out.print(picture, markup=False)
    draw_facts(found)
    if latex:
        draw_quantities(found, latex)
    out.print("\n[bold]References[/bold]")
    for reference in found.references:
        out.print(f"  {escape(reference)}")
    out.print(
        f"[dim]{len(found.quantities)} named quantities; --quantity NAME shows one with its formula, --json all[/dim]"
    )


def draw_facts(found: Explanation) -> None:
    """The model's arithmetic, free of layout."""
    out = console()
    facts = found.model
    out.print(f"\nproducts without the head: {show(facts['gemm_flops_per_token_without_head'], 'FLOP')} a token")
    if "attention_passes_gemm_at_tokens" in facts:
        out.print(f"growing attention passes them at {facts['attention_passes_gemm_at_tokens']:,.0f} tokens of prompt")


def draw_quantity(name: str, row: dict[str, Any]) -> None:
    """Name, value and sentence."""
    value = show(row["value"], row["unit"])
    console().print(f"[bold]{name}[/bold] = {value}   [dim]{escape(row['sentence'])}[/dim]")


def draw_quantities(found: Explanation, latex: bool) -> None:
    """Named quantities with value and formula."""
    out = console()
    for name, row in found.quantities.items():
        draw_quantity(name, row)
        formula = row.get("latex") if latex else row.get("formula")
        if formula:
            out.print(f"    {formula}", markup=False, soft_wrap=True)
        if row["reference"]:
            out.print(f"    [dim]{escape(row['reference'])}[/dim]")


def draw_closed_form(found: Explanation, latex: bool) -> None:
    """One quantity as one formula in the inputs asked for."""
    assert found.closed_form is not None
    draw_quantity(str(found.quantity), found.quantities[str(found.quantity)])
    console().print(f"    {found.closed_form['latex' if latex else 'formula']}", markup=False, soft_wrap=True)


def draw_used(found: Explanation) -> None:
    """The inputs behind one quantity, the uncertain ones with their range, and who says so."""
    out = console()
    shown = found.inputs if found.closed_form is None else {n: found.inputs[n] for n in found.closed_form["inputs"]}
    grid = table("\nSpecs and inputs it read")
    for heading in ("input", "value", "range", "status", "source"):
        grid.add_column(heading, no_wrap=True, justify="right" if heading == "source" else "left")
    numbered: dict[str, int] = {}
    for name, row in sorted(shown.items(), key=lambda pair: (pair[1]["low"] == pair[1]["high"], pair[0])):
        unit = row["unit"]
        sure = row["low"] == row["high"]
        band = "" if sure else f"{show(row['low'], unit)} to {show(row['high'], unit)}"
        grid.add_row(
            name,
            show(row["value"], unit),
            band,
            row["status"],
            f"\\[{numbered.setdefault(row['source'], len(numbered) + 1)}]",
        )
    out.print(grid)
    out.print("\n[bold]Who says so[/bold]")
    for source, place in numbered.items():
        out.print(f"  \\[{place}] {escape(source)}")
    if found.references:
        out.print("\n[bold]Its formulas rest on[/bold]")
        for reference in found.references:
            out.print(f"  {escape(reference)}")


def draw_growth(found: Explanation) -> None:
    """Every part's time by context, and the exponent over the last doubling."""
    for phase in ("decode", "prefill"):
        grid = table(f"\n{phase}: time of each part against context; last column: exponent over the last doubling")
        grid.add_column("part")
        for row in found.growth:
            grid.add_column(f"{row['context'] // 1024}k", justify="right")
        grid.add_column("exponent", justify="right")
        for part in parts_of(found.growth, phase):
            times = [value_of(row, phase, part) for row in found.growth]
            last = [r["exponent"] for r in found.growth[-1]["parts"] if (r["phase"], r["part"]) == (phase, part)]
            power = "-" if not last or last[0] is None else f"{last[0]:.2f}"
            grid.add_row(part, *("-" if t is None else show_time(t) for t in times), power)
        console().print(grid)
        console().print(f"[dim]{verdict(found.growth[-1]['parts'], phase)}[/dim]")


FLAT, STEEP = 0.1, 1.1
"""Exponents below which a part hardly grows, and above which it grows faster than the context."""


def verdict(parts: list[dict[str, Any]], phase: str) -> str:
    """Which parts stay, which grow in proportion, which faster, at the longest context."""
    mine = [r for r in parts if r["phase"] == phase and r["exponent"] is not None and not r["part"].startswith("whole")]
    kinds = {
        "constant": [r["part"] for r in mine if r["exponent"] < FLAT],
        "up to linear": [r["part"] for r in mine if FLAT <= r["exponent"] <= STEEP],
        "faster than linear": [r["part"] for r in mine if r["exponent"] > STEEP],
    }
    return "; ".join(f"{name}: {', '.join(names)}" for name, names in kinds.items() if names)


def parts_of(growth: list[dict[str, Any]], phase: str) -> list[str]:
    """Parts of a phase in order of first appearance."""
    seen: dict[str, None] = {}
    for row in growth:
        seen.update({r["part"]: None for r in row["parts"] if r["phase"] == phase})
    return list(seen)


def value_of(row: dict[str, Any], phase: str, part: str) -> float | None:
    """A part's time at one context."""
    found = [r["time_s"] for r in row["parts"] if (r["phase"], r["part"]) == (phase, part)]
    return found[0] if found else None
