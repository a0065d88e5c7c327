"""A priced table as CSV or as a workbook: written whole beside its place and then moved there."""

from __future__ import annotations

import csv
import io
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner.errors import BadFile
from planner.evaluate.show import free, written
from planner.scenarios.cells import empty
from planner.scenarios.table import FORMULA, QUOTE, RESULTS, Table
from planner.scenarios.xlsx import LONGEST_TEXT, MOST_COLUMNS, MOST_ROWS, workbook

ENDINGS = (".xlsx", ".csv")
SENTENCES, WIDE, NARROW, USUAL, SPARE, WIDEST = ("violation", "error"), 40, 12, 10, 2, 60
"""Columns that hold a sentence; letters of those, of other results and of the user's, more than a header, at most."""
MOST_FROZEN, MOST_DIGITS, LONGEST_NAME = 5, 15, 31
PLAIN = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?$", re.ASCII)
"""A number that nobody means as a name."""


def destination(path: str, out: str, force: bool) -> None:
    """The table may be written there, and is not the one that is read. Raises BadFile."""
    if not out.endswith(ENDINGS):
        raise BadFile(out, "is not the name of a table", f"end it in {' or '.join(ENDINGS)}")
    if Path(path).exists() and os.path.exists(out) and os.path.samefile(path, out):
        raise BadFile(out, "is the table that is read, which stays as it is", "give another name for --out")
    free(out, force, ENDINGS)


def merged(table: Table, found: list[list[Any]]) -> tuple[list[Any], list[list[Any]]]:
    """(header, rows) with the results in the place of earlier ones, else behind the widest row."""
    if table.results is None:
        first, after = table.width, table.width
    else:
        first, after = table.results, table.results + len(RESULTS)

    def beside(row: list[Any], new: list[Any]) -> list[Any]:
        return row[:first] + [None] * (first - len(row)) + new + row[after:]

    rows = [beside(row, new) for row, new in zip(table.rows, found, strict=True)]
    return beside(table.header, list(RESULTS)), rows


def write(table: Table, found: list[list[Any]], out: str, force: bool) -> None:
    """The table with its results. Raises BadFile."""
    if table.form and out.endswith(".xlsx"):
        table = replace(table, rows=[list(map(amount, row)) for row in table.rows])
    header, rows = merged(table, found)
    made = as_csv(table, header, rows) if out.endswith(".csv") else as_workbook(out, table, header, rows)
    written(made, out, force, ENDINGS)


def as_csv(table: Table, header: list[Any], rows: list[list[Any]]) -> bytes:
    """As the table was written, or with commas in UTF-8; floats in full."""
    form = {"encoding": "utf-8", "separator": ",", "line_end": "\r\n", "preface": ""} | table.form
    text = io.StringIO(newline="")
    text.write(form["preface"])
    writer = csv.writer(text, delimiter=form["separator"], lineterminator=form["line_end"])
    writer.writerows([shown(cell) for cell in row] for row in table.above)
    writer.writerow(map(shown, header))
    writer.writerows([shown(cell) for cell in row] for row in rows)
    return text.getvalue().encode(form["encoding"])


def shown(cell: Any) -> Any:
    """A cell as text: TRUE and FALSE as spreadsheets have them, whole numbers without a point.

    Text that a spreadsheet would take for a formula gets the quote that marks text; reading takes it off again.
    """
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return int(cell) if cell.is_integer() and abs(cell) < 1 << 53 else repr(cell)
    if isinstance(cell, str) and FORMULA.match(cell):
        return QUOTE + cell
    return "" if cell is None else cell


def as_workbook(out: str, table: Table, header: list[Any], rows: list[list[Any]]) -> bytes:
    """One worksheet. Raises BadFile for what it cannot hold."""
    if len(header) > MOST_COLUMNS or len(rows) + table.top >= MOST_ROWS:
        raise BadFile(out, "is too small for the table: a worksheet ends there", "write a .csv")
    lines = [*table.above, header, *rows]
    for place, row in enumerate(lines, 1):
        if any(type(cell) is str and len(cell) > LONGEST_TEXT for cell in row):
            cut = f"row {place} has a cell of over {LONGEST_TEXT:,} letters, the most a worksheet holds"
            raise BadFile(out, cut, "shorten it, or write a .csv")
    first = table.width if table.results is None else table.results
    results = range(first, first + len(RESULTS))
    widths = {place: width(name, place in results) for place, name in enumerate(header) if not empty(name)}
    return workbook((table.sheet or "scenarios")[:LONGEST_NAME], lines, table.top, widths, identifying(table), results)


def width(name: Any, result: bool) -> int:
    """Letters of a column: its header fits, and what is usual below it."""
    least = WIDE if name in SENTENCES or name == "layout_used" else NARROW if result else USUAL
    return min(max(least, len(str(name)) + SPARE), WIDEST)


def identifying(table: Table) -> int:
    """Columns that stay in sight: up to those that say which deployment a row is, or the first where they are many."""
    last = max(table.columns[name] for name in ("model", "system", "layout")) + 1
    return last if last <= MOST_FROZEN else 1


def amount(text: Any) -> Any:
    """A cell of a CSV, text, as a number where it is plainly one: neither '007' nor more digits than a number keeps."""
    if not PLAIN.match(text) or len(text) > MOST_DIGITS:
        return text
    return float(text) if "." in text else int(text)
