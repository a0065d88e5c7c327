"""Sheet Results: headlines, memory of the fullest chip, time by operator, the plan's front; charts beside them."""

from __future__ import annotations

from typing import Any

from planner.report.workbook import provenance
from planner.report.workbook.formula import formula
from planner.report.workbook.headlines import (
    DOES_NOT_FIT,
    FITS,
    HEADLINES,
    NOT_LEGAL,
    PER_CHIP,
    PER_USER,
    fits,
    fits_now,
    headline,
    now,
    scale,
    unit,
    verdict_now,
    worded,
    worked_out,
)
from planner.report.workbook.inputs import quantity
from planner.report.workbook.keys import symbol
from planner.report.workbook.layouts import LEFT
from planner.report.workbook.model import reference
from planner.report.workbook.names import CHECK, named
from planner.report.workbook.style import Page, place
from planner.search.constraints import Constraint
from planner.search.workbook import Contents, placed
from planner.stages import heaviest

FIRST = 4
CHARTS = 9
"""Column the charts start in."""
CHART_ROWS = (20, 30, 30, 20)
"""Rows each chart takes, from the top."""
ROW_PIXELS = 20
EVERY_NAME = {"reverse": True, "interval_unit": 1, "num_font": {"size": 8}}
"""The axis of a bar chart's names: from the top, none left out."""
MEMORY = ("stage", "weights", "cache and state", "activations", "buffers", "runtime", "used", "usable")
USED = MEMORY.index("used")
SHARED = ("memory_activations_bytes", "memory_buffers_bytes", "memory_runtime_bytes")


def write(page: Page, contents: Contents, rows: dict[str, int], layouts: str) -> None:
    """Write the tables from top to bottom and the charts beside them. rows, layouts: of the sheet Layouts."""
    page.widths(46, 20, 16, 16, 16, 16, 16, 16)
    page.text(0, 0, f"{contents.case.model.name} on {contents.case.system.name}: results", "title")
    page.text(
        1,
        0,
        "Live: the layout and the question of the sheet Inputs. Tables below the headlines in SI units.",
        "note",
    )
    page.text(2, 0, "check of all inputs", "section")
    page.check(2, 1, f"={CHECK}", verdict_now(contents.model.quantities))
    row = headlines(page, contents, FIRST)
    row = provenance.write(page, contents, row + 1)
    row = memory(page, contents, row + 2)
    row = operators(page, contents, row + 2)
    front(page, contents, row + 2, rows, layouts)
    page.sheet.repeat_rows(FIRST - 1)
    page.sheet.freeze_panes(FIRST - 1, 0)


def headlines(page: Page, contents: Contents, row: int) -> int:
    """The headline table; returns the row after it."""
    page.heads(row - 1, "headline", "value", "unit", "low, as written", "high, as written")
    known, osl = contents.model.quantities, contents.model.point.values["ask.osl"]
    for label, name in HEADLINES.items():
        page.text(row, 0, label)
        text = headline(name, quantity, CHECK, named("in", "ask.osl"))
        page.formula(row, 1, text, now(name, known, osl), unit(name), "headline")
        page.unit(row, 2, unit(name))
        if name in contents.bands and now(name, known, osl) == known[name] / scale(name):
            for column, end in enumerate(contents.bands[name], 3):
                page.number(row, column, end / scale(name), unit(name), "headline")
        row += 1
    page.text(row, 0, FITS)
    page.formula(row, 1, fits(CHECK), fits_now(known), look="headline")
    for constraint, limit in contents.targets:
        row += 1
        limit_cell = named("in", f"target.{constraint.name}")
        missed = constraint.missed(symbol(quantity(constraint.quantity)), symbol(limit_cell))
        text = formula(missed, str, constraint.name)
        page.text(row, 0, f"meets the target of {constraint.name.upper()}")
        page.formula(row, 1, meets(text[1:]), meets_now(constraint, limit, known), look="headline")
    return row + 1


def meets(missed: str) -> str:
    """Formula of whether a target is met, by how much of it is missed."""
    return worded(CHECK, f'IF({missed}>0,"no","yes")')


