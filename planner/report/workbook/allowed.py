"""Sheet Allowed: the legal values of the layout's keys and of the words, looked up by Inputs and Layouts."""

from __future__ import annotations

from planner.evaluate.allowed import Table
from planner.report.workbook.names import named
from planner.report.workbook.style import Page, place

FIRST = 4
"""Row of the first value."""
WIDEST = 60
"""Letters of a column; the sentences beyond them are shown by the checks."""


def write(page: Page, tables: dict[str, Table]) -> dict[str, str]:
    """Write the tables side by side; returns the defined name of every column with its range."""
    page.text(
        0, 0, "Values a layout may take, worked out by the planner's own rules. Looked up; not for editing.", "note"
    )
    found: dict[str, str] = {}
    column = 0
    for key, table in tables.items():
        page.text(1, column, table.sentence, "section")
        for head, values in table.columns.items():
            page.text(FIRST - 1, column, f"{key}.{head}", "head")
            longest = max(len(str(text)) for text in (f"{key}.{head}", *values))
            page.sheet.set_column(column, column, min(longest, WIDEST) + 2)
            for row, value in enumerate(values, FIRST):
                if isinstance(value, str) and value:
                    page.text(row, column, value)
                elif isinstance(value, (int, float)):
                    page.number(row, column, value)
            last = FIRST + max(len(values), 1) - 1
            start, end = place(FIRST, column, fixed=True), place(last, column, fixed=True)
            found[named("ok", key, head)] = f"='{page.name}'!{start}:{end}"
            column += 1
        column += 1
    page.sheet.repeat_rows(FIRST - 1)
    page.sheet.freeze_panes(FIRST, 0)
    return found
