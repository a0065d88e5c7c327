"""A table of scenarios as a file has it: CSV or the first worksheet of a workbook, and what its header means.

Cells stay as they were given. Columns are known by their header, however it is spelt: `--kv-dtype`, `KV dtype` and
`kv_dtype` are one. Columns with other names are the user's own notes; results of an earlier run are told by all their
names standing side by side.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from planner.errors import BadFile, shown
from planner.evaluate.many import COLUMNS
from planner.scenarios import workbook
from planner.scenarios.cells import INPUTS, REQUIRED, empty
from planner.scenarios.workbook import Marks, column_name

MOST_ROWS = 200_000
"""Rows of a table: some tens of seconds. A worksheet could hold 1,048,576."""
MOST_COLUMNS, MOST_BYTES, MOST_HEAD, MOST_LINE = 1_000, 200_000_000, 1_000_000, 100_000
RESULTS = (*(column.name for column in COLUMNS), "meets_ttft", "meets_tpot", "violation", "error")
"""The columns that are appended, in order."""
OTHER_NAMES = {
    "on": "system", "hardware": "system", "tp_dp_layout": "layout", "kv_format": "kv_dtype", "usd_per_hour": "price",
    **dict.fromkeys(("batch", "batch_size", "requests_in_flight"), "concurrency"),
    **dict.fromkeys(("prompt_tokens", "input_tokens", "context"), "isl"),
    "output_tokens": "osl",
}  # fmt: skip
"""Other words for an input."""
SEARCHED = 10
"""Rows among which a header is looked for below a title."""
WORKBOOKS, SEPARATORS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), (",", ";", "\t")
MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
QUOTE = "'"
FORMULA = re.compile(r"[=@\t\r]|[+-](?!\s*[\d.,]*\s*%?\s*$)")
"""What marks text, and the beginning of text that a spreadsheet takes for a formula: no plain number."""
SAID = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
"""The first line by which Excel is told a separator."""


@dataclass
class Table:
    """A table as read. top: the header's row, 0-based; columns: place of every input by name; notes: other headers.

    results: where the columns of an earlier run begin, if there are any. form: how a CSV was written. above: rows above
    the header.
    """

    header: list[Any]
    rows: list[list[Any]]
    top: int
    columns: dict[str, int]
    notes: list[str]
    results: int | None
    marks: Marks = field(default_factory=Marks)
    sheet: str = ""
    sheets: int = 1
    form: dict[str, str] = field(default_factory=dict)
    above: list[list[Any]] = field(default_factory=list)

    @property
    def width(self) -> int:
        """The most cells of a row below a title."""
        return max(len(self.header), *(len(row) for row in self.rows))


def plain(header: Any) -> str:
    """A header as a name: '--KV dtype' -> 'kv_dtype'."""
    name = re.sub(r"[\s_-]+", "_", str(header or "").strip().lower()).strip("_")
    return OTHER_NAMES.get(name, name)


def read(path: Path) -> Table:
    """A table of scenarios. Raises BadFile."""
    where = str(path)
    try:
        if not path.is_file():
            raise BadFile(where, "is no file", "give a table in .xlsx or .csv")
        size = path.stat().st_size
        if not size:
            raise BadFile(where, "is empty", "give a table with a header row")
        if size > MOST_BYTES:
            raise BadFile(where, f"is over {MOST_BYTES:,} bytes", "split the table")
        if workbook.is_workbook(path):
            sheet, sheets, cells, marks = workbook.values(path, MOST_ROWS, MOST_COLUMNS)
            return table(where, cells, marks=marks, sheet=sheet, sheets=sheets)
        if path.suffix.lower() in WORKBOOKS:
            raise BadFile(where, "is named like a workbook and is none", "save it as .xlsx, or name it .csv")
        text, form = decoded(path)
    except OSError as error:
        raise BadFile(where, error.strerror or "cannot be read", "check the path") from None
    cells, form["separator"] = separated(where, text, form)
    return table(where, cells, form=form)


def decoded(path: Path) -> tuple[str, dict[str, str]]:
    """(text, how it was written) of a CSV: UTF-8, or UTF-16 that says so. Raises BadFile, never guesses."""
    data = path.read_bytes()
    encoding = next((name for mark, name in MARKS.items() if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        what = f"is not {encoding.removesuffix('-sig').upper()} text (byte {error.start})"
        raise BadFile(str(path), what, "save it as 'CSV UTF-8' or .xlsx") from None
    if "\0" in text:
        raise BadFile(str(path), "is no text", "give a table in .xlsx or .csv")
    said = SAID.match(text)
    form = {"encoding": encoding, "preface": said[0] if said else "", "line_end": "\r\n" if "\r\n" in text else "\n"}
    return text.removeprefix(form["preface"]), form


def separated(where: str, text: str, form: Mapping[str, str]) -> tuple[list[list[Any]], str]:
    """(rows, separator): the one that gives the header the most names that are known. Raises BadFile."""
    said = SAID.match(form["preface"])
    options = (said[1],) if said else SEPARATORS
    first = [line[:MOST_LINE] for line in text[:MOST_HEAD].splitlines() if line.strip()][:SEARCHED]
    found: list[list[Any]] = []

    def known(separator: str) -> int:
        return max(len(inputs_in(next(csv.reader([line], delimiter=separator), []))) for line in first or [""])

    try:
        separator = max(options, key=known)
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True):
            found.append([cell[1:] if cell[:1] == QUOTE and FORMULA.match(cell, 1) else cell for cell in row])
            if len(found) > MOST_ROWS + 1:
                raise BadFile(where, f"has over {MOST_ROWS:,} rows", "split the table")
    except (csv.Error, TypeError) as error:
        raise BadFile(where, f"row {len(found) + 1}: {error}", "save it as plain CSV") from None
    return found, separator


def inputs_in(row: list[Any]) -> set[str]:
    """The inputs that a row names."""
    return {plain(cell) for cell in row} & set(INPUTS)


def below_title(cells: list[list[Any]], top: int) -> int:
    """The header's row: the first with something in it, or the only one of the first rows with all that is required."""
    if set(REQUIRED) <= inputs_in(cells[top]):
        return top
    later = [place for place in range(top + 1, min(SEARCHED, len(cells))) if set(REQUIRED) <= inputs_in(cells[place])]
    return later[0] if len(later) == 1 else top