def meets_now(constraint: Constraint, limit: float, quantities: dict[str, float]) -> str:
    """The same as written."""
    if quantities["memory_slack_bytes"] < 0:
        return DOES_NOT_FIT
    return "no" if constraint.missed(quantities[constraint.quantity], limit) > 0 else "yes"


def memory(page: Page, contents: Contents, row: int) -> int:
    """What the fullest chip holds, then a chip of each of the heaviest stages, with a chart; returns the row after."""
    page.text(row, 0, "Memory of one chip, B. Pipelines of fewer different stages repeat the first.", "section")
    page.heads(row + 1, *MEMORY)
    known, fullest, first, other = contents.model.quantities, row + 2, row + 3, quantity("memory_other_bytes")
    stages = range(contents.model.point.shape.stages)
    parts = [[known[f"memory_stage{i}_{part}"] for part in ("weights_bytes", "used_bytes")] for i in stages]
    for i, (weights, used) in zip(stages, parts, strict=True):
        at = first + i
        names = [quantity(f"memory_stage{i}_{part}") for part in ("weights_bytes", "used_bytes")]
        page.text(at, 0, f"stage {i}")
        page.formula(at, 1, worked_out(CHECK, names[0]), weights, "B")
        page.formula(at, 2, worked_out(CHECK, f"{names[1]}-{names[0]}"), used - weights, "B")
        for column, name in enumerate(SHARED, 3):
            page.formula(at, column, worked_out(CHECK, quantity(name)), known[name], "B")
        whole = worked_out(CHECK, f"{names[1]}+{other}")
        page.formula(at, USED, whole, used + known["memory_other_bytes"], "B")
    last = first + len(stages) - 1
    page.text(fullest, 0, "fullest chip")
    whole = f"{place(first, USED, fixed=True)}:{place(last, USED, fixed=True)}"
    most = max(stages, key=lambda i: parts[i][1])
    values = [parts[most][0], parts[most][1] - parts[most][0], *(known[name] for name in SHARED)]
    for column, value in enumerate([*values, parts[most][1] + known["memory_other_bytes"]], 1):
        cells = f"{place(first, column)}:{place(last, column)}"
        found = worked_out(CHECK, f"INDEX({cells},MATCH(MAX({whole}),{whole},0))")
        page.formula(fullest, column, found, value, "B", "headline")
    usable = worked_out(CHECK, quantity("memory_usable_bytes"))
    for at in range(fullest, last + 1):
        page.formula(at, USED + 1, usable, known["memory_usable_bytes"], "B")
    distinct = len(heaviest(contents.case.model, contents.model.layout.pp))
    memory_chart(page, fullest, fullest if distinct == 1 else fullest + distinct)
    return last + 1


def memory_chart(page: Page, first: int, last: int) -> None:
    """The parts stacked, a mark where what may be used ends; only stages that differ as written."""
    chart, marks = (page.book.add_chart(kind) for kind in ({"type": "column", "subtype": "stacked"}, {"type": "line"}))
    names = [page.name, first, 0, last, 0]
    for column, name in enumerate(MEMORY[1:USED], 1):
        chart.add_series({"name": name, "categories": names, "values": [page.name, first, column, last, column]})
    marks.add_series({
        "name": MEMORY[-1], "categories": names, "values": [page.name, first, USED + 1, last, USED + 1],
        "line": {"color": "#C00000"}, "marker": {"type": "long_dash", "size": 20, "fill": {"color": "#C00000"}},
    })  # fmt: skip
    chart.combine(marks)
    finish(page, chart, "Memory of one chip", 0, y={"num_format": '#,##0,,," GB"', "min": 0})


def operators(page: Page, contents: Contents, row: int) -> int:
    """Time of every operator in one decode step and in one prompt's prefill; returns the row after them."""
    at = reference(contents)
    for number, (phase, title) in enumerate((("decode", "One decode step"), ("prefill", "One prompt, idle system")), 1):
        page.text(row, 0, f"{title}: time by operator, s", "section")
        page.heads(row + 1, "operator", "time", "unit", "what it does")
        first = row = row + 2
        every = zip(contents.terms, contents.model.operators, strict=True)
        some = [(value, term) for term, value in every if term.phase == phase]
        for value, term in sorted(some, key=lambda found: -found[0]):
            page.text(row, 0, term.name)
            page.formula(row, 1, worked_out(CHECK, formula(term.time_s, at, term.name)[1:]), value, "s")
            page.unit(row, 2, "s")
            page.text(row, 3, term.sentence)
            row += 1
        last = first + max(sum(value > 0 for value, _ in some), 1) - 1
        chart = page.book.add_chart({"type": "bar"})
        chart.add_series({
            "name": title, "categories": [page.name, first, 0, last, 0], "values": [page.name, first, 1, last, 1],
        })  # fmt: skip
        finish(page, chart, f"{title}, s", number, y=EVERY_NAME, legend=False)
        row += 1
    return row - 1


