"""Sheet Inputs: every number and word the formulas use, what may be typed, and whether it is legal."""

from __future__ import annotations

from typing import Any

from planner.evaluate.entries import WORDS, Bounds, Entry
from planner.layout import fewest_redundant, routed
from planner.record import LARGEST
from planner.report.workbook.formula import fitting, quoted
from planner.report.workbook.headlines import verdict, verdict_now
from planner.report.workbook.keys import Cell, following, held, not_whole, problem, usual
from planner.report.workbook.names import CHECK, CHECK_LAYOUT, CHECK_VALUES, named
from planner.report.workbook.style import EDIT, FIXED, FOLLOWS, WORD, Page, place
from planner.search.workbook import Contents

HELP = (
    "Edit the yellow cells; every other sheet follows. Grey cells follow from others. Grey letters are built in: "
    "another value needs a new workbook."
)
HEADS = ("input", "value", "unit", "low", "high", "status", "source", "check")
LISTED = {"layout.tp": "tp", "layout.ep": "ep", "layout.etp": "etp", "layout.pp": "pp"}
"""Keys offered as lists, with the table of their values."""
NAME, VALUE, UNIT, LOW, HIGH, STATUS, SOURCE, CHECKED = range(8)
FIRST = 6
SECTIONS = {"ask": "Question", "layout": "Layout", "chip": "Chip", "system": "System", "stack": "Stack",
            "kernel": "Kernels", "link": "Collectives", "model": "Model", "constant": "Constants"}  # fmt: skip
BUILT_IN = "Built in: another value needs a new workbook"


def cell(name: str) -> str:
    """The defined name of an input."""
    return named("in", name)


def quantity(name: str) -> str:
    """The defined name of a quantity."""
    return named("q", name)


def section(entry: Entry) -> str:
    """The heading an entry stands under."""
    if entry.unit == "word" and entry.role == "fixed":
        return BUILT_IN
    return SECTIONS.get(entry.name.partition(".")[0], "Model")


def write(page: Page, contents: Contents) -> dict[str, str]:
    """Write the entries by section; returns the defined names."""
    moe = bool(routed(contents.case.model))
    page.widths(38, 18, 9, 16, 16, 12, 60, 44)
    page.text(0, 0, f"{contents.case.model.name} on {contents.case.system.name}: inputs", "title")
    page.text(1, 0, HELP, "note")
    names: dict[str, str] = {}
    for row, label, name in ((2, "all inputs", CHECK), (3, "values", CHECK_VALUES), (4, "layout", CHECK_LAYOUT)):
        page.text(row, NAME, f"check of {label}", "section")
        names[name] = page.at(row, VALUE)
    page.heads(FIRST - 1, *HEADS)
    ordered = sorted(contents.entries, key=lambda entry: [*SECTIONS.values(), BUILT_IN].index(section(entry)))
    row, heading = FIRST, ""
    for entry in ordered:
        if section(entry) != heading:
            heading = section(entry)
            page.text(row, NAME, heading, "section")
            row += 1
        names[cell(entry.name)] = page.at(row, VALUE)
        line(page, row, entry, contents)
        rule = check(entry, contents)
        if rule:
            page.check(row, CHECKED, fitting("=" + rule, entry.name), "")
        row += 1
    checks = f"{place(FIRST, CHECKED, fixed=True)}:{place(row, CHECKED, fixed=True)}"
    count = f'COUNTIF({checks},"?*")'
    page.check(3, VALUE, f'=IF({count}>0,{count}&" values are not legal: see column H","")', "")
    rule = problem(cell, moe, contents.case.system.chips)
    page.check(4, VALUE, fitting("=" + rule, "the check of the layout"), "")
    whole = f'=IF({CHECK_VALUES}<>"",{CHECK_VALUES},IF({CHECK_LAYOUT}<>"",{CHECK_LAYOUT},{verdict(quantity)}))'
    page.check(2, VALUE, whole, verdict_now(contents.model.quantities))
    page.sheet.freeze_panes(FIRST, 2)
    return names


def line(page: Page, row: int, entry: Entry, contents: Contents) -> None:
    """One input with its range and where it comes from."""
    page.text(row, NAME, entry.name)
    page.unit(row, UNIT, entry.unit)
    page.text(row, STATUS, entry.status)
    page.text(row, SOURCE, entry.source)
    if entry.low != entry.high:
        page.number(row, LOW, entry.low, entry.unit)
        page.number(row, HIGH, entry.high, entry.unit)
    value(page, row, VALUE, entry, formula_of(entry, cell, contents), entry.value)
    validation = allowed(entry)
    if validation:
        page.sheet.data_validation(row, VALUE, row, VALUE, validation)


