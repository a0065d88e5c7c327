"""A solution for a terminal."""

from __future__ import annotations

from rich.markup import escape

from planner.evaluate.solve import Solution
from planner.report.console import console
from planner.report.numbers import share
from planner.units import show


def draw_solution(found: Solution) -> None:
    """The value, what is reached there and one step further, what binds, and whether the spec allows it."""
    out = console()

    def value(x: float) -> str:
        return f"{x:,}" if isinstance(found.value, int) else show(x, found.unit)

    out.print(f"[bold]{found.model} on {found.system}[/bold], stack {found.stack}, {found.layout}")
    out.print(f"[bold]{escape(found.sentence)}[/bold]")
    at_centre = "" if found.confidence_fraction is None else ", at the central values of all other inputs"
    out.print(f"there: {escape(found.metric)} {escape(found.words['reached'])}{at_centre}")
    if found.close:
        out.print(f"[bold]note:[/bold] {escape(found.close)}")
    if found.met_fraction is not None and found.reached_range and found.reached_range[0] != found.reached_range[1]:
        met = f"the target is met in {share(found.met_fraction)} of them"
        out.print(f"over draws of the other uncertain inputs: {escape(found.words['between'])}; {met}")
    if found.neighbour:
        out.print(f"at {value(int(found.neighbour['value']))}: {escape(found.words['neighbour'])}")
    if found.present is not None:
        now = int(found.present) if isinstance(found.value, int) else found.present
        out.print(f"now, at {value(now)}: {escape(found.words['present'])}")
    most = (
        f"; the largest operator is {found.operator} ({share(found.operator_share_fraction)})" if found.operator else ""
    )
    out.print(f"bound there by: {escape(found.binding)}{escape(most)}")
    if found.spec_range is not None:
        low, high = found.spec_range
        inside = "within" if low <= found.value <= high else "outside"
        out.print(f"{inside} the range of its spec, {value(low)} to {value(high)}")
    if not found.fits:
        out.print("the requests in flight do not fit in memory there: solve for the target memory as well")
