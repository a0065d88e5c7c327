"""Sheet Sources: every source of an input and every reference of a formula once, with what uses it."""

from __future__ import annotations

from planner.report.workbook.style import Page
from planner.search.workbook import Contents

FIRST = 3
OWN = ("workload", "layout", "decides which formulas hold")
"""What is no source: the question itself."""


def write(page: Page, contents: Contents) -> None:
    """Write sources, then references."""
    page.widths(16, 90, 8, 90)
    page.text(0, 0, "Sources and references", "title")
    page.text(1, 0, "Sources give inputs, references give formulas; each once, with what uses it.", "note")
    page.heads(FIRST - 1, "kind", "source", "uses", "used by")
    used: dict[tuple[str, str], list[str]] = {}
    for entry in contents.entries:
        if entry.source not in OWN:
            used.setdefault(("source", entry.source), []).append(entry.name)
    for name, found in contents.formulas.items():
        if found.quantity.reference:
            used.setdefault(("reference", found.quantity.reference), []).append(name)
    for row, ((kind, source), names) in enumerate(used.items(), FIRST):
        page.text(row, 0, kind)
        page.text(row, 1, source, "wrap")
        page.number(row, 2, len(names))
        page.text(row, 3, ", ".join(names), "wrap")
    page.sheet.repeat_rows(FIRST - 1)
    page.sheet.freeze_panes(FIRST, 0)