def value(page: Page, row: int, column: int, entry: Entry, formula: str | None, now: float | str) -> None:
    """The value cell: typed, or what it follows from."""
    look = {"edit": EDIT, "word": WORD, "follows": FOLLOWS, "fixed": FIXED}[entry.role]
    if formula is not None:
        page.formula(row, column, formula, now, entry.unit, look)
    elif isinstance(now, str):
        page.text(row, column, now, look)
    else:
        page.number(row, column, now, entry.unit, look)


def formula_of(entry: Entry, at: Cell, contents: Contents) -> str | None:
    """What an input follows from, or None where it is typed, as redundant experts beyond the fewest are."""
    model, layout = contents.case.model, contents.model.layout
    if entry.name.startswith("layout.stage"):
        return held(entry.name, at)
    if entry.role == "follows":
        return following(at).get(entry.name)
    if entry.name == "layout.red" and layout.red != fewest_redundant(layout.ep, model):
        return None
    return usual(at, bool(routed(model))).get(entry.name)


def check(entry: Entry, contents: Contents) -> str:
    """Formula of what is wrong with one value, or ''. The layout and the batch are checked together, elsewhere."""
    at, bounds = cell(entry.name), entry.bounds
    if entry.role == "word":
        table, column = words_of(entry.name)
        return f'IF(COUNTIF({named("ok", table, column)},{at})=0,"is not one of the list","")'
    if entry.name == "ask.length":
        longest = contents.case.model.max_context
        return f'IF({at}>{longest},"ISL + OSL exceed the {longest} tokens of the model","")'
    if entry.role != "edit" or entry.name.startswith("layout.") or entry.name == "ask.concurrency":
        return ""
    rules = [(outside(at, bounds), f"must be {phrase(bounds)}")]
    if entry.name == "ask.prefix_hit":
        rules.append((f"{cell('ask.isl')}*(1-{at})<1-1E-9", "leaves less than one token to prefill"))
    if entry.name == "ask.accepted_length":
        rules.append((f"{at}>{cell('ask.draft_tokens')}+1", "more than the drafts and one token"))
    text = '""'
    for condition, sentence in reversed(rules):
        text = f"IF({condition},{quoted(sentence)},{text})"
    return text


def words_of(name: str) -> tuple[str, str]:
    """(table, column) of the words of a choice."""
    table = WORDS[name]
    return table, "arrivals" if table == "arrivals" else "format"


def outside(at: str, bounds: Bounds) -> str:
    """The cell is no number, or none within the bounds; safe on texts and errors."""
    floor = f'COUNTIF({at},"{">" if bounds.above else ">="}{bounds.least:G}")'
    tests = f"{floor}=0"
    if bounds.most < LARGEST:
        tests = f'{floor}+COUNTIF({at},"<={bounds.most:.16G}")<2'
    return f"IF({tests},1,{not_whole(at, int(bounds.least))})" if bounds.whole else tests


def phrase(bounds: Bounds) -> str:
    """'a whole number of at least 1'."""
    kind = "a whole number" if bounds.whole else "a number"
    floor = f"above {bounds.least:G}" if bounds.above else f"of at least {bounds.least:G}"
    return f"{kind} {floor}" + (f" and at most {bounds.most:.16G}" if bounds.most < LARGEST else "")


def allowed(entry: Entry) -> dict[str, Any]:
    """What the spreadsheet itself refuses while typing."""
    if entry.role == "word":
        return {"validate": "list", "source": "=" + named("ok", *words_of(entry.name))}
    if entry.role != "edit":
        return {}
    if entry.name in LISTED:
        return {"validate": "list", "source": "=" + named("ok", LISTED[entry.name], "legal")}
    bounds = entry.bounds
    told = {"error_title": entry.name[:32], "error_message": f"must be {phrase(bounds)}"}
    kind = {"validate": "integer" if bounds.whole else "decimal", "ignore_blank": False}
    if bounds.above:
        return {**kind, **told, "criteria": ">", "value": bounds.least}
    if bounds.most < LARGEST:
        return {**kind, **told, "criteria": "between", "minimum": bounds.least, "maximum": bounds.most}
    return {**kind, **told, "criteria": ">=", "value": bounds.least}