def front(page: Page, contents: Contents, row: int, rows: dict[str, int], layouts: str) -> None:
    """The plan's front as planned, and the live points of the sheet Layouts."""
    page.text(row, 0, "Front of the plan: values as planned, not live", "section")
    page.heads(row + 1, "layout", "tok/s per user", "tok/s per chip", "batch", "TTFT, s", "TPOT, s")
    first = row = row + 2
    for found in contents.plan.front:
        page.text(row, 0, placed(found["layout"], found["replicas"]))
        for column, key in enumerate(("tok_s_per_user", "tok_s_per_chip", "concurrency", "ttft_s", "tpot_s"), 1):
            page.number(row, column, found[key], "s" if key.endswith("_s") else "" if key == "concurrency" else "1/s")
        row += 1
    chart = page.book.add_chart({"type": "scatter", "subtype": "straight_with_markers"})
    if row > first:
        chart.add_series(points("front, as planned", page.name, first, row - 1))
    page.text(row + 1, 0, "Layouts: live", "section")
    page.heads(row + 2, "layout", "tok/s per user", "tok/s per chip")
    first = row = row + 3
    osl = contents.model.point.values["ask.osl"]
    for number, planned in enumerate(contents.columns, LEFT):
        page.text(row, 0, f"column {place(0, number)[:-1]} of {layouts}, planned as {planned}")
        for target, label in ((1, PER_USER), (2, PER_CHIP)):
            value = now(HEADLINES[label], planned.quantities, osl)
            page.formula(row, target, f"='{layouts}'!{place(rows[label], number)}", value, "1/s")
        row += 1
    live = points("layouts, live", page.name, first, row - 1)
    chart.add_series({**live, "line": {"none": True}, "marker": {"type": "diamond", "size": 9}})
    row += 1
    page.text(row, 0, "the deployment of Inputs")
    for target, label in ((1, PER_USER), (2, PER_CHIP)):
        own = place(FIRST + list(HEADLINES).index(label), 1)
        page.formula(row, target, f"={own}", now(HEADLINES[label], contents.model.quantities, osl), "1/s")
    here = points("Inputs, live", page.name, row, row)
    strong = {"type": "circle", "size": 12, "fill": {"color": "#C00000"}, "border": {"color": "#C00000"}}
    chart.add_series({**here, "marker": strong})
    titles: dict[str, Any] = {"x": {"name": "tokens/s per user"}, "y": {"name": "tokens/s per chip"}}
    finish(page, chart, "Front of the plan (as planned) and the layouts (live)", 3, **titles)
    page.text(row + 1, 0, f"A layout that is {NOT_LEGAL} has no point.", "note")


def points(name: str, sheet: str, first: int, last: int) -> dict[str, Any]:
    """A series of a scatter chart: the second column against the first."""
    return {"name": name, "categories": [sheet, first, 1, last, 1], "values": [sheet, first, 2, last, 2]}


def finish(
    page: Page, chart: Any, title: str, number: int, *, x: dict[str, Any] | None = None,
    y: dict[str, Any] | None = None, legend: bool = True,
) -> None:  # fmt: skip
    """Title, axes and place of the chart with this number from the top."""
    chart.set_title({"name": title, "name_font": {"size": 11}})
    chart.set_x_axis(x or {})
    chart.set_y_axis(y or {})
    chart.set_legend({"position": "bottom"} if legend else {"none": True})
    chart.set_size({"width": 760, "height": (CHART_ROWS[number] - 1) * ROW_PIXELS})
    page.sheet.insert_chart(FIRST - 1 + sum(CHART_ROWS[:number]), CHARTS, chart)
