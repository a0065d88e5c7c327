"""`planner import-sheet`: a table of scenarios, one a row, priced and written with the predictions beside them.

The user's columns come back in their order and with their values; the file that was read is never changed. Rows that
cannot be priced say why in their `error`; empty rows stay empty.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from planner.errors import BadFile, PlannerError
from planner.evaluate.many import Headlines, cells
from planner.evaluate.results import Result
from planner.scenarios.cells import DEFAULTS, empty, priced
from planner.scenarios.rows import Asked, Reader, met
from planner.scenarios.table import OTHER_NAMES, RESULTS, Table, plain, read
from planner.scenarios.write import destination, write

FIRST_ERRORS, TOLD, SHORT = 5, 3, 110
"""Rows with an error that a summary shows; and where there is nothing else: so many, of so many letters."""
NEAR = 0.75
"""How alike two names are of which one may be a slip for the other: 1 is the same."""


@dataclass(frozen=True)
class Imported(Result):
    """`planner import-sheet`. rows: those with something in them; priced, feasible: of those; errors: the first few.

    notes: columns that are no inputs and are kept as they were; near: those whose name is close to an input's.
    above: rows with something in them above the header, kept as they were.
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
    above: int
    seconds: float


def import_sheet(path: str, out: str, force: bool = False) -> Imported:
    """Price every row of a table into another. Raises BadFile; nothing is written where no row can be priced."""
    begin = time.perf_counter()
    destination(path, out, force)
    table = read(Path(path))
    reader = Reader()
    asked = [asked_of(reader, table, place, row) for place, row in enumerate(table.rows)]
    found = priced([one.scenario if one else None for one in asked])
    lines = [results(reader, one, answer) for one, answer in zip(asked, found, strict=True)]
    wrong = [(place + table.top + 2, line[-1]) for place, line in enumerate(lines) if line[-1]]
    good = [one for one in found if isinstance(one, Headlines)]
    if not good:
        told = "; ".join(f"row {row}: {short(error)}" for row, error in wrong[:TOLD])
        raise BadFile(path, f"none of its {len(wrong):,} rows can be priced; {told}", "correct the rows")
    write(table, lines, out, force)
    errors = [{"row": row, "error": error} for row, error in wrong[:FIRST_ERRORS]]
    return Imported(
        path, out, table.sheet, table.sheets, len(good) + len(wrong), len(good),
        sum(one.feasible for one in good), len(wrong), errors, table.notes, near(table), table.marks.formulas,
        len([row for row in table.above if not all(map(empty, row))]), time.perf_counter() - begin,
    )  # fmt: skip


def short(error: str) -> str:
    """An error cut to what fits beside others."""
    return error if len(error) <= SHORT else error[:SHORT] + " ..."


def asked_of(reader: Reader, table: Table, place: int, row: list[Any]) -> Asked | None:
    """What a row asks for, or None where it is empty."""
    own = row if table.results is None else row[: table.results] + row[table.results + len(RESULTS) :]
    marks = table.marks.cells
    places = table.columns.items()
    line = place + table.top + 1
    marked = {name: marks[line, column] for name, column in places if (line, column) in marks} if marks else {}
    if not marked and all(map(empty, own)):
        return None
    return reader.row({name: row[column] for name, column in places if column < len(row)}, marked)


def results(reader: Reader, asked: Asked | None, found: Headlines | PlannerError | None) -> list[Any]:
    """The cells that are appended to a row."""
    if asked is None:
        return [None] * len(RESULTS)
    if not isinstance(found, Headlines):
        return [*[None] * (len(RESULTS) - 1), reader.told(asked.given, found) if found else asked.wrong]
    violation = "; ".join(missed["sentence"] for missed in found.violations) or None
    return [*cells(found), *met(found, asked.slo), violation, None]


def near(table: Table) -> dict[str, str]:
    """Notes whose name is close to that of an input the table lacks, or has it as a word: a slip, perhaps."""
    words = {word: OTHER_NAMES.get(word, word) for word in (*DEFAULTS, *OTHER_NAMES)}
    lacking = {word: name for word, name in words.items() if name not in table.columns}
    found = {}
    for note in table.notes:
        name = plain(note)
        close = get_close_matches(name, lacking, n=1, cutoff=NEAR) or [w for w in name.split("_") if w in lacking]
        if close:
            found[note] = lacking[close[0]]
    return found
