"""What came of a table of scenarios."""

from __future__ import annotations

from planner.report.console import console
from planner.scenarios.sheet_import import Imported


def draw_import(found: Imported) -> None:
    """How many rows were priced, the first errors, what was left as it is."""
    counts = f"{found.rows:,} rows, {found.priced:,} priced, {found.feasible:,} fit, {found.refused:,} with an error"
    lines = [f"{counts}; {found.seconds:.1f} s"]
    if found.sheet and found.sheets > 1:
        lines.append(f"worksheet {found.sheet!r}, the first of {found.sheets}; the others are not read")
    if found.above:
        lines.append(f"{found.above} row{'s' * (found.above > 1)} above the header kept as a title")
    if found.formulas:
        lines.append(f"{found.formulas:,} formulas: their values as last calculated, and written as values")
    lines += [f"row {error['row']}: {error['error']}" for error in found.errors]
    if found.refused > len(found.errors):
        lines.append(f"and {found.refused - len(found.errors):,} more: see the column 'error'")
    if found.notes:
        lines.append(f"kept as notes: {', '.join(found.notes)}")
    lines += [f"column {name!r} is kept as a note; did you mean {meant}?" for name, meant in found.near.items()]
    console().print("\n".join([*lines, f"wrote {found.out}"]), markup=False, highlight=False)
