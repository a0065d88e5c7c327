"""Sheet Inputs: every number and word the formulas use, what may be typed, and whether it is legal."""

from __future__ import annotations

from dataclasses import replace

from planner.evaluate.entries import Entry
from planner.layout import fewest_redundant, routed
from planner.record import LARGEST
from planner.report.workbook.checks import allowed, cell, check
from planner.report.workbook.formula import fitting
from planner.report.workbook.headlines import HEADLINES, headline, multiplied, now, unit, verdict, verdict_now
from planner.report.workbook.keys import Cell, following, held, problem, usual
from planner.report.workbook.names import CHECK, CHECK_LAYOUT, CHECK_VALUES, FAR, named
from planner.report.workbook.style import EDIT, FIXED, FOLLOWS, USUAL, WORD, Page, place
from planner.search.workbook import Contents
from planner.units import scale_of

HELP = (
    "Edit the yellow cells, in the unit beside them; every other sheet follows. Pale cells in italics follow from "
    "others until written over, grey cells always. Grey letters are built in: another value needs a new workbook."
)
HEADS = ("input", "value", "unit", "what it is", "low", "high", "status", "check", "in SI", "source")
NAME, VALUE, UNIT, WHAT, LOW, HIGH, STATUS, CHECKED, SI, SOURCE = range(len(HEADS))
FIRST = 10
"""Row of the first section."""
TOP = 2
"""Row of the first headline and of the checks beside them."""
LIVE = ("serving_ttft_s", "serving_tpot_s", "serving_chip_tokens_per_s", "serving_user_tokens_per_s",
        "serving_cost_output_usd", "memory_max_concurrency")  # fmt: skip
"""The headlines above the inputs."""
START = ("ask.isl", "ask.osl", "ask.concurrency", "ask.kv_format", "layout.tp", "layout.dp", "layout.ep", "layout.pp",
         "layout.lent", "chip.memory_bandwidth", "chip.price")  # fmt: skip
"""What people change first."""
FIRST_SECTION, STAGES = "Start here", "What the heaviest stages hold"
SECTIONS = {"target": "Targets", "ask": "Question", "layout": "Layout", "chip": "Chip", "system": "System",
            "stack": "Stack", "kernel": "Kernels", "link": "Collectives", "model": "Model",
            "constant": "Constants"}  # fmt: skip
BUILT_IN = "Built in: another value needs a new workbook"


ORDER = (FIRST_SECTION, *SECTIONS.values(), BUILT_IN, STAGES)


def quantity(name: str) -> str:
    """The defined name of a quantity."""
    return named("q", name)


def section(entry: Entry) -> str:
    """The heading an entry stands under."""
    if entry.name in START:
        return FIRST_SECTION
    if entry.name.startswith("layout.stage"):
        return STAGES
    if entry.unit == "word" and entry.role == "fixed":
        return BUILT_IN
    return SECTIONS.get(entry.name.partition(".")[0], "Model")


def place_of(entry: Entry) -> tuple[int, int]:
    """Where an entry stands: its section, and its place in the first one."""
    return ORDER.index(section(entry)), START.index(entry.name) if entry.name in START else 0


def write(page: Page, contents: Contents) -> dict[str, str]:
    """Write the headlines, then the entries by section; returns the defined names."""
    page.widths(38, 18, 9, 62, 13, 13, 12, 48, 16, 60)
    page.text(0, 0, f"{contents.case.model.name} on {contents.case.system.name}: inputs", "title")
    page.text(1, 0, HELP, "note")
    live(page, contents)
    names: dict[str, str] = {}
    for row, (label, name) in enumerate(
        (("all inputs", CHECK), ("values", CHECK_VALUES), ("layout", CHECK_LAYOUT)), TOP
    ):
        page.text(row, WHAT, f"check of {label}", "section")
        names[name] = page.at(row, WHAT + 1)
    page.heads(FIRST - 1, *HEADS)
    row, heading = FIRST, ""
    for entry in sorted(contents.entries, key=place_of):
        if section(entry) != heading:
            heading = section(entry)
            page.text(row, NAME, heading, "section")
            row += 1
        names[cell(entry.name)] = line(page, row, entry, contents)
        row += 1
    checks(page, contents, row)
    page.sheet.repeat_rows(FIRST - 1)
    page.sheet.freeze_panes(FIRST, VALUE + 1)
    return names


