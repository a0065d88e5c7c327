"""`planner import-sheet`: a table of scenarios, one a row, priced and written with the predictions beside them.

The user's columns come back in their order and with their values; the file that was read is never changed. Rows that
cannot be priced say why in their `error`; empty rows stay empty.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import BadFile, BadInput, PlannerError, nearest
from planner.evaluate.many import Headlines, Scenario, cells
from planner.evaluate.results import Result
from planner.scenarios.cells import DEFAULTS, empty, priced, scenario, sentence
from planner.scenarios.table import RESULTS, Table, read
from planner.scenarios.write import destination, write

FIRST_ERRORS = 5
"""Rows with an error that a summary shows."""


@dataclass(frozen=True)
class Imported(Result):
    """`planner import-sheet`. rows: those with something in them; priced, feasible: of those; errors: the first few.

    notes: columns that are no inputs and are kept as they were; near: those whose name is close to an input's.
    """

    path: str
    out: str
    sheet: str
    sheets: int
    rows: int
    priced: int
    feasible: int
    refused: int
    errors: list[dict[str, Any]]
    notes: list[str]
    near: dict[str, str]
    formulas: int
    seconds: float


def import_sheet(path: str, out: str, force: bool = False) -> Imported:
    """Price every row of a table into another. Raises BadFile; nothing is written where no row can be priced."""
    begin = time.perf_counter()
    destination(path, out, force)
    table = read(Path(path))
    asked = [asked_of(table, place, row) for place, row in enumerate(table.rows)]
    found = priced(asked)
    wrong = [(place, one) for place, one in enumerate(found) if isinstance(one, PlannerError)]
    errors = [{"row": place + table.top + 2, "error": sentence(one)} for place, one in wrong[:FIRST_ERRORS]]
    good = [one for one in found if isinstance(one, Headlines)]
    if not good:
        what = f"none of its {len(wrong):,} rows can be priced; row {errors[0]['row']}: {errors[0]['error']}"
        raise BadFile(path, what, "correct the rows")
    write(table, [results(one) for one in found], out, force)
    return Imported(
        path, out, table.sheet, table.sheets, len(good) + len(wrong), len(good),
        sum(one.feasible for one in good), len(wrong), errors, table.notes, near(table.notes), table.marks.formulas,
        time.perf_counter() - begin,
    )  # fmt: skip


def asked_of(table: Table, place: int, row: list[Any]) -> Scenario | PlannerError | None:
    """What a row asks for, what is wrong with it, or None where it is empty."""
    own = row if table.results is None else row[: table.results] + row[table.results + len(RESULTS) :]
    marks = table.marks.cells
    given: dict[str, Any] = {}
    try:
        for name, column in table.columns.items():
            marked = marks.get((place + table.top + 1, column)) if marks else None
            if marked:
                raise BadInput(name, marked, "calculate it in a spreadsheet program, or give a value")
            given[name] = row[column] if column < len(row) else None
        if all(map(empty, own)):
            return None
        return scenario(given)
    except PlannerError as error:
        return error


def results(one: Headlines | PlannerError | None) -> list[Any]:
    """The cells that are appended to a row."""
    if one is None:
        return [None] * len(RESULTS)
    if isinstance(one, PlannerError):
        return [*[None] * (len(RESULTS) - 1), sentence(one)]
    return [*cells(one), "; ".join(missed["sentence"] for missed in one.violations) or None, None]


def near(notes: list[str]) -> dict[str, str]:
    """Notes whose name is close to that of an optional input, which a slip would leave at its default."""
    found = {}
    for name in notes:
        close = nearest(name.lower().replace(" ", "_").replace("-", "_"), DEFAULTS)
        if close.startswith("did you mean ") and not close.startswith("did you mean one"):
            found[name] = close.removeprefix("did you mean ").removesuffix("?")
    return found