def table(where: str, cells: list[list[Any]], **told: Any) -> Table:
    """Cells as a table: the first row with something in it is the header, or one below a title. Raises BadFile."""
    top = next((place for place, row in enumerate(cells) if not all(map(empty, row))), None)
    if top is None:
        raise BadFile(where, "has no cell with anything in it", "give a table with a header row")
    if max(len(row) for row in cells) > MOST_COLUMNS:
        raise BadFile(where, f"has over {MOST_COLUMNS:,} columns", "leave out what is not needed")
    top = below_title(cells, top)
    header, rows = cells[top], cells[top + 1 :]
    columns, notes = named(where, header, top)
    if all(all(map(empty, row)) for row in rows):
        raise BadFile(where, "has a header and no rows", "give a scenario a row")
    return Table(header, rows, top, columns, notes, earlier(where, header), above=cells[:top], **told)


def named(where: str, header: list[Any], top: int) -> tuple[dict[str, int], list[str]]:
    """(place of every input by name, the other headers). Raises BadFile: no header, twice the same, one is missing."""
    columns: dict[str, int] = {}
    notes: list[str] = []
    for place, cell in enumerate(header):
        name = plain(cell)
        if name in columns:
            both = f"columns {column_name(columns[name])} and {column_name(place)} are both {name!r}"
            raise BadFile(where, both, "keep one of them, or rename the other")
        if name in INPUTS:
            columns[name] = place
        elif not empty(cell) and name not in RESULTS:
            notes.append(str(cell).strip())
    if not columns:
        what = f"row {top + 1} is no header: none of its cells is the name of an input ({shown(header[0])} ...)"
        raise BadFile(where, what, f"begin with a row of names: {', '.join(REQUIRED)}")
    for name in REQUIRED:
        if name not in columns:
            close = get_close_matches(name, {plain(note): note for note in notes}, n=1)
            if close:
                note = next(note for note in notes if plain(note) == close[0])
                raise BadFile(where, f"column {note!r} is not known", f"rename it {name}")
            raise BadFile(where, f"has no column {name!r}", f"needed: {', '.join(REQUIRED)}")
    return columns, notes


def earlier(where: str, header: list[Any]) -> int | None:
    """Where the results of an earlier run begin. Raises BadFile for a column with the name of a result that is none."""
    names = ["" if empty(cell) else str(cell).strip() for cell in header]
    starts = [i for i in range(len(names)) if tuple(names[i : i + len(RESULTS)]) == RESULTS]
    inside = {i + k for i in starts[:1] for k in range(len(RESULTS))}
    for place, name in enumerate(names):
        if name in RESULTS and place not in inside:
            what = f"column {column_name(place)} is named {name!r}, as a result is, and is not one of an earlier run"
            raise BadFile(where, what, "rename it, such as to 'my " + name + "'")
    return starts[0] if starts else None
