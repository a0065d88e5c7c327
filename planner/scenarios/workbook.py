"""What a workbook's own XML says that its values do not: how many rows, which formulas nobody calculated, error values.

An xlsx is a zip of XML parts. A value of a formula is the one cached at the last save; a program that writes formulas
without calculating them leaves it out, or writes 0 and asks for a calculation on loading.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree
from xml.parsers import expat

from planner.errors import BadFile

ZIP, OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
PART, OVERLAP, MOST_XML = 1 << 20, 512, 10_000_000  # bytes: read at once, shared by two reads, of a table of contents
MOST_UNPACKED = 1_000_000_000
"""Bytes of all parts together, unpacked: far above what MOST_ROWS need."""
MOST_CELLS = 10_000_000
"""Cells of the rectangle up to the last one, which is read whole."""
ROW, TOLD = re.compile(rb"<(?:\w+:)?row[\s>/]"), re.compile(rb"<(?:\w+:)?f[\s>/]|\bt\s*=\s*[\"']e[\"']")
ROW_AT = re.compile(rb"<(?:\w+:)?row\b[^<>]*?\sr\s*=\s*[\"']([0-9]+)[\"']")
CELL_AT = re.compile(rb"<(?:\w+:)?c\b[^<>]*?\sr\s*=\s*[\"']([A-Za-z]+)([0-9]+)[\"']")
MERGED = re.compile(rb"<(?:\w+:)?mergeCell\b[^<>]*?\sref\s*=\s*[\"']([A-Za-z]+)([0-9]+):([A-Za-z]+)([0-9]+)[\"']")
"""Where a row and a cell say they are, the corners of cells merged into one."""
NEVER = "(formula, never calculated)"
FAR_NAME = 4
"""Letters of a column that no worksheet has."""
UTF16 = (b"\xff\xfe", b"\xfe\xff")
SAVE = "save it as .xlsx or .csv"


@dataclass
class Marks:
    """Cells (row, column), 0-based, whose value says less than it seems to, and why; how many formulas there are.

    texts: what stands in such a cell from here on, so that it is neither empty nor 0 when it is written. merged: top,
    left, bottom and right of cells merged into one, which has the value of the first.
    """

    cells: dict[tuple[int, int], str] = field(default_factory=dict)
    texts: dict[tuple[int, int], str] = field(default_factory=dict)
    formulas: int = 0
    merged: set[tuple[int, int, int, int]] = field(default_factory=set)


def is_workbook(path: Path) -> bool:
    """Whether the file begins as a workbook does, of whatever form."""
    with path.open("rb") as file:
        return file.read(len(OLE)).startswith((ZIP, OLE))


def refuse_other_forms(path: Path) -> None:
    """Only xlsx is read. Raises BadFile: old xls, xlsb, ods, under a password, no workbook."""
    if not zipfile.is_zipfile(path):
        head = path.read_bytes()[:MOST_XML]
        if head.startswith(OLE) and ENCRYPTED in head:
            raise BadFile(str(path), "is protected by a password", "save it without one")
        if head.startswith(OLE):
            raise BadFile(str(path), "is a workbook of the old form (.xls)", SAVE)
        raise BadFile(str(path), "is no sound workbook: its end is missing or damaged", "save it anew")
    with zipfile.ZipFile(path) as parts:
        names = set(parts.namelist())
        if "xl/workbook.xml" not in names:
            forms = {"xl/workbook.bin": "a binary workbook (.xlsb)", "content.xml": "an OpenDocument file (.ods)"}
            form = next((form for name, form in forms.items() if name in names), "a zip archive and no workbook")
            raise BadFile(str(path), f"is {form}", SAVE)
        if sum(part.file_size for part in parts.infolist()) > MOST_UNPACKED:
            raise BadFile(str(path), f"holds over {MOST_UNPACKED:,} bytes", "split the table")


def local(tag: str) -> str:
    """A tag or attribute without its namespace."""
    return tag.rpartition("}")[2].rpartition(":")[2]


def xml_of(parts: zipfile.ZipFile, name: str) -> Any:
    """A small part as a tree."""
    with parts.open(name) as file:
        return ElementTree.fromstring(file.read(MOST_XML))


def part_of(parts: zipfile.ZipFile, sheet: str) -> tuple[str, bool]:
    """(name of the part that holds a worksheet, whether all is to be calculated on loading)."""
    book = xml_of(parts, "xl/workbook.xml")
    asks = any(local(node.tag) == "calcPr" and node.get("fullCalcOnLoad") in ("1", "true") for node in book.iter())
    (held,) = [node for node in book.iter() if local(node.tag) == "sheet" and node.get("name") == sheet]
    own = next(value for key, value in held.attrib.items() if key.startswith("{") and local(key) == "id")
    targets = {node.get("Id"): node.get("Target", "") for node in xml_of(parts, "xl/_rels/workbook.xml.rels")}
    return posixpath.normpath(posixpath.join("/xl", targets[own])).lstrip("/"), asks


def marks_of(path: Path, sheet: str, most_rows: int, most_columns: int) -> Marks:
    """The marks of a worksheet, in one pass; the cells are looked at one by one only where there are any.

    Raises BadFile for more rows than `most_rows`, counted before anything is read into memory, and for a stray cell so
    far away that the rectangle up to it would not fit there.
    """
    with zipfile.ZipFile(path) as parts:
        name, asks = part_of(parts, sheet)
        extent, told, tail, marks = Extent(str(path), most_rows, most_columns), False, b"", Marks()
        with parts.open(name) as file:
            while data := file.read(PART):
                text = tail + data
                refuse_unread(str(path), text)
                extent.grow(text, tail)
                told = told or TOLD.search(text) is not None
                marks.merged |= {corners(found) for found in MERGED.findall(text)}
                tail = text[-OVERLAP:]
        if told:
            with parts.open(name) as file:
                found = told_cells(file, asks)
            marks = replace(found, merged=marks.merged)
        return marks


def refuse_unread(where: str, text: bytes) -> None:
    """What no spreadsheet program writes and this reader would misread. Raises BadFile."""
    if text.startswith(UTF16) or b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        raise BadFile(where, "has a sheet in a form no spreadsheet program writes", "open it in one and save it anew")


@dataclass
class Extent:
    """How many rows there are, and how far the last row and column are. Raises BadFile as it grows too large."""

    where: str
    most_rows: int
    most_columns: int
    rows: int = 0
    last: int = 0
    columns: int = 1

    def grow(self, text: bytes, seen: bytes) -> None:
        """Take in a part of the XML, the beginning of which was seen before."""
        self.rows += len(ROW.findall(text)) - len(ROW.findall(seen))
        if self.rows > self.most_rows + 1:
            what = f"has over {self.most_rows:,} rows (empty ones that are formatted count)"
            raise BadFile(self.where, what, "split the table, or delete the rows below it")
        cells = CELL_AT.findall(text)
        self.last = max([self.last, self.rows, *map(int, ROW_AT.findall(text)), *(int(row) for _, row in cells)])
        names = {name.decode().upper()[:FAR_NAME] for name, _ in cells}
        self.columns = max([self.columns, *(column_of(name) + 1 for name in names)])
        if self.last > self.most_rows + 1 or self.columns > self.most_columns or self.last * self.columns > MOST_CELLS:
            raise BadFile(
                self.where, f"has a cell at {self.corner(cells)}, far from any table", "delete it, or move the table"
            )

    def corner(self, cells: list[tuple[bytes, bytes]]) -> str:
        """The cell that is far away, or how far the rows go."""
        for name, row in cells:
            if int(row) > self.most_rows + 1 or column_of(name.decode()[:FAR_NAME]) >= self.most_columns:
                return f"{name.decode().upper()}{int(row)}"
        return f"{column_name(self.columns - 1)}{self.last}"


def corners(found: tuple[bytes, ...]) -> tuple[int, int, int, int]:
    """Top, left, bottom and right, 0-based, of merged cells."""
    left, top, right, bottom = (part.decode() for part in found)
    return int(top) - 1, column_of(left[:FAR_NAME]), int(bottom) - 1, column_of(right[:FAR_NAME])


def told_cells(file: IO[bytes], asks: bool) -> Marks:
    """Formulas without a value and error values of a worksheet's XML."""
    marks = Marks()
    row, column = -1, -1
    formula, kind, value, inside, given = False, "", "", False, False

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal row, column, formula, kind, value, inside, given
        tag = local(tag)
        if tag == "row":
            row, column = int(attributes.get("r", row + 2)) - 1, -1
        elif tag == "c":
            reference = attributes.get("r", "").rstrip("0123456789")
            column = column_of(reference) if reference else column + 1
            formula, kind, value, given = False, attributes.get("t", "n"), "", False
        elif tag == "f":
            formula = True
        inside = tag == "v"
        given = given or inside

    def end(tag: str) -> None:
        nonlocal inside
        inside = False
        if local(tag) != "c":
            return
        marks.formulas += formula
        if kind == "e":
            marks.cells[row, column], marks.texts[row, column] = f"is the error value {value}", value
        elif formula and not (kind == "str" and given) and (not value or (asks and kind == "n" and float(value) == 0)):
            marks.cells[row, column] = "is a formula that was never calculated"
            marks.texts[row, column] = NEVER

    def data(text: str) -> None:
        nonlocal value
        value += text if inside else ""

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, data
    parser.ParseFile(file)
    return marks


