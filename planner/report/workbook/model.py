"""Sheet Model: every named quantity of one layout as a live formula, in the order the formulas run."""

from __future__ import annotations

from planner.evaluate.forms import Formula
from planner.report.workbook.formula import Reference, chosen, formula
from planner.report.workbook.names import named
from planner.report.workbook.style import Page
from planner.search.workbook import Contents

HEADS = ("quantity", "value", "unit", "what it is", "reference")
FIRST = 3
VALUE = 1


def reference(contents: Contents) -> Reference:
    """Symbol -> defined name."""
    inputs = {symbol: named("in", name) for name, symbol in contents.symbols.items()}
    return lambda symbol: inputs.get(symbol) or named("q", symbol)


def text_of(found: Formula, at: Reference) -> str:
    """A quantity as a formula."""
    name = found.quantity.name
    if found.choice is None:
        return formula(found.forms[0][1], at, name)
    return chosen(named("in", found.choice), found.forms, at, name)


def write(page: Page, contents: Contents) -> dict[str, str]:
    """Write the quantities; returns their defined names."""
    page.widths(46, 20, 9, 60, 60)
    page.text(0, 0, f"{contents.case.model.name} on {contents.case.system.name}: every quantity", "title")
    page.text(1, 0, "Live: follows the sheet Inputs. Values in SI units; a name's ending is its unit.", "note")
    page.heads(FIRST - 1, *HEADS)
    at = reference(contents)
    names: dict[str, str] = {}
    for row, (name, found) in enumerate(contents.formulas.items(), FIRST):
        quantity = found.quantity
        page.text(row, 0, name)
        page.formula(row, VALUE, text_of(found, at), contents.model.quantities[name], quantity.unit)
        page.unit(row, 2, quantity.unit)
        page.text(row, 3, quantity.sentence, "wrap")
        page.text(row, 4, quantity.reference)
        names[named("q", name)] = page.at(row, VALUE)
    page.sheet.repeat_rows(FIRST - 1)
    page.sheet.freeze_panes(FIRST, 2)
    return names
