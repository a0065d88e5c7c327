"""What was written, for a terminal."""

from __future__ import annotations

from rich.markup import escape

from planner.report.console import console
from planner.report.workbook.book import Written
from planner.units import show


def draw_written(found: Written) -> None:
    """The file and what is in it."""
    out = console()
    out.print(f"[bold]{escape(found.path)}[/bold], {show(found.bytes, 'B')}: {', '.join(found.sheets)}")
    out.print(f"{found.quantities} quantities of {found.inputs} inputs, live; {found.layouts} layouts side by side")