def column_of(letters: str) -> int:
    """'A' -> 0, 'AA' -> 26."""
    found = 0
    for letter in letters.upper():
        found = found * 26 + ord(letter) - ord("A") + 1
    return found - 1


def column_name(place: int) -> str:
    """0 -> 'A', 26 -> 'AA'."""
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def values(path: Path, most_rows: int, most_columns: int) -> tuple[str, int, list[list[Any]], Marks]:
    """(name of the first worksheet, how many there are, its cells from A1 on, its marks). Raises BadFile."""
    from python_calamine import CalamineError, PasswordError, SheetTypeEnum, SheetVisibleEnum, load_workbook

    try:
        refuse_other_forms(path)
        book = load_workbook(str(path))
        all_sheets = [sheet for sheet in book.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
        sheets = [sheet.name for sheet in all_sheets if sheet.visible == SheetVisibleEnum.Visible]
        if not sheets:
            raise BadFile(str(path), "has no visible worksheet", "put the table in one")
        marks = marks_of(path, sheets[0], most_rows, most_columns)
        cells = book.get_sheet_by_name(sheets[0]).to_python(skip_empty_area=False)
        for (row, column), text in marks.texts.items():
            if row < len(cells):
                cells[row] += [""] * (column + 1 - len(cells[row]))
                cells[row][column] = text
        mark_merged(cells, marks)
        mark_endless(cells, marks)
        return sheets[0], len(sheets), cells, marks
    except PasswordError:
        raise BadFile(str(path), "is protected by a password", "save it without one") from None
    except (CalamineError, zipfile.BadZipFile, ElementTree.ParseError, expat.ExpatError, *DAMAGED) as error:
        what = f"is no sound workbook ({type(error).__name__})"
        raise BadFile(str(path), what, "open it in a spreadsheet program and save it anew") from None


def mark_merged(cells: list[list[Any]], marks: Marks) -> None:
    """Mark cells below the first of those merged into one: which rows it speaks for is not said."""
    for top, left, bottom, right in marks.merged:
        for row in range(top + 1, min(bottom, len(cells) - 1) + 1):
            for column in range(left, min(right, len(cells[row])) + 1):
                first = f"{column_name(left)}{top + 1}"
                marks.cells.setdefault((row, column), f"is merged with {first}: give it a value of its own")


def mark_endless(cells: list[list[Any]], marks: Marks) -> None:
    """Mark numbers that are none, which stay in sight as text: no spreadsheet writes them."""
    for row, line in enumerate(cells):
        for column, cell in enumerate(line):
            if type(cell) is float and not isfinite(cell):
                marks.cells[row, column], line[column] = "is no finite number", str(cell)


DAMAGED = (
    OverflowError,
    KeyError,
    ValueError,
    StopIteration,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OSError,
    zlib.error,
)
"""What parts that lack something, or are not what they should be, make the readers raise."""
