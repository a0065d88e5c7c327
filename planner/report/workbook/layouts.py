"""Sheet Layouts: the plan's best layouts side by side, each column live on its own keys and batch."""

from __future__ import annotations

from dataclasses import replace

from planner.evaluate.entries import KEYS, Entry
from planner.layout import routed
from planner.report.workbook.formula import fitting
from planner.report.workbook.headlines import FITS, HEADLINES, fits, fits_now, headline, now, unit
from planner.report.workbook.inputs import allowed, cell, formula_of, value
from planner.report.workbook.keys import Cell, problem
from planner.report.workbook.model import reference, text_of
from planner.report.workbook.names import CHECK_VALUES, LEGAL
from planner.report.workbook.style import FOLLOWS, Page, place
from planner.search.workbook import Column, Contents, varying

HELP = (
    "Edit the yellow cells of a column: layout keys and batch. Everything else of the question and the specs is shared "
    "with the sheet Inputs."
)
FIRST, LEFT = 4, 2
"""Row of the first key, column of the first layout."""
CHECK = "check"


def rows_of(contents: Contents) -> dict[str, int]:
    """Row of everything a column has: keys, check, headlines, what stages hold, quantities."""
    stages = [entry.name for entry in contents.entries if entry.name.startswith("layout.stage")]
    blocks = (
        [*(f"layout.{key}" for key in KEYS), "layout.chips", "ask.concurrency", CHECK],
        [*HEADLINES, FITS],
        stages,
        varying(contents, HEADLINES.values()),
    )
    found: dict[str, int] = {}
    row = FIRST
    for block in blocks:
        for name in block:
            found[name] = row
            row += 1
        row += 2
    return found


def write(page: Page, contents: Contents) -> dict[str, int]:
    """Write one column per layout; returns the row of everything a column has."""
    rows = rows_of(contents)
    entries = {entry.name: entry for entry in contents.entries}
    page.widths(46, 9, *(20 for _ in contents.columns))
    page.text(0, 0, f"{contents.case.model.name} on {contents.case.system.name}: layouts side by side", "title")
    page.text(1, 0, HELP, "note")
    page.heads(FIRST - 1, "as planned", "unit", *(str(column.layout) for column in contents.columns))
    labels(page, contents, rows)
    for place_, column in enumerate(contents.columns, LEFT):
        one(page, contents, rows, entries, place_, column)
    page.sheet.freeze_panes(FIRST, LEFT)
    return rows


def labels(page: Page, contents: Contents, rows: dict[str, int]) -> None:
    """Names and units on the left, a heading over each block."""
    first = next(name for name in rows if name in contents.formulas)
    starts = {next(iter(HEADLINES)): "Headlines", first: "Quantities that depend on the layout"}
    starts |= {next(name for name in rows if name.startswith("layout.stage")): "What the heaviest stages hold"}
    for name, row in rows.items():
        if name in starts:
            page.text(row - 1, 0, starts[name], "section")
        page.text(row, 0, name)
        if name in HEADLINES:
            page.text(row, 1, unit(HEADLINES[name]))
        elif name in contents.formulas:
            page.text(row, 1, unit(name))


def one(
    page: Page, contents: Contents, rows: dict[str, int], entries: dict[str, Entry], column: int, layout: Column
) -> None:
    """One column: keys, check, headlines, stages, quantities."""
    moe, values = bool(routed(contents.case.model)), layout.point.values
    symbols = {symbol: name for name, symbol in contents.symbols.items()}
    shared = reference(contents)

    def own(name: str) -> str:
        """The cell of a key or the batch in this column, else the input shared by all."""
        return place(rows[name], column) if name in rows else cell(name)

    def at(symbol: str) -> str:
        """The cell of a symbol in this column, else its defined name."""
        name = symbols.get(symbol, symbol)
        return place(rows[name], column) if name in rows else shared(symbol)

    for name in (name for name in rows if name in entries):
        entry = replace(entries[name], value=values[name])
        formula = "=" + cell(name) if name == "layout.lent" else formula_of(entry, own, moe)
        value(page, rows[name], column, entry, formula, values[name])
        validation = allowed(entry)
        if validation:
            page.sheet.data_validation(rows[name], column, rows[name], column, validation)
    rule = problem(own, moe, contents.case.system.chips, CHECK_VALUES, LEGAL)
    page.formula(rows[CHECK], column, fitting("=" + rule, CHECK), LEGAL, look="check")
    heads(page, contents, rows, column, layout, at)
    for name in (name for name in rows if name in contents.formulas):
        found = contents.formulas[name]
        text = text_of(found, at)
        page.formula(rows[name], column, text, layout.quantities[name], found.quantity.unit, FOLLOWS)


def heads(
    page: Page, contents: Contents, rows: dict[str, int], column: int, layout: Column, at: Cell
) -> None:
    """The headlines of a column."""
    check, osl = place(rows[CHECK], column), cell("ask.osl")
    asked = layout.point.values["ask.osl"]
    for label, quantity in HEADLINES.items():
        text = headline(quantity, at, check, osl)
        page.formula(rows[label], column, text, now(quantity, layout.quantities, asked), unit(quantity), "headline")
    page.formula(rows[FITS], column, fits(at, check), fits_now(layout.quantities), look="headline")