def live(page: Page, contents: Contents) -> None:
    """The first headlines, above the inputs."""
    known, osl = contents.model.quantities, contents.model.point.values["ask.osl"]
    labels = {name: label for label, name in HEADLINES.items()}
    for row, name in enumerate(LIVE, TOP):
        page.text(row, NAME, labels[name])
        text = headline(name, quantity, CHECK, cell("ask.osl"))
        page.formula(row, VALUE, text, now(name, known, osl), unit(name), "headline")
        page.unit(row, UNIT, unit(name))


def checks(page: Page, contents: Contents, last: int) -> None:
    """The three checks at the top: of the whole, of the values down to the last row, of the layout."""
    rows = f"{place(FIRST, CHECKED, fixed=True)}:{place(last, CHECKED, fixed=True)}"
    count = f'(COUNTIF({rows},"?*")-COUNTIF({rows},"{FAR}*"))'
    see = f" not legal: see column {place(0, CHECKED)[:-1]}"
    many = f'IF({count}=1,"1 value is{see}",{count}&" values are{see}")'
    rule = problem(cell, bool(routed(contents.case.model)), contents.case.system.chips)
    whole = f'=IF({CHECK_VALUES}<>"",{CHECK_VALUES},IF({CHECK_LAYOUT}<>"",{CHECK_LAYOUT},{verdict(quantity)}))'
    page.check(TOP, WHAT + 1, whole, verdict_now(contents.model.quantities))
    page.check(TOP + 1, WHAT + 1, f'=IF({count}>0,{many},"")', "")
    page.check(TOP + 2, WHAT + 1, fitting("=" + rule, "the check of the layout"), "")


def readable(entry: Entry) -> tuple[Entry, float]:
    """An entry in the unit people write its size in, and that unit in SI."""
    if isinstance(entry.value, str) or entry.role != "edit":
        return entry, 1.0
    factor, name = scale_of(entry.value or entry.high, entry.unit)
    if factor == 1:
        return entry, factor
    bounds = entry.bounds
    most = bounds.most if bounds.most >= LARGEST else shown(bounds.most, factor)
    return replace(
        entry, value=shown(entry.value, factor), unit=name, low=shown(entry.low, factor),
        high=shown(entry.high, factor), bounds=replace(bounds, least=shown(bounds.least, factor), most=most),
    ), factor  # fmt: skip


def shown(value: float, factor: float) -> float:
    """A value over a unit; by a whole number, so that the way back gives the same."""
    return value / factor if factor >= 1 else value * round(1 / factor)


def line(page: Page, row: int, given: Entry, contents: Contents) -> str:
    """One input with its range and where it comes from; returns the cell that holds it in SI."""
    entry, factor = readable(given)
    page.text(row, NAME, entry.name)
    page.unit(row, UNIT, entry.unit)
    page.text(row, WHAT, entry.meaning)
    page.text(row, STATUS, entry.status, "unit")
    page.text(row, SOURCE, entry.source, "unit")
    if entry.low != entry.high:
        page.number(row, LOW, entry.low, entry.unit)
        page.number(row, HIGH, entry.high, entry.unit)
    value(page, row, VALUE, entry, formula_of(entry, cell, contents), entry.value)
    validation = allowed(entry)
    if validation:
        page.sheet.data_validation(row, VALUE, row, VALUE, validation)
    typed = place(row, VALUE)
    rule = check(entry, typed, contents.case.model.max_context)
    if rule:
        page.check(row, CHECKED, fitting("=" + rule, entry.name), "", "check, wrapped")
    if factor == 1:
        return page.at(row, VALUE)
    page.formula(row, SI, "=" + multiplied(typed, factor), given.value, given.unit, FOLLOWS)
    return page.at(row, SI)


def value(page: Page, row: int, column: int, entry: Entry, formula: str | None, now: float | str) -> None:
    """The value cell: typed, or what it follows from."""
    look = {"edit": EDIT, "word": WORD, "follows": FOLLOWS, "fixed": FIXED}[entry.role]
    if formula is not None:
        page.formula(row, column, formula, now, entry.unit, USUAL if entry.role == "edit" else look)
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
