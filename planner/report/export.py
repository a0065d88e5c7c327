"""What an exported kernel holds."""

from __future__ import annotations

from planner.evaluate.exported import Exported
from planner.report.console import console


def draw_export(found: Exported) -> None:
    """What the file holds."""
    counts = f"{found.inputs} inputs to change, {found.fixed} fixed, {found.quantities} quantities"
    lines = [f"{found.model} on {found.system}, stack {found.stack}, {found.layout}", counts]
    console().print("\n".join(lines), markup=False)
