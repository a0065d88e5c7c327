"""The workbook whole: its sheets, its defined names, the file."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from typing import Any

from planner.evaluate.results import Result
from planner.evaluate.show import written
from planner.report.workbook import allowed, inputs, layouts, model, results, sources
from planner.report.workbook.names import distinct
from planner.report.workbook.style import Page
from planner.search.workbook import Contents

XLSX = (".xlsx",)
SHEETS = ("Inputs", "Results", "Layouts", "Model", "Sources", "Allowed")
OPTIONS = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
CREATED = datetime(2026, 1, 1)
"""The same question gives the same file, whenever it is written."""


@dataclass(frozen=True)
class Written(Result):
    """`planner workbook`: the file, and what is in it. seconds: taken to write it, the plan not counted."""

    path: str
    sheets: list[str]
    quantities: int
    inputs: int
    layouts: int
    bytes: int
    seconds: float


def write(contents: Contents, out: str, force: bool, begin: float) -> Written:
    """Write the workbook whole or not at all. begin: the clock when the plan was done. Raises BadFile, BadInput."""
    data = packed(contents)
    written(data, out, force, XLSX)
    return Written(
        path=out,
        sheets=list(SHEETS),
        quantities=len(contents.formulas),
        inputs=len(contents.entries),
        layouts=len(contents.columns),
        bytes=len(data),
        seconds=time.perf_counter() - begin,
    )


def packed(contents: Contents) -> bytes:
    """The file's bytes. What the writer warns of is an error: the file would not be what it should."""
    from xlsxwriter import Workbook

    target = BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        book = Workbook(target, OPTIONS)
        book.set_properties({"title": f"{contents.case.model.name} on {contents.case.system.name}", "created": CREATED})
        fill(book, contents)
        book.close()
    return target.getvalue()


def fill(book: Any, contents: Contents) -> None:
    """All sheets and names."""
    looks: dict[tuple[str, str], Any] = {}
    pages = {name: Page(book, book.add_worksheet(name), name, looks) for name in SHEETS}
    for page in pages.values():
        page.sheet.set_landscape()
        page.sheet.fit_to_pages(1, 0)
    names = inputs.write(pages["Inputs"], contents)
    names |= model.write(pages["Model"], contents)
    names |= allowed.write(pages["Allowed"], contents.tables)
    rows = layouts.write(pages["Layouts"], contents)
    results.write(pages["Results"], contents, rows, "Layouts")
    sources.write(pages["Sources"], contents)
    distinct(list(names))
    for name, cells in names.items():
        book.define_name(name, cells)
