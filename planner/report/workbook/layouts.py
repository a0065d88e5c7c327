"""Sheet Layouts: the plan's best layouts side by side, each column live on its own keys and batch."""

from __future__ import annotations

from planner.evaluate.entries import KEYS
from planner.layout import routed
from planner.report.workbook.checks import allowed, cell
from planner.report.workbook.formula import fitting
from planner.report.workbook.headlines import FITS, HEADLINES, fits, fits_now, headline, now, unit, verdict, verdict_now
from planner.report.workbook.inputs import formula_of, value
from planner.report.workbook.keys import problem
from planner.report.workbook.model import reference, text_of
from planner.report.workbook.names import CHECK_VALUES
from planner.report.workbook.style import FOLLOWS, Page, place
from planner.search.workbook import Column, Contents, varying

HELP = (
    "Edit the yellow cells of a column: layout keys and batch. Everything else of the question and the specs is shared "
    "with the sheet Inputs."
)
FIRST, LEFT = 4, 2
"""Row of the first key, column of the first layout."""
CHECK = "check"
COLUMN = "\0"
"""Stands for the letter of a column in formulas that all columns share."""


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
    page.widths(46, 9, *(26 for _ in contents.columns))
    page.text(0, 0, f"{contents.case.model.name} on {contents.case.system.name}: layouts side by side", "title")
    page.text(1, 0, HELP, "note")
    page.heads(FIRST - 1, "as planned", "unit", *(str(column) for column in contents.columns))
    labels(page, contents, rows)
    texts = formulas(contents, rows)
    for place_, column in enumerate(contents.columns, LEFT):
        one(page, contents, rows, texts, place_, column)
    page.sheet.repeat_rows(FIRST - 1)
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
            page.unit(row, 1, unit(HEADLINES[name]))
        elif name in contents.formulas:
            page.unit(row, 1, unit(name))


def formulas(contents: Contents, rows: dict[str, int]) -> dict[str, str]:
    """The formula of every row that has one, with COLUMN for the letter of its column: the same in all of them."""
    moe = bool(routed(contents.case.model))
    symbols = {symbol: name for name, symbol in contents.symbols.items()}
    shared = reference(contents)

    def own(name: str) -> str:
        """The cell of a key or the batch in the column, else the input shared by all."""
        return f"{COLUMN}{rows[name] + 1}" if name in rows else cell(name)

    def at(symbol: str) -> str:
        """The cell of a symbol in the column, else its defined name."""
        name = symbols.get(symbol, symbol)
        return f"{COLUMN}{rows[name] + 1}" if name in rows else shared(symbol)

    found = {entry.name: formula_of(entry, own, contents) for entry in contents.entries if entry.name in rows}
    texts = {name: text for name, text in found.items() if text is not None}
    texts["layout.lent"] = "=" + cell("layout.lent")
    rule = problem(own, moe, contents.case.system.chips, CHECK_VALUES, verdict(at))
    texts[CHECK] = fitting("=" + rule, CHECK)
    texts |= {label: headline(name, at, own(CHECK), cell("ask.osl")) for label, name in HEADLINES.items()}
    texts[FITS] = fits(own(CHECK))
    return texts | {name: text_of(contents.formulas[name], at) for name in rows if name in contents.formulas}


def one(
    page: Page, contents: Contents, rows: dict[str, int], texts: dict[str, str], column: int, layout: Column
) -> None:
    """One column: keys, check, headlines, stages, quantities."""
    entries = {entry.name: entry for entry in contents.entries if entry.name in rows}
    known, values = layout.quantities, layout.point.values
    for name, row in rows.items():
        text = texts.get(name, "").replace(COLUMN, place(0, column)[:-1])
        if name == "layout.lent" and values[name] != contents.model.point.values[name]:
            text = ""  # the plan lends more chips than the layout of Inputs takes: its own number stands here
        if name in entries:
            value(page, row, column, entries[name], text or None, values[name])
            validation = allowed(entries[name])
            if validation:
                page.sheet.data_validation(row, column, row, column, validation)
        elif name == CHECK:
            page.check(row, column, text, verdict_now(known), "check, wrapped")
        elif name == FITS:
            page.formula(row, column, text, fits_now(known), look="headline")
        elif name in HEADLINES:
            shown = now(HEADLINES[name], known, values["ask.osl"])
            page.formula(row, column, text, shown, unit(HEADLINES[name]), "headline")
        else:
            page.formula(row, column, text, known[name], contents.formulas[name].quantity.unit, FOLLOWS)
